"""What a person does with a whole conversation: have it summarised now, archive it, take it back into the list."""

from asgiref.sync import async_to_sync
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_POST

from agents import hints, jobs
from agents.models.session import Session
from agents.runtime.summary.report import Reason
from agents.stores import summaries
from workbench import contextwords
from workbench.views.sessions import PageRequest, own_session, owner_id

QUEUED = "queued"
OPEN = (QUEUED, "running")


@login_required
@require_http_methods(["GET", "POST"])
def summarise(request: PageRequest, thread_id: str) -> HttpResponse:
    """POST: have earlier messages summarised, whatever the triggers say; asking twice is asking once.

    Both: `{"state", "words"}`. GET: what came of it; state: none, queued, running, or done with a sentence in words.
    POST: words say if a summary is being made already; what is asked for then waits for that one.
    """
    found = own_session(request, thread_id)
    if request.method == "GET":
        return JsonResponse(_outcome(request, found))
    busy = summaries.being_made(owner_id=owner_id(request), thread_id=thread_id)
    with transaction.atomic():
        summaries.summarise_now(owner_id=owner_id(request), thread_id=thread_id)
    if not request.htmx:
        return redirect(reverse("session", args=[thread_id]))
    return JsonResponse({"state": QUEUED, "words": contextwords.outcome(Reason.HELD) if busy else ""}, status=202)


@login_required
@require_POST
def archive(request: PageRequest, thread_id: str) -> HttpResponse:
    """Take a conversation out of the list; a summary of it is made in the background. It can be read and gone on with.

    htmx gets the toast with Undo, others the conversation.
    """
    found = own_session(request, thread_id)
    with transaction.atomic():
        rows = Session.objects.of(owner_id(request)).filter(pk=found.pk, archived_at=None)
        if rows.update(archived_at=timezone.now()):
            summaries.summarise_now(owner_id=owner_id(request), thread_id=thread_id, scope=summaries.ARCHIVE)
    async_to_sync(hints.thread_changed)(owner_id(request), thread_id, "archived")
    if not request.htmx:
        return redirect(reverse("session", args=[thread_id]))
    response = render(request, "workbench/_toast.html", {"archived": thread_id})
    response.headers["HX-Trigger"] = "sessions-changed"
    return response


@login_required
@require_POST
def unarchive(request: PageRequest, thread_id: str) -> HttpResponse:
    """Take a conversation back into the list.

    Others than htmx get the conversation, or with ?list the archived ones.
    """
    found = own_session(request, thread_id)
    Session.objects.of(owner_id(request)).filter(pk=found.pk).update(archived_at=None)
    async_to_sync(hints.thread_changed)(owner_id(request), thread_id, "unarchived")
    if request.htmx:
        return HttpResponse(status=204, headers={"HX-Trigger": "sessions-changed"})
    if "list" in request.GET:
        return redirect(f"{reverse('sessions')}?{urlencode({'archived': ''})}")
    return redirect(reverse("session", args=[thread_id]))


def _outcome(request: HttpRequest, found: Session) -> dict[str, str]:
    job = jobs.latest(jobs.SUMMARY, owner_id=owner_id(request), session_id=found.pk, scope=summaries.MANUAL)
    if job is None:
        return {"state": "none", "words": ""}
    status, result = job
    if status in OPEN:
        return {"state": status, "words": ""}
    return {"state": "done", "words": contextwords.outcome(result)}
