"""Files: bring one into the library or a conversation, list a conversation's, download one."""

import logging
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import IO, cast
from uuid import UUID

from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.files.uploadhandler import FileUploadHandler, StopUpload
from django.db import close_old_connections
from django.http import Http404, HttpRequest, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.urls import reverse
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents import hints
from agents.runtime.artifacts import SHARED, ArtifactInvalid, ArtifactMissing, ArtifactRef
from artifacts import library, names, rows, saving, sniff
from artifacts.models import Version
from artifacts.rows import Scope
from artifacts.saving import Saved
from artifacts.store import DjangoArtifactStore
from workbench import access, uploads
from workbench.previews import IMAGES

THREAD_ID_CHARS = 128
FORM_BYTES = 64 * 1024  # what a request may have around the file itself
# Types a browser would run if it were ever shown; they travel as bytes
ACTIVE = frozenset({"text/html", "image/svg+xml", "text/xml", "text/javascript"})

RAW_NAME_CHARS = 4096  # of a name as it is sent, path included

logger = logging.getLogger(__name__)


class SizeGuard(FileUploadHandler):
    """Stops a request whose file grows past the limit, while it is read, before it reaches the disk."""

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        if start + len(raw_data) > settings.UPLOAD_MAX_BYTES:
            request = cast("FileRequest", self.request)
            request.too_large = True
            raise StopUpload(connection_reset=True)
        return raw_data

    def file_complete(self, file_size: int) -> None:
        return None


class FileRequest(HttpRequest):
    """A request that may turn out too large."""

    too_large: bool


@csrf_exempt  # only so that the guard is there before the CSRF check reads the body
@require_http_methods(["GET", "POST"])
def files(request: HttpRequest) -> HttpResponseBase:
    """GET ?thread_id=: the files of a conversation. POST multipart {thread_id, file, name?}: attach one.

    For a signed-in browser, which sends the CSRF header, and for API tokens.
    """
    try:
        who = _who(request)
    except access.Unauthorized:
        return _refused(401, "signed_out", _("Sign in again, then go on."))
    if request.method == "GET":
        return _listing(who.owner_id, request.GET.get("thread_id", ""))
    return _taken(request, who, _attach, _attach_from_page)


@csrf_exempt  # as above
@require_POST
def upload(request: HttpRequest) -> HttpResponseBase:
    """POST multipart {file, name?, collection?}: bring one document into the library.

    name: may be a path, as a folder's upload has it. collection: public id. 201 with the document; 200 and
    `"already": true` if the same bytes are there under that name. For browsers and API tokens, as above.
    """
    try:
        who = _who(request)
    except access.Unauthorized:
        return _refused(401, "signed_out", _("Sign in again, then go on."))
    return _taken(request, who, _bring, _bring_from_page)


Door = Callable[["FileRequest", int], JsonResponse]


def _taken(request: HttpRequest, who: access.Identity, door: Door, door_from_page: Door) -> HttpResponseBase:
    """Return what the door answers to a request with a file, after what can be refused before its body is looked at."""
    if not access.may(who, access.Verb.RUN):
        return _refused(403, "forbidden", _("This token may only read."))
    if _declared_length(request) > settings.UPLOAD_MAX_BYTES + FORM_BYTES:
        return _refused(413, "too_large", sniff.too_large())
    guarded = cast(FileRequest, request)
    guarded.too_large = False
    request.upload_handlers.insert(0, SizeGuard(request))
    try:
        with uploads.place(who.owner_id):
            return (door if who.by_token else door_from_page)(guarded, who.owner_id)
    except uploads.TooMany:
        refused = _refused(429, "too_many_uploads", _("Too many files at once. Try again in a moment."))
        refused["Retry-After"] = "1"
        return refused


def _who(request: HttpRequest) -> access.Identity:
    """Return who asks. Unlike access.of_request it leaves the body, and so the CSRF check, for later."""
    if "Authorization" in request.headers:
        return async_to_sync(access.of_request)(request)
    if not request.user.is_authenticated:
        raise access.Unauthorized
    return access.Identity(owner_id=request.user.pk)


def _declared_length(request: HttpRequest) -> int:
    try:
        return int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        return 0


def _attach(request: FileRequest, owner_id: int) -> JsonResponse:
    """Store the file as the next version of its name in the thread, whose session is made if the thread is new."""
    thread_id = request.POST.get("thread_id", "")

    def store(raw_name: str, file: IO[bytes], size_bytes: int) -> Saved:
        # the door comes first, so that a refused file leaves no conversation behind
        sniff.admit(file.read(sniff.HEAD_BYTES), raw_name, size_bytes)
        session = rows.session_of_thread(owner_id, thread_id, make=True)
        if session is None:
            raise ArtifactMissing(thread_id)
        source = rows.Source(origin=Version.Origin.UPLOAD, original_name=raw_name)
        return saving.save(Scope(owner=owner_id, session=session), names.from_upload(raw_name), file, source)

    missing = _refused(404, "thread_not_found", _("This conversation is gone."))
    return _stored(request, owner_id, store, missing, complete=_is_thread_id(thread_id))


def _bring(request: FileRequest, owner_id: int) -> JsonResponse:
    """Store the file as the next version of its name in the library."""

    def store(raw_name: str, file: IO[bytes], size_bytes: int) -> Saved:
        wanted = request.POST.get("collection", "")
        collection = library.find_collection(owner_id, wanted) if wanted else None
        source = rows.Source(origin=Version.Origin.UPLOAD, original_name=raw_name)
        name = SHARED + names.from_path(raw_name)
        return saving.save(Scope(owner=owner_id, session=None), name, file, source, collection=collection)

    missing = _refused(404, "collection_not_found", _("This collection is gone."))
    return _stored(request, owner_id, store, missing)


_attach_from_page = csrf_protect(_attach)
_bring_from_page = csrf_protect(_bring)


def _stored(
    request: FileRequest,
    owner_id: int,
    store: Callable[[str, IO[bytes], int], Saved],
    missing: JsonResponse,
    *,
    complete: bool = True,
) -> JsonResponse:
    """Store the request's one file and describe what it became. complete: the other fields are what they must be."""
    found = request.FILES.getlist("file")
    if request.too_large:
        return _refused(413, "too_large", sniff.too_large())
    if len(found) != 1 or not complete:
        return _refused(400, "invalid_request", _("A request carries one file, and says where it belongs."))
    file = found[0]
    raw_name = (request.POST.get("name") or file.name or names.FALLBACK)[-RAW_NAME_CHARS:]
    try:
        saved = store(raw_name, cast(IO[bytes], file.file), file.size or 0)
    except ArtifactInvalid as e:
        return _refused(400, "file_refused", str(e))
    except ArtifactMissing:
        return missing
    except OSError:
        logger.exception("An upload of %s bytes could not be stored", file.size)
        return _refused(507, "storage_unavailable", _("The file could not be stored. Try again in a moment."))
    async_to_sync(hints.documents_changed)(owner_id, [saved.ref.artifact_id])
    if saved.fresh:
        return JsonResponse(_described(saved.ref), status=201)
    return JsonResponse({**_described(saved.ref), "already": True})


def _listing(owner_id: int, thread_id: str) -> JsonResponse:
    session = rows.session_of_thread(owner_id, thread_id) if _is_thread_id(thread_id) else None
    if session is None:
        return _refused(404, "thread_not_found", _("This conversation is gone."))
    refs = rows.latest(rows.Scope(owner=owner_id, session=session))
    return JsonResponse({"files": [_described(ref) for ref in refs]})


@require_GET
async def download(request: HttpRequest, artifact_id: UUID, version: int) -> HttpResponseBase:
    """Send one version. As a file to save; with ?inline=1 pictures may be shown in place.

    Somebody else's file and one that never was answer alike. The bytes are checked while they are sent: a broken file
    arrives as a cut one. No database connection is held while sending.
    """
    try:
        who = await access.of_request(request)
    except access.Unauthorized:
        if "Authorization" in request.headers:
            return _refused(401, "signed_out", _("This token is not valid."))
        return redirect_to_login(request.get_full_path())
    store = DjangoArtifactStore(owner_id=who.owner_id, session_id=None)
    try:
        ref = await store.find(str(artifact_id), version)
        cached = get_conditional_response(request, etag=f'"{ref.sha256}"')
        if cached is not None:
            return _guarded(cached, ref)
        pieces = await store.stream(ref)
    except ArtifactMissing as e:
        raise Http404(str(e)) from e
    await sync_to_async(close_old_connections)()
    # never HTML, SVG or PDF: they can run programs or look like a page of ours
    inline = bool(request.GET.get("inline")) and ref.mime in IMAGES
    response = StreamingHttpResponse(pieces, content_type=sniff.UNKNOWN if ref.mime in ACTIVE else ref.mime)
    response["Content-Length"] = str(ref.size_bytes)
    # "user:" and folders are ours; a person saves the last part
    file_name = PurePosixPath(ref.name.removeprefix(SHARED)).name
    response["Content-Disposition"] = content_disposition_header(not inline, file_name) or "attachment"
    return _guarded(response, ref)


def _guarded(response: HttpResponseBase, ref: ArtifactRef) -> HttpResponseBase:
    """Return the response with what keeps a file from acting as a page of ours, and from being kept by strangers."""
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response["Cross-Origin-Resource-Policy"] = "same-origin"
    response["ETag"] = f'"{ref.sha256}"'
    response["Cache-Control"] = "private, no-cache"  # kept, but asked for each time: rights may have changed
    patch_vary_headers(response, ["Cookie"])
    return response


def _described(ref: ArtifactRef) -> dict[str, object]:
    return {
        "artifactId": ref.artifact_id,
        "version": ref.version,
        "name": ref.name,
        "mime": ref.mime,
        "sizeBytes": ref.size_bytes,
        "url": reverse("file", args=[ref.artifact_id, ref.version]),
    }


def _refused(status: int, code: str, message: str) -> JsonResponse:
    return JsonResponse({"error": {"code": code, "message": message}}, status=status)


def _is_thread_id(text: str) -> bool:
    return 0 < len(text) <= THREAD_ID_CHARS and text.isprintable()
