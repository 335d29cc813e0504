"""One search for people: titles, messages, documents and notes of one owner.

Messages and passages are asked for by words alone: that answers while somebody types, and a word that was typed is
what they look for. An answer to all kinds takes seven statements, to one kind fewer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial, reduce
from operator import or_
from typing import Any, Final
from urllib.parse import quote, urlencode
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Case, F, Func, OuterRef, Q, QuerySet, Subquery, TextField
from django.db.models import When as SqlWhen
from django.db.models.functions import JSONObject
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from agents import search
from agents.models import search_entry
from agents.models.event import Event
from agents.models.session import Fork as ForkRow
from agents.models.session import Session
from agents.runtime import codec
from agents.runtime.artifacts import SHARED
from agents.runtime.events import AssistantMessage, ToolReturned, UserMessage
from agents.runtime.knowledge import place_from_json
from agents.runtime.pieces import content_of, piece_at
from agents.stores.chains import Fork, chain
from artifacts import rows
from artifacts.models import Artifact, Passage, Version
from workbench import landing, librarylist, marking, places, sessionlist, wording
from workbench.findings import MOST, Found, Hit, Kind, Wanted, group
from workbench.marking import Marker, Tokens

RANKED: Final = 100  # texts of one kind that a search is asked for; of some only their neighbours hold a word of it
RANKED_OF_ALL: Final = 40  # of each kind where all kinds are shown, and a few of each
OF_ONE: Final = 3  # passages of one document
RECENT: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """A text that a search ranked. make: the hit, given what of the text is meant. document: key of its artifact."""

    tokens: Tokens
    score: float
    at: datetime
    make: Callable[[Marker, Sequence[marking.Span]], Hit]
    kind: Kind = Kind.MESSAGES
    document: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Something that is counted; the hit is made if it is shown."""

    kind: Kind
    make: Callable[[], Hit]
    document: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranked:
    """Texts, best first. more: the search had to leave some out."""

    texts: tuple[_Text, ...] = ()
    more: bool = False


def find(wanted: Wanted) -> Found:
    """Return what the owner has that answers; without words, the conversations used last."""
    if not wanted.q:
        return Found(wanted=wanted, recent=_recent(wanted.owner_id))
    messages = _messages(wanted) if wanted.of_kind(Kind.MESSAGES) else _Ranked()
    documents = wanted.of_kind(Kind.DOCUMENTS) or wanted.of_kind(Kind.NOTES)
    passages = _passages(wanted) if documents else _Ranked()
    named = _named(wanted) if documents else []
    texts = [text.tokens for text in (*messages.texts, *passages.texts)]
    words = marking.words_of(Tokens(wanted.q), *texts) if texts else ()
    marker = Marker(wanted.q, marking.stems_of(words))
    found = _titles(wanted) if wanted.of_kind(Kind.CONVERSATIONS) else []
    found += [*_marked(messages, marker), *_of_documents(_marked(passages, marker), named)]
    left_out = {Kind.MESSAGES: messages.more, Kind.DOCUMENTS: passages.more, Kind.NOTES: passages.more}
    groups = []
    for kind in filter(wanted.of_kind, Kind):
        makes = [one.make for one in found if one.kind is kind]
        if makes:
            groups.append(group(wanted, kind, makes, more=left_out.get(kind, False)))
    return Found(wanted=wanted, groups=tuple(groups), searched=(0, 0) if groups else _searched(wanted.owner_id))


def _recent(owner_id: int) -> tuple[Hit, ...]:
    return tuple(
        Hit(
            kind=Kind.CONVERSATIONS,
            address=reverse("session", args=[row.thread_id]),
            title=((row.title, False),),
            at=at,
            icon="chat",
        )
        for at, row in sessionlist.recent(owner_id, RECENT)
    )


def _searched(owner_id: int) -> tuple[int, int]:
    return (sessionlist.visible(owner_id).count(), _latest(owner_id).count())


def _marked(ranked: _Ranked, marker: Marker) -> list[_Found]:
    """Return those that hold a word of the query: those with more of its words first, of nearly equal ones the newest.

    A search also ranks texts that only stand beside such a one.
    """
    held = [(text, spans) for text in ranked.texts if (spans := marker.spans(text.tokens))]
    held.sort(key=lambda one: (marker.covered(one[0].tokens), round(one[0].score, 1), one[0].at), reverse=True)
    return [
        _Found(kind=text.kind, make=partial(text.make, marker, spans), document=text.document) for text, spans in held
    ]


# Conversations


def _titles(wanted: Wanted) -> list[_Found]:
    found = (
        sessionlist.visible(wanted.owner_id).annotate(folded=_folded("title")).filter(_all_words("folded", wanted.q))
    )
    if wanted.since:
        found = found.filter(active_at__gte=wanted.since)
    newest = found.order_by("-active_at", "-id")[: MOST + 1]
    return [_Found(kind=Kind.CONVERSATIONS, make=partial(_title, session, wanted.q)) for session in newest]


def _title(session: Session, q: str) -> Hit:
    return Hit(
        kind=Kind.CONVERSATIONS,
        address=reverse("session", args=[session.thread_id]),
        title=marking.name(session.title, q),
        at=session.active_at,
        icon="archive" if session.archived_at else "chat",
    )


def _messages(wanted: Wanted) -> _Ranked:
    """Return the messages and results that a search ranks, best first, each once."""
    sessions = Session.objects.of(wanted.owner_id)
    here = sessions.filter(thread_id=wanted.thread, deleted_at=None).values_list("pk", flat=True)
    scope = search.Scope(
        owner_id=wanted.owner_id,
        kinds=(search_entry.Kind.EVENT,),
        groups=here if wanted.thread else None,
        created=_created(wanted),
        without=sessions.filter(deleted_at__isnull=False).values_list("pk", flat=True),
    )
    ranked = search.search(scope, wanted.q, limit=_limit(wanted))
    best: dict[tuple[int, int], search.Ranked] = {}
    for one in ranked:
        best.setdefault((one.group_id, one.ref), one)
    if not best:
        return _Ranked()
    events = {(event.session_id, event.position): event for event in _events(wanted.owner_id, list(best))}
    quoted = search.phrases(wanted.q)
    texts = []
    for place, one in best.items():
        event = events.get(place)
        text = piece_at(content_of(codec.load(event.type, event.payload)), one.offset)[0] if event else ""
        if event and search.holds(text, quoted):
            texts.append(_message(event, text, one.score))
    return _Ranked(texts=tuple(texts), more=len(ranked) == _limit(wanted))


def _events(owner_id: int, places: Sequence[tuple[int, int]]) -> QuerySet[Any]:
    """Return the events at these places (session, position), with the lines and the opening of their conversations."""
    said = Event.objects.of(owner_id).filter(session=OuterRef("session_id"), type="user_message").order_by("position")
    forks = ForkRow.objects.filter(session=OuterRef("session_id")).values(
        fork=JSONObject(number="number", parent="parent", shared_position="shared_position")
    )
    wanted = reduce(or_, (Q(session_id=session, position=position) for session, position in places))
    return (
        Event.objects.of(owner_id)
        .filter(wanted, session__deleted_at=None)
        .select_related("session")
        .annotate(
            forks=ArraySubquery(forks),
            opening=Case(SqlWhen(session__title="", then=Subquery(said.values("payload__parts")[:1]))),
        )
    )


def _message(event: Any, text: str, score: float) -> _Text:
    session = event.session
    record = codec.load(event.type, event.payload)
    who, icon, message_id = _speaker(record)
    title = session.title or sessionlist.opening_words(event.opening) or _("New conversation")
    line = chain([Fork(**fork) for fork in event.forks], session.head_fork)
    address = f"{reverse('session', args=[session.thread_id])}?{urlencode({'at': event.event_id}, quote_via=quote)}"

    def make(marker: Marker, spans: Sequence[marking.Span]) -> Hit:
        return Hit(
            kind=Kind.MESSAGES,
            address=address,
            title=((title, False),),
            at=event.at,
            icon=icon,
            snippet=marking.snippet(text, marker, marking.window(text, spans)),
            who=who,
            message_id=message_id,
            other_version=not landing.shows(line, event.fork, event.position),
        )

    return _Text(tokens=Tokens(text), score=score, at=event.at, make=make)


def _speaker(record: Any) -> tuple[str, str, str]:
    """Return who speaks, the picture, and what the page knows the message by, "" = it may stand for several."""
    match record:
        case UserMessage():
            return (_("You"), "chat", record.id)
        case AssistantMessage():
            return (_("Assistant"), "chat", record.id)
        case ToolReturned():
            before, _what, after = wording.tool_sentence(record.name, "", "done")
            return (before + after, "layers", "")
    return ("", "chat", "")


# Documents and notes


def _passages(wanted: Wanted) -> _Ranked:
    """Return the passages that a search ranks, best first."""
    groups: search.Groups = None
    if wanted.thread or wanted.collection:
        groups = _of_place(Artifact.objects.of(wanted.owner_id), wanted, "").values_list("pk", flat=True)
    kinds = (search_entry.Kind.PASSAGE,)
    scope = search.Scope(owner_id=wanted.owner_id, kinds=kinds, groups=groups, created=_created(wanted))
    ranked = search.search(scope, wanted.q, limit=_limit(wanted))
    if not ranked:
        return _Ranked()
    alive = rows.alive(rows.Scope(owner=wanted.owner_id, session=None)).exclude(origin=Version.Origin.GUARD)
    known = Passage.objects.of(wanted.owner_id).filter(pk__in=[one.ref for one in ranked], version__in=alive)
    found = {passage.pk: passage for passage in known.select_related("version__artifact")}
    quoted = search.phrases(wanted.q)
    there = [(found[one.ref], one.score) for one in ranked if one.ref in found]
    texts = tuple(_passage(passage, score) for passage, score in there if search.holds(passage.text, quoted))
    return _Ranked(texts=texts, more=len(ranked) == _limit(wanted))


def _passage(passage: Passage, score: float) -> _Text:
    version = passage.version

    def make(marker: Marker, spans: Sequence[marking.Span]) -> Hit:
        shown = marking.window(passage.text, spans)
        at = f"{passage.start + shown[0]}-{passage.start + shown[1]}"
        return replace(
            _document(version, ""),
            address=_address(version, view="text", at=at),
            title=((_name(version), False),),
            snippet=marking.snippet(passage.text, marker, shown),
            where=places.words(place_from_json(passage.place)),
        )

    return _Text(
        tokens=Tokens(passage.text),
        score=score,
        at=version.artifact.changed_at,
        make=make,
        kind=_kind(version),
        document=version.artifact_id,
    )


def _named(wanted: Wanted) -> list[_Found]:
    """Return the documents whose names hold what was typed, newest first."""
    found = _of_place(_latest(wanted.owner_id), wanted, "artifact__").annotate(folded=_folded("artifact__name", SHARED))
    found = found.filter(_all_words("folded", wanted.q))
    if wanted.since:
        found = found.filter(artifact__changed_at__gte=wanted.since)
    newest = found.order_by("-artifact__changed_at", "-artifact_id")[: MOST + 1]
    return [
        _Found(kind=_kind(version), make=partial(_document, version, wanted.q), document=version.artifact_id)
        for version in newest
    ]


def _of_documents(passages: Sequence[_Found], named: Sequence[_Found]) -> list[_Found]:
    """Return documents that are named so, each with its best passages if it has some, then other passages."""
    of_each: dict[int, list[_Found]] = {}
    for passage in passages:
        of_each.setdefault(passage.document, []).append(passage)
    first: list[_Found] = []
    for document in named:
        inside = of_each.pop(document.document, [])[:OF_ONE]
        if inside:
            inside[0] = replace(inside[0], make=partial(_with_name, inside[0].make, document.make))
        first += inside or [document]
    left = {id(passage) for some in of_each.values() for passage in some[:OF_ONE]}
    return first + [passage for passage in passages if id(passage) in left]


def _with_name(passage: Callable[[], Hit], document: Callable[[], Hit]) -> Hit:
    return replace(passage(), title=document().title)


def _kind(version: Version) -> Kind:
    written = version.mime == "text/markdown" and version.origin in (Version.Origin.TOOL, Version.Origin.EDIT)
    return Kind.NOTES if written else Kind.DOCUMENTS


def _document(version: Version, q: str) -> Hit:
    kind = _kind(version)
    return Hit(
        kind=kind,
        address=_address(version),
        title=marking.name(_name(version), q),
        at=version.artifact.changed_at,
        icon="edit" if kind is Kind.NOTES else librarylist.icon(version.mime),
    )


def _latest(owner_id: int) -> QuerySet[Version]:
    """Return the latest version of each document; results that were too long for a conversation are none."""
    alive = rows.alive(rows.Scope(owner=owner_id, session=None)).exclude(origin=Version.Origin.GUARD)
    return alive.filter(number=F("artifact__last_version"))


def _name(version: Version) -> str:
    return version.artifact.name.removeprefix(SHARED)


def _address(version: Version, **asked: str) -> str:
    query = f"?{urlencode({'v': version.number, **asked})}" if asked else ""
    return reverse("document", args=[version.artifact.public_id]) + query


# Conditions


def _limit(wanted: Wanted) -> int:
    return RANKED if wanted.kind else RANKED_OF_ALL


def _created(wanted: Wanted) -> tuple[datetime, datetime] | None:
    return (wanted.since, timezone.now() + timedelta(days=1)) if wanted.since else None


def _of_place(found: QuerySet[Any], wanted: Wanted, prefix: str) -> QuerySet[Any]:
    """Return the rows of the conversation and the collection that are wanted. prefix: of the artifact's fields."""
    if wanted.thread:
        found = found.filter(**{f"{prefix}session__thread_id": wanted.thread})
    if wanted.collection:
        found = found.filter(**{f"{prefix}collection__public_id": UUID(wanted.collection)})
    return found


def _all_words(column: str, q: str) -> Q:
    words = marking.fold(q.replace("\0", "")).split()
    if not words:  # accents alone
        return Q(pk__in=())
    return reduce(lambda all_of, word: all_of & Q(**{f"{column}__contains": word}), words, Q())


def _folded(column: str, prefix: str = "") -> Func:
    """Return a text without accents and case, as marking.fold does it, and without a prefix that people do not see."""
    shown = f"regexp_replace(%(expressions)s, '^{prefix}', '')" if prefix else "%(expressions)s"
    plain = f"regexp_replace(normalize(lower({shown}), NFKD), U&'[\\0300-\\036f]', '', 'g')"
    return Func(F(column), template=plain, output_field=TextField())
