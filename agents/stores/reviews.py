"""How far conversations were reviewed, what waits behind that, and what came of it.

A job claims a conversation, looks at what came behind its cursor, and has the cursor moved by the transaction that
keeps what came of it. Sync: for Celery, on Django's connection.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Count, OuterRef, Subquery, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from agents import jobs
from agents.models.review import Feedback, Review, ReviewCursor, Suggestion
from agents.models.run import Run
from agents.models.session import Session
from agents.models.skill import SkillRevision
from agents.runtime.errors import AgentError
from agents.runtime.events import RunStarted, Stored
from agents.runtime.evolution.evidence import Evidence
from agents.runtime.evolution.gates import Judged, Verdict
from agents.runtime.evolution.outcomes import Judgement, Outcome, Thumb, Why, outcome
from agents.runtime.evolution.proposals import Proposal
from agents.runtime.evolution.reconcile import Refused
from agents.runtime.session import RunStatus
from agents.stores import cursors
from agents.stores.skilljudging import JudgedSkills
from agents.stores.skilllibrary import Status

Result = Review.Result
MOST_TRIES: Final = 3
MOST_NAMES: Final = 5_000
# Account names that are words of everyday texts as well.
_WORDS: Final = frozenset("admin administrator root test tester user staff owner demo guest dev support info".split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What came behind a conversation's cursor, since < position <= up_to: of runs that have ended.

    declined_until, declined_at: what of it was found too little before, and since when.
    """

    owner_id: int
    session_id: int
    thread_id: str
    agent: str
    model: str
    holder: str
    head_fork: int
    since: int
    up_to: int
    events: tuple[Stored, ...]
    declined_until: int
    declined_at: datetime | None
    tries: int

    @property
    def run_id(self) -> str:
        """Return the name of the last run, "" without one."""
        return self.events[-1].origin.run_id if self.events else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """A proposal that was put before the gates, and what they came to. parent: number of its revision."""

    proposal: Proposal
    judged: Judged
    parent: int | None


def claim(owner_id: int, session_id: int, holder: str) -> bool:
    """Have a conversation; see cursors.claim."""
    return cursors.claim(ReviewCursor, owner_id, session_id, holder)


def release(owner_id: int, session_id: int, holder: str) -> None:
    """Give a conversation back; see cursors.release."""
    cursors.release(ReviewCursor, owner_id, session_id, holder)


def read(owner_id: int, session_id: int, holder: str) -> Part | None:
    """Return what waits behind the cursor that this holder claimed; None if the conversation is gone. Raises Moved."""
    held = cursors.claimed(ReviewCursor, owner_id, session_id, holder)
    if held is None:
        return None
    session, cursor = held
    behind = cursors.behind(session, cursor.position)
    # a run that goes on is looked at once it is over, whole
    first = next((s.position for s in behind.events if s.origin.run_id == behind.found.running), None)
    up_to = max(behind.found.last_position if first is None else first - 1, cursor.position)
    events = tuple(stored for stored in behind.events if stored.position <= up_to)
    started = [stored.record for stored in events if isinstance(stored.record, RunStarted)]
    return Part(
        owner_id=owner_id,
        session_id=session_id,
        thread_id=session.thread_id,
        agent=session.agent or (started[-1].agent if started else ""),
        model=started[-1].model if started else "",
        holder=holder,
        head_fork=behind.found.head_fork,
        since=cursor.position,
        up_to=up_to,
        events=events,
        declined_until=cursor.declined_until,
        declined_at=cursor.declined_at,
        tries=cursor.tries,
    )


@transaction.atomic
def pass_over(part: Part) -> None:
    """Move the cursor over what is not to be reviewed, without a word. Raises Moved."""
    _hold(part)
    _move(part)


@transaction.atomic
def decline(part: Part, now: datetime) -> None:
    """Note that it is too little yet: the cursor stays, and it is looked at again with what follows. Raises Moved."""
    _hold(part)
    _cursor(part).update(declined_until=part.up_to, declined_at=part.declined_at or now)


@transaction.atomic
def failed(part: Part, evidence: Evidence, code: str, reviewer: str) -> bool:
    """Note that a reviewer could not do it; True if it was the last try: then it is passed over. Raises Moved."""
    _hold(part)
    if part.tries + 1 < MOST_TRIES:
        _cursor(part).update(tries=part.tries + 1)
        return False
    _note(part, Result.DEAD, evidence, reviewer, words=code)
    _move(part)
    return True


@transaction.atomic
def close(part: Part, result: str, evidence: Evidence, *, reviewer: str = "", words: str = "") -> None:
    """Keep that nothing is to be learned of it, and move the cursor. Raises Moved."""
    _hold(part)
    _note(part, result, evidence, reviewer, words=words)
    _move(part)


@transaction.atomic
def keep(
    part: Part, evidence: Evidence, reviewer: str, put: Sequence[Put], refused: Sequence[Refused]
) -> tuple[SkillRevision, ...]:
    """Keep what a review proposed, with the reports of the gates, and move the cursor. Return what waits for a person.

    The proposals are redacted. One that cannot be kept does not hinder the others. Raises Moved.
    """
    _hold(part)
    came: list[dict[str, Any]] = [
        {**_told(one.proposal), "result": "refused", "code": one.code, "words": one.words} for one in refused
    ]
    revisions: list[SkillRevision] = []
    for one in put:
        try:
            with transaction.atomic():
                revision = _keep(part, evidence, one)
        except AgentError as error:
            came.append({**_told(one.proposal), "result": "failed", "code": error.code, "words": ""})
            continue
        revisions.append(revision)
        told = {"result": revision.status, "skill": revision.skill.slug, "number": revision.number}
        came.append({**_told(one.proposal), **told, "words": one.proposal.note})
    review = _note(part, Result.PROPOSED, evidence, reviewer, came=came)
    for revision in revisions:
        Suggestion(owner_id=part.owner_id, review=review, revision=revision).save(force_insert=True)
    _move(part)
    return tuple(revision for revision in revisions if revision.status == Status.PENDING_APPROVAL)


def _keep(part: Part, evidence: Evidence, one: Put) -> SkillRevision:
    skills = JudgedSkills(part.owner_id)
    if one.judged.verdict is Verdict.PASSED and one.proposal.spec is not None:
        return skills.publish(one.proposal, parent=one.parent)
    return skills.propose(
        one.proposal,
        parent=one.parent,
        status=_STATUS[one.judged.verdict],
        evidence={
            "thread_id": part.thread_id,
            "run": part.run_id,
            "runs": list(evidence.runs),
            "signs": evidence.as_json()["signs"],
            "reason": one.proposal.reason,
            "note": one.proposal.note,
        },
        reports=one.judged.as_json(),
    )


_STATUS: Final = {
    Verdict.REJECTED: Status.REJECTED.value,
    Verdict.PENDING_EVAL: Status.PENDING_EVAL.value,
    Verdict.PENDING_APPROVAL: Status.PENDING_APPROVAL.value,
}


# How runs turned out


def outcome_of(owner_id: int, session_id: int, runs: Collection[str]) -> Outcome | None:
    """Return how these runs of a conversation turned out; None = nobody said anything, and none failed."""
    rows = Feedback.objects.of(owner_id).filter(session_id=session_id, run__in=list(runs)).order_by("at", "pk")
    judgements = [
        Judgement(run_id=row.run, thumb=Thumb(row.thumb), reasons=tuple(map(Why, row.reasons)), note=row.note)
        for row in rows
    ]
    broken = Run.objects.of(owner_id).filter(session_id=session_id, client_id__in=list(runs))
    failed_runs = broken.filter(status__in=(RunStatus.FAILED.value, RunStatus.LOST.value)).count()
    return outcome(judgements, failed_runs)


@transaction.atomic
def say(
    owner_id: int, thread_id: str, run: str, thumb: Thumb | None, reasons: Collection[Why] = (), note: str = ""
) -> bool:
    """Keep what a person says of a run; thumb None = nothing any more. False: there is no such run of theirs.

    What was learned of the run is looked at anew by a job.
    """
    session = Session.objects.of(owner_id).filter(thread_id=thread_id, deleted_at=None).first()
    if session is None or not Run.objects.of(owner_id).filter(session=session, client_id=run).exists():
        return False
    rows = Feedback.objects.of(owner_id)
    if thumb is None:
        rows.filter(session=session, run=run).delete()
    else:
        said = {"thumb": thumb.value, "reasons": [why.value for why in reasons], "note": note[:500]}
        values = {**said, "at": timezone.now()}
        new = {**values, "owner_id": owner_id}
        rows.update_or_create(session=session, run=run, defaults=values, create_defaults=new)
    jobs.plant(jobs.REVIEW, owner_id=owner_id, scope="", session_id=session.pk)
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A revision that waits for an outcome, and how the runs turned out that it was learned from."""

    pk: int
    outcome: Outcome | None


def held(owner_id: int, session_id: int) -> tuple[Held, ...]:
    """Return what of a conversation waits for an outcome."""
    rows = Suggestion.objects.of(owner_id).filter(review__session_id=session_id, revision__status=Status.PENDING_EVAL)
    found = rows.filter(revision__skill__deleted_at=None).select_related("review").order_by("pk")
    return tuple(
        Held(
            pk=one.revision_id,
            outcome=outcome_of(owner_id, session_id, one.review.evidence.get("runs", ())),
        )
        for one in found
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Foot:
    """What stands under the answer of a run. thumb: what the person said of it, "" = nothing. suggested: how many
    skills it led to that wait for the person."""

    thumb: str
    suggested: int


def feet(owner_id: int, session_id: int, runs: Collection[str]) -> dict[str, Foot]:
    """Return what there is to say under these runs of a conversation, by run; one that led to nothing is left out.

    One statement.
    """
    said = Feedback.objects.of(owner_id).filter(session_id=session_id, run=OuterRef("client_id"))
    waiting = Suggestion.objects.of(owner_id).filter(
        review__session_id=session_id,
        review__run=OuterRef("client_id"),
        revision__status=Status.PENDING_APPROVAL,
        revision__skill__deleted_at=None,
    )
    counted = waiting.order_by().values("review__run").annotate(n=Count("pk")).values("n")
    rows = Run.objects.of(owner_id).filter(session_id=session_id, client_id__in=list(runs))
    found = rows.annotate(
        thumb=Coalesce(Subquery(said.values("thumb")[:1]), Value("")), suggested=Coalesce(Subquery(counted), 0)
    )
    return {
        run: Foot(thumb=thumb, suggested=suggested)
        for run, thumb, suggested in found.values_list("client_id", "thumb", "suggested")
        if thumb or suggested
    }


def names() -> list[str]:
    """Return the names of the people of this installation, account names too, as far as they are no common words."""
    users = get_user_model()._default_manager.filter(is_active=True).order_by("pk")
    found: set[str] = set()
    for account, first, last in users.values_list("username", "first_name", "last_name")[:MOST_NAMES]:
        found |= {account, f"{first} {last}".strip(), f"{last}{first}"}
        found |= {name for name in (first, last) if len(name) > 2 or not name.isascii()}
    return sorted(name for name in found if name and name.casefold() not in _WORDS)


def _hold(part: Part) -> None:
    cursors.hold(
        ReviewCursor, part.owner_id, part.session_id, holder=part.holder, since=part.since, head_fork=part.head_fork
    )


def _cursor(part: Part) -> Any:
    return ReviewCursor.objects.of(part.owner_id).filter(session_id=part.session_id)


def _move(part: Part) -> None:
    _cursor(part).update(position=part.up_to, declined_until=0, declined_at=None, tries=0, reviewed_at=timezone.now())


def _note(
    part: Part, result: str, evidence: Evidence, reviewer: str, *, came: Sequence[Any] = (), words: str = ""
) -> Review:
    review = Review(
        owner_id=part.owner_id,
        session_id=part.session_id,
        run=part.run_id,
        since=part.since,
        up_to=part.up_to,
        result=result,
        reviewer=reviewer,
        evidence=evidence.as_json(),
        came=list(came),
        words=words[:500],
        at=timezone.now(),
    )
    review.save(force_insert=True)
    return review


def _told(proposal: Proposal) -> dict[str, str]:
    return {"action": proposal.action.value, "name": proposal.name}
