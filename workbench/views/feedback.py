"""What a person thinks of an answer: a thumb, with reasons if it is down; pressed again, it is taken back."""

from typing import Final

from asgiref.sync import async_to_sync
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from agents import hints
from agents.runtime.evolution.outcomes import Thumb, Why
from agents.stores import reviews
from workbench.views.sessions import own_session, owner_id

NOTE_CHARS: Final = 500


@login_required
@require_POST
def give(request: HttpRequest, thread_id: str) -> HttpResponse:
    """`run`, `thumb`: up, down or "" (taken back); with down `reasons` (of outcomes.Why, any number) and `note`.

    Return `{"thumb", "words"}`. 404: no such conversation or run of this person. 400: anything else.
    """
    own_session(request, thread_id)
    thumb, reasons = request.POST.get("thumb", ""), request.POST.getlist("reasons")
    if thumb not in ("", *Thumb) or not set(reasons) <= set(Why):
        return HttpResponseBadRequest()
    said = Thumb(thumb) if thumb else None
    whys = [why for why in Why if why in reasons] if said is Thumb.DOWN else []
    note = request.POST.get("note", "").replace("\0", "").strip()[:NOTE_CHARS] if said is Thumb.DOWN else ""
    if not reviews.say(owner_id(request), thread_id, request.POST.get("run", ""), said, whys, note):
        raise Http404
    async_to_sync(hints.thread_changed)(owner_id(request), thread_id, "skill")
    words = _("Thank you. It is kept with this answer.") if said else _("Taken back.")
    return JsonResponse({"thumb": thumb, "words": words})
