"""Bring a conversation's rolling summary up to date: after events, when a person asks, when it is archived.

The row says only whose conversation it is; what there is to summarise is read here. Done twice, the second time finds
nothing new. Whatever goes wrong, the summary before holds.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Final

from agents import hints, jobs, wiring
from agents.jobs import Claim
from agents.models.model_call import ModelCall as CallRow
from agents.models.session import Session
from agents.runtime.context.assemble import Assembled, Frame, View, assemble
from agents.runtime.context.injection import Block, blocks_of
from agents.runtime.errors import StorageUnavailable
from agents.runtime.events import Preloaded, RunStarted, Stored
from agents.runtime.model import Usage
from agents.runtime.policy import ContextPolicy
from agents.runtime.session import ModelCall
from agents.runtime.skills.telling import overview_block
from agents.runtime.summaries import Source
from agents.runtime.summary.making import Made, Making, Sent
from agents.runtime.summary.report import Reason, Told
from agents.runtime.summary.rolling import update
from agents.runtime.tokens import Rates
from agents.runtime.toolset import Toolset
from agents.stores import calibrations, chains, modelcalls, policies, pool
from agents.stores.db import in_thread
from agents.stores.skills import visible
from agents.stores.summaries import ARCHIVE, MANUAL, PgSummaries

logger = logging.getLogger(__name__)

SUMMARY: Final = "summary"  # hints to open pages: there is a new one
UNCHANGED: Final = "summary_unchanged"  # a person asked, and nothing came of it
GONE: Final = "gone"  # result: the conversation is not there any more
TAKEN: Final = "taken"  # result: the lease was lost, somebody else does it
RENEW_S: Final = jobs.LEASE.total_seconds() / 3
MOST_S: Final = 540.0  # whatever the policy says: Celery's soft limit of a task is 600
SOURCES: Final = {MANUAL: Source.MANUAL, ARCHIVE: Source.ARCHIVE}


class NotMade(Exception):
    """No summary was made, and another try may help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What is to be summarised. history: the visible chain, whole from `since` on (0 = all). started: its last run."""

    owner_id: int
    thread_id: str
    found: chains.Found
    history: tuple[Stored, ...]
    since: int
    started: Stored
    agent: str
    model: str

    @property
    def run_id(self) -> str:
        return self.started.origin.run_id


async def run(job: Claim) -> str:
    """Summarise the job's conversation if that is due, or asked for. Return a code of what came of it.

    One of agents.runtime.summary.report.Reason, or "gone", "taken". A person's job that finds nothing to do, because
    others made what was asked for meanwhile, is "advanced". Raises StorageUnavailable and NotMade, to be done again
    later, and jobs.NotYet while somebody else makes this summary, or with a long text read in part. Safe to run twice.
    """
    if job.owner_id is None or job.session_id is None:
        return GONE
    try:
        thread_id = await in_thread(_thread)(job.owner_id, job.session_id)
        conversation = await _read(job.owner_id, thread_id) if thread_id else None
        if conversation is None:
            return GONE
        made = await _leased(job, conversation)
    finally:
        await wiring.close_clients()
        await calibrations.close()
        await pool.close()
    if made is None:
        return TAKEN
    waits = any(one.reason.waits for one in (made, *made.copies))
    changed = made.reason is Reason.ADVANCED or any(one.advanced is not None for one in made.copies)
    if changed or (job.scope == MANUAL and not waits):
        await hints.thread_changed(conversation.owner_id, conversation.thread_id, SUMMARY if changed else UNCHANGED)
    logger.info("summary of session %s: %s", job.session_id, made.reason.value)
    if waits:
        raise jobs.NotYet
    await in_thread(jobs.send_waiting)(jobs.SUMMARY, job.session_id)
    if made.reason is Reason.STORAGE:
        raise StorageUnavailable
    # An archived conversation plants no further job.
    if job.scope == ARCHIVE and made.reason.again:
        raise NotMade(made.reason.value)
    return made.reason.value


async def _leased(job: Claim, conversation: Conversation) -> Made | None:
    """Make the summary and keep the job meanwhile; None, and nothing is stored, if another worker has it by now."""
    making = asyncio.ensure_future(_make(job, conversation))
    try:
        while not (await asyncio.wait((making,), timeout=RENEW_S))[0]:
            if not await in_thread(jobs.renew)(job):
                return None
        return making.result()
    finally:
        making.cancel()
        await asyncio.wait((making,))


async def _make(job: Claim, conversation: Conversation) -> Made:
    owner_id, agent, found = conversation.owner_id, conversation.agent, conversation.found
    assert found.id is not None
    session_id = str(found.id)
    calibration = wiring.calibration_of(conversation.model)
    await calibrations.settled()
    policy = policies.of(agent)
    policy = replace(policy, summary_timeout_s=min(policy.summary_timeout_s, MOST_S))
    view = _view(conversation, policy, calibration.rates, await _overview(owner_id, policy))
    assembled = _assembled(conversation, view)
    last = await in_thread(_last_call)(owner_id, found.id, conversation.run_id)
    forkable = assembled is not None and last is not None and _continues(assembled, last)
    used = Usage(prompt=last.prompt_tokens, cached=last.cached_tokens) if last and last.prompt_tokens else None
    sent = Sent.of(assembled, cached=used.cached if used else None)
    metrics = wiring.metrics().of_run(session_id, conversation.run_id)

    async def book(call: ModelCall) -> None:
        metrics.model_called(call)
        await in_thread(modelcalls.record)(owner_id=owner_id, session_id=session_id, call=call)

    store = PgSummaries(owner_id=owner_id, session_id=found.id, fork=found.head_fork)
    made = await update(
        Making.of(
            view,
            history=conversation.history,
            complete_from=conversation.since,
            store=store,
            summarizer=wiring.summarizer_of(policy, conversation.model, owner_id),
            source=SOURCES.get(job.scope, Source.BACKGROUND),
            forced=job.scope in SOURCES,
            sent=sent if forkable else sent.without_fork(),
            model=conversation.model,
            now=wiring.now,
            new_id=wiring.new_id,
            monotonic=monotonic,
            request_started_at=conversation.started.at,
            book=book,
            report=partial(metrics.summary_made, parent=used),
        )
    )
    if job.scope == MANUAL and made.reason.told in (Told.NOTHING, Told.NO_TEXT, Told.NO_GAIN):
        newest = (await store.newest([agent])).get(agent)
        if newest is not None and newest.made_at >= job.asked_at:
            return replace(made, reason=Reason.ADVANCED)
    return made


async def _overview(owner_id: int, policy: ContextPolicy) -> Block | None:
    """Return what a run of this person is told of skills now, None = nothing."""
    if not policy.skills:
        return None
    found = await in_thread(visible)(owner_id)
    return overview_block([known.summary for known in found.values()], policy.skills_overview)


def _view(conversation: Conversation, policy: ContextPolicy, rates: Rates, overview: Block | None) -> View:
    """Return how the last run's agent sees the conversation now."""
    own = [s for s in conversation.history if s.origin.run_id == conversation.run_id]
    invocation_id = own[0].origin.invocation_id
    preloaded = [s.record for s in own if isinstance(s.record, Preloaded) and s.origin.invocation_id == invocation_id]
    return View(
        agent=conversation.agent,
        run_id=conversation.run_id,
        invocation_id=invocation_id,
        filter_key=conversation.agent,
        policy=policy,
        summaries=conversation.found.summaries,
        window=wiring.window_of(conversation.model),
        rates=rates,
        sizes={},
        blocks=(*((overview,) if overview else ()), *blocks_of(preloaded[-1] if preloaded else None)),
    )


def _assembled(conversation: Conversation, view: View) -> Assembled | None:
    """Return the request that the last run's agent would send now; None of an agent that is not there any more."""
    agent = next((agent for agent in wiring.agents() if agent.name == conversation.agent), None)
    if agent is None:
        return None
    offer = agent.offer(view.policy, skills=any(block.kind == "skills" for block in view.blocks))
    frame = Frame(
        instruction=offer.instruction,
        tools=Toolset(offer.tools, (), agent.gates).specs,
        max_tokens=agent.max_tokens,
        temperature=agent.temperature,
    )
    return assemble(conversation.history, frame, view)


def _continues(assembled: Assembled, last: CallRow) -> bool:
    """Return whether the request begins like the last call's: the same system text, tools and skills, nothing left out
    anew."""
    if assembled.dropped_rounds or assembled.compacted is not None:
        return False
    framed = [part.ref for part in assembled.parts if part.kind in ("system", "tools") or part.tag == "skills"]
    before = (part for part in last.parts if part["kind"] in ("system", "tools") or part.get("tag") == "skills")
    return framed == [part["ref"] for part in before]


async def _read(owner_id: int, thread_id: str) -> Conversation | None:
    """Return the conversation from where its summary's maker must read; None if it is gone or nothing was said."""
    agent = ""
    while True:
        found = await chains.find(owner_id, thread_id, agent)
        if found.id is None or found.deleted:
            return None
        agent = agent or found.agent
        since = _since(found, agent)
        history = await chains.visible_chain(found, found.head_fork, since=since)
        started = _last_started(history)
        if started is None:
            return None
        assert isinstance(started.record, RunStarted)
        if started.record.agent == agent:
            return Conversation(
                owner_id=owner_id,
                thread_id=thread_id,
                found=found,
                history=history,
                since=since,
                started=started,
                agent=agent,
                model=started.record.model,
            )
        agent = started.record.agent  # the last run's, which is not the session's


def _since(found: chains.Found, agent: str) -> int:
    """Return from where on to read: as far back as the boundary of every summary that is to be brought up to date."""
    scopes = (agent, "") if policies.of(agent).cascade else (agent,)
    bases = [found.summaries.get(scope) for scope in scopes]
    return min(base.read_from if base is not None else 0 for base in bases)


def _last_started(history: Sequence[Stored]) -> Stored | None:
    return next((stored for stored in reversed(history) if isinstance(stored.record, RunStarted)), None)


def _thread(owner_id: int, session_id: int) -> str:
    """Return the thread's name, "" if the conversation is not there any more."""
    row = Session.objects.of(owner_id).filter(pk=session_id, deleted_at=None).values_list("thread_id", flat=True)
    return row.first() or ""


def _last_call(owner_id: int, session_id: int, run_id: str) -> CallRow | None:
    """Return the last call by which a run's agent answered."""
    calls = CallRow.objects.of(owner_id).filter(
        run__session_id=session_id, run__client_id=run_id, purpose=CallRow.Purpose.CHAT
    )
    return calls.order_by("-id").first()
