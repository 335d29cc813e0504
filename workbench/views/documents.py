"""One document: its page and its fragment for the panel, preview of HTML and PDF, edits and restored versions."""

from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_GET, require_POST

from agents import hints
from agents.runtime.artifacts import ArtifactConflict, ArtifactInvalid, ArtifactMissing, ArtifactRef
from artifacts import blobs, library, rows
from artifacts.rows import Scope
from workbench import documents, previews, sessionlist
from workbench.documents import Asked, Document, View
from workbench.librarylist import DocumentPage
from workbench.localtime import in_own_time
from workbench.views.sessions import PageRequest, me, owner_id

FRAMED = "sandbox; default-src 'none'"  # no script, no address of ours, nothing fetched
DIGITS = 9


@login_required
@require_GET
@in_own_time
def document(request: PageRequest, artifact_id: UUID) -> HttpResponse:
    """Show a document: a page, or for the panel its fragment.

    ?v= version, ?view= preview, text, diff, versions or edit, ?at=START-END characters to show, ?first= passage the
    text begins with, ?base= version to compare with. Deleted, foreign and unknown ones answer alike: 404.
    """
    return _shown(request, _load(request, artifact_id, _asked(request)))


@login_required
@require_GET
def passages(request: PageRequest, artifact_id: UUID) -> HttpResponse:
    """Return the stretch of the text that begins with passage ?first=, for ?v=, as a fragment."""
    asked = _asked(request)
    stored = _found(request, artifact_id, asked.version)
    context = {
        "doc": {"id": stored.ref.artifact_id, "version": stored.ref.version},
        "stretch": documents.stretch(owner_id(request), stored, asked),
    }
    return render(request, "workbench/_document.html#stretch", context)


@login_required
@require_GET
@xframe_options_sameorigin
def frame(request: HttpRequest, artifact_id: UUID, version: int) -> HttpResponse:
    """Send an HTML or PDF file for the preview's frame, as a page that may do nothing."""
    stored = _found(request, artifact_id, version)
    if not previews.is_framed(stored.ref.mime, stored.ref.size_bytes):
        raise Http404
    try:
        data = blobs.read(stored.blob, size_bytes=stored.ref.size_bytes, sha256=stored.ref.sha256)
    except blobs.BlobMissing as e:
        raise Http404 from e
    response = HttpResponse(data, content_type=stored.ref.mime)
    response["Content-Security-Policy"] = FRAMED
    response["Cross-Origin-Resource-Policy"] = "same-origin"
    response["Cache-Control"] = "private, no-store"
    return response


@login_required
@require_POST
@in_own_time
def edit(request: PageRequest, artifact_id: UUID) -> HttpResponse:
    """Save POST text as the version after POST base. If a newer one is there: 409, and both compared."""
    base = _number(request.POST.get("base", ""))
    if base is None:
        raise Http404
    text = request.POST.get("text", "").replace("\r\n", "\n")
    if len(text.encode()) > previews.EDIT_BYTES:
        return HttpResponse(_("The text is too long to be saved here."), status=413, content_type="text/plain")
    try:
        ref = library.edit(owner_id(request), str(artifact_id), text, base=base)
    except ArtifactConflict as e:
        return _shown(request, _in_conflict(request, artifact_id, text, e.latest), status=409)
    except (ArtifactMissing, ArtifactInvalid) as e:
        raise Http404 from e
    return _saved(request, ref)


@login_required
@require_POST
@in_own_time
def bring_back(request: PageRequest, artifact_id: UUID, version: int) -> HttpResponse:
    """Save an old version as the newest one."""
    try:
        ref = library.restore_version(owner_id(request), str(artifact_id), version)
    except (ArtifactMissing, ArtifactInvalid, blobs.BlobMissing) as e:
        raise Http404 from e
    except ArtifactConflict:  # another was saved this very moment: it is shown
        ref = _found(request, artifact_id, None).ref
    return _saved(request, ref)


def _in_conflict(request: HttpRequest, artifact_id: UUID, text: str, latest: int) -> Document:
    try:
        draft = documents.conflict(owner_id(request), str(artifact_id), text, latest)
    except ArtifactMissing as e:  # deleted this very moment
        raise Http404 from e
    return _load(request, artifact_id, Asked(view=View.EDIT), draft=draft)


def _saved(request: PageRequest, ref: ArtifactRef) -> HttpResponse:
    """Show a version that was just saved: the panel gets its fragment at once, a page is sent there."""
    async_to_sync(hints.documents_changed)(owner_id(request), [ref.artifact_id])
    if request.htmx:
        return _shown(request, _load(request, UUID(ref.artifact_id), Asked(version=ref.version)))
    return redirect(f"{reverse('document', args=[ref.artifact_id])}?v={ref.version}")


def _shown(request: PageRequest, found: Document, status: int = 200) -> HttpResponse:
    if request.htmx:
        return render(request, "workbench/_document.html", {"doc": found}, status=status)
    page = DocumentPage(me=me(request), sessions=sessionlist.load(owner_id(request)), doc=found)
    return render(request, "workbench/document.html", {"page": page}, status=status)


def _load(request: HttpRequest, artifact_id: UUID, asked: Asked, *, draft: documents.Draft | None = None) -> Document:
    try:
        return documents.load(owner_id(request), str(artifact_id), asked, draft=draft)
    except (ArtifactMissing, blobs.BlobMissing) as e:
        raise Http404 from e


def _found(request: HttpRequest, artifact_id: UUID, version: int | None) -> rows.Stored:
    try:
        return rows.find(Scope(owner=owner_id(request), session=None), str(artifact_id), version)
    except ArtifactMissing as e:
        raise Http404 from e


def _asked(request: HttpRequest) -> Asked:
    get = request.GET.get
    return Asked(
        version=_number(get("v", "")),
        view=get("view", ""),
        at=documents.at_of(get("at", "")),
        first=_number(get("first", "")),
        base=_number(get("base", "")),
    )


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS else None
