"""The search over everything a person has: its page, and what its dialog shows."""

from dataclasses import replace
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from artifacts import library
from workbench import finding, sessionlist
from workbench.findings import FindPage, Kind, Wanted, When
from workbench.localtime import in_own_time
from workbench.views.sessions import PageRequest, me, owner_id

Q_CHARS = 200
ID_CHARS = 128
OF_DOCUMENTS = (Kind.DOCUMENTS, Kind.NOTES)


@login_required
@require_GET
@in_own_time
def search(request: PageRequest) -> HttpResponse:
    """Show what answers ?q=: a page, or for htmx what stands in the dialog.

    ?kind= of Kind, ?when= of When, ?in= thread id, ?here= that of the page, ?collection= id. What there is not counts
    as not said.
    """
    wanted = wanted_of(request)
    found = finding.find(wanted)
    if wanted.kind in OF_DOCUMENTS:
        found = replace(found, collections=library.collections(wanted.owner_id))
    if request.htmx:
        return render(request, "workbench/_find.html#dialog", {"found": found})
    page = FindPage(me=me(request), sessions=sessionlist.load(owner_id(request)), found=found)
    return render(request, "workbench/search.html", {"page": page})


def wanted_of(request: HttpRequest) -> Wanted:
    get = request.GET.get
    kind, when = get("kind", ""), get("when", "")
    chosen = Kind(kind) if kind in tuple(Kind) else None
    thread, here = (get(name, "")[:ID_CHARS].replace("\0", "") for name in ("in", "here"))
    return Wanted(
        owner_id=owner_id(request),
        q=" ".join(get("q", "").replace("\0", " ").split())[:Q_CHARS],
        kind=chosen,
        when=When(when) if when in tuple(When) else None,
        thread=thread,
        here=here or thread,
        collection=_uuid(get("collection", "")) if chosen in OF_DOCUMENTS else "",
    )


def _uuid(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        return ""
