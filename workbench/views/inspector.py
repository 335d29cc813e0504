"""What a run did and what its model saw. For the owner, and for staff who may read what people wrote."""

import dataclasses
import logging
from collections.abc import Iterator

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from agents.admin import READ_BODIES
from workbench import sessionlist
from workbench.contexts import InspectorPage, Sessions
from workbench.inspector import page as inspector
from workbench.inspector import rows as inspectedrows
from workbench.inspector.rows import Found
from workbench.localtime import in_own_time
from workbench.views.sessions import PageRequest, me, owner_id

logger = logging.getLogger(__name__)

ID_DIGITS = 18
NUMBER_DIGITS = 6


@login_required
@require_GET
@in_own_time
def show(request: PageRequest, thread_id: str) -> HttpResponse:
    """Show a run (?run=, else that of the ?call=, else the newest) and a model call of it (?call=, else the last).

    ?part=: number of a part to show in full. ?format=json: the request alone. ?owner=: whose conversation, for staff.
    404 for whatever is not the person's, unless they are staff with the permission to read event bodies.
    """
    call_id = request.GET.get("call", "")[:64]
    found = _found(request, thread_id, request.GET.get("run", "")[:128], call_id)
    inspected = inspector.build(found, call_id, _number(request.GET.get("part", ""), NUMBER_DIGITS) or 0)
    if request.GET.get("format") == "json":
        if inspected.request is None or inspected.call is None:
            raise Http404
        sent = {"state": inspected.call.checked.state, "sha256": inspected.call.hash}
        return JsonResponse({**sent, "request": dataclasses.asdict(inspected.request)}, json_dumps_params={"indent": 1})
    own = found.session.owner_id == owner_id(request)
    listed = sessionlist.load(owner_id(request), current=thread_id if own else "")
    page = InspectorPage(
        me=me(request),
        sessions=listed,
        title=found.session.title or next(_titles(listed), _("Conversation")),
        own=own,
        inspected=inspected,
    )
    return render(request, "workbench/inspector.html", {"page": page})


def _found(request: HttpRequest, thread_id: str, run_id: str, call_id: str) -> Found:
    """Return what is asked for. What is not there and what may not be seen answer alike: 404."""
    mine, named = owner_id(request), _number(request.GET.get("owner", ""), ID_DIGITS)
    found = inspectedrows.conversation(mine, thread_id, run_id, call_id) if named in (None, mine) else None
    if found is None and named != mine and request.user.is_staff and request.user.has_perm(READ_BODIES):
        found = inspectedrows.conversation(named, thread_id, run_id, call_id)
        if found is not None:
            logger.info("staff %d inspects session %d", mine, found.session.pk)
    if found is None:
        raise Http404
    return found


def _titles(listed: Sessions) -> Iterator[str]:
    """Yield what the list calls the conversation that is shown: one without a title has its first words there."""
    yield from (row.title for group in listed.groups for row in group.rows if row.current)


def _number(text: str, digits: int) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None
