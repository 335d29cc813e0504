"""After a run: read what the person said for what is to be remembered.

The row says only whose conversation it is; what there is to read is found here, behind the conversation's cursor.
Done twice, the second time finds nothing new. Whatever goes wrong, the cursor stays where it was and the same is read
again, with what came after it.
"""

import logging
from collections.abc import Sequence
from datetime import timedelta, tzinfo
from functools import partial
from typing import Final
from zoneinfo import ZoneInfo

from django.conf import settings

from agents import hints, jobs, wiring
from agents.background.asking import Booking, ask
from agents.jobs import Claim
from agents.models.model_call import ModelCall as CallRow
from agents.providers.offline import model as offline
from agents.runtime.context.digests import sha256, tools_sha256
from agents.runtime.memory import rules
from agents.runtime.memory.extracting import Pending, after, every, more_than, read, request
from agents.runtime.memory.memories import Memory, MemoryUnavailable, Query
from agents.runtime.memory.policies import Verb
from agents.runtime.memory.sources import QUOTE, Said, own_words
from agents.runtime.model import Model, ModelRequest
from agents.runtime.policy import ContextPolicy
from agents.runtime.session import PartRef
from agents.runtime.tokens import estimate
from agents.runtime.zones import zone_named
from agents.stores import editedaway, memorycursors, policies, pool, remembering
from agents.stores.cursors import Moved, Taken
from agents.stores.db import in_thread
from agents.stores.memories import PgMemories
from agents.stores.memorycursors import Part
from agents.stores.remembering import Reading

logger = logging.getLogger(__name__)

MEMORY: Final = "memory"  # hint to open pages: what is remembered of a conversation changed
GONE: Final = "gone"  # result: the conversation is not there any more
NOT_DUE: Final = "not_due"  # result: the policy wants more messages, or a longer pause
NOTHING: Final = "nothing"  # result: read, and nothing is to be remembered
CHANGED: Final = "changed"  # result: memories changed

TIMEOUT_S: Final = 60.0  # of one call; shorter than the lease, which is renewed before each
MOST_MESSAGES: Final = 40  # of one request
MOST_CHARS: Final = 24_000  # of one request's messages; a single one is never cut
FITTING: Final = 20  # candidates that a search finds
LATEST: Final = 10  # and so many besides
QUESTION_CHARS: Final = 500  # of each message, for that search
QUESTIONS_CHARS: Final = 4_000  # of all


class NotRead(Exception):
    """The model gave no whole answer, and another try may help."""


async def run(job: Claim) -> str:
    """Read the job's conversation from its cursor on, if that is due. Return a code of what came of it.

    Raises NotRead and MemoryUnavailable, to be done again later, and jobs.NotYet while another job reads this
    conversation, or if it changed meanwhile. Safe to run twice.
    """
    if job.owner_id is None or job.session_id is None:
        return GONE
    conversation = job.owner_id, job.session_id, f"{job.id}:{job.attempt}"
    try:
        if not await in_thread(memorycursors.claim)(*conversation):
            return GONE
        try:
            return await _read_on(job, *conversation)
        finally:
            await in_thread(memorycursors.release)(*conversation)
            await in_thread(jobs.send_waiting)(jobs.MEMORY, job.session_id)
    except (Taken, Moved) as error:
        raise jobs.NotYet from error
    finally:
        await wiring.close_clients()
        await pool.close()


async def _read_on(job: Claim, owner_id: int, session_id: int, holder: str) -> str:
    """Read part after part up to the conversation's end. Raises Moved also if the job is another worker's by now."""
    conversation = owner_id, session_id, holder
    part = await in_thread(memorycursors.read)(*conversation)
    if part is None:
        return GONE
    changed = await in_thread(editedaway.withdraw)(part)
    await _tell(part, changed)
    policy = policies.of(part.agent)
    if part.said and not _is_due(part, policy):
        return NOT_DUE
    while part is not None:
        said = _beginning(part)
        up_to = part.said[len(said)].origin.position - 1 if len(said) < len(part.said) else part.up_to
        done = await in_thread(remembering.carry_out)(part, up_to, await _readings(part, said, policy))
        await _tell(part, done)
        changed += done
        if up_to == part.up_to:
            return CHANGED if changed else NOTHING
        if not await in_thread(jobs.renew)(job):
            raise Moved
        await in_thread(memorycursors.claim)(*conversation)
        part = await in_thread(memorycursors.read)(*conversation)
    return GONE


async def _tell(part: Part, changed: int) -> None:
    if changed:
        logger.info("memories of session %s: %s changes", part.session_id, changed)
        await hints.thread_changed(part.owner_id, part.thread_id, MEMORY)


def _is_due(part: Part, policy: ContextPolicy) -> bool:
    due = every(more_than(policy.memory_messages), after(timedelta(seconds=policy.memory_pause_s)))
    return due(Pending(messages=len(part.said), now=wiring.now(), last_at=part.last_at))


def _beginning(part: Part) -> tuple[Said, ...]:
    """Return the first messages of a part that go into one request: of one time zone, and not too many."""
    chars = 0
    for number, one in enumerate(part.said):
        chars += len(one.text)
        if number and (number == MOST_MESSAGES or chars > MOST_CHARS or _zone(part, one) != _zone(part, part.said[0])):
            return part.said[:number]
    return part.said


async def _readings(part: Part, said: Sequence[Said], policy: ContextPolicy) -> tuple[Reading, ...]:
    """Return what the messages come to: by rules one by one, by a model all at once. Raises NotRead."""
    if not said:
        return ()
    started = part.started.get(part.runs[said[-1].origin.position])
    model = _model(part, policy, started.model if started else "")
    if model.info.provider != offline.INFO.provider:
        return (await _by_model(part, said, model),)
    return tuple(Reading(said=(one,), propose=partial(rules.extract, one, zone=_zone(part, one))) for one in said)


def _model(part: Part, policy: ContextPolicy, answered: str) -> Model:
    """Return who reads: the policy's model, else the one that answered, else the default."""
    names = {model.info.name for model in wiring.models()}
    return wiring.model_of(next((n for n in (policy.memory_model, answered) if n in names), ""), part.owner_id)


def _zone(part: Part, said: Said) -> tzinfo:
    started = part.started.get(part.runs[said.origin.position])
    return zone_named(started.zone if started else "") or ZoneInfo(settings.TIME_ZONE)


async def _by_model(part: Part, said: Sequence[Said], model: Model) -> Reading:
    """Return what a model proposes. Raises NotRead, MemoryUnavailable."""
    zone = _zone(part, said[0])
    candidates = await _candidates(part, said)
    asked = request(said, candidates, zone)
    booking = Booking(
        owner_id=part.owner_id,
        session_id=part.session_id,
        run_id=part.runs[said[-1].origin.position],
        purpose=CallRow.Purpose.MEMORY.value,
        parts=_parts(asked, said),
        timeout_s=TIMEOUT_S,
    )
    answer = await ask(model, asked, booking)
    if answer.error_code:
        raise NotRead(answer.error_code)
    extraction = read(answer.calls, answer.finish, said, zone)
    if not extraction.complete:
        raise NotRead(answer.finish.value)
    return Reading(
        said=tuple(said),
        propose=lambda _: extraction.operations,
        known=frozenset(memory.id for memory in candidates),
        unread=tuple(_unread(name, reason) for name, reason in extraction.skipped),
    )


def _unread(name: str, reason: str) -> tuple[str, str]:
    """Return verb and reason of a call that could not be read; nothing of its arguments, which are what was said."""
    verb = name.removeprefix("memory_")
    return verb if verb in list(Verb) else "", reason if reason in ("cut", "not offered") else "unreadable"


async def _candidates(part: Part, said: Sequence[Said]) -> tuple[Memory, ...]:
    """Return what may be meant: what fits the messages, and the latest. Raises MemoryUnavailable."""
    store = PgMemories(part.owner_id, embedder=wiring.embedder())
    words = "\n".join(own_words(one.text).replace(QUOTE, " ")[:QUESTION_CHARS] for one in said)
    found = list(await store.read(LATEST))
    try:
        found += [hit.memory for hit in await store.search(Query(text=words[:QUESTIONS_CHARS], limit=FITTING))]
    except MemoryUnavailable:
        logger.warning("the memories cannot be searched, the latest are looked at")
    return tuple(sorted({memory.id: memory for memory in found}.values(), key=lambda m: (m.created_at, m.id)))


def _parts(asked: ModelRequest, said: Sequence[Said]) -> tuple[PartRef, ...]:
    """Return where a request comes from. Of the memories in it only that there are some: their text may not stay."""
    system = asked.messages[0].text
    tools = "".join(f"{tool.name}{tool.description}{tool.parameters}" for tool in asked.tools)
    messages = [
        PartRef(
            kind="event",
            ref=one.origin.event_id,
            tokens=estimate(own_words(one.text)),
            tag="user",
            position=one.origin.position,
        )
        for one in said
    ]
    return (
        PartRef(kind="system", ref=sha256(system), tokens=estimate(system), tag="instruction"),
        PartRef(kind="tools", ref=tools_sha256(asked.tools), tokens=estimate(tools), tag="tools"),
        *messages,
    )
