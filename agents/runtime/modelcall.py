"""One call to a model: the stream turned into deltas, complete segments and a row in the books."""

import logging
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime

from agents.runtime.context.assemble import Assembled
from agents.runtime.context.citing import Citing, Known, cited_message
from agents.runtime.context.digests import request_sha256
from agents.runtime.errors import ModelRefused, RunError
from agents.runtime.events import (
    AssistantMessage,
    CitationShown,
    Event,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Waiting,
)
from agents.runtime.interrupt import Interrupt, Interrupted
from agents.runtime.invocation import Invocation
from agents.runtime.knowledge import Cited
from agents.runtime.model import (
    NO_USAGE,
    FinishChunk,
    FinishReason,
    ModelRequest,
    ReasoningChunk,
    RetryChunk,
    TextChunk,
    ToolCall,
    ToolCallChunk,
    Usage,
    UsageChunk,
)
from agents.runtime.session import ModelCall
from agents.runtime.toolcalls import CallAssembler, CallDelta

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Segment:
    id: str
    citing: Citing
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    call_ids: list[str] = field(default_factory=list)


class Answering:
    """Collects one answer. A text or a thought after a tool call, or a thought after a text, begins a new segment.

    citable: what its texts may cite. Text may be held back until it is known not to be a citation's marker.
    """

    def __init__(
        self,
        response_id: str,
        new_id: Callable[[], str],
        clock: Callable[[], float],
        taken: Collection[str],
        citable: Known,
    ) -> None:
        self.response_id = response_id
        self.finish = FinishReason.STOP
        self.usage: Usage = NO_USAGE
        self.first_at: float | None = None
        self._clock = clock
        self._calls = CallAssembler(new_id, taken)
        self._citable = citable
        self._segments = [_Segment(response_id, Citing(citable))]
        self._segment_of: dict[str, _Segment] = {}
        self._thinking_since: float | None = None
        self._reasoning_ms = 0

    def take(self, chunk: TextChunk | ReasoningChunk | ToolCallChunk) -> list[Event]:
        if isinstance(chunk, ToolCallChunk):
            return self.tool_call(chunk)
        if not chunk.text:
            return []
        return self.text(chunk.text) if isinstance(chunk, TextChunk) else self.reasoning(chunk.text)

    def text(self, text: str) -> list[Event]:
        segment = self._segments[-1]
        if self._thinking_since is not None:
            self._thought()
        if segment.call_ids:
            segment = self._next_segment()
        return self._shown(segment, segment.citing.feed(text))

    def reasoning(self, text: str) -> list[Event]:
        segment = self._segments[-1]
        out = self._rest()
        if segment.call_ids or segment.text:
            segment = self._next_segment()
        if self._thinking_since is None:
            self._thinking_since = self._clock()
        segment.reasoning.append(text)
        return [*out, ReasoningDelta(segment.id, text)]

    def tool_call(self, chunk: ToolCallChunk) -> list[Event]:
        deltas = self._calls.feed(chunk)
        return [*self._rest(), *(self._placed(delta) for delta in deltas)] if deltas else []

    def end(self) -> list[Event]:
        """Give out what was held back, and announce the calls whose id never came."""
        if self._thinking_since is not None:
            self._thought()
        return [*self._rest(), *(self._placed(delta) for delta in self._calls.finish())]

    def segments(self, finish: FinishReason) -> tuple[AssistantMessage, ...]:
        """Return what there is, complete or not; () if there is nothing. The last one carries the finish reason."""
        by_id = {call.id: call for call in self._calls.calls()}
        filled = [s for s in self._segments if s.text or s.reasoning or s.call_ids or s.citing.not_found]
        return tuple(
            cited_message(
                AssistantMessage(
                    id=segment.id,
                    response_id=self.response_id,
                    reasoning="".join(segment.reasoning),
                    tool_calls=tuple(by_id[call_id] for call_id in segment.call_ids),
                    finish_reason=finish if segment is filled[-1] else FinishReason.TOOL_CALLS,
                    reasoning_ms=self._reasoning_ms if segment.reasoning else 0,
                ),
                "".join(segment.text),
                segment.citing,
            )
            for segment in filled
        )

    def _shown(self, segment: _Segment, pieces: list[str | Cited]) -> list[Event]:
        out: list[Event] = []
        for piece in pieces:
            if isinstance(piece, str):
                segment.text.append(piece)
                out.append(TextDelta(segment.id, piece))
            else:
                out.append(CitationShown(segment.id, piece))
        return out

    def _rest(self) -> list[Event]:
        """Return what the text so far held back: it is over."""
        segment = self._segments[-1]
        return self._shown(segment, segment.citing.end())

    def _placed(self, delta: CallDelta) -> ToolCallDelta:
        segment = self._segment_of.get(delta.call_id)
        if segment is None:
            if self._thinking_since is not None:
                self._thought()
            segment = self._segment_of[delta.call_id] = self._segments[-1]
            segment.call_ids.append(delta.call_id)
        return ToolCallDelta(segment.id, delta.call_id, delta.name, delta.arguments)

    def _next_segment(self) -> _Segment:
        name = f"{self.response_id}:{len(self._segments) + 1}"
        self._segments.append(_Segment(name, Citing(self._citable)))
        return self._segments[-1]

    def _thought(self) -> None:
        assert self._thinking_since is not None
        self._reasoning_ms += round((self._clock() - self._thinking_since) * 1000)
        self._thinking_since = None


class ModelTurn:
    """One model call of an invocation. After `stream` ended: `segments` and `finish`.

    From its beginning until `take`, what came so far is the invocation's `unfinished`: should anything nobody expects
    end the run, the runner stores it.
    """

    def __init__(self, invocation: Invocation, assembled: Assembled, request: ModelRequest, taken: set[str]) -> None:
        services = invocation.services
        self._invocation = invocation
        self._assembled = assembled
        self._request = request
        citable = invocation.citable()
        self._answer = Answering(services.new_id(), services.new_id, services.monotonic, taken, citable)
        self.segments: tuple[AssistantMessage, ...] = ()
        self.finish = FinishReason.STOP

    async def stream(self) -> AsyncGenerator[Event, None]:
        """Yield the deltas. On return the call is booked and `segments` holds everything that came.

        Raises RunError of the model after that: the caller stores the segments, then lets it pass.
        """
        services = self._invocation.services
        started, started_at = services.monotonic(), services.now()
        error: RunError | None = None
        finish = FinishReason.ERROR
        self._invocation.unfinished = lambda: self._answer.segments(FinishReason.ERROR)
        try:
            async with aclosing(self._chunks()) as events:
                async for event in events:
                    yield event
            for event in self._answer.end():
                yield event
            finish = self._reason()
        except Interrupted:
            finish = FinishReason.CANCELLED
        except RunError as failure:
            error = failure
        if error is not None or finish is FinishReason.CANCELLED:
            for event in self._answer.end():
                yield event
        self.finish = finish
        self.segments = self._answer.segments(finish)
        await self._book(started, started_at, error)
        if error is not None:
            raise error

    @property
    def usage(self) -> Usage:
        return self._answer.usage

    def take(self) -> tuple[AssistantMessage, ...]:
        """Return the segments to whoever stores them now."""
        self._invocation.unfinished = None
        return self.segments

    async def _chunks(self) -> AsyncGenerator[Event, None]:
        answer, clock = self._answer, self._invocation.services.monotonic
        chunks = self._invocation.services.model.stream(self._request)
        with Interrupt(self._invocation.cancel) as interrupt:
            try:
                while True:
                    try:
                        chunk = await interrupt.wait(anext(chunks))
                    except StopAsyncIteration:
                        return
                    if answer.first_at is None and isinstance(chunk, TextChunk | ReasoningChunk | ToolCallChunk):
                        answer.first_at = clock()
                    match chunk:
                        case TextChunk() | ReasoningChunk() | ToolCallChunk():
                            for event in answer.take(chunk):
                                yield event
                        case RetryChunk():
                            yield Waiting(chunk.delay_s, chunk.reason)
                        case UsageChunk():
                            answer.usage = chunk.usage
                        case FinishChunk():
                            answer.finish = chunk.reason
            finally:
                # Not every iterator is a generator; one that is holds the connection to the provider.
                if (close := getattr(chunks, "aclose", None)) is not None:
                    await close()

    def _reason(self) -> FinishReason:
        segments = self._answer.segments(FinishReason.STOP)
        calls = any(segment.tool_calls for segment in segments)
        reason = self._answer.finish
        if reason is FinishReason.CONTENT_FILTER and not segments:
            raise ModelRefused
        if calls and reason is FinishReason.STOP:
            return FinishReason.TOOL_CALLS
        if not calls and reason is FinishReason.TOOL_CALLS:
            return FinishReason.STOP
        return reason

    async def _book(self, started: float, started_at: datetime, error: RunError | None) -> None:
        invocation, answer = self._invocation, self._answer
        info = invocation.services.model.info
        first = answer.first_at
        invocation.counters.usage += answer.usage
        invocation.run_counters.usage += answer.usage
        call = ModelCall(
            id=invocation.services.new_id(),
            run_id=invocation.run_id,
            invocation_id=invocation.id,
            purpose="chat",
            provider=info.provider,
            model=info.name,
            usage=answer.usage,
            ttft_ms=None if first is None else (first - started) * 1000,
            latency_ms=(invocation.services.monotonic() - started) * 1000,
            finish_reason=self.finish.value,
            error_code=error.code if error else "",
            parts=self._assembled.parts,
            request_sha256=request_sha256(self._request),
            started_at=started_at,
        )
        if self._request is self._assembled.request and error is None:
            invocation.services.calibration.learn(self._assembled.mix, answer.usage.prompt)
        invocation.services.metrics.model_called(call)
        await invocation.services.ledger.model_called(call)


def calls_of(segments: tuple[AssistantMessage, ...]) -> tuple[ToolCall, ...]:
    return tuple(call for segment in segments for call in segment.tool_calls)


def with_calls(segments: tuple[AssistantMessage, ...], calls: dict[str, ToolCall]) -> tuple[AssistantMessage, ...]:
    """Return the segments with each call replaced by the one of its id."""
    return tuple(replace(s, tool_calls=tuple(calls.get(c.id, c) for c in s.tool_calls)) for s in segments)
