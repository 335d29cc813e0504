"""One skill: read it, its versions and what changed, edit, switch, take it along, delete, share."""

from dataclasses import replace
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.models.skill import SkillRevision
from agents.runtime.skills import format as skillformat
from agents.runtime.skills.skill import SkillFile, SkillMissing, SkillScope
from agents.stores import bundledskills, skillfiles, skillimport, skilllibrary
from agents.stores.skilllibrary import (
    NoArchivedRevision,
    SkillBroken,
    SkillDecided,
    SkillStale,
)
from agents.stores.skillpacks import Brought, zipped
from artifacts import diff
from workbench import sessionlist, skillpage
from workbench.skilllist import Deleted
from workbench.skillpage import Asked, Form, SkillPage
from workbench.views.sessions import PageRequest, me, owner_id
from workbench.views.skills import (
    answered,
    deleted_page,
    errors_of,
    form_of,
    form_page,
    is_staff,
    number,
    rows_of,
    tell,
)


@answered
@require_GET
def skill(request: PageRequest, scope: str, slug: str) -> HttpResponse:
    """Show a skill. ?v= version, ?view= read, versions or diff, ?base= version to compare with, ?doc= document.

    Deleted, foreign and unknown ones answer alike: 404.
    """
    get = request.GET.get
    asked = Asked(version=number(get("v", "")), view=get("view", ""), base=number(get("base", "")), doc=get("doc", ""))
    return _shown(request, scope_of(scope), slug, asked)


@answered
@require_http_methods(["GET", "POST"])
def edit(request: PageRequest, scope: str, slug: str) -> HttpResponse:
    """GET: the form, ?v= version to begin with, ?proposal= a suggestion to change. POST: save it as the next version.

    422: it cannot be used. 409: somebody saved a newer one meanwhile; the form says what is different in it. 410: it
    was deleted meanwhile; the form keeps what was typed, for a new one.
    """
    of = scope_of(scope)
    rows = rows_of(request, of)
    if request.method == "GET":
        proposal = number(request.GET.get("proposal", ""))
        if proposal is not None:
            return form_page(request, _suggested(request, of, slug, proposal))
        shown = _load(request, of, slug, Asked(version=number(request.GET.get("v", ""))))
        return form_page(request, _form(rows.revision(slug, shown.version), shown.row.version), skill=shown)
    form = form_of(request)
    if not form.name:
        return _again(request, of, slug, replace(form, errors={"name": _("A skill needs a name.")}), 422)
    try:
        if form.proposal:
            rows.take(form.proposal, form.name, form.description, form.body)
        else:
            rows.edit(slug, form.name, form.description, form.body, parent=form.version)
    except SkillBroken as e:
        return _again(request, of, slug, replace(form, errors=errors_of(e)), 422)
    except SkillMissing:
        if of is not SkillScope.MINE or not rows.was_deleted(slug):
            raise
        said = _("This skill was deleted meanwhile. Saved now, it becomes a new one.")
        kept = replace(form, version=0, action=reverse("skill_new"), errors={"name": said})
        return form_page(request, kept, status=410)
    except (SkillStale, SkillDecided):
        return _again(request, of, slug, _in_conflict(request, of, slug, form), 409)
    tell(request)
    return redirect("skill", of, slug)


@answered
@require_POST
def switch(request: PageRequest, scope: str, slug: str) -> HttpResponse:
    """Use a skill (POST on), or not: one's own for oneself, another for this person alone."""
    of, on = scope_of(scope), "on" in request.POST
    _load(request, of, slug, Asked())
    if of is SkillScope.MINE:
        rows_of(request, of).turn(slug, on=on)
    else:
        skilllibrary.switch(owner_id(request), of, slug, on=on)
    tell(request)
    return HttpResponse(status=204) if request.htmx else redirect("skills")


@answered
@require_POST
def bar(request: PageRequest, scope: str, slug: str) -> HttpResponse:
    """Staff: let everyone use a skill (POST on), or nobody."""
    if scope_of(scope) is not SkillScope.EVERYONE:
        raise Http404
    rows_of(request, SkillScope.EVERYONE).turn(slug, on="on" in request.POST)
    tell(request)
    return redirect("skill", scope, slug)


@answered
@require_GET
def export(request: PageRequest, scope: str, slug: str) -> HttpResponse:
    """Return a skill's files as a zip, ?v= of a version, in a folder of its name."""
    files = _files(request, scope_of(scope), slug, number(request.GET.get("v", "")))
    content = zipped((f"{slug}/{file.path}", file.data) for file in files)
    return _download(content, f"{slug}.zip", "application/zip")


@answered
@require_GET
def file(request: PageRequest, scope: str, slug: str) -> HttpResponse:
    """Return one file ?path= of a skill, ?v= of a version, as bytes to be saved."""
    files = _files(request, scope_of(scope), slug, number(request.GET.get("v", "")), request.GET.get("path", ""))
    if not files:
        raise Http404
    return _download(files[0].data, files[0].path.rsplit("/", 1)[-1], "application/octet-stream")


@answered
@require_POST
def delete(request: PageRequest, scope: str, slug: str) -> HttpResponse:
    """Delete a skill; the answer is the list with Undo."""
    of = scope_of(scope)
    gone = rows_of(request, of).delete(slug)
    tell(request)
    said = _("Deleted: “{text}”").format(text=gone.active.name if gone.active else slug)
    return deleted_page(request, Deleted(words=said, key=str(gone.key), scope=of))


@answered
@require_POST
def bring_back(request: PageRequest, scope: str, slug: str, version: int) -> HttpResponse:
    """Let an earlier version be used again."""
    try:
        rows_of(request, scope_of(scope)).rollback(slug, version)
    except NoArchivedRevision as e:
        raise Http404 from e
    tell(request)
    return redirect("skill", scope, slug)


@answered
@require_POST
def share(request: PageRequest, scope: str, slug: str) -> HttpResponse:
    """Offer one's own skill to everyone: staff publish it, others propose it to staff."""
    if scope_of(scope) is not SkillScope.MINE:
        raise Http404
    found = rows_of(request, SkillScope.MINE).find(slug)
    skilllibrary.share(found, by=owner_id(request), staff=is_staff(request))
    tell(request)
    if is_staff(request):
        return redirect("skill", SkillScope.EVERYONE, slug)
    return redirect("skill", scope, slug)


@answered
@require_POST
def copy(request: PageRequest, scope: str, slug: str) -> HttpResponse:
    """Make a skill of one's own of another, to change it; one of that name is left as it is."""
    of = scope_of(scope)
    if of is SkillScope.MINE:
        raise Http404
    mine = rows_of(request, SkillScope.MINE)
    try:
        mine.find(slug)
    except SkillMissing:
        if of is SkillScope.EVERYONE:
            found = skillpage.stored(owner_id(request), of, slug, staff=is_staff(request))[0]
            skilllibrary.copy(found, to=owner_id(request))
        else:
            brought = [Brought.of(f"{slug}/{file.path}", file.data) for file in _files(request, of, slug, None)]
            skillimport.bring(brought, owner_id=owner_id(request), actor_id=owner_id(request))
        tell(request)
    return redirect("skill_edit", SkillScope.MINE, slug)


def scope_of(text: str) -> SkillScope:
    try:
        return SkillScope(text)
    except ValueError as e:
        raise Http404 from e


def _load(request: PageRequest, of: SkillScope, slug: str, asked: Asked) -> skillpage.Shown:
    return skillpage.load(owner_id(request), of, slug, asked, staff=is_staff(request))


def _shown(request: PageRequest, of: SkillScope, slug: str, asked: Asked, **more: Any) -> HttpResponse:
    page = SkillPage(
        me=me(request),
        sessions=sessionlist.load(owner_id(request)),
        skill=_load(request, of, slug, asked),
        staff=is_staff(request),
        **more,
    )
    return render(request, "workbench/skill.html", {"page": page})


def _form(revision: SkillRevision, current: int) -> Form:
    """Return the form that says what a revision says. current: number of the one that will be replaced."""
    return Form(name=revision.name, description=revision.description, body=_body(revision), version=current)


def _body(revision: SkillRevision) -> str:
    """Return what to do. Of a file that could not be read this is all of it: its top is read as far as it can be."""
    if not revision.problem:
        return revision.body
    return skillformat.parse(revision.body).body or revision.body


def _suggested(request: PageRequest, of: SkillScope, slug: str, pk: int) -> Form:
    owner = owner_id(request) if of is SkillScope.MINE else None
    waiting = (
        SkillRevision.objects.in_scope(owner)
        .select_related("skill__active")
        .filter(status=SkillRevision.Status.PENDING_APPROVAL)
    )
    revision = waiting.filter(pk=pk, skill__slug=slug).exclude(action=SkillRevision.Action.DELETE).first()
    if revision is None:
        raise SkillMissing
    active = revision.skill.active
    if active is not None and revision.parent_id != active.pk:  # it cannot be accepted any more, but be put to use
        return _form(revision, active.number)
    return replace(_form(revision, 0), proposal=pk)


def _in_conflict(request: PageRequest, of: SkillScope, slug: str, form: Form) -> Form:
    """Return the form with what is different in what somebody saved; saved again it replaces that."""
    shown = _load(request, of, slug, Asked())
    now = rows_of(request, of).revision(slug, shown.version)
    texts = (skillformat.written(one.name, one.description, one.body) for one in (now, form))
    try:
        theirs = diff.compare(*texts)
    except diff.TooLong:
        theirs = None
    return replace(form, version=now.number, proposal=0, theirs=theirs)


def _again(request: PageRequest, of: SkillScope, slug: str, form: Form, status: int) -> HttpResponse:
    shown = None if form.proposal else _load(request, of, slug, Asked())
    return form_page(request, form, status=status, skill=shown)


def _files(request: PageRequest, of: SkillScope, slug: str, version: int | None, path: str = "") -> list[SkillFile]:
    """Return the files of a version, or the one at a path. Raises SkillMissing, BlobMissing."""
    shown = _load(request, of, slug, Asked(version=version))
    if of is SkillScope.BUNDLED:
        return [one for one in bundledskills.files(slug) if path in ("", one.path)]
    found, revisions = skillpage.stored(owner_id(request), of, slug, staff=is_staff(request))
    revision = next(one for one in revisions if one.number == shown.version)
    wanted = [one for one in revision.files if path in ("", one["path"])]
    return [SkillFile(path=one["path"], data=skillfiles.read(found.key, one)) for one in wanted]


def _download(content: bytes, name: str, mime: str) -> HttpResponse:
    response = HttpResponse(content, content_type=mime)
    response["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    response["Cache-Control"] = "private, no-store"
    return response
