"""Skills: their list, what is suggested, new ones, and what people bring."""

import functools
import logging
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from asgiref.sync import async_to_sync
from django.contrib.auth.decorators import login_required
from django.core.exceptions import TooManyFieldsSent, TooManyFilesSent
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents import hints, wiring
from agents.models.skill import SkillRevision
from agents.runtime.skills.skill import SkillMissing, SkillScope
from agents.stores import skillimport
from agents.stores.skilllibrary import (
    SkillBroken,
    SkillDecided,
    SkillLibraryRows,
    SkillNameTaken,
    SkillStale,
)
from agents.stores.skillpacks import FILE_BYTES, UNPACKED_BYTES, PackRefused, Refusal
from artifacts import names
from artifacts.blobs import BlobMissing
from workbench import sessionlist, skilllist, skillproposals, skillupload, skillwords, uploads
from workbench.localtime import in_own_time
from workbench.skilllist import Deleted, Filters, List, SkillsPage
from workbench.skillpage import Form, ImportPage, SkillPage, Taken
from workbench.views.sessions import PageRequest, me, owner_id

NAME_CHARS: Final = 200

_View = Callable[..., HttpResponse]
logger = logging.getLogger(__name__)


def answered(view: _View) -> _View:
    """Sign-in first; 404 for what is not there or not theirs, 503 while skills cannot be read; times as they live."""

    @functools.wraps(view)
    def inner(request: PageRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if "\0" in kwargs.get("slug", ""):  # no name has it, and the database cannot be asked for it
            raise Http404
        try:
            return view(request, *args, **kwargs)
        except (SkillMissing, BlobMissing) as e:
            raise Http404 from e
        except (OperationalError, InterfaceError):
            logger.exception("the skills cannot be read or written")
            return _draw(request, List(filters=Filters()), status=503, unavailable=True)

    return login_required(in_own_time(inner))


@answered
@require_GET
def skills(request: PageRequest) -> HttpResponse:
    """Show the page: ?q= words of name or description, ?scope=."""
    scope = request.GET.get("scope", "")
    q = " ".join(request.GET.get("q", "")[: skilllist.Q_CHARS].replace("\0", "").split())
    return _page(request, Filters(q=q, scope=scope if scope in tuple(SkillScope) else ""))


@answered
@require_http_methods(["GET", "POST"])
def new(request: PageRequest) -> HttpResponse:
    """GET: an empty form. POST: make a skill of name, description and body; everyone=1: for everyone, staff only.

    422 with the form if it cannot be.
    """
    if request.method == "GET":
        return form_page(request, Form())
    form = form_of(request)
    everyone = form.everyone and is_staff(request)
    rows = rows_of(request, SkillScope.EVERYONE if everyone else SkillScope.MINE)
    if not form.name.strip():
        return form_page(request, replace(form, errors={"name": _("A skill needs a name.")}), status=422)
    try:
        made = rows.make(form.name, form.description, form.body)
    except SkillNameTaken:
        return form_page(
            request, replace(form, errors={"name": _("There is a skill with this name already.")}), status=422
        )
    except SkillBroken as e:
        return form_page(request, replace(form, errors=errors_of(e)), status=422)
    tell(request)
    return redirect("skill", SkillScope.EVERYONE if everyone else SkillScope.MINE, made.skill.slug)


@csrf_exempt  # only so that the guard is there before the CSRF check reads the body
@login_required
@require_http_methods(["GET", "POST"])
@in_own_time
def bring(request: PageRequest) -> HttpResponse:
    """GET: a form. POST multipart file+ (path+, everyone): take a folder, an archive or a SKILL.md in.

    Answers with what came of it; 422 or 413 with the reason if nothing was taken.
    """
    if request.method == "GET":
        return _import_page(request)
    if skillupload.declared_too_large(request):
        return _import_page(request, refused=_too_large(), status=413)
    guarded = skillupload.guard(request)
    try:
        with uploads.place(owner_id(request)):
            return _bring(guarded)
    except (TooManyFilesSent, TooManyFieldsSent):
        refused = skillwords.refusal(PackRefused(Refusal.COUNT))
        return _import_page(request, refused=refused, status=413)
    except uploads.TooMany:
        return _import_page(request, refused=_("Too many files at once. Try again in a moment."), status=429)


@csrf_protect
def _bring(request: Any) -> HttpResponse:
    brought = skillupload.brought(request)  # reads the body
    if request.too_large:
        return _import_page(request, refused=_too_large(), status=413)
    everyone = "everyone" in request.POST and is_staff(request)
    scope = SkillScope.EVERYONE if everyone else SkillScope.MINE
    try:
        found = skillimport.bring(brought, owner_id=None if everyone else owner_id(request), actor_id=owner_id(request))
    except PackRefused as e:
        return _import_page(request, refused=skillwords.refusal(e), status=422)
    tell(request)
    taken = tuple(
        Taken(
            name=one.revision.name,
            address=reverse("skill", args=[scope, one.revision.skill.slug]),
            words=skillwords.version(one.revision.number) if one.fresh else _("This was here already."),
            problem=skillwords.problem(one.revision.problem, one.revision.words) if one.revision.problem else "",
        )
        for one in found.skills
    )
    return _import_page(request, taken=taken, beside=found.beside)


@answered
@require_POST
def restore(request: PageRequest) -> HttpResponse:
    """Undo a deletion: POST key and scope are what the toast holds."""
    try:
        scope, key = SkillScope(request.POST.get("scope", "")), uuid.UUID(request.POST.get("key", ""))
    except ValueError as e:
        raise Http404 from e
    try:
        back = rows_of(request, scope).restore(key)
    except SkillNameTaken:
        said = _("Not brought back: another skill has this name by now.")
        return _page(request, Filters(), deleted=Deleted(words=said), status=409)
    tell(request)
    return redirect("skill", scope, back.slug)


@answered
@require_POST
def decide(request: PageRequest, pk: int, verdict: str) -> HttpResponse:
    """Accept or reject what is suggested to this person."""
    rows = rows_of(request, SkillScope.MINE)
    try:
        if verdict == "accept":
            revision = rows.approve(pk)
            said = _("Accepted. The next run can use it.")
        else:
            revision = rows.reject(pk)
            said = _("Rejected. Nothing was changed.")
    except SkillStale:
        said = _("The skill was changed since this was suggested, so it was not taken over.")
        return _page(request, Filters(), told=said, status=409)
    except SkillDecided:
        return _page(request, Filters(), told=_("This was decided before."), status=409)
    except SkillBroken:
        return _page(request, Filters(), told=_("It cannot be used as it stands. Edit it first."), status=422)
    tell(request)
    if verdict == "accept" and revision.action != SkillRevision.Action.DELETE:
        return redirect("skill", SkillScope.MINE, revision.skill.slug)
    return _page(request, Filters(), told=said)


# What views of one skill share


def rows_of(request: HttpRequest, scope: SkillScope) -> SkillLibraryRows:
    """Return what writes skills of this scope for whoever asks. Raises SkillMissing: they may not."""
    if scope is SkillScope.MINE:
        return SkillLibraryRows(owner_id(request), actor_id=owner_id(request))
    if scope is SkillScope.EVERYONE and is_staff(request):
        return SkillLibraryRows(None, actor_id=owner_id(request))
    raise SkillMissing


def is_staff(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_staff", False))


def form_of(request: HttpRequest) -> Form:
    """Return what was typed."""
    post = request.POST
    name = " ".join("".join(filter(names.harmless, post.get("name", "")[:NAME_CHARS])).split())
    return Form(
        name=name if any(char.isprintable() for char in name) else "",  # what nobody sees is no name
        description=post.get("description", "").replace("\0", ""),
        body=post.get("body", "").replace("\0", "").replace("\r\n", "\n"),
        version=number(post.get("version", "")) or 0,
        proposal=number(post.get("proposal", "")) or 0,
        everyone="everyone" in post,
    )


def errors_of(error: SkillBroken) -> dict[str, str]:
    """Return what is wrong, by field."""
    code = str(error)
    place = {"description": "description", "no_description": "description", "no_body": "body", "body": "body"}
    return {place.get(code, "name"): skillwords.problem(code)}


def form_page(request: PageRequest, form: Form, *, status: int = 200, **more: Any) -> HttpResponse:
    page = SkillPage(
        me=me(request), sessions=sessionlist.load(owner_id(request)), form=form, staff=is_staff(request), **more
    )
    return render(request, "workbench/skill_form.html", {"page": page}, status=status)


def number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


def tell(request: HttpRequest) -> None:
    """Make the owner's other pages look again."""
    async_to_sync(hints.thread_changed)(owner_id(request), "", "skill")


def deleted_page(request: PageRequest, deleted: Deleted) -> HttpResponse:
    """Show the list, with the toast that can undo."""
    return _page(request, Filters(), deleted=deleted)


def _page(request: PageRequest, filters: Filters, *, status: int = 200, **more: Any) -> HttpResponse:
    waiting = SkillRevision.objects.in_scope(None).filter(status=SkillRevision.Status.PENDING_APPROVAL)
    return _draw(
        request,
        skilllist.load(owner_id(request), filters, staff=is_staff(request)),
        status=status,
        proposals=skillproposals.proposals(owner_id(request)),
        for_staff=waiting.count() if is_staff(request) else 0,
        **more,
    )


def _draw(request: PageRequest, shown: List, *, status: int, **more: Any) -> HttpResponse:
    found = wiring.executor()
    page = SkillsPage(
        me=me(request),
        sessions=sessionlist.load(owner_id(request)),
        skills=shown,
        executor=found.info.name if found else "",
        **more,
    )
    return render(request, "workbench/skills.html", {"page": page}, status=status)


def _import_page(request: Any, *, status: int = 200, **more: Any) -> HttpResponse:
    page = ImportPage(me=me(request), sessions=sessionlist.load(owner_id(request)), staff=is_staff(request), **more)
    return render(request, "workbench/skill_import.html", {"page": page}, status=status)


def _too_large() -> str:
    most, total = FILE_BYTES // skillwords.MIB, UNPACKED_BYTES // skillwords.MIB
    return _("It is too large: at most {most} MB per file, {total} MB in all.").format(most=most, total=total)
