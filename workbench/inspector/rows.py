"""What the inspector reads, in few statements whatever the size of the conversation: never the parts of all calls."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Case, F, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Coalesce

from agents.models.event import Event
from agents.models.job import Job
from agents.models.memory import Memory as MemoryRow
from agents.models.model_call import ModelCall
from agents.models.run import Run
from agents.models.session import Fork, Session
from agents.models.summary import Summary as SummaryRow
from agents.runtime.context.digests import sha256
from agents.runtime.events import RunStarted, Stored
from agents.runtime.memory.preloading import block_of
from agents.runtime.session import PartRef
from agents.runtime.summaries import Summary
from agents.runtime.zones import zone_named
from agents.stores import chains, events, memorycolumns, modelcalls, summaryrows
from workbench.inspector.parts import EVENTS, UNREADABLE, kind_of

MOST_RUNS: Final = 200
MOST_CALLS: Final = 1_000
MOST_JOBS: Final = 200
_COLUMNS: Final = (
    "position", "fork", "event_id", "type", "invocation_id", "author", "branch", "filter_key", "origin", "payload",
    "tokens", "at", "run__client_id",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A conversation and its newest runs, the newest first. run: the one to show, None = there is none yet."""

    session: Session
    runs: tuple[Run, ...]
    run: Run | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Model calls of one run and its jobs, oldest first. call: the one to show; before: the one made before it for the
    same purpose; each with the parts it was made of."""

    rows: tuple[ModelCall, ...] = ()
    call: ModelCall | None = None
    before: ModelCall | None = None
    parts: tuple[PartRef, ...] = ()
    parts_before: tuple[PartRef, ...] = ()


def conversation(owner_id: int | None, thread_id: str, run_id: str, call_id: str) -> Found | None:
    """Return the conversation of this owner with the run that is asked for, else the one of the call, else the newest.

    owner_id: None = whoever has the only conversation of this name, for staff. None if there is no such conversation,
    or no such run or call in it.
    """
    here = Run.objects.of_everyone() if owner_id is None else Run.objects.of(owner_id)
    here = here.filter(session__thread_id=thread_id, session__deleted_at=None).select_related("session")
    if call_id:
        every = ModelCall.objects.of_everyone() if owner_id is None else ModelCall.objects.of(owner_id)
        asked = every.filter(call_id=call_id, session_id=OuterRef("session_id"))
        here = here.annotate(
            asked_run=Subquery(asked.values("run_id")[:1]), asked_at=Subquery(asked.values("started_at")[:1])
        )
    if not (runs := tuple(here.order_by("-id")[:MOST_RUNS])):
        session = None if run_id or call_id else _empty(owner_id, thread_id)
        return None if session is None else Found(session=session, runs=(), run=None)
    if owner_id is None and len({run.session_id for run in runs}) > 1:
        return None
    run: Run | None = runs[0]
    if run_id:
        run = next((one for one in runs if one.client_id == run_id), None) or here.filter(client_id=run_id).first()
    elif call_id:
        run = next((one for one in runs if _made_in(one)), None) or here.filter(pk=F("asked_run")).first()
    return None if run is None else Found(session=runs[0].session, runs=runs, run=run)


def _made_in(run: Any) -> bool:
    """Return whether the call that is asked for belongs to this run; one that names no run, to the last before it."""
    if run.asked_at is None:
        return False
    return bool(run.pk == run.asked_run if run.asked_run is not None else run.started_at <= run.asked_at)


def _empty(owner_id: int | None, thread_id: str) -> Session | None:
    rows = Session.objects.of_everyone() if owner_id is None else Session.objects.of(owner_id)
    found = list(rows.filter(thread_id=thread_id, deleted_at=None)[:2])
    return found[0] if len(found) == 1 else None


def calls(found: Found, call_id: str) -> Calls:
    """Return the model calls of the run that is shown: with call_id that one, else the last for an answer, with parts.

    Calls of jobs that name no run belong to the run that had begun last. One statement.
    """
    run = found.run
    if run is None:
        return Calls()
    here = ModelCall.objects.of(found.session.owner_id).filter(session_id=found.session.pk)
    own = here.filter(run_id=run.pk).order_by("-id")
    chosen: Any
    if call_id:
        chosen = here.filter(call_id=call_id)
    else:
        chats = own.filter(purpose=ModelCall.Purpose.CHAT)
        key = Coalesce(Subquery(chats.values("pk")[:1]), Subquery(own.values("pk")[:1]))
        chosen = here.filter(pk=key)
    pair = (
        here.filter(pk__lte=Subquery(chosen.values("pk")[:1]), purpose=Subquery(chosen.values("purpose")[:1]))
        .order_by("-id")
        .values("pk")[:2]
    )
    rows = list(
        here.filter(Q(run_id=run.pk) | _loose(found, run, "started_at") | Q(pk__in=pair))
        .defer("parts")
        .annotate(sent=Case(When(pk__in=pair, then=F("parts"))))
        .order_by("id")[:MOST_CALLS]
    )
    shown = [row for row in rows if row.sent is not None]
    call = shown[-1] if shown else None
    before = shown[0] if len(shown) > 1 else None
    return Calls(
        rows=tuple(row for row in rows if row.run_id == run.pk or (row.run_id is None and row is not before)),
        call=call,
        before=before,
        parts=_parts(call),
        parts_before=_parts(before),
    )


def _loose(found: Found, run: Run, field: str) -> Q:
    """Narrow what names no run to what began after this run and before the next."""
    next_run = next((one for one in reversed(found.runs) if one.pk > run.pk), None)
    until = Q(**{f"{field}__lt": next_run.started_at}) if next_run else Q()
    begun = Q(**{f"{field}__gte": run.started_at}) & until
    return Q(run_id=None) & begun if field == "started_at" else begun


def _parts(call: Any) -> tuple[PartRef, ...]:
    return tuple(_part(values) for values in call.sent) if call is not None else ()


def _part(values: Any) -> PartRef:
    try:
        part = modelcalls.load_part(values)
    except TypeError:  # a newer version wrote it
        return PartRef(kind=UNREADABLE, ref="", tokens=0)
    return (
        part
        if isinstance(part.tokens, int) and isinstance(part.ref, str)
        else PartRef(kind=UNREADABLE, ref="", tokens=0)
    )


def stored(found: Found, call: Calls) -> tuple[dict[str, Stored], tuple[Stored, ...]]:
    """Return what the parts of both calls refer to, by id, and all records of the run that is shown, in order.

    What this version cannot read is left out. One statement.
    """
    run = found.run
    if run is None:
        return {}, ()
    refs = {part.ref for part in (*call.parts, *call.parts_before) if kind_of(part) in EVENTS}
    wanted = Q(run_id=run.pk)
    if refs:
        wanted |= Q(event_id__in=refs) & ~Q(event_id="")
    if call.before is not None and call.before.run_id not in (None, run.pk):
        wanted |= Q(run_id=call.before.run_id, type__in=("preloaded", "run_started"))
    rows = Event.objects.of(found.session.owner_id).filter(session_id=found.session.pk).filter(wanted)
    every = list(_read(rows.order_by("position").values_list(*_COLUMNS)))
    return {one.id: one for one in every}, tuple(one for one in every if one.origin.run_id == run.client_id)


def _read(rows: Iterable[Any]) -> Iterable[Stored]:
    for row in rows:
        try:
            yield events.load(row)
        except (ValueError, KeyError, TypeError):
            continue


def summaries(found: Found, parts: Sequence[PartRef]) -> dict[str, Summary]:
    """Return the summaries that the parts refer to, by id; no statement if they refer to none."""
    ids = {part.ref for part in parts if kind_of(part) == "summary"}
    if not ids:
        return {}
    rows = SummaryRow.objects.of(found.session.owner_id).filter(session_id=found.session.pk, summary_id__in=ids)
    return {row.summary_id: summary_of(row) for row in rows}


def remembered(found: Found, parts: Sequence[PartRef], events: Iterable[Stored]) -> dict[str, str]:
    """Return the texts of the parts that show memories, by their hash, as far as all of one are there and unchanged.

    events: with the beginning of each run that the parts are of, which says where the person was. No statement if the
    parts show none.
    """
    shown = {part.ref: tuple(map(str, (id for id, _ in part.params["memories"]))) for part in parts if _remembers(part)}
    ids = {id for some in shown.values() for id in some}
    if not ids:
        return {}
    rows = MemoryRow.objects.of(found.session.owner_id).filter(memory_id__in=ids)
    there = {row.memory_id: memorycolumns.load(row) for row in rows.select_related("superseded_by")}
    zones = {zone_named(one.record.zone) for one in events if isinstance(one.record, RunStarted)}
    texts = (
        block_of([there[id] for id in some], zone or ZoneInfo(settings.TIME_ZONE))
        for some in shown.values()
        if all(id in there for id in some)
        for zone in zones
    )
    return {sha256(text): text for text in texts}


def _remembers(part: PartRef) -> bool:
    return kind_of(part) == "block" and isinstance(part.params.get("memories"), list)


def summary_of(row: SummaryRow) -> Summary:
    values = {field.name: getattr(row, field.name) for field in row._meta.fields if field.name != "base"}
    values |= {"id": row.summary_id, "base": "", "at": row.at.isoformat(), "made_at": row.created_at.isoformat()}
    return summaryrows.load(values)


def jobs(found: Found) -> list[Job]:
    """Return the background jobs that were owed after the run began and before the next did, oldest first."""
    if found.run is None:
        return []
    rows: QuerySet[Job] = Job.objects.filter(session_id=found.session.pk, owner_id=found.session.owner_id)
    return list(rows.filter(_loose(found, found.run, "created_at")).order_by("id")[:MOST_JOBS])


def line(found: Found, forks: Collection[int]) -> dict[int, int]:
    """Return up to which position each fork belongs to the line that the conversation shows.

    forks: those that are asked about; if all are the head, nothing is read.
    """
    head = found.session.head_fork
    if all(fork == head for fork in forks):
        return {head: found.session.last_position}
    rows = Fork.objects.filter(session_id=found.session.pk).values_list("number", "parent", "shared_position")
    known = [chains.Fork(number=n, parent=parent, shared_position=shared) for n, parent, shared in rows]
    return dict(chains.chain(known, head))
