"""The documents of one owner as rows: the latest versions in a scope, a name's meaning, passages from a place on.

A document is what its owner uploaded or had made, in the library or in a conversation that is not deleted. Results that
were too long for a conversation are none. Plain functions for worker threads.
"""

import difflib
import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import connection
from django.db.models import F, Q, QuerySet

from agents import search
from agents.runtime.artifacts import SHARED, reference_candidates
from agents.runtime.knowledge import (
    ID_CHARS,
    QUOTE_CHARS,
    Citation,
    Document,
    DocumentMissing,
    DocumentUnread,
    Found,
    Hit,
    citation_id,
    place_from_json,
)
from artifacts.models import Passage, Version
from artifacts.reading import unreadable
from artifacts.rows import STATES, Scope, TextStatus, alive

MOST_DOCUMENTS: Final = 20_000
MOST_NAMED: Final = 5  # in a complaint
MOST_UNREAD: Final = 20
CLOSE: Final = 0.75  # likeness of a name that is meant though misspelt


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """Which documents: of one owner, seen from one conversation. sources: public ids, None = all, () = none."""

    owner_id: int
    session: int | None
    sources: tuple[str, ...] | None

    @property
    def ids(self) -> list[UUID] | None:
        return None if self.sources is None else [UUID(s) for s in self.sources if _is_id(s)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One version of a document, its latest unless another was asked for. key: the artifact's; version_key: its own.

    shared: it is of the library and of no conversation.
    """

    key: int
    version_key: int
    document: Document
    shared: bool


def versions(shelf: Shelf) -> QuerySet[Version]:
    """Return all versions of the shelf's documents."""
    rows = alive(Scope(owner=shelf.owner_id, session=None)).exclude(origin=Version.Origin.GUARD)
    return rows if shelf.ids is None else rows.filter(artifact__public_id__in=shelf.ids)


def latest(shelf: Shelf) -> tuple[Entry, ...]:
    """Return the shelf's documents, newest first."""
    rows = versions(shelf).filter(number=F("artifact__last_version"))
    return tuple(_entry(row, shelf) for row in rows.order_by("-created_at", "-id")[:MOST_DOCUMENTS])


def resolve(shelf: Shelf, reference: str) -> Entry:
    """Return the document that an id, a name or "artifact://name@version" means.

    A name need not be whole: its last part, its beginning, a part of it or nearly it will do, if it is one document's
    only. Raises DocumentMissing.
    """
    return _resolve(shelf, reference, latest(shelf))


def resolve_all(shelf: Shelf, references: Sequence[str]) -> tuple[Entry, ...]:
    """Return the documents these mean, with one look. Raises DocumentMissing."""
    known = latest(shelf)
    return tuple(_resolve(shelf, reference, known) for reference in references)


def _resolve(shelf: Shelf, reference: str, known: Sequence[Entry]) -> Entry:
    for name, number in reference_candidates(reference.strip()):
        exact = [e for e in known if name in (e.document.artifact_id, e.document.name)]
        exact = exact or [e for e in known if e.shared and name == SHARED + e.document.name]
        if meant := exact or _meant(name, known):
            return _version(shelf, _only(meant, reference), number)
    raise DocumentMissing(f'There is no document "{reference}".{_said(known)}')


def _meant(name: str, known: Sequence[Entry]) -> list[Entry]:
    """Return the documents a name may mean, by the strictest rule that any of them meets."""
    asked = _plain(name.removeprefix(SHARED))
    if not asked:
        return []
    names = [(_plain(entry.document.name), entry) for entry in known]
    rules = (
        lambda n: n == asked,
        lambda n: n.rpartition("/")[2] == asked or n.rpartition(".")[0] == asked,
        lambda n: n.startswith(asked) or n.rpartition("/")[2].startswith(asked),
        lambda n: asked in n,
    )
    for rule in rules:
        if found := [entry for n, entry in names if rule(n)]:
            return found
    stem, digits = _stem(asked)
    alike = {_stem(n)[0] for n, _ in names if _stem(n)[1] == digits}  # 2024 is no misspelt 2025
    close = difflib.get_close_matches(stem, alike, n=1, cutoff=CLOSE)
    return [entry for n, entry in names if _stem(n) in [(c, digits) for c in close]]


def _only(found: Sequence[Entry], reference: str) -> Entry:
    """Return the one that is meant: of several with the same name this conversation's, or else the library's."""
    if len({e.document.name for e in found}) == 1:
        nearest = min(_distance(e) for e in found)
        found = [e for e in found if _distance(e) == nearest]
    if len(found) > 1:
        shown = "; ".join(f"{e.document.name} ({e.document.artifact_id})" for e in found[:MOST_NAMED])
        raise DocumentMissing(f'"{reference}" may be {len(found)} documents: {shown}. Name one by its id.')
    return found[0]


def _distance(entry: Entry) -> int:
    return 0 if entry.document.here else 1 if entry.shared else 2


def _version(shelf: Shelf, entry: Entry, number: int | None) -> Entry:
    if number in (None, entry.document.version):
        return entry
    row = versions(shelf).filter(artifact=entry.key, number=number).first()
    if row is None:
        latest_is = f"the latest is {entry.document.version}"
        raise DocumentMissing(f'There is no version {number} of "{entry.document.name}"; {latest_is}.')
    return _entry(row, shelf)


def _said(known: Sequence[Entry]) -> str:
    if not known:
        return " There are no documents."
    names = ", ".join(e.document.name for e in known[:MOST_NAMED])
    return f" There are {len(known)}: {names}{', …' if len(known) > MOST_NAMED else ''}."


def _plain(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold().strip()


def _stem(name: str) -> tuple[str, list[str]]:
    """Return a name without folders and ending, and its numbers."""
    stem = name.rpartition("/")[2]
    stem = stem.rpartition(".")[0] or stem
    return stem, re.findall(r"\d+", stem)


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def _entry(row: Version, shelf: Shelf) -> Entry:
    name = row.artifact.name.removeprefix(SHARED)
    failed = row.text_status == TextStatus.FAILED
    return Entry(
        key=row.artifact_id,
        version_key=row.pk,
        shared=row.artifact.session_id is None,
        document=Document(
            artifact_id=str(row.artifact.public_id),
            name=name,
            version=row.number,
            mime=row.mime,
            size_bytes=row.size_bytes,
            state=STATES[TextStatus(row.text_status)],
            reason=reason(row.text_error, name) if failed else "",
            pages=row.pages,
            total_chars=row.text_chars,
            here=shelf.session is not None and row.artifact.session_id == shelf.session,
        ),
    )


def reason(trouble: str, name: str) -> str:
    """Return why a document has no text, in words."""
    try:
        return str(unreadable(trouble, name))
    except ValueError:
        return f"{name} could not be read. Try again later."


# The passages of a search

# The planner takes docs for one row and would read all their passages, or all of docs for each passage: `offset 0` and
# `found` keep it to a look-up for each passage, and docs to one look.
_FOUND = """
with docs as materialized (
  select a.public_id, a.name, a.id artifact_id, v.id, v.number, v.text_status
  from artifacts_artifact a
  join artifacts_version v on v.artifact_id = a.id and v.number = a.last_version and v.owner_id = a.owner_id
  left join agents_session s on s.id = a.session_id
  where a.owner_id = %(owner)s and a.deleted_at is null and s.deleted_at is null and v.origin <> 'guard'
    and (%(sources)s::uuid[] is null or a.public_id = any(%(sources)s::uuid[]))),
found as materialized (
  select r.score, r.nth, p.* from unnest(%(refs)s::bigint[], %(scores)s::float8[]) with ordinality r(ref, score, nth)
  cross join lateral (
    select p.version_id, p.start, p."end", p.place, p.text from artifacts_passage p
    where p.id = r.ref and p.owner_id = %(owner)s offset 0) p),
of as materialized (select * from docs where id = any(array(select version_id from found))),
hits as (
  select of.public_id, of.name, of.number, f.start, f."end", f.place::text, f.text, f.score,
    (select bool_and(w.origin = 'tool') from artifacts_version w where w.artifact_id = of.artifact_id) as second_hand,
    f.nth
  from found f join of on of.id = f.version_id order by f.nth limit %(limit)s)
select (select count(*) from docs where text_status = 'ready'),
  (select json_agg(name) from (
    select name from docs where text_status in ('', 'waiting', 'reading') order by name limit %(unread)s) u)::text,
  hits.* from (select) one left join hits on true order by nth
"""


def found(shelf: Shelf, ranked: Sequence[search.Ranked], limit: int, quoted: Sequence[str]) -> Found:
    """Return the passages of what search ranked, best first, that are in the shelf and hold what was quoted."""
    given = {
        "owner": shelf.owner_id,
        "sources": shelf.ids,
        "refs": [r.ref for r in ranked],
        "scores": [r.score for r in ranked],
        "limit": len(ranked) if quoted else limit,
        "unread": MOST_UNREAD,
    }
    with connection.cursor() as cursor:
        cursor.execute(_FOUND, given)
        rows = cursor.fetchall()
    hits = [_hit(row) for row in rows if row[2] is not None]
    unread = [name.removeprefix(SHARED) for name in json.loads(rows[0][1] or "[]")]
    held = [hit for hit in hits if search.holds(hit.text, quoted)] if quoted else hits
    return Found(hits=tuple(held[:limit]), searched=rows[0][0], unread=tuple(unread))


def _hit(row: Sequence[Any]) -> Hit:
    public_id, name, number, start, end, place, text, score, second_hand = row[2:11]
    return Hit(
        citation=Citation(
            id=citation_id(str(public_id), number, start, end),
            artifact_id=str(public_id),
            version=number,
            name=name.removeprefix(SHARED),
            start=start,
            end=end,
            place=place_from_json(json.loads(place)),
            quote=text[:QUOTE_CHARS],
        ),
        text=text,
        score=score,
        second_hand=second_hand,
    )


# Reading on from a place

_PLACE = re.compile(r"(page|line|row|char|heading)\s*:\s*(.+)", re.DOTALL)


def passages_from(shelf: Shelf, entry: Entry, at: str, any_version: bool, most: int) -> tuple[Entry, list[Hit]]:
    """Return up to `most` passages from a place on, and the version they are of. at: see Knowledge.read.

    any_version: the id of a citation may be one of an older version, which is read then. Raises DocumentUnread for a
    place that is not there.
    """
    mine = Passage.objects.of(shelf.owner_id)
    first: int | None = 0
    if at.strip():
        if re.fullmatch(rf"[a-z2-7]{{{ID_CHARS}}}", at.strip()):
            entry, first = _cited(shelf, entry, at.strip(), any_version)
        else:
            first = _first(mine.filter(version=entry.version_key), entry.document, at)
    rows = mine.filter(version=entry.version_key, number__gte=first).order_by("number")
    document = entry.document
    values = rows.values_list("start", "end", "place", "text")[:most]
    head = (None, None, document.artifact_id, document.name, document.version)
    return entry, [_hit((*head, start, end, json.dumps(place), text, 0.0, False)) for start, end, place, text in values]


def _first(rows: QuerySet[Passage], document: Document, at: str) -> int:
    match = _PLACE.fullmatch(at.strip())
    if match is None:
        raise DocumentUnread(f'There is no place {at!r}: say "page:3", "line:120", "row:40", "heading:Results".')
    kind, value = match[1], match[2].strip()
    numbers = rows.order_by("number").values_list("number", flat=True)
    if kind == "heading":
        asked = _plain(value)
        paths = rows.order_by("number").values_list("number", "place__heading")
        found = [(number, [_plain(heading) for heading in path]) for number, path in paths if path]
        exact = next((n for n, path in found if asked in path), None)
        near = next((n for n, path in found if any(asked in h for h in path)), None)
        first = near if exact is None else exact
    elif value.isascii() and value.isdigit() and len(value) < 10:
        number = int(value)
        conditions = {
            "char": Q(end__gt=number),
            "page": Q(place__page__gte=number),
            "line": Q(place__lines__1__gte=number),
            "row": Q(place__rows__1__gte=number),
        }
        first = numbers.filter(conditions[kind]).first()
    else:
        first = None
    if first is None:
        pages = f" It has {document.pages} pages." if document.pages else ""
        raise DocumentUnread(f'"{document.name}" has no {kind} {value!r}.{pages}')
    return first


def _cited(shelf: Shelf, entry: Entry, cited: str, any_version: bool) -> tuple[Entry, int]:
    rows = Passage.objects.of(shelf.owner_id).filter(version__artifact=entry.key)
    if not any_version:
        rows = rows.filter(version=entry.version_key)
    known = rows.order_by("-version__number", "number").values_list("version__number", "number", "start", "end")
    for version, number, start, end in known.iterator():
        if citation_id(entry.document.artifact_id, version, start, end) == cited:
            return _version(shelf, entry, version), number
    raise DocumentUnread(f'"{entry.document.name}" has no passage [[c:{cited}]].')
