"""What a person does about memory under an answer: take a change back, or keep a memory from answers."""

from asgiref.sync import async_to_sync
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from agents import hints
from agents.runtime.memory.memories import MemoryConflict, MemoryFailed, MemoryMissing, MemoryUnavailable
from agents.stores import remembering
from agents.stores.memories import PgMemories
from workbench.views.sessions import own_session, owner_id


@login_required
@require_POST
def act(request: HttpRequest, thread_id: str) -> HttpResponse:
    """`do`: undo, with `id` of a change; mute or use, with `id` of a memory. Return `{"words"}`, what came of it.

    404: no such conversation, change or memory of this person. 409: something else was changed meanwhile. 503: the
    memories cannot be reached.
    """
    own_session(request, thread_id)
    what, id = request.POST.get("do", ""), request.POST.get("id", "")
    try:
        words = _done(owner_id(request), what, id)
    except MemoryMissing as error:
        raise Http404 from error
    except MemoryUnavailable:
        return JsonResponse({"words": _("Memories cannot be reached just now. Nothing was changed.")}, status=503)
    except MemoryConflict:
        return JsonResponse({"words": _("It was changed since. Look at it under Memories.")}, status=409)
    except MemoryFailed:
        return JsonResponse({"words": _("This could not be done. Nothing was changed; try again.")}, status=409)
    async_to_sync(hints.thread_changed)(owner_id(request), thread_id, "memory")
    return JsonResponse({"words": words})


def _done(owner_id: int, what: str, id: str) -> str:
    if what == "undo" and id.isascii() and id.isdigit() and len(id) < 19:
        remembering.undo(owner_id, int(id))
        return _("Taken back.")
    if what in ("mute", "use"):
        async_to_sync(PgMemories(owner_id).mute)(id, what == "mute")
        return _("Not used in answers any more.") if what == "mute" else _("Used in answers again.")
    raise MemoryMissing
