"""One skill as its page shows it: what it says, its files, its versions, two of them compared, where it was used."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from django.urls import reverse
from django.utils.translation import gettext as _

from agents.models.skill import Skill, SkillRevision, SkillUse
from agents.runtime.skills.format import Broken
from agents.runtime.skills.skill import BODY_CHARS, DESCRIPTION_CHARS, SKILL_FILE, SkillMissing, SkillScope
from agents.stores import bundledskills, skillcontent
from artifacts import diff
from workbench import previews, sessionlist, skillproposals, skillwords
from workbench.contexts import Me, Sessions
from workbench.localtime import brief
from workbench.skilllist import Row, find

RUNS: Final = 10  # that are named


class View(StrEnum):
    """What is shown of a skill; the values stand in addresses."""

    READ = "read"
    VERSIONS = "versions"
    DIFF = "diff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the address asks for. version: None = the one in use. doc: path of a document to read."""

    version: int | None = None
    view: str = ""
    base: int | None = None
    doc: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    view: View
    label: str
    shown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    path: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRow:
    """One revision. promotable: it held before, and can hold again."""

    number: int
    name: str
    at: datetime
    source: str
    status: str
    state: str
    comment: str
    shown: bool
    promotable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UseRow:
    """A conversation in which it was used. address: "" = it cannot be opened any more."""

    title: str
    address: str
    at: datetime
    at_words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Files that differ between two versions, SKILL.md aside."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A skill in one view. row: as the list has it. version: 0 = it has none. old: it is not the one in use.

    html: of its body, or of the document `doc`. pieces of the diff: compared, with `base` and what files changed.
    may_edit: the person may change it; proposed: it waits for staff to be everyone's.
    """

    row: Row
    view: View
    version: int
    name: str
    description: str
    html: str
    raw: str
    doc: str
    docs: tuple[str, ...]
    files: tuple[File, ...]
    versions: tuple[VersionRow, ...] = ()
    tabs: tuple[Tab, ...] = ()
    base: int = 0
    others: tuple[int, ...] = ()
    compared: diff.Comparison | None = None
    changes: Changes = field(default_factory=Changes)
    uses: tuple[UseRow, ...] = ()
    may_edit: bool = False
    proposed: bool = False
    old: bool = False

    @property
    def id(self) -> str:
        return self.row.address


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What is being written. version: number of the revision it began with, 0 = a new skill. proposal: of the
    suggestion that is being changed, 0 = none. theirs: what somebody saved meanwhile, compared with what was typed.
    action: the address that takes it, "" = the one it is shown at."""

    name: str = ""
    description: str = ""
    body: str = ""
    version: int = 0
    proposal: int = 0
    everyone: bool = False
    action: str = ""
    errors: Mapping[str, str] = field(default_factory=dict)
    theirs: diff.Comparison | None = None
    body_chars: int = BODY_CHARS
    description_chars: int = DESCRIPTION_CHARS


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillPage:
    """The page of one skill, or of a form. skill: None = a new one. skills: marks the place in the sidebar."""

    me: Me
    sessions: Sessions
    skill: Shown | None = None
    form: Form | None = None
    skills: bool = True
    staff: bool = False
    told: str = ""
    words: dict[str, str] = field(default_factory=skillwords.script)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A skill that was brought. problem: why it cannot be used, "" = it can."""

    name: str
    address: str
    words: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPage:
    """The form to bring skills, and what came of what was brought. refused: why nothing was taken."""

    me: Me
    sessions: Sessions
    skills: bool = True
    staff: bool = False
    taken: tuple[Taken, ...] = ()
    beside: tuple[str, ...] = ()
    refused: str = ""
    words: dict[str, str] = field(default_factory=skillwords.script)


def load(owner_id: int, scope: SkillScope, slug: str, asked: Asked, *, staff: bool) -> Shown:
    """Return the skill in the view that was asked for. Raises SkillMissing."""
    row = find(owner_id, scope, slug, staff=staff)
    if row is None:
        raise SkillMissing
    if scope is SkillScope.BUNDLED:
        return _bundled(owner_id, row, asked)
    _, revisions = stored(owner_id, scope, slug, staff=staff)
    number = row.version if asked.version is None else asked.version
    revision = next((one for one in revisions if one.number == number), None)
    if revision is None:
        raise SkillMissing
    others = tuple(one.number for one in revisions if one.number != number)
    view = _view(asked.view, others)
    base = next((one for one in revisions if one.number == _base(asked, others, number)), None)
    differs = view is View.DIFF and base is not None
    doc = asked.doc if asked.doc in skillcontent.docs(revision.files) else ""
    text = next((one["text"] for one in revision.docs if one["path"] == doc), revision.body)
    mine = scope is SkillScope.MINE
    return Shown(
        row=row,
        view=view,
        version=number,
        name=revision.name,
        description=revision.description,
        html="" if revision.problem or _plain(doc) else previews.drawn(text).html,
        raw=text if revision.problem or _plain(doc) else "",
        doc=doc,
        docs=skillcontent.docs(revision.files),
        files=tuple(File(path=one["path"], size=one["size"]) for one in revision.files),
        versions=tuple(_version(one, number) for one in reversed(revisions)),
        tabs=_tabs(view, others),
        base=base.number if base else 0,
        others=others,
        compared=skillproposals.compared(base, revision) if differs else None,
        changes=_changes(base, revision) if differs and base else Changes(),
        uses=_uses(owner_id, scope, slug),
        may_edit=mine or staff,
        proposed=mine and _proposed(owner_id, slug),
        old=number != row.version,
    )


def stored(owner_id: int, scope: SkillScope, slug: str, *, staff: bool) -> tuple[Skill, Sequence[SkillRevision]]:
    """Return a skill that has rows, and the revisions the person may see, oldest first. Raises SkillMissing."""
    everyone = scope is SkillScope.EVERYONE
    skills = Skill.objects.in_scope(None) if everyone and staff else Skill.objects.of(owner_id)
    found = skills.filter(owner_id=None if everyone else owner_id, slug=slug, deleted_at=None).first()
    if found is None:
        raise SkillMissing
    revisions = SkillRevision.objects.in_scope(None) if everyone and staff else SkillRevision.objects.of(owner_id)
    return found, list(revisions.filter(skill=found).select_related("skill").order_by("number"))


def _bundled(owner_id: int, row: Row, asked: Asked) -> Shown:
    found = next(one for one in bundledskills.bundled() if one.name == row.slug)
    files = bundledskills.files(row.slug)
    broken = isinstance(found, Broken)
    docs = () if isinstance(found, Broken) else found.docs
    doc = asked.doc if asked.doc in docs else ""
    read = {one.path: one.data.decode(errors="replace") for one in files if one.path in (doc, SKILL_FILE)}
    text = read[doc] if doc else read.get(SKILL_FILE, "") if isinstance(found, Broken) else found.body
    return Shown(
        row=row,
        view=View.READ,
        version=0,
        name=row.name,
        description=row.description,
        html="" if broken or _plain(doc) else previews.drawn(text).html,
        raw=text if broken or _plain(doc) else "",
        doc=doc,
        docs=docs,
        files=tuple(File(path=one.path, size=len(one.data)) for one in files),
        uses=_uses(owner_id, SkillScope.BUNDLED, row.slug),
    )


def _view(asked: str, others: Sequence[int]) -> View:
    view = View(asked) if asked in tuple(View) else View.READ
    return View.READ if view is View.DIFF and not others else view


def _base(asked: Asked, others: Sequence[int], number: int) -> int | None:
    if asked.base in others:
        return asked.base
    return max((n for n in others if n < number), default=max(others, default=None))


def _plain(doc: str) -> bool:
    return doc.lower().endswith(".txt")


def _tabs(view: View, others: Sequence[int]) -> tuple[Tab, ...]:
    labels = {View.READ: _("Read"), View.VERSIONS: _("Versions")}
    if others:
        labels[View.DIFF] = _("Compare")
    return tuple(Tab(view=one, label=label, shown=one is view) for one, label in labels.items())


def _version(one: SkillRevision, shown: int) -> VersionRow:
    return VersionRow(
        number=one.number,
        name=one.name,
        at=one.created_at,
        source=skillwords.source(one.source),
        status=one.status,
        state=skillwords.problem(one.problem, one.words) if one.problem else skillwords.status(one.status),
        comment=skillwords.comment(one.comment),
        shown=one.number == shown,
        promotable=one.status == SkillRevision.Status.ARCHIVED and one.action != SkillRevision.Action.DELETE,
    )


def _changes(old: SkillRevision, new: SkillRevision) -> Changes:
    before, after = ({f["path"]: f["sha256"] for f in one.files if f["path"] != SKILL_FILE} for one in (old, new))
    return Changes(
        added=tuple(sorted(after.keys() - before.keys())),
        removed=tuple(sorted(before.keys() - after.keys())),
        changed=tuple(sorted(path for path in before.keys() & after.keys() if before[path] != after[path])),
    )


def _uses(owner_id: int, scope: SkillScope, slug: str) -> tuple[UseRow, ...]:
    used = SkillUse.objects.of(owner_id).filter(scope=scope.value, slug=slug, session__in=sessionlist.visible(owner_id))
    return tuple(
        UseRow(
            title=use.session.title or _("New conversation"),
            address=reverse("session", args=[use.session.thread_id]),
            at=use.at,
            at_words=brief(use.at),
        )
        for use in used.select_related("session").order_by("-at", "-pk")[:RUNS]
    )


def _proposed(owner_id: int, slug: str) -> bool:
    waiting = SkillRevision.objects.of(owner_id).filter(owner=None, proposed_by_id=owner_id, skill__slug=slug)
    return bool(waiting.filter(status=SkillRevision.Status.PENDING_APPROVAL).exists())
