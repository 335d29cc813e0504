"""The library as its page shows it: filters with counts, rows in words, the pages before and after."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from urllib.parse import urlencode

from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.runtime.knowledge import DocumentState
from artifacts import library
from artifacts.library import Line, Shelf, Wanted
from workbench import documents, documentwords
from workbench.contexts import Me, Sessions
from workbench.documents import Document
from workbench.localtime import brief
from workbench.previews import IMAGES, Kind, kind_of

Q_CHARS = 200
STATES: dict[str, tuple[DocumentState, ...]] = {
    "ready": (DocumentState.READY,),
    "working": (DocumentState.WAITING, DocumentState.READING),
    "failed": (DocumentState.FAILED,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What the address asks for; "" = anything. state: of STATES. type: of library.TYPES. page: from 1.

    sort: of library.SORTS, with "-" before it descending; "" = newest first.
    """

    q: str = ""
    state: str = ""
    type: str = ""
    collection: str = ""
    sort: str = ""
    page: int = 1

    @property
    def narrow(self) -> bool:
        """Whether something else than a collection narrows the list."""
        return bool(self.q or self.state or self.type)

    def address(self) -> str:
        asked = {"collection": self.collection, "q": self.q, "state": self.state, "type": self.type}
        asked["sort"] = self.sort
        query = {key: value for key, value in asked.items() if value}
        if self.page > 1:
            query["page"] = str(self.page)
        return reverse("library") + (f"?{urlencode(query)}" if query else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A document in the list, in words."""

    id: str
    name: str
    version: int
    icon: str
    facts: str
    state: str
    reason: str
    pages_read: int
    pages: int
    passages: int
    collection: str
    changed: datetime
    changed_words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A filter that can be chosen."""

    key: str
    label: str
    shown: bool
    address: str = ""
    documents: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    id: str
    name: str
    documents: int
    shown: bool
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A header that sorts.

    address: of the list sorted by it, or the other way round if it is. order: as aria-sort says it, "" = by something
    else. turned: against the way that comes first.
    """

    address: str
    order: str
    turned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class List:
    """A page of the library, and what else can be asked of it.

    total: documents of the person in all. everything: address of all of them. before, after: addresses of the pages
    beside this one, "" = none.
    """

    filters: Filters
    rows: tuple[Row, ...]
    total: int
    states: tuple[Choice, ...]
    types: tuple[Choice, ...]
    sorts: tuple[Choice, ...]
    by_name: Column
    by_changed: Column
    collections: tuple[Collection, ...]
    lead: str
    shown_words: str
    nothing: str
    looked_at: str
    everything: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryPage:
    """max_bytes: of one upload; at_once: uploads that may go on at the same time."""

    me: Me
    sessions: Sessions
    list: List
    max_bytes: int
    at_once: int
    words: dict[str, str] = field(default_factory=documentwords.script_words)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPage:
    """One document on a page of its own."""

    me: Me
    sessions: Sessions
    doc: Document
    words: dict[str, str] = field(default_factory=documentwords.script_words)


def load(owner_id: int, filters: Filters, found: Sequence[int] = ()) -> List:
    """Return a page of the library. found: keys of artifacts whose text holds filters.q, as a search gave them."""
    wanted = Wanted(
        states=STATES.get(filters.state, ()),
        type=filters.type,
        collection=filters.collection,
        words=filters.q,
        found=found,
    )
    start = (filters.page - 1) * library.PAGE
    listing = library.listing(owner_id, wanted, sort=filters.sort, start=start, most=library.PAGE)
    everything = library.listing(owner_id, Wanted(), most=0)
    shelves = library.collections(owner_id)
    last = filters.page * library.PAGE >= listing.total
    return List(
        filters=filters,
        rows=tuple(row(line, in_collection=bool(filters.collection)) for line in listing.documents),
        total=everything.total,
        states=_states(filters, listing.by_state),
        types=tuple(Choice(key=key, label=label, shown=key == filters.type) for key, label in _types().items()),
        sorts=tuple(Choice(key=key, label=label, shown=key == filters.sort) for key, label in sorts().items()),
        by_name=_column(filters, first="name", then="-name"),
        by_changed=_column(filters, first="", then="changed"),
        collections=tuple(_collection(shelf, filters) for shelf in shelves),
        lead=_lead(everything.total, everything.by_state),
        shown_words=_count(listing.total),
        nothing=_("No document matches these filters") if filters.narrow else _("There is nothing in this collection"),
        looked_at=_("{n} were looked at.").format(n=_count(everything.total)),
        everything=Filters(sort=filters.sort).address(),
        before=replace(filters, page=filters.page - 1).address() if filters.page > 1 else "",
        after="" if last else replace(filters, page=filters.page + 1).address(),
    )


def row(line: Line, *, in_collection: bool = False) -> Row:
    """Return a document in words. in_collection: the list is of one collection, whose name every row would repeat."""
    return Row(
        id=line.artifact_id,
        name=line.name,
        version=line.version,
        icon=icon(line.mime),
        facts=_facts(line),
        state=line.state.value,
        reason=documents.failure(line.reason) if line.reason else "",
        pages_read=line.page,
        pages=line.pages,
        passages=line.passages,
        collection="" if in_collection else line.collection,
        changed=line.changed_at,
        changed_words=brief(line.changed_at),
    )


def icon(mime: str) -> str:
    """Return the name of the sprite's picture for a type."""
    if mime in IMAGES:
        return "image"
    if kind_of(mime) is Kind.TABLE or "spreadsheet" in mime:
        return "sheet"
    if kind_of(mime) is Kind.HTML:
        return "web"
    return "code" if kind_of(mime) is Kind.CODE else "file"


def _facts(line: Line) -> str:
    size = str(filesizeformat(line.size_bytes))
    parts = [ngettext("{n} page", "{n} pages", line.pages).format(n=line.pages)] if line.pages else []
    parts.append(size)
    if line.version > 1:
        parts.append(_("version {n}").format(n=line.version))
    if line.of_conversation:
        parts.append(_("from a conversation"))
    return _(", ").join(parts)


def _states(filters: Filters, by_state: dict[DocumentState, int]) -> tuple[Choice, ...]:
    labels = {"": _("All"), "ready": _("Ready"), "working": _("Working"), "failed": _("Not readable")}
    return tuple(
        Choice(
            key=key,
            label=label,
            shown=key == filters.state,
            address=replace(filters, state=key, page=1).address(),
            documents=sum(by_state.get(state, 0) for state in STATES.get(key, tuple(DocumentState))),
        )
        for key, label in labels.items()
    )


def _types() -> dict[str, str]:
    return {
        "": _("Any type"),
        "pdf": _("PDF"),
        "document": _("Word"),
        "slides": _("Slides"),
        "table": _("Table"),
        "page": _("Web page"),
        "text": _("Text"),
        "image": _("Image"),
    }


def sorts() -> dict[str, str]:
    """Return the orders one can choose, in words. Newest first is "", so that each order has one address."""
    return {
        "": _("Newest first"),
        "changed": _("Oldest first"),
        "name": _("Name, A to Z"),
        "-name": _("Name, Z to A"),
        "kind": _("By type"),
        "-kind": _("By type, reversed"),
        "-size": _("Largest first"),
        "size": _("Smallest first"),
    }


def _column(filters: Filters, *, first: str, then: str) -> Column:
    other = then if filters.sort == first else first
    order = ""
    if filters.sort in (first, then):
        order = "descending" if filters.sort.startswith("-") or not filters.sort else "ascending"
    address = replace(filters, sort=other, page=1).address()
    return Column(address=address, order=order, turned=filters.sort == then)


def _collection(shelf: Shelf, filters: Filters) -> Collection:
    return Collection(
        id=shelf.id,
        name=shelf.name,
        documents=shelf.documents,
        shown=shelf.id == filters.collection,
        address=Filters(collection=shelf.id, sort=filters.sort).address(),
    )


def _lead(total: int, by_state: dict[DocumentState, int]) -> str:
    ready, failed = by_state.get(DocumentState.READY, 0), by_state.get(DocumentState.FAILED, 0)
    if ready == total:
        return ""
    if ready + failed == total:
        return ngettext(
            "{ready} of {n} document is ready; the others cannot be read.",
            "{ready} of {n} documents are ready; the others cannot be read.",
            total,
        ).format(ready=ready, n=total)
    return ngettext(
        "{ready} of {n} document is ready; the others are not searchable yet.",
        "{ready} of {n} documents are ready; the others are not searchable yet.",
        total,
    ).format(ready=ready, n=total)


def _count(n: int) -> str:
    return ngettext("{n} document", "{n} documents", n).format(n=n)
