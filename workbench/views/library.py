"""The library: its page, single rows, and what a person does to documents and collections."""

from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from agents import hints, search
from agents.models.search_entry import Kind
from agents.runtime.artifacts import ArtifactInvalid, ArtifactMissing
from artifacts import library as shelf
from workbench import librarylist, sessionlist
from workbench.librarylist import Filters, LibraryPage
from workbench.localtime import in_own_time
from workbench.views.sessions import PageRequest, me, owner_id

DIGITS = 6
AT_ONCE = 3  # uploads of one page
FOUND = 200  # passages looked at for words in the text
PICKED = 50  # documents the picker offers at once


@login_required
@require_GET
@in_own_time
def library(request: PageRequest) -> HttpResponse:
    """Show the library: ?q= words of names and text, ?state=, ?type=, ?collection=, ?sort=, ?page=."""
    filters = filters_of(request)
    page = LibraryPage(
        me=me(request),
        sessions=sessionlist.load(owner_id(request)),
        list=librarylist.load(owner_id(request), filters, _with_text(owner_id(request), filters.q)),
        max_bytes=settings.UPLOAD_MAX_BYTES,
        at_once=min(AT_ONCE, settings.UPLOADS_PER_OWNER),
    )
    return render(request, "workbench/library.html", {"page": page})


@login_required
@require_GET
@in_own_time
def rows(request: PageRequest) -> HttpResponse:
    """Return rows as a fragment, by ?id=, at most a page of them; those that are gone are left out."""
    lines = shelf.lines(owner_id(request), request.GET.getlist("id")[: shelf.PAGE])
    in_collection = bool(request.GET.get("collection"))
    shown = [librarylist.row(line, in_collection=in_collection) for line in lines]
    return render(request, "workbench/_documents.html#rows", {"rows": shown})


@login_required
@require_POST
def delete(request: PageRequest) -> HttpResponse:
    """Hide the documents POST id names; the answer is the toast with Undo."""
    ids = _done(request, lambda: shelf.delete(owner_id(request), request.POST.getlist("id")))
    if not request.htmx:
        return redirect("library")
    return render(request, "workbench/_documents.html#deleted", {"ids": ids})


@login_required
@require_POST
def restore(request: PageRequest) -> HttpResponse:
    """Undo a deletion. 404 once the documents are gone for good."""
    _done(request, lambda: shelf.restore(owner_id(request), request.POST.getlist("id")))
    if not request.htmx:
        return redirect("library")
    return HttpResponse(status=204, headers={"HX-Trigger": "documents-changed"})


@login_required
@require_POST
def move(request: PageRequest) -> HttpResponse:
    """Put the documents POST id names into POST collection, "none" = into none."""
    target = request.POST.get("collection", "")
    _done(
        request, lambda: shelf.move(owner_id(request), request.POST.getlist("id"), "" if target == "none" else target)
    )
    return _settled(request)


@login_required
@require_POST
def rename(request: PageRequest, artifact_id: UUID) -> HttpResponse:
    """Give a document POST name. 422 with the reason if it cannot have it."""

    def change() -> Sequence[str]:
        shelf.rename(owner_id(request), str(artifact_id), request.POST.get("name", ""))
        return [str(artifact_id)]

    return _named(request, change)


@login_required
@require_POST
def read_again(request: PageRequest, artifact_id: UUID) -> HttpResponse:
    """Try a document once more that could not be read."""

    def change() -> Sequence[str]:
        shelf.read_again(owner_id(request), str(artifact_id))
        return [str(artifact_id)]

    _done(request, change)
    return _settled(request)


@login_required
@require_POST
def make_collection(request: PageRequest) -> HttpResponse:
    """Make a collection called POST name. 422 with the reason if it cannot be."""

    def change() -> Sequence[str]:
        shelf.make_collection(owner_id(request), request.POST.get("name", ""))
        return []

    return _named(request, change)


@login_required
@require_POST
def rename_collection(request: PageRequest, collection_id: UUID) -> HttpResponse:
    """Call a collection POST name. 422 with the reason if it cannot be."""

    def change() -> Sequence[str]:
        shelf.rename_collection(owner_id(request), str(collection_id), request.POST.get("name", ""))
        return []

    return _named(request, change)


@login_required
@require_POST
def delete_collection(request: PageRequest, collection_id: UUID) -> HttpResponse:
    """Delete a collection; its documents stay."""
    try:
        shelf.delete_collection(owner_id(request), str(collection_id))
    except ArtifactMissing as e:
        raise Http404 from e
    return _settled(request)


@login_required
@require_GET
@in_own_time
def picker(request: PageRequest) -> HttpResponse:
    """Return the documents a message may be answered from, as a fragment: ?q= words of the name, ?id= those chosen."""
    asked = shelf.Wanted(words=request.GET.get("q", "").strip()[: librarylist.Q_CHARS])
    listing = shelf.listing(owner_id(request), asked, most=PICKED)
    chosen = shelf.lines(owner_id(request), request.GET.getlist("id")[: shelf.PAGE])
    known = {line.artifact_id for line in chosen}
    found = [*chosen, *(line for line in listing.documents if line.artifact_id not in known)]
    context = {
        "rows": [librarylist.row(line) for line in found],
        "chosen": known,
        "more": max(0, listing.total - len(listing.documents)),
    }
    return render(request, "workbench/_picker.html", context)


def filters_of(request: HttpRequest) -> Filters:
    """Return what the address asks for; what cannot be is left out."""
    page = request.GET.get("page", "")
    return Filters(
        q=" ".join(request.GET.get("q", "")[: librarylist.Q_CHARS].replace("\0", "").split()),
        state=_known(request.GET.get("state", ""), librarylist.STATES),
        type=_known(request.GET.get("type", ""), shelf.TYPES),
        collection=_uuid(request.GET.get("collection", "")),
        sort=_known(request.GET.get("sort", ""), librarylist.sorts()),
        page=max(1, int(page)) if page.isascii() and page.isdigit() and len(page) <= DIGITS else 1,
    )


def _with_text(owner: int, words: str) -> Sequence[int]:
    """Return the keys of the documents whose text answers these words best."""
    if not words:
        return ()
    found = search.search(search.Scope(owner_id=owner, kinds=(Kind.PASSAGE,)), words, limit=FOUND)
    return list({one.group_id for one in found})


def _known(text: str, table: Mapping[str, object]) -> str:
    return text if text in table else ""


def _uuid(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        return ""


def _named(request: PageRequest, change: Callable[[], Sequence[str]]) -> HttpResponse:
    try:
        _done(request, change)
    except ArtifactInvalid as e:
        return HttpResponse(str(e), status=422, content_type="text/plain; charset=utf-8")
    return _settled(request)


def _done(request: HttpRequest, change: Callable[[], Sequence[str]]) -> Sequence[str]:
    """Make a change and tell the owner's other pages which documents it touched; 404 if there are none."""
    try:
        ids = change()
    except ArtifactMissing as e:
        raise Http404 from e
    async_to_sync(hints.documents_changed)(owner_id(request), ids)
    return ids


def _settled(request: PageRequest) -> HttpResponse:
    return HttpResponse(status=204) if request.htmx else redirect("library")
