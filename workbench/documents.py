"""A document as the page and the panel show it: which version, which view of it, and what stands in that view."""

import re
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from django.utils.translation import gettext as _

from agents.runtime.artifacts import SHARED, ArtifactMissing
from agents.runtime.knowledge import place_from_json
from artifacts import blobs, diff, indexing, rows
from artifacts.models import Passage, Version
from artifacts.rows import Scope, Stored, TextStatus
from workbench import failurewords, places, previews
from workbench.previews import Kind, Preview

WINDOW = 40  # passages of about a thousand characters, in one stretch of the text view
LEAD = 8  # passages shown before the one that was asked for
_AT = re.compile(r"(\d{1,12})-(\d{1,12})")


class View(StrEnum):
    """What is shown of a document; the values stand in addresses."""

    PREVIEW = "preview"  # drawn
    TEXT = "text"  # what was read out of it, in passages
    DIFF = "diff"  # against another version
    VERSIONS = "versions"  # the list of all
    EDIT = "edit"  # its text in a field


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A passage. place: in words, if it differs from the one before. hit: the part that was asked for, else ""."""

    number: int
    start: int
    place: str
    before: str
    hit: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Passages in a row. earlier, later: number of the passage where the stretch beside it begins; None at an end."""

    pieces: tuple[Piece, ...] = ()
    earlier: int | None = None
    later: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRow:
    number: int
    at: datetime
    by: str
    note: str
    size_bytes: int
    shown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    view: View
    label: str
    shown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An edit. base: the version it began with. newer: set if somebody saved one in between; compared says what."""

    text: str
    base: int
    newer: int = 0
    compared: diff.Comparison | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One version of a document in one view. state: rows.TextStatus; reason: why it could not be read, in words.

    partly: it is longer than what can be searched.
    Only the field of the view is filled: preview, stretch, compared (with `base`), draft. at: "START-END" or "".
    """

    id: str
    name: str
    version: int
    latest: int
    mime: str
    kind: Kind
    size_bytes: int
    pages: int
    state: str
    reason: str
    partly: bool
    view: View
    editable: bool
    versions: tuple[VersionRow, ...]
    at: str = ""
    tabs: tuple[Tab, ...] = ()
    preview: Preview | None = None
    stretch: Stretch = field(default_factory=Stretch)
    base: int = 0
    compared: diff.Comparison | None = None
    draft: Draft | None = None

    @property
    def old(self) -> bool:
        return self.version < self.latest

    @property
    def drawn(self) -> bool:
        """Whether there is a preview."""
        framed = self.kind in (Kind.HTML, Kind.PDF)
        return previews.is_framed(self.mime, self.size_bytes) if framed else self.kind is not Kind.OTHER

    @property
    def in_columns(self) -> bool:
        """Whether its text is set with all characters of one width."""
        return self.kind in (Kind.CODE, Kind.TABLE, Kind.HTML)

    @property
    def title(self) -> str:
        """The view's name, "" for one without a tab."""
        return next((tab.label for tab in self.tabs if tab.shown), "")

    @property
    def before(self) -> int | None:
        """The version before the one that is shown."""
        return max((v.number for v in self.versions if v.number < self.version), default=None)

    @property
    def after(self) -> int | None:
        return min((v.number for v in self.versions if v.number > self.version), default=None)

    @property
    def others(self) -> tuple[int, ...]:
        return tuple(v.number for v in self.versions if v.number != self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an address asks for. version: None = the latest. at: characters. first: passage to begin the text with."""

    version: int | None = None
    view: str = ""
    at: tuple[int, int] | None = None
    first: int | None = None
    base: int | None = None


def load(owner_id: int, artifact_id: str, asked: Asked, *, draft: Draft | None = None) -> Document:
    """Return the document in the view that was asked for, or the best one it has.

    Raises ArtifactMissing (also for deleted and foreign ones), blobs.BlobMissing.
    """
    stored = rows.find(Scope(owner=owner_id, session=None), artifact_id, asked.version)
    row = Version.objects.of(owner_id).select_related("artifact").get(pk=stored.pk)
    siblings = _versions(owner_id, row)
    kind = previews.kind_of(row.mime)
    found = Document(
        id=stored.ref.artifact_id,
        name=row.artifact.name.removeprefix(SHARED),
        version=row.number,
        latest=row.artifact.last_version,
        mime=row.mime,
        kind=kind,
        size_bytes=row.size_bytes,
        pages=row.pages,
        state=row.text_status,
        reason=failure(row.text_error) if row.text_status == TextStatus.FAILED else "",
        partly=row.text_error == indexing.NOT_ALL,
        view=View.TEXT,
        editable=previews.is_text(row.mime) and row.size_bytes <= previews.EDIT_BYTES,
        versions=siblings,
        at=f"{asked.at[0]}-{asked.at[1]}" if asked.at else "",
    )
    return _filled(found, owner_id, stored, asked, draft)


def stretch(owner_id: int, stored: Stored, asked: Asked) -> Stretch:
    """Return the passages around the place that was asked for, from the beginning if none was."""
    passages = Passage.objects.of(owner_id).filter(version_id=stored.pk).order_by("number")
    first = asked.first or 0
    if asked.first is None and asked.at is not None:
        hit = passages.filter(end__gt=asked.at[0]).values_list("number", flat=True).first()
        first = max(0, hit - LEAD) if hit is not None else 0
    shown = list(passages.filter(number__gte=max(0, first - 1))[: WINDOW + 2])
    before = shown.pop(0) if first and shown else None
    more = len(shown) > WINDOW
    last_place = places.words(place_from_json(before.place)) if before else ""
    pieces = []
    for passage in shown[:WINDOW]:
        place = places.words(place_from_json(passage.place))
        pieces.append(_piece(passage, place if place != last_place else "", asked.at))
        last_place = place
    return Stretch(
        pieces=tuple(pieces),
        earlier=max(0, first - WINDOW) if before else None,
        later=first + WINDOW if more else None,
    )


def failure(trouble: str) -> str:
    """Return why no text could be read from a file, in words. trouble: Version.text_error."""
    table = failurewords.tool_failures()
    return table.get(f"file_{trouble}", table["file_not_read"])


def at_of(text: str) -> tuple[int, int] | None:
    """Return the characters an address names as "120-450"; None for anything else."""
    found = _AT.fullmatch(text)
    return (int(found[1]), int(found[2])) if found and int(found[1]) < int(found[2]) else None


def conflict(owner_id: int, artifact_id: str, text: str, newer: int) -> Draft:
    """Return an edit that came too late, compared with the version that was saved in between."""
    stored = rows.find(Scope(owner=owner_id, session=None), artifact_id, newer)
    try:
        compared = diff.compare(previews.whole_text(stored) or "", text)
    except (diff.TooLong, blobs.BlobMissing):
        compared = None
    return Draft(text=text, base=newer, newer=newer, compared=compared)


def _filled(found: Document, owner_id: int, stored: Stored, asked: Asked, draft: Draft | None) -> Document:
    view = _view(found, asked)
    found = replace(found, view=view, tabs=_tabs(found, view))
    match view:
        case View.PREVIEW:
            return replace(found, preview=previews.preview(stored))
        case View.TEXT:
            return replace(found, stretch=stretch(owner_id, stored, asked))
        case View.DIFF:
            base = asked.base if asked.base in found.others else found.before or found.after or 0
            return replace(found, base=base, compared=_compared(owner_id, stored, base))
        case View.EDIT:
            return replace(found, draft=draft or Draft(text=previews.whole_text(stored) or "", base=found.version))
    return found


def _view(found: Document, asked: Asked) -> View:
    """Return the view that was asked for if the document has it, else the best one."""
    offered = {View.TEXT, View.VERSIONS}
    if found.drawn:
        offered.add(View.PREVIEW)
    if found.others:
        offered.add(View.DIFF)
    if found.editable:
        offered.add(View.EDIT)
    if asked.view in offered:
        return View(asked.view)
    return View.TEXT if asked.at or View.PREVIEW not in offered else View.PREVIEW


def _tabs(found: Document, view: View) -> tuple[Tab, ...]:
    source = _("Source") if previews.is_text(found.mime) else _("Text")
    labels = {View.PREVIEW: _("Preview"), View.TEXT: source, View.DIFF: _("Changes"), View.VERSIONS: _("Versions")}
    if not found.drawn:
        del labels[View.PREVIEW]
    if found.kind is Kind.IMAGE:
        del labels[View.TEXT]
    if not found.others:
        del labels[View.DIFF]
    return tuple(Tab(view=key, label=label, shown=key is view) for key, label in labels.items())


def _compared(owner_id: int, stored: Stored, base: int) -> diff.Comparison | None:
    """Return the difference to another version; None if one of them has no text, or they are too long."""
    try:
        other = rows.find(Scope(owner=owner_id, session=None), stored.ref.artifact_id, base)
        old, new = previews.whole_text(other), previews.whole_text(stored)
        return None if old is None or new is None else diff.compare(old, new)
    except (ArtifactMissing, diff.TooLong):
        return None


def _versions(owner_id: int, shown: Version) -> tuple[VersionRow, ...]:
    """Return every version, newest first."""
    by = {Version.Origin.UPLOAD: _("Uploaded by you"), Version.Origin.EDIT: _("Edited by you")}
    found = Version.objects.of(owner_id).filter(artifact_id=shown.artifact_id).order_by("-number")
    return tuple(
        VersionRow(
            number=row.number,
            at=row.created_at,
            by=by.get(Version.Origin(row.origin), _("Written by the assistant")),
            note=row.note,
            size_bytes=row.size_bytes,
            shown=row.pk == shown.pk,
        )
        for row in found
    )


def _piece(passage: Passage, place: str, at: tuple[int, int] | None) -> Piece:
    text = passage.text
    first = max(0, at[0] - passage.start) if at else 0
    last = min(len(text), at[1] - passage.start) if at else 0
    if first >= last:
        return Piece(number=passage.number, start=passage.start, place=place, before=text)
    return Piece(
        number=passage.number,
        start=passage.start,
        place=place,
        before=text[:first],
        hit=text[first:last],
        after=text[last:],
    )
