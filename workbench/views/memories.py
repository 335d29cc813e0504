"""Memories: their page, single rows, and what a person does to what is remembered of them."""

import functools
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from asgiref.sync import async_to_sync
from django.contrib.auth.decorators import login_required
from django.core import signing
from django.db import InterfaceError, OperationalError, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import trigger_client_event

from agents import hints
from agents.runtime.memory import encoding
from agents.runtime.memory.memories import (
    Kind,
    Memory,
    MemoryDuplicate,
    MemoryMissing,
    Source,
    VersionConflict,
    draft_of,
)
from agents.runtime.memory.words import normalised
from agents.stores import memoryswitch
from agents.stores.memoryrows import MemoryRows, lock
from workbench import memorylist, sessionlist
from workbench.localtime import in_own_time
from workbench.memoryform import Form, Unfit
from workbench.memorylist import Deleted, Filters, List, MemoryPage
from workbench.views.sessions import PageRequest, me, owner_id

SALT: Final = "memories.undo"
UNDO_S: Final = 60  # the toast counts 10 s, and stands still while one points at it
UNDO_CHARS: Final = 256 * 1024
AT_ONCE: Final = 1_000
SHOW_DIGITS: Final = 4
FORMAT: Final = {"format": "workbench-memories", "version": 1}

_View = Callable[..., HttpResponse]
logger = logging.getLogger(__name__)


def _answered(view: _View) -> _View:
    """Sign-in first; 404 for what is not there or not theirs, 503 while memories cannot be read.

    Times are those of the person's zone.
    """

    @functools.wraps(view)
    def inner(request: PageRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except MemoryMissing as e:
            raise Http404 from e
        except (OperationalError, InterfaceError):
            logger.exception("the memories cannot be read or written")
            if request.htmx:
                return HttpResponse(status=503)
            return _draw(request, List(filters=Filters()), status=503, unavailable=True)

    return login_required(in_own_time(inner))


@_answered
@require_GET
def memories(request: PageRequest) -> HttpResponse:
    """Show the page: ?q= words of the text, people or place, ?kind=, ?sort=, ?show= how many, ?edit= one, ?add."""
    return _page(request, filters_of(request))


@_answered
@require_POST
def add(request: PageRequest) -> HttpResponse:
    """Remember what was typed. What is remembered already is left as it is. 422 with the form if it cannot be.

    POST row: the form stands in the row of a memory that is gone.
    """
    form, store = Form.typed(request.POST), MemoryRows(owner_id(request))
    in_row = "row" in request.POST
    try:
        written = store.add(form.draft(timezone.now(), timezone.get_current_timezone()))
    except Unfit as e:
        if not request.htmx:
            return _page(request, Filters(adding=True), new=e.form, status=422)
        if in_row:
            return _fragment(request, "gone", {"form": replace(e.form, gone=True)}, status=422)
        return _fragment(request, "new", {"form": e.form, "adding": True}, status=422)
    _tell(request)
    if not request.htmx:
        return redirect("memories")
    said = _("Remembered") if written.created else _("This is remembered already.")
    said = " ".join(filter(None, (said, memorylist.full_words(len(written.evicted)))))
    answer = HttpResponse() if in_row else _fragment(request, "new", {"form": Form()})
    return _changed(answer, said)


@_answered
@require_GET
def row(request: PageRequest, memory_id: str) -> HttpResponse:
    """Return one memory as a row."""
    return _row(request, _history(request, memory_id))


@_answered
@require_http_methods(["GET", "POST"])
def edit(request: PageRequest, memory_id: str) -> HttpResponse:
    """GET: return the form of a memory. POST: put what was typed in its place.

    422: it cannot be stored. 409: it was changed meanwhile; the form then says both what was typed and what there is by
    now, and sent again it replaces that. 404: it is not there (any more); the form then makes a new one.
    """
    zone = timezone.get_current_timezone()
    if request.method == "GET":
        if not request.htmx:
            return _page(request, Filters(edit=_history(request, memory_id)[0].id))
        history = _history(request, memory_id)
        return _row(request, history, Form.of(history[0], zone))
    form = Form.typed(request.POST)
    try:
        _put(request, memory_id, form)
    except Unfit as e:
        return _refused(request, memory_id, e.form, 422)
    except MemoryDuplicate:
        errors = {"text": _("Another memory says exactly this.")}
        return _refused(request, memory_id, replace(form, errors=errors), 422)
    except VersionConflict:
        now = _history(request, memory_id)[0]
        theirs = " · ".join((now.text, *memorylist.about(now, zone)))
        return _refused(request, memory_id, replace(form, version=now.version, theirs=theirs), 409)
    except MemoryMissing:
        return _lost(request, form)
    _tell(request)
    if not request.htmx:
        return redirect("memories")
    return _changed(_row(request, _history(request, memory_id)))


@_answered
@require_POST
def mute(request: PageRequest, memory_id: str) -> HttpResponse:
    """Keep a memory from answers (POST muted=1), or let them use it again."""
    muted = request.POST.get("muted") == "1"
    MemoryRows(owner_id(request)).mute(memory_id, muted)
    _tell(request)
    if not request.htmx:
        return redirect("memories")
    said = _("Not used in answers from now on.") if muted else _("Used in answers again.")
    return _changed(_row(request, _history(request, memory_id)), said)


@_answered
@require_POST
def bring_back(request: PageRequest, memory_id: str) -> HttpResponse:
    """Let the earlier version POST earlier hold again, in place of the memory as it was read (POST version).

    Nothing is lost: what held until now becomes an earlier version itself. 409 if it was changed meanwhile.
    """
    history = _history(request, memory_id)
    earlier = next((memory for memory in history[1:] if memory.id == request.POST.get("earlier")), None)
    if earlier is None:
        raise MemoryMissing
    version = Form.typed(request.POST).version
    try:
        draft = replace(draft_of(earlier), source=Source.PERSON)
        new = MemoryRows(owner_id(request)).supersede(memory_id, draft, version=version).memory
    except VersionConflict:
        said = _("It was changed meanwhile. Look at it first.")
        return _changed(_row(request, _history(request, memory_id), status=409), said)
    _tell(request)
    if not request.htmx:
        return redirect("memories")
    said = _("Brought back. What held until now is among the earlier versions.")
    return _changed(_row(request, _history(request, new.id)), said)


@_answered
@require_POST
def delete(request: PageRequest) -> HttpResponse:
    """Delete the memories POST id names, with their earlier versions; the answer is the toast with Undo.

    404 if there is none of them, 413 if they are too many for an Undo.
    """
    ids = dict.fromkeys(request.POST.getlist("id")[:AT_ONCE])
    store = MemoryRows(owner_id(request))
    with transaction.atomic():
        lock(owner_id(request))  # what Undo brings back is what was there
        found = [history for id in ids if (history := _known(store, id))]
        if not found:
            raise MemoryMissing
        token = _undo(owner_id(request), [memory for history in found for memory in history])
        if not token and len(found) > 1:
            said = _("These are too many to be deleted at once. Select fewer.")
            return HttpResponse(said, status=413, content_type="text/plain; charset=utf-8")
        for history in found:
            store.delete(history[0].id, by=Source.PERSON)
    _tell(request)
    deleted = Deleted(words=memorylist.deleted_words(len(found), found[0][0].text), token=token)
    if not request.htmx:
        return _page(request, Filters(), deleted=deleted)
    return _fragment(request, "deleted", {"deleted": deleted})


@_answered
@require_POST
def restore(request: PageRequest) -> HttpResponse:
    """Undo a deletion: POST token is what the toast holds. 410 once it is too late, 409 if something says it by now."""
    try:
        held = signing.loads(request.POST.get("token", ""), salt=SALT, max_age=UNDO_S)
    except signing.SignatureExpired:
        return _not_restored(request, _("It is too late to undo this."), 410)
    except signing.BadSignature as e:
        raise Http404 from e
    if held["owner"] != owner_id(request):
        raise Http404
    try:
        MemoryRows(owner_id(request)).restore([encoding.memory_from(one) for one in held["memories"]])
    except MemoryDuplicate:
        return _not_restored(request, _("Not brought back: another memory says this by now."), 409)
    _tell(request)
    if not request.htmx:
        return redirect("memories")
    return _changed(HttpResponse(status=204), undone=True)


@_answered
@require_POST
def forget(request: PageRequest) -> HttpResponse:
    """Delete everything for good, if POST word is the one that confirms it; 422 if not."""
    if normalised(request.POST.get("word", "")) != normalised(_confirmation()):
        error = _("Type “{word}” to confirm.").format(word=_confirmation())
        if not request.htmx:
            return _page(request, Filters(), forget_error=error, status=422)
        return HttpResponse(error, status=422, content_type="text/plain; charset=utf-8")
    n = MemoryRows(owner_id(request)).clear(by=Source.PERSON)
    _tell(request)
    if not request.htmx:
        return redirect("memories")
    said = ngettext("{n} memory was deleted for good.", "{n} memories were deleted for good.", n).format(n=n)
    return _changed(HttpResponse(status=204), said)


@_answered
@require_POST
def switch(request: PageRequest) -> HttpResponse:
    """Use memories (POST on), or neither read nor write them from now on."""
    memoryswitch.turn(owner_id(request), on="on" in request.POST, now=timezone.now())
    _tell(request)
    if not request.htmx:
        return redirect("memories")
    return _fragment(request, "switch", {"on": memoryswitch.is_on(owner_id(request))})


@_answered
@require_GET
def export(request: PageRequest) -> HttpResponse:
    """Return everything that is remembered, earlier versions too, as a JSON file."""
    memories = [encoding.as_json(memory) for memory in MemoryRows(owner_id(request)).export()]
    content = json.dumps(
        {**FORMAT, "exported_at": timezone.now().isoformat(), "memories": memories}, ensure_ascii=False, indent=1
    )
    name = f"memories-{timezone.localdate().isoformat()}.json"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "private, no-store"}
    return HttpResponse(content, content_type="application/json", headers=headers)


def filters_of(request: HttpRequest) -> Filters:
    """Return what the address asks for; what cannot be is left out."""
    show, kind, sort = (request.GET.get(name, "") for name in ("show", "kind", "sort"))
    whole = show.isascii() and show.isdigit() and len(show) <= SHOW_DIGITS
    return Filters(
        q=" ".join(request.GET.get("q", "")[: memorylist.Q_CHARS].replace("\0", "").split()),
        kind=kind if kind in tuple(Kind) else "",
        sort=sort if sort in memorylist.sorts() else "",
        show=max(memorylist.PAGE, int(show)) if whole else memorylist.PAGE,
        edit=request.GET.get("edit", ""),
        adding="add" in request.GET,
    )


def _history(request: HttpRequest, memory_id: str) -> Sequence[Memory]:
    """Return a memory that holds and what it replaced. Raises MemoryMissing."""
    found = _known(MemoryRows(owner_id(request)), memory_id)
    if not found:
        raise MemoryMissing
    return found


def _known(store: MemoryRows, memory_id: str) -> Sequence[Memory]:
    """Return the same, nothing if there is no such memory."""
    try:
        history = store.history(memory_id)
    except MemoryMissing:
        return ()
    return () if history[0].superseded_by else history


def _undo(owner_id: int, memories: Sequence[Memory]) -> str:
    """Return what brings these back, for the page to keep: the server keeps nothing. "" if that is too much."""
    held = {"owner": owner_id, "memories": [encoding.as_json(memory) for memory in memories]}
    token = signing.dumps(held, salt=SALT, compress=True)
    return token if len(token) <= UNDO_CHARS else ""


def _put(request: HttpRequest, memory_id: str, form: Form) -> None:
    """Store what was typed in place of a memory; that it says so already is fine, for a form may be sent twice."""
    before = _history(request, memory_id)[0]
    draft = form.draft(timezone.now(), timezone.get_current_timezone(), before)
    if draft != replace(draft_of(before), source=Source.PERSON):
        MemoryRows(owner_id(request)).update(memory_id, draft, version=form.version)


def _page(
    request: PageRequest, filters: Filters, *, form: Form | None = None, status: int = 200, **more: Any
) -> HttpResponse:
    """Render the whole page. form: of the memory that is edited, as it was typed. more: of MemoryPage."""
    everything = MemoryRows(owner_id(request)).export()
    threads = memorylist.threads_of(owner_id(request), everything)
    return _draw(request, memorylist.load(everything, filters, threads, form), status=status, **more)


def _draw(request: PageRequest, shown: List, *, status: int, **more: Any) -> HttpResponse:
    page = MemoryPage(
        me=me(request),
        sessions=sessionlist.load(owner_id(request)),
        memories=shown,
        on=memoryswitch.is_on(owner_id(request)),
        forget=_confirmation(),
        words=memorylist.script_words(),
        **more,
    )
    return render(request, "workbench/memories.html", {"page": page}, status=status)


def _row(
    request: PageRequest, history: Sequence[Memory], form: Form | None = None, *, status: int = 200
) -> HttpResponse:
    threads = memorylist.threads_of(owner_id(request), history)
    shown = memorylist.row(history[0], history[1:], threads, form=form)
    return _fragment(request, "row", {"row": shown}, status=status)


def _fragment(request: PageRequest, name: str, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    response = render(request, f"workbench/_memories.html#{name}", context, status=status)
    if status >= 400:
        response.headers["HX-Reswap"] = "outerHTML"  # so that the page knows it is to be shown, and is no error page
    return response


def _refused(request: PageRequest, memory_id: str, form: Form, status: int) -> HttpResponse:
    if not request.htmx:
        return _page(request, Filters(edit=memory_id), form=form, status=status)
    return _row(request, _history(request, memory_id), form, status=status)


def _lost(request: PageRequest, form: Form) -> HttpResponse:
    """Give back what was typed about a memory that is not there."""
    form = replace(form, gone=True)
    if not request.htmx:
        return _page(request, Filters(adding=True), new=form, status=404)
    return _fragment(request, "gone", {"form": form}, status=404)


def _not_restored(request: PageRequest, words: str, status: int) -> HttpResponse:
    if not request.htmx:
        return _page(request, Filters(), deleted=Deleted(words=words, token=""), status=status)
    return _fragment(request, "deleted", {"deleted": Deleted(words=words, token="")}, status=status)


def _confirmation() -> str:
    return _("forget")


def _tell(request: HttpRequest) -> None:
    """Make the owner's other pages look again."""
    async_to_sync(hints.thread_changed)(owner_id(request), "", "memory")


def _changed(response: HttpResponse, said: str = "", **more: Any) -> HttpResponse:
    """Make the page that asked look again, and say something."""
    return trigger_client_event(response, "memories-changed", {"said": said, **more})
