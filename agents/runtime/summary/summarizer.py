"""A model that writes summaries: how it is asked, within which budget, and what is done when it cannot."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from agents.runtime.context.digests import request_sha256, sha256
from agents.runtime.context.window import Window
from agents.runtime.errors import ContextTooLong, RunError
from agents.runtime.model import (
    NO_USAGE,
    Chunk,
    FinishChunk,
    FinishReason,
    Model,
    ModelRequest,
    ReasoningChunk,
    Role,
    TextChunk,
    ToolCallChunk,
    Usage,
    UsageChunk,
    text_message,
)
from agents.runtime.session import ModelCall, PartRef
from agents.runtime.summary import fork, templates
from agents.runtime.summary.asking import Ask, SummaryFailed, Written
from agents.runtime.summary.guarding import guarded
from agents.runtime.summary.pieces import MOST_PIECES, next_piece
from agents.runtime.summary.prefix import enough, largest
from agents.runtime.summary.prompts import Prompts, prompts_of
from agents.runtime.summary.report import CallReport, Mode, Reason
from agents.runtime.tokens import measure

PURPOSE: Final = "summary"
NOT_CALLED: Final = CallReport()
PREVIOUS_SHARE: Final = 0.5  # of a request that reads a piece, for what came of the pieces before
_TOO_LARGE: Final = "What is new does not fit the model that summarises."
PromptChoice = Callable[[Ask], Prompts]


def by_policy(ask: Ask) -> Prompts:
    """Return the prompts of the policy's template in the language of the conversation."""
    return prompts_of(ask.policy.template, ask.language, ask.policy.summary_words)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """One request. covered: events that it gives the model. parts: where it came from."""

    request: ModelRequest
    covered: int
    mode: Mode
    parts: tuple[PartRef, ...]
    shrunk: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    text: str
    call: CallReport
    error: RunError | None = None


class _TooLarge(SummaryFailed):
    """Not even the smallest part of what is new fits one request."""

    def __init__(self) -> None:
        super().__init__(Reason.BUDGET, _TOO_LARGE)


class ModelSummarizer:
    """Asks a model. name: "" = the model's. prompts: which texts to ask with.

    The first request is a fork if there is a parent and fork.py says so, else it stands alone. One retry at half the
    budget, standing alone: if the provider says that the request was too long, or if a fork was answered without a
    word (a tool call, say). If not even the smallest part of what is new fits, that is read piece by piece, each
    with what came of those before, in several makings if need be. Every call is booked, with the parts it was made of.
    """

    def __init__(self, model: Model, name: str = "", prompts: PromptChoice = by_policy) -> None:
        self._model = model
        self._name = name or model.info.name
        self._prompts = prompts

    @property
    def name(self) -> str:
        return self._name

    async def write(self, ask: Ask) -> Written:
        prompts = self._prompts(ask)
        most = fork.first_budget(self._window(ask), ask.policy)
        try:
            attempt = self._first(ask, prompts, most)
        except _TooLarge:
            return await self._in_pieces(ask, prompts, most)
        answer = await self._call(ask, attempt, most)
        if self._again(attempt, answer):
            half = max(1, int(most * fork.RETRY_SHARE))
            try:
                attempt = _standalone(ask, prompts, half)
            except _TooLarge:
                return await self._in_pieces(ask, prompts, half, answer.call)
            answer = _after(await self._call(ask, attempt, half), answer.call)
        _check(answer)
        return Written(
            text=answer.text,
            covered=attempt.covered,
            call=answer.call,
            model=self._model.info.name,
            headings=prompts.headings,
        )

    async def _in_pieces(self, ask: Ask, prompts: Prompts, most: int, used: CallReport = NOT_CALLED) -> Written:
        """Give the writer the smallest part in several requests. used: what was called for it before.

        Raises SummaryFailed: unfinished if the next making is to go on; budget before any call.
        """

        def tokens(text: str, previous: str) -> int:
            return fork.request_tokens(_told(ask, prompts, text, previous), ask.rates)

        covered = _smallest(ask)
        whole, base_id = _text(ask, covered), ask.base.id if ask.base else ""
        read, previous = await ask.reading.so_far(whole, base_id, ask.base.text if ask.base else "")
        room = most - tokens("", "")
        for _ in range(MOST_PIECES):
            if tokens("", previous) > (bound := most - room * PREVIOUS_SHARE):
                previous = _middle_out(previous, lambda kept: tokens("", kept) <= bound)
            piece = next_piece(whole[read:], partial(_fits, tokens, previous, most))
            if not piece:
                raise SummaryFailed(Reason.BUDGET, _TOO_LARGE, used)
            attempt = _Attempt(
                request=_told(ask, prompts, piece, previous),
                covered=covered,
                mode=Mode.STANDALONE,
                parts=_parts(ask, prompts, covered),
                shrunk=("pieces",),
            )
            answer = _after(await self._call(ask, attempt, most), used)
            _check(answer)
            read, previous, used = read + len(piece), answer.text, answer.call
            if read == len(whole):
                name = self._model.info.name
                return Written(text=previous, covered=covered, call=used, model=name, headings=prompts.headings)
            await ask.reading.keep(whole[:read], base_id, previous)
        raise SummaryFailed(Reason.UNFINISHED, f"{read} of {len(whole)} characters are read.", used)

    def _window(self, ask: Ask) -> Window:
        own = self._model.info.window_tokens if ask.policy.summary_model else None
        return Window(tokens=own, source="model") if own else ask.window

    def _first(self, ask: Ask, prompts: Prompts, most: int) -> _Attempt:
        alone = _request(ask, prompts, len(ask.events), ask.base.text if ask.base else "")
        tokens = fork.request_tokens(alone, ask.rates)
        if (built := fork.build(ask, prompts.fork_text(), most, tokens)) is None:
            return _standalone(ask, prompts, most)
        request, shrunk = built
        text = prompts.fork_text()
        parts = (*(ask.parent.parts if ask.parent else ()), _instruction(text, ask, "fork"))
        return _Attempt(request=request, covered=len(ask.events), mode=Mode.FORK, parts=parts, shrunk=shrunk)

    def _again(self, attempt: _Attempt, answer: _Answer) -> bool:
        if answer.call.mode is Mode.CUSTOM:
            return False
        if answer.error is not None:
            return isinstance(answer.error, ContextTooLong) or fork.too_long(answer.error.message)
        return not answer.text and attempt.mode is Mode.FORK

    async def _call(self, ask: Ask, attempt: _Attempt, most: int) -> _Answer:
        hooks = ask.hooks
        request = attempt.request
        report = CallReport(mode=attempt.mode, model=self._model.info.name, shrunk=attempt.shrunk)
        if hooks.before_model is not None:
            found = await guarded(hooks.before_model(request), hooks.abort_on_error)
            if isinstance(found, str):
                return _Answer(text=found.strip(), call=replace(report, mode=Mode.CUSTOM))
            if found is not None:
                request = found
        estimated = fork.request_tokens(request, ask.rates)
        report = replace(report, estimated_prompt_tokens=estimated, calls=1)
        if request is not attempt.request and estimated > most:
            raise SummaryFailed(Reason.BUDGET, "A hook made the request larger than its budget.", report)
        answer = await self._ask_model(ask, request, attempt.parts, report)
        if hooks.after_model is not None and answer.error is None:
            replaced = await guarded(hooks.after_model(answer.text), hooks.abort_on_error)
            if replaced is not None:
                answer = replace(answer, text=replaced.strip())
        return answer

    async def _ask_model(
        self, ask: Ask, request: ModelRequest, parts: tuple[PartRef, ...], report: CallReport
    ) -> _Answer:
        started, started_at = ask.monotonic(), ask.now()
        texts: list[str] = []
        usage, finish, first_at, error = NO_USAGE, FinishReason.STOP, None, None
        try:
            async with aclosing(_closable(self._model.stream(request))) as chunks:
                async for chunk in chunks:
                    if first_at is None and isinstance(chunk, TextChunk | ReasoningChunk | ToolCallChunk):
                        first_at = ask.monotonic()
                    match chunk:
                        case TextChunk(text=text):
                            texts.append(text)
                        case UsageChunk(usage=reported):
                            usage = reported
                        case FinishChunk(reason=reason):
                            finish = reason
                        case _:
                            pass
        except RunError as failure:
            error, finish = failure, FinishReason.ERROR
        latency_ms = (ask.monotonic() - started) * 1000
        await ask.book(
            ModelCall(
                id=ask.new_id(),
                run_id=ask.run_id,
                invocation_id="",
                purpose=PURPOSE,
                provider=self._model.info.provider,
                model=self._model.info.name,
                usage=usage,
                ttft_ms=None if first_at is None else (first_at - started) * 1000,
                latency_ms=latency_ms,
                finish_reason=finish.value,
                error_code=error.code if error else "",
                parts=parts,
                request_sha256=request_sha256(request),
                started_at=started_at,
            )
        )
        call = _used(report, usage, latency_ms)
        return _Answer(text="" if error else "".join(texts).strip(), call=call, error=error)


async def _closable(chunks: AsyncIterator[Chunk]) -> AsyncGenerator[Chunk, None]:
    try:
        async for chunk in chunks:
            yield chunk
    finally:
        # Not every iterator is a generator; one that is holds the connection to the provider.
        if (close := getattr(chunks, "aclose", None)) is not None:
            await close()


def _standalone(ask: Ask, prompts: Prompts, most: int) -> _Attempt:
    """Return a request of its own within the budget, covering as much as fits. Raises SummaryFailed (budget).

    What is to be summarised is never cut: an older part of it that ends well is taken, so that nothing of the summary
    before is lost either. Only if not even the smallest part fits beside that, its middle is left out.
    """

    def tokens(covered: int, previous: str) -> int:
        return fork.request_tokens(_request(ask, prompts, covered, previous), ask.rates)

    base = ask.base.text if ask.base else ""
    every = len(ask.events)
    covered, previous = every, base
    if tokens(every, base) > most:
        covered = 0 if ask.text is not None else largest(ask, lambda c: tokens(c, base) <= most)
        if not covered:
            covered = _smallest(ask)
            previous = _middle_out(base, lambda kept: tokens(covered, kept) <= most)
        if tokens(covered, previous) > most:
            raise _TooLarge
    return _Attempt(
        request=_request(ask, prompts, covered, previous),
        covered=covered,
        mode=Mode.STANDALONE,
        parts=_parts(ask, prompts, covered),
        shrunk=("previous",) if previous != base else ("events",) if covered < every else (),
    )


def _smallest(ask: Ask) -> int:
    return len(ask.events) if ask.text is not None else next(iter(enough(ask)), len(ask.events))


def _text(ask: Ask, covered: int) -> str:
    if ask.text is not None:
        return ask.text
    end = ask.events[covered - 1].position if covered else 0
    return "\n".join(line.text for line in ask.lines if line.position <= end)


def _request(ask: Ask, prompts: Prompts, covered: int, previous: str) -> ModelRequest:
    return _told(ask, prompts, _text(ask, covered), previous)


def _told(ask: Ask, prompts: Prompts, text: str, previous: str) -> ModelRequest:
    user = prompts.user_text(text, previous)
    if ask.policy.fork != "off":
        user += templates.BOUNDED[ask.language]
    messages = (text_message(Role.SYSTEM, prompts.system_text()), text_message(Role.USER, user))
    return ModelRequest(messages=messages)


def _fits(tokens: Callable[[str, str], int], previous: str, most: int, text: str) -> bool:
    return tokens(text, previous) <= most


def _middle_out(text: str, fits: Callable[[str], bool]) -> str:
    """Return the text, or as much of its beginning and end as fits."""
    low, high = 0, len(text) // 2

    def kept(half: int) -> str:
        left_out = len(text) - 2 * half
        return f"{text[:half]}\n[... {left_out} characters left out ...]\n{text[len(text) - half :]}"

    while low < high:
        half = (low + high + 1) // 2
        low, high = (half, high) if fits(kept(half)) else (low, half - 1)
    return kept(low) if text else text


def _parts(ask: Ask, prompts: Prompts, covered: int) -> tuple[PartRef, ...]:
    system = prompts.system_text()
    tokens = ask.rates.tokens(measure(system))
    parts = [PartRef(kind="system", ref=sha256(system), tokens=tokens, tag="system")]
    if ask.base is not None:
        parts.append(PartRef(kind="summary", ref=ask.base.id, tokens=ask.base.tokens, tag="summary"))
    told = {line.position: line.text for line in ask.lines}
    parts += [
        PartRef(
            kind="event",
            ref=stored.id,
            tokens=ask.rates.tokens(measure(told[stored.position])),
            tag="covered",
            position=stored.position,
        )
        for stored in ask.events[:covered]
        if stored.position in told
    ]
    return (*parts, _instruction(prompts.user, ask, "prompt"))


def _instruction(text: str, ask: Ask, tag: str) -> PartRef:
    return PartRef(kind="instruction", ref=sha256(text), tokens=ask.rates.tokens(measure(text)), tag=tag)


def _used(report: CallReport, usage: Usage, latency_ms: float) -> CallReport:
    return replace(
        report,
        prompt_tokens=usage.prompt,
        cached_tokens=usage.cached,
        completion_tokens=usage.completion,
        latency_ms=latency_ms,
    )


def _after(answer: _Answer, first: CallReport) -> _Answer:
    """Return the answer of a retry with what both calls used."""
    call = answer.call
    both = replace(
        call,
        prompt_tokens=call.prompt_tokens + first.prompt_tokens,
        cached_tokens=call.cached_tokens + first.cached_tokens,
        completion_tokens=call.completion_tokens + first.completion_tokens,
        latency_ms=call.latency_ms + first.latency_ms,
        calls=call.calls + first.calls,
    )
    return replace(answer, call=both)


def _check(answer: _Answer) -> None:
    """Raise SummaryFailed if no text came."""
    if answer.error is not None:
        raise SummaryFailed(Reason.MODEL_ERROR, _said(answer.error), answer.call)
    if not answer.text:
        raise SummaryFailed(Reason.EMPTY, "The model answered nothing.", answer.call)


def _said(error: RunError) -> str:
    return f"[{type(error).__name__}] {error.message} (code: {error.code})"
