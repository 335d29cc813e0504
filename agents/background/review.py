"""After a run: look whether there is something to learn for the next one like it.

The row says only whose conversation it is; what there is to look at is found here, behind the conversation's cursor.
Whatever comes of it waits for a person. Done twice, the second time finds nothing new. What is too little yet is kept
and looked at again with what follows; what no reviewer can read is passed over after some tries.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from agents import hints, jobs, wiring
from agents.background.asking import Booking, ask
from agents.jobs import Claim
from agents.models.model_call import ModelCall as CallRow
from agents.providers.offline import model as offline
from agents.runtime.context.digests import sha256
from agents.runtime.embedding import EmbedderFailed
from agents.runtime.events import UserMessage
from agents.runtime.evolution import repeating, reviewer
from agents.runtime.evolution.evidence import MAINTENANCE, Evidence, Weighing, weigh
from agents.runtime.evolution.gates import HOUSE, Candidate, Gates, effectiveness_gate
from agents.runtime.evolution.likeness import overlap, words
from agents.runtime.evolution.outcomes import Outcome
from agents.runtime.evolution.proposals import Action, Known, Proposal, Review, described
from agents.runtime.evolution.reconcile import Vectors, reconcile, text_of
from agents.runtime.evolution.redacting import Redactor
from agents.runtime.model import Model
from agents.runtime.policy import ContextPolicy
from agents.runtime.session import PartRef
from agents.runtime.skills.skill import SkillMissing
from agents.runtime.tokens import estimate
from agents.stores import policies, pool, reviews, skilljudging
from agents.stores.cursors import Moved, Taken
from agents.stores.db import in_thread
from agents.stores.reviews import Part, Put
from agents.stores.skilllibrary import SkillDecided, Status

logger = logging.getLogger(__name__)

SKILL: Final = "skill"  # hint to open pages: a skill is suggested, or a suggestion went
GONE: Final = "gone"  # result: the conversation is not there any more
OFF: Final = "off"  # result: the policy wants no reviews
NOTHING: Final = "nothing"  # result: there was nothing to look at, or to learn
TOO_LITTLE: Final = "too_little"  # result: looked at again with what follows
DEAD: Final = "dead"  # result: no reviewer could read it, it is passed over
PROPOSED: Final = "proposed"  # result: something was put before the gates

TIMEOUT_S: Final = 60.0


class NotReviewed(Exception):
    """The reviewer gave no decision, and another try may help."""


async def run(job: Claim, gates: Gates = HOUSE) -> str:
    """Review what came behind the conversation's cursor, if it is worth it. Return a code of what came of it.

    Raises NotReviewed, to be done again later, and jobs.NotYet while another job reviews this conversation, or if it
    changed meanwhile. Safe to run twice.
    """
    if job.owner_id is None or job.session_id is None:
        return GONE
    conversation = job.owner_id, job.session_id, f"{job.id}:{job.attempt}"
    try:
        if not await in_thread(reviews.claim)(*conversation):
            return GONE
        try:
            part = await in_thread(reviews.read)(*conversation)
            if part is None:
                return GONE
            await _judge_again(part, gates)
            return await _look(part, gates)
        finally:
            await in_thread(reviews.release)(*conversation)
            await in_thread(jobs.send_waiting)(jobs.REVIEW, job.session_id)
    except (Taken, Moved) as error:
        raise jobs.NotYet from error
    finally:
        await wiring.close_clients()
        await pool.close()


async def _judge_again(part: Part, gates: Gates) -> None:
    """Look anew at what waits for an outcome: people may have said something since."""
    moved = False
    for held in await in_thread(reviews.held)(part.owner_id, part.session_id):
        gate = gates.effectiveness or effectiveness_gate
        report = gate(Candidate(proposal=Proposal(action=Action.CREATE), outcome=held.outcome))
        if not report.passed or held.outcome is None:
            continue  # nothing speaks for it yet
        reports = {"effectiveness": {"passed": True, "findings": [], "error": ""}}
        try:
            await in_thread(_moved_on)(part.owner_id, held.pk, reports)
            moved = True
        except (SkillMissing, SkillDecided):
            logger.info("revision %s was decided meanwhile", held.pk)
    if moved:
        await hints.thread_changed(part.owner_id, part.thread_id, SKILL)


def _moved_on(owner_id: int, pk: int, reports: dict[str, dict[str, object]]) -> None:
    skilljudging.JudgedSkills(owner_id).judged(pk, Status.PENDING_APPROVAL.value, reports)


async def _look(part: Part, gates: Gates) -> str:
    policy = policies.of(part.agent)
    if not part.events or part.up_to == part.declined_until:
        return NOTHING
    if not policy.review:
        await in_thread(reviews.pass_over)(part)
        return OFF
    weighing = Weighing(calls=policy.review_calls)
    evidence = weigh(part.events, weighing)
    if not evidence.runs and any(why == MAINTENANCE for _, why in evidence.passed_over):
        await in_thread(reviews.pass_over)(part)
        return MAINTENANCE
    if not evidence.enough:
        return await _decline(part, evidence, weighing)
    return await _review(part, evidence, policy, gates)


async def _decline(part: Part, evidence: Evidence, weighing: Weighing) -> str:
    now = wiring.now()
    old = part.declined_at is not None and now - part.declined_at > timedelta(days=weighing.declined_days)
    if old or part.up_to - part.since > weighing.declined_events:
        await in_thread(reviews.close)(part, reviews.Result.TOO_LITTLE, evidence)
    else:
        await in_thread(reviews.decline)(part, now)
    return TOO_LITTLE


async def _review(part: Part, evidence: Evidence, policy: ContextPolicy, gates: Gates) -> str:
    """Ask the reviewer, and put what it proposes before the gates. Raises NotReviewed."""
    redactor = Redactor(await in_thread(reviews.names)())
    known = await in_thread(skilljudging.known)(part.owner_id)
    outcome = await in_thread(reviews.outcome_of)(part.owner_id, part.session_id, evidence.runs)
    model = _model(part, policy)
    try:
        review = await _asked(part, evidence, model, known, outcome, redactor)
    except reviewer.ReviewUnreadable as error:
        if await in_thread(reviews.failed)(part, evidence, str(error), model.info.name):
            logger.error("session %s is passed over: no review after %s tries", part.session_id, reviews.MOST_TRIES)
            return DEAD
        raise NotReviewed(str(error)) from error
    if not review.proposals:
        words = redactor.text(review.skip_reason)
        await in_thread(reviews.close)(part, reviews.Result.NOTHING, evidence, reviewer=model.info.name, words=words)
        return NOTHING
    came = reconcile(review, known, await _vectors(review, known))
    numbers = {one.name: one.id for one in known}
    put = []
    for proposal in came.proposals:
        candidate = Candidate(proposal=proposal, known=known, outcome=outcome, redactor=redactor)
        # judged as it was written, kept without what must not be kept
        clean = redactor.proposal(proposal)
        parent = numbers.get(proposal.target) if proposal.target else None
        put.append(Put(proposal=clean, judged=gates.judge(candidate), parent=parent))
    refused = [replace(one, proposal=redactor.proposal(one.proposal)) for one in came.refused]
    waiting = await in_thread(reviews.keep)(part, evidence, model.info.name, put, refused)
    logger.info("session %s reviewed: proposed=%s waiting=%s", part.session_id, len(put), len(waiting))
    if waiting:
        await hints.thread_changed(part.owner_id, part.thread_id, SKILL)
    return PROPOSED


async def _asked(
    part: Part,
    evidence: Evidence,
    model: Model,
    known: Sequence[Known],
    outcome: Outcome | None,
    redactor: Redactor,
) -> Review:
    """Return what the reviewer decides. Raises ReviewUnreadable."""
    counted = [stored for stored in part.events if stored.origin.run_id in evidence.runs]
    if model.info.provider == offline.INFO.provider:
        return repeating.review(repeating.works(counted), known, redactor)
    lines = reviewer.transcript(counted, redactor)
    asked = reviewer.request(lines, _fitting(known, lines), outcome, redactor)
    system = asked.messages[0].text
    parts = [PartRef(kind="system", ref=sha256(system), tokens=estimate(system), tag="instruction")]
    parts += [
        PartRef(kind="event", ref=s.id, tokens=s.tokens, tag="user", position=s.position)
        for s in counted
        if isinstance(s.record, UserMessage)
    ]
    booking = Booking(
        owner_id=part.owner_id,
        session_id=part.session_id,
        run_id=part.run_id,
        purpose=CallRow.Purpose.REVIEW.value,
        parts=parts,
        timeout_s=TIMEOUT_S,
    )
    answer = await ask(model, asked, booking)
    if answer.error_code:
        raise reviewer.ReviewUnreadable(answer.error_code)
    return reviewer.read(answer.text, answer.finish)


def _fitting(known: Sequence[Known], lines: Sequence[reviewer.Line]) -> list[Known]:
    """Return the skills, those first that a review may change, then by what they share with the conversation."""
    said = set(words("\n".join(line.text for line in lines)))
    return sorted(
        known, key=lambda one: (not one.changeable, -overlap(words(f"{one.name} {one.description}"), said)[1], one.name)
    )


def _model(part: Part, policy: ContextPolicy) -> Model:
    """Return who reviews: the policy's model, else the one that answered, else the default."""
    names = {model.info.name for model in wiring.models()}
    name = next((n for n in (policy.review_model, part.model) if n in names), "")
    return wiring.model_of(name, part.owner_id)


async def _vectors(review: Review, known: Sequence[Known]) -> Vectors:
    """Return the vectors of what is proposed anew and of what it may be like; {} without any."""
    embedder = wiring.embedder()
    new = [text_of(p.name, described(p.spec)) for p in review.proposals if p.action is Action.CREATE and p.spec]
    there = [text_of(one.name, one.description) for one in known if one.changeable]
    if embedder is None or not new or not there:
        return {}
    texts = [*new, *there]
    try:
        found = await asyncio.to_thread(embedder.embed, texts)
    except EmbedderFailed:
        logger.warning("no vectors for a review, words alone are compared")
        return {}
    return {text: vector for text, vector in zip(texts, found, strict=True) if vector is not None}
