"""The requests of one invocation: preloaded once, then assembled anew for each call, and kept within the window.

In this order, before each call: a summary between the steps, for agents that ask for it; the newest summary of others;
assembly; the record of a new step of compaction; a summary of a request that has grown too large, with one more
assembly. Whatever fails here is told and logged, and the call is made with what there is. If the provider says that it
was too long, `shorten` halves what may be sent from then on.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from agents.runtime.context.assemble import Assembled, Frame, View, assemble
from agents.runtime.context.injection import Block, blocks_of
from agents.runtime.context.skillparts import ShownSkill
from agents.runtime.context.window import GUESS, SHORTENED, Window
from agents.runtime.errors import StorageUnavailable
from agents.runtime.events import Event, Preloaded, RunStarted, Stamped, Stored, Summarising
from agents.runtime.interrupt import Interrupt, Interrupted
from agents.runtime.invocation import Invocation
from agents.runtime.model import Usage
from agents.runtime.policy import ContextPolicy
from agents.runtime.remembering import remembered
from agents.runtime.session import ModelCall
from agents.runtime.skilled import Skilled
from agents.runtime.summaries import Source
from agents.runtime.summary.coverage import IN_RUN
from agents.runtime.summary.making import Made, Making, Sent
from agents.runtime.summary.report import Reason
from agents.runtime.summary.rolling import due, update

logger = logging.getLogger(__name__)

PRESUMMARY_FLOOR: Final = 2_000
# A summary that was refused is asked for again only when so many events have come since.
RETRY_EVENTS: Final = 8

Preload = Callable[[Invocation], Awaitable[Block | None]]


class Preparing:
    """Makes what one invocation sends. After each `prepare`: `assembled`, None if the run was told to stop."""

    def __init__(self, invocation: Invocation, policy: ContextPolicy, preloads: Sequence[Preload] = ()) -> None:
        self.policy = invocation.services.policy(invocation.agent_name, policy)
        self.assembled: Assembled | None = None
        self.skilled = Skilled(invocation, self.policy)
        self._invocation = invocation
        self._preloads = tuple(preloads)
        self._window = GUESS
        self._blocks: tuple[Block, ...] = ()  # what was preloaded
        self._skills: tuple[ShownSkill, ...] | None = None  # loaded for the next request
        self._calls = 0
        self._seen = 0  # events that the newest request was made of
        self._usage: Usage | None = None  # of the newest request that was answered, as the provider said
        self._refused_at = -RETRY_EVENTS
        self._waits = True  # until a summary took longer than the run may wait
        self._planted = False
        self._shortened = False  # since the provider found a request too long
        self._hurry = False  # the next request must be shorter
        invocation.summary_due = self._job_due

    async def prepare(self, frame: Frame) -> AsyncGenerator[Event, None]:
        """Make the next request. Ends without one, `assembled` = None, when the run is told to stop meanwhile."""
        self.assembled = None
        self._window = self._known_window()
        if not self._calls:
            async for event in self._preload():
                yield event
        self._skills = await self.skilled.shown()
        await self._look_for_newer()
        assembled = self._assemble(frame)
        metrics = self._invocation.services.metrics
        if assembled.compacted is not None:
            metrics.compacted(assembled.compacted.results, assembled.compacted.tokens)
            yield assembled.compacted
        if (making := self._making_now(assembled)) is not None:
            before = assembled.untailored_tokens
            metrics.summarising("started", making.source)
            yield Summarising(state="started", tokens_before=before)
            try:
                made = await self._update(making)
            except Interrupted:
                return
            if made.advanced is not None:
                assembled = self._assemble(frame)
                if assembled.compacted is not None:
                    metrics.compacted(assembled.compacted.results, assembled.compacted.tokens)
                    yield assembled.compacted
            told = _told(made, before, assembled.tokens)
            metrics.summarising(told.state, making.source)
            yield told
        if assembled.dropped_rounds or assembled.overflow:
            whole, rounds = assembled.untailored_tokens, assembled.dropped_rounds
            metrics.tailored(whole, assembled.tokens, rounds, overflow=assembled.overflow)
        yield assembled.window_used
        self._calls += 1
        self._seen = len(self._invocation.history)
        self._hurry = False
        self.assembled = assembled

    def shorten(self) -> bool:
        """Make the requests to come half as long as the newest, which the provider found too long; False if they are.

        The next `prepare` summarises what it can, and leaves out rounds if that is not enough.
        """
        if self.assembled is None or self._shortened:
            return False
        refused, services = self.assembled.tokens, self._invocation.services
        tools = dict(self.assembled.window_used.parts).get("tools", 0)
        self.policy = replace(self.policy, max_input_tokens=max(1, int((refused - tools) * SHORTENED)))
        self._refused_at, self._hurry, self._shortened = -RETRY_EVENTS, True, True
        if services.window().tokens >= refused:  # the refusal named no window
            services.tried.learn_refused(refused, services.monotonic())
        logger.info("run %s: a request of %d tokens was too long", self._invocation.run_id, refused)
        return True

    def answered(self, usage: Usage) -> None:
        """Take in what the provider said of the newest request."""
        self._usage = usage if usage.prompt else None
        if self.assembled is not None:
            self._invocation.services.tried.learn_answered(self.assembled.tokens)

    def _known_window(self) -> Window:
        services = self._invocation.services  # a server may have told it since the last call
        return services.tried.within(services.window(), services.monotonic())

    def _assemble(self, frame: Frame) -> Assembled:
        return assemble(self._invocation.history, frame, self._view())

    def _view(self) -> View:
        invocation = self._invocation
        services = invocation.services
        return View(
            agent=invocation.agent_name,
            run_id=invocation.run_id,
            invocation_id=invocation.id,
            filter_key=invocation.filter_key,
            policy=self.policy,
            summaries=invocation.summaries,
            window=self._window,
            rates=services.calibration.rates,
            sizes=services.sizes,
            blocks=self._blocks if self.skilled.overview is None else (self.skilled.overview, *self._blocks),
            skills=self._skills,
        )

    async def _preload(self) -> AsyncGenerator[Event, None]:
        """Load what is remembered, and ask the preloads, unless what they gave stands in the run already, as after a
        retry."""
        kept = self._loaded()
        loaded = [await remembered(self._invocation, self.policy)]
        if kept is None:
            loaded += [await preload(self._invocation) for preload in self._preloads]
        blocks = tuple(block for block in loaded if block is not None)
        self._blocks = (*blocks, *blocks_of(kept))
        if blocks:
            yield Preloaded(
                blocks=tuple((block.kind, block.text) for block in blocks if not block.memories),
                citations=tuple(citation for block in blocks for citation in block.citations),
                memories=tuple(memory for block in blocks for memory in block.memories),
            )

    def _loaded(self) -> Preloaded | None:
        invocation = self._invocation
        for stored in reversed(invocation.history):
            if stored.origin.run_id != invocation.run_id:
                return None
            if isinstance(stored.record, Preloaded) and stored.origin.invocation_id == invocation.id:
                return stored.record
        return None

    async def _look_for_newer(self) -> None:
        """Take over what a job of this run has made meanwhile."""
        if self._planted:
            self._planted = not await self._take_over()

    async def _take_over(self) -> bool:
        """Show the newest summaries that are stored from here on; False if they are known."""
        invocation = self._invocation
        try:
            found = await invocation.services.summaries.newest([invocation.filter_key, ""])
        except StorageUnavailable:
            return False  # the next append says so, if it stays away
        changed = any(invocation.summaries.get(key) != found[key] for key in found)
        invocation.summaries.update(found)
        return changed

    def _making_now(self, assembled: Assembled) -> Making | None:
        """Return what to summarise before this request is sent, None = nothing."""
        if not (self.policy.summarise and self._waits):
            return None
        if len(self._invocation.history) - self._refused_at < RETRY_EVENTS:
            return None
        if self._too_large(assembled):
            return self._making(Source.CALL, assembled)
        if self.policy.summarise_in == "run" and self._calls:
            making = self._making(Source.RUN, assembled)
            return making if making is not None and due(making) is not None else None
        return None

    def _too_large(self, assembled: Assembled) -> bool:
        hurry = self._hurry and self.policy.presummary_ratio > 0
        return hurry or outgrown(assembled, self.policy, self._window)

    async def _update(self, making: Making) -> Made:
        """Make a summary. Raises Interrupted."""
        invocation = self._invocation
        with Interrupt(invocation.cancel) as interrupt:
            made = await interrupt.wait(update(making))
        if made.advanced is not None:
            invocation.summaries[made.advanced.filter_key] = made.advanced
        else:
            logger.info("no summary in run %s: %s", invocation.run_id, made.reason.value)
            self._refused_at = len(invocation.history)
            if made.reason is Reason.TIMEOUT or made.reason.waits:
                self._waits, self._planted = False, True
                invocation.summary_owed = made.reason is not Reason.HELD
            if await self._take_over():  # a job was faster, and there was nothing left to do
                made = replace(made, advanced=invocation.summaries.get(invocation.filter_key))
        return made

    def _making(self, source: Source, assembled: Assembled, since: int = 0) -> Making | None:
        """Return the work order of a summary; None where nothing here writes summaries.

        since: tokens of what has come since the request was assembled; a job's own request will be another.
        """
        invocation = self._invocation
        services = invocation.services
        if services.summarizer is None:
            return None
        history = invocation.history
        started = next((s.at for s in reversed(history) if isinstance(s.record, RunStarted)), None)
        sent = Sent.of(assembled, cached=self._usage.cached if self._usage else None, more=since)
        return Making.of(
            self._view(),
            policy=replace(self.policy, summary_timeout_s=self._limit_s(assembled)),
            history=history,
            complete_from=history[0].position if invocation.summaries and history else 0,
            store=services.summaries,
            summarizer=services.summarizer,
            source=source,
            sent=sent if source in IN_RUN else sent.without_fork(),
            model=services.model.info.name,
            now=services.now,
            new_id=services.new_id,
            monotonic=services.monotonic,
            request_started_at=started,
            book=self._book,
            report=partial(services.metrics.summary_made, parent=self._usage),
        )

    def _limit_s(self, assembled: Assembled) -> float:
        """Return how long a summary may take: longer than a run waits only where the request cannot do without."""
        policy = self.policy
        if assembled.overflow:
            return policy.summary_timeout_s
        return min(policy.summary_timeout_s, policy.summary_wait_s)

    async def _book(self, call: ModelCall) -> None:
        invocation = self._invocation
        invocation.run_counters.usage += call.usage
        call = replace(call, invocation_id=invocation.id)
        invocation.services.metrics.model_called(call)
        await invocation.services.ledger.model_called(call)

    def _job_due(self, records: Sequence[Stamped]) -> bool:
        """Return whether a job should look whether to summarise, once these records are stored.

        The runner asks now and then, and with the run's last records.
        """
        if not self.policy.summarise or self.assembled is None:
            return False
        history = self._invocation.history
        position, fork = (history[-1].position, history[-1].fork) if history else (0, 0)
        stored = [_stored(record, position + n, fork) for n, record in enumerate(records, 1)]
        since = sum(s.tokens for s in [*history[self._seen :], *stored])
        making = self._making(Source.BACKGROUND, self.assembled, since)
        self._invocation.summary_owed = False
        if making is None or due(replace(making, history=[*history, *stored])) is None:
            return False
        self._planted = True
        self._invocation.services.metrics.summary_enqueued(self._invocation.filter_key, forced=False)
        return True


def outgrown(assembled: Assembled, policy: ContextPolicy, window: Window) -> bool:
    """Return whether a request is to be summarised before it is sent: whether its messages take the policy's share.

    Tools are not counted, what tailoring left out is.
    """
    ratio = policy.presummary_ratio
    messages = assembled.untailored_tokens - dict(assembled.window_used.parts).get("tools", 0)
    return ratio > 0 and messages >= min(window.tokens, max(PRESUMMARY_FLOOR, int(window.tokens * ratio)))


def _stored(record: Stamped, position: int, fork: int) -> Stored:
    """Return the record as it will lie in the store."""
    return Stored(
        position=position,
        fork=fork,
        id=record.id,
        at=record.at,
        origin=record.origin,
        record=record.record,
        tokens=record.tokens,
    )


def _told(made: Made, before: int, after: int) -> Summarising:
    if made.advanced is None:
        return Summarising(
            state="failed" if made.reason.failed else "skipped", tokens_before=before, tokens_after=after
        )
    return Summarising(
        state="done",
        tokens_before=before,
        tokens_after=after,
        summary_id=made.advanced.id,
        position=made.advanced.boundary.position,
    )
