"""Conversations: the page, its fragments, the list, rename, delete and undo."""

import uuid
from urllib.parse import urlencode

from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.middleware import HtmxDetails

from agents import hints, wiring
from agents.models.run import Inbox, Run
from agents.models.session import Session
from agents.runtime import codec
from agents.runtime.errors import Rejected
from agents.runtime.events import Outcome, RunFailed, RunFinished, Stored, UserMessage
from agents.runtime.model import FilePart, TextPart
from agents.runtime.session import RunStatus
from agents.stores import inbox, lines, sessions
from workbench import (
    citations,
    divider,
    landing,
    memoryfoot,
    sessionlist,
    skillfoot,
    stretches,
    transcript,
    windowmeter,
    wording,
)
from workbench.contexts import Gap, Landed, Me, Row, SessionPage, SessionsPage, Transcript, Waiting, initials
from workbench.forms import RenameForm
from workbench.localtime import in_own_time

PAGE = 30  # messages shown at first, and with each step back
RECORDS = 240  # read for them: a message rarely has more than a few
POSITION_DIGITS = 18


class PageRequest(HttpRequest):
    """A request that passed the htmx middleware and the sign-in check."""

    htmx: HtmxDetails


@login_required
@require_GET
@in_own_time
def new(request: PageRequest) -> HttpResponse:
    """Show an empty conversation. It becomes a row of the list with its first message."""
    thread_id = str(uuid.uuid4())
    page = SessionPage(
        me=me(request),
        sessions=sessionlist.load(owner_id(request)),
        transcript=Transcript(thread_id=thread_id),
        title=_("New conversation"),
        new=True,
        deleted=request.GET.get("deleted", "")[:128],
        max_files=settings.MAX_FILES_PER_MESSAGE,
        models=model_names(),
        starters=wording.starters(),
    )
    return render(request, "workbench/session.html", {"page": page})


@login_required
@require_GET
@in_own_time
def session(request: PageRequest, thread_id: str) -> HttpResponse:
    """Show a conversation: its newest messages, the rest of the page around them. ?at= also shows, and leads to, the
    message, event or tool call of that id."""
    found = own_session(request, thread_id)
    shown = read(request, found)
    at = request.GET.get("at", "")[: landing.ID_CHARS]
    if not at:
        return whole_page(request, found, shown)
    where = landing.of(found, at)
    if where.position:
        shown = stretches.around(found, shown, where.position)
    landed = Landed(
        at=at,
        found=where.position > 0,
        target=where.target,
        place=shown.place(where.position) if where.position else "",
        fork=where.fork,
        version=where.version,
        versions=where.versions,
    )
    return whole_page(request, found, shown, landed=landed)


@login_required
@require_GET
@in_own_time
def messages(request: PageRequest, thread_id: str) -> HttpResponse:
    """Return the transcript's fragment: all of it, older ones (?before=position), or 204 if nothing is new.

    ?run= and ?state= say what the page shows last; it is current if the newest run is that one, in that state. ?at= is
    the message the page was opened at, which stays on it. ?after= and ?before=: the first messages between these
    positions, with ?last the last ones.
    """
    found = own_session(request, thread_id)
    before, after = (_number(request.GET.get(name, "")) for name in ("before", "after"))
    if before is not None and after is not None:
        default = next(iter(model_names()), "")
        some = stretches.step(found, Gap(after=after, before=before), last="last" in request.GET, default_model=default)
        if not request.htmx:
            return whole_page(request, found, some, newest=False)
        return render(request, "workbench/_transcript.html#between", {"shown": some, "last": "last" in request.GET})
    if before is not None and not request.htmx:
        return whole_page(request, found, read(request, found, before=before), newest=False)
    if before is not None:
        older = read(request, found, before=before)
        return render(request, "workbench/_transcript.html#entries", {"shown": older})
    shown_line = Run.objects.of(owner_id(request)).filter(session=found, fork=found.head_fork)
    newest = shown_line.order_by("-id").first()
    known = (request.GET.get("run", ""), request.GET.get("state", ""))
    if newest and known == (newest.client_id, page_state(newest.status)):
        return HttpResponse(status=204)
    shown = read(request, found)
    if (at := request.GET.get("at", "")) and (position := landing.of(found, at).position):
        shown = stretches.around(found, shown, position)
    return render(request, "workbench/_transcript.html#transcript", {"shown": shown})


@login_required
@require_GET
def queue(request: PageRequest, thread_id: str) -> HttpResponse:
    """Return the fragment of messages that wait."""
    found = own_session(request, thread_id)
    return render(request, "workbench/_queue.html", {"waiting": waiting(found), "thread_id": thread_id})


@login_required
@require_POST
def take_back(request: PageRequest, thread_id: str, message_id: str) -> HttpResponse:
    """Take a waiting message out of the queue and return its text and files; 404 if a run has read it already."""
    own_session(request, thread_id)
    taken = inbox.remove_waiting(owner_id=owner_id(request), thread_id=thread_id, message_id=message_id)
    if taken is None:
        raise Http404
    async_to_sync(hints.thread_changed)(owner_id(request), thread_id, "inbox")
    return JsonResponse(
        {
            "text": "".join(p.text for p in taken.parts if isinstance(p, TextPart)),
            "files": [
                {
                    "artifactId": p.artifact_id,
                    "version": p.version,
                    "name": p.name,
                    "mime": p.mime,
                    "sizeBytes": p.size_bytes,
                }
                for p in taken.parts
                if isinstance(p, FilePart)
            ],
        }
    )


@login_required
@require_POST
def seen(request: PageRequest, thread_id: str) -> HttpResponse:
    """Note that the person has looked at everything up to now."""
    found = own_session(request, thread_id)
    rows = Session.objects.of(owner_id(request)).filter(pk=found.pk, seen_position__lt=found.last_position)
    if rows.update(seen_position=found.last_position):
        async_to_sync(hints.thread_changed)(owner_id(request), thread_id, "seen")
    return HttpResponse(status=204)


@login_required
@require_POST
def line(request: PageRequest, thread_id: str) -> HttpResponse:
    """Show another line of the conversation (POST fork) and go on from there; 409 while an answer is written.

    POST at: the message to open the page at afterwards, for a form without a script.
    """
    number = _number(request.POST.get("fork", ""))
    if number is None:
        raise Http404
    at = request.POST.get("at", "")[: landing.ID_CHARS]
    page = redirect(f"{reverse('session', args=[thread_id])}?{urlencode({'at': at})}") if at else None
    try:
        lines.choose(owner_id=owner_id(request), thread_id=thread_id, fork=number)
    except Rejected as error:
        if error.code == "run_conflict":
            return page or HttpResponse(status=409)  # the page says why
        raise Http404 from error
    async_to_sync(hints.thread_changed)(owner_id(request), thread_id, "line")
    return page or HttpResponse(status=204)


@login_required
@require_GET
@in_own_time
def sessions_list(request: PageRequest) -> HttpResponse:
    """Show the list of conversations: a page, or for htmx the fragment.

    ?cursor= continues it, ?current= marks one, ?archived shows those that are archived.
    """
    found = sessionlist.load(
        owner_id(request),
        current=request.GET.get("current", "")[:128],
        cursor=request.GET.get("cursor", "")[:80],
        archived="archived" in request.GET,
    )
    if request.htmx:
        return render(request, "workbench/_sessions.html", {"sessions": found})
    aside = sessionlist.load(owner_id(request)) if found.archived else found
    page = SessionsPage(me=me(request), sessions=aside, listed=found)
    return render(request, "workbench/sessions.html", {"page": page})


@login_required
@require_http_methods(["GET", "POST"])
def rename(request: PageRequest, thread_id: str) -> HttpResponse:
    """GET: the row as a field (?cancel=1: as it was). POST: store the title and return the row."""
    found = own_session(request, thread_id)
    current = request.GET.get("current", "")[:128]
    if request.method == "GET":
        shown = own_row(request, thread_id, current)
        template = "workbench/_sessions.html#row" if "cancel" in request.GET else "workbench/_sessions.html#rename"
        return render(request, template, {"row": shown, "sessions": {"current": current}})
    form = RenameForm(request.POST)
    if not form.is_valid():
        shown = own_row(request, thread_id, current)
        context = {"row": shown, "form": form, "sessions": {"current": current}}
        return render(request, "workbench/_sessions.html#rename", context, status=422)
    Session.objects.of(owner_id(request)).filter(pk=found.pk).update(
        title=form.cleaned_data["title"], title_by_person=True
    )
    async_to_sync(hints.thread_changed)(owner_id(request), thread_id, "title")
    if not request.htmx:
        return redirect(reverse("session", args=[thread_id]))
    context = {"row": own_row(request, thread_id, current), "sessions": {"current": current}}
    return render(request, "workbench/_sessions.html#row", context)


@login_required
@require_POST
def delete(request: PageRequest, thread_id: str) -> HttpResponse:
    """Hide a conversation; the sweep removes it for good later. htmx gets the toast with Undo, others go to /."""
    found = own_session(request, thread_id)
    Session.objects.of(owner_id(request)).filter(pk=found.pk).update(deleted_at=timezone.now())
    Run.objects.of(owner_id(request)).filter(session=found, status=RunStatus.RUNNING.value).update(
        cancel_requested_at=timezone.now()
    )
    async_to_sync(hints.thread_changed)(owner_id(request), thread_id, "deleted")
    if request.htmx and request.GET.get("current", "") != thread_id:
        response = render(request, "workbench/_toast.html", {"deleted": thread_id})
        response.headers["HX-Trigger"] = "sessions-changed"
        return response
    address = f"{reverse('new')}?{urlencode({'deleted': thread_id})}"
    if request.htmx:
        return HttpResponse(status=204, headers={"HX-Redirect": address})
    return redirect(address)


@login_required
@require_POST
def restore(request: PageRequest, thread_id: str) -> HttpResponse:
    """Undo a deletion. 404 once the conversation is gone for good."""
    rows = Session.objects.of(owner_id(request)).filter(thread_id=thread_id, deleted_at__isnull=False)
    if not rows.update(deleted_at=None):
        raise Http404
    async_to_sync(hints.thread_changed)(owner_id(request), thread_id, "restored")
    address = reverse("session", args=[thread_id])
    if request.htmx:
        return HttpResponse(status=204, headers={"HX-Trigger": "sessions-changed"})
    return redirect(address)


def _number(text: str) -> int | None:
    """Return a position that stands in an address; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= POSITION_DIGITS else None


def owner_id(request: HttpRequest) -> int:
    assert request.user.pk is not None  # login_required stands above
    return int(request.user.pk)


def me(request: HttpRequest) -> Me:
    assert request.user.is_authenticated  # login_required stands above
    name = request.user.get_full_name() or request.user.get_username()
    return Me(name=name, initials=initials(name))


def own_session(request: HttpRequest, thread_id: str) -> Session:
    """Return the person's conversation. Foreign, deleted and unknown ones answer alike: 404."""
    found = Session.objects.of(owner_id(request)).filter(thread_id=thread_id, deleted_at=None).first()
    if found is None:
        raise Http404
    return found


def whole_page(
    request: PageRequest, found: Session, shown: Transcript, *, landed: Landed | None = None, newest: bool = True
) -> HttpResponse:
    """Render the page around a part of a conversation. newest: it ends with its end, below which stands what waits."""
    page = SessionPage(
        me=me(request),
        sessions=sessionlist.load(owner_id(request), current=found.thread_id),
        transcript=shown,
        title=shown_title(request, found.thread_id),
        new=False,
        waiting=waiting(found) if newest else (),
        max_files=settings.MAX_FILES_PER_MESSAGE,
        models=model_names(),
        archived=found.archived_at is not None,
        window=windowmeter.of_session(found),
        landed=landed,
    )
    return render(request, "workbench/session.html", {"page": page})


def own_row(request: HttpRequest, thread_id: str, current: str) -> Row:
    found = sessionlist.one(owner_id(request), thread_id, current=current)
    if found is None:
        raise Http404
    return found


def shown_title(request: HttpRequest, thread_id: str) -> str:
    found = sessionlist.one(owner_id(request), thread_id)
    return found.title if found else _("New conversation")


def read(request: HttpRequest, found: Session, *, before: int | None = None) -> Transcript:
    """Return the newest messages, or those before a position. The run going on is left to the socket.

    It is looked up first: should it end in between, its records are still left out, and the socket replays it.
    """
    running = (
        Run.objects.of(owner_id(request)).filter(session=found, status=RunStatus.RUNNING.value).first()
        if before is None
        else None
    )
    run_id = running.client_id if running else ""
    history = sessions.read_history(owner_id(request), found.thread_id, limit=RECORDS, before=before)
    stored = [one for one in history.stored if one.origin.run_id != run_id or not run_id]
    positions = {one.position for one in stored} | (set() if history.truncated else {0})
    gone = citations.gone(owner_id(request), citations.named(stored))
    entries = transcript.mark_versions(transcript.build(stored, gone), lines.of_session(found), positions)
    memoryfoot.mark(entries, stored, found)
    skillfoot.mark(entries, found)
    shown = transcript.page(entries, PAGE)
    cut = history.truncated or len(shown) < len(entries)
    last_run, last_state = newest_run(stored)
    found_divider, at = divider.among(history, entries, shown, run_id=run_id, newest=before is None)
    return Transcript(
        thread_id=found.thread_id,
        entries=shown,
        before=shown[0].position if shown and cut else 0,
        run_id=run_id,
        last_run=last_run,
        last_state=last_state,
        default_model=next(iter(model_names()), ""),
        divider=found_divider,
        divider_at=at,
    )


def model_names() -> tuple[str, ...]:
    """Return the models a person may choose from, the default first; none if there is only one."""
    names = tuple(model.info.name for model in wiring.models())
    return names if len(names) > 1 else ()


def newest_run(stored: list[Stored]) -> tuple[str, str]:
    """Return the client's name of the last run that ended in these records, and how the page calls its state."""
    for one in reversed(stored):
        if isinstance(one.record, RunFinished):
            return (one.origin.run_id, "stopped" if one.record.outcome is Outcome.CANCELLED else "done")
        if isinstance(one.record, RunFailed):
            return (one.origin.run_id, "lost" if one.record.code == "lost" else "failed")
    return ("", "")


def page_state(status: str) -> str:
    """Return a stored run status in the page's words."""
    return {"finished": "done", "cancelled": "stopped"}.get(status, status)


def waiting(found: Session) -> tuple[Waiting, ...]:
    """Return what waits for a run of this session, oldest first."""
    rows = Inbox.objects.of(found.owner_id).filter(session=found, consumed_at=None).order_by("id")
    out = []
    for row in rows:
        message = codec.load("user_message", row.payload)
        assert isinstance(message, UserMessage)
        out.append(
            Waiting(
                message_id=row.client_id,
                text="".join(p.text for p in message.parts if isinstance(p, TextPart)),
                files=tuple(p for p in message.parts if isinstance(p, FilePart)),
                kind=row.kind,
            )
        )
    return tuple(out)
