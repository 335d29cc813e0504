"""The skills of a person as their page lists them, none left out: on, off, broken with the reason, suggested."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlencode

from django.db.models import Count, Max, Q
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.models.skill import Skill, SkillRevision, SkillSwitch, SkillUse
from agents.runtime.skills.format import Broken
from agents.runtime.skills.skill import SkillScope
from agents.stores import bundledskills
from workbench import skillwords
from workbench.contexts import Me, Sessions
from workbench.librarylist import Choice
from workbench.localtime import brief
from workbench.skillproposals import Proposal

Q_CHARS: Final = 200
ORDER: Final = (SkillScope.MINE, SkillScope.EVERYONE, SkillScope.BUNDLED)
HEAVY: Final = ("body", "docs", "files", "evidence", "reports")

Key = tuple[SkillScope, str]


class State(StrEnum):
    ON = "on"
    OFF = "off"  # by this person
    BARRED = "barred"  # by staff, for everyone
    BROKEN = "broken"
    GONE = "gone"  # deleted by a revision, which can be taken back


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What the address asks for. scope: of SkillScope, "" = all."""

    q: str = ""
    scope: str = ""

    @property
    def narrow(self) -> bool:
        return bool(self.q or self.scope)

    def address(self) -> str:
        asked = {key: value for key, value in (("q", self.q), ("scope", self.scope)) if value}
        return reverse("skills") + (f"?{urlencode(asked)}" if asked else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One skill. version: 0 = it has none. note: what else is to be known of it, like why it is broken."""

    scope: SkillScope
    slug: str
    name: str
    description: str
    version: int
    state: State
    note: str = ""
    uses: int = 0
    used: datetime | None = None

    @property
    def address(self) -> str:
        return reverse("skill", args=[self.scope, self.slug])

    @property
    def scope_words(self) -> str:
        return skillwords.scope(self.scope)

    @property
    def version_words(self) -> str:
        return skillwords.version(self.version) if self.version else ""

    @property
    def used_words(self) -> str:
        return skillwords.used(self.uses)

    @property
    def last_words(self) -> str:
        return brief(self.used) if self.used else ""

    @property
    def switched(self) -> bool:
        """Whether the person may switch it."""
        return self.state in (State.ON, State.OFF)


@dataclass(frozen=True, slots=True, kw_only=True)
class List:
    """The skills that are shown. total: of all there are."""

    filters: Filters
    rows: tuple[Row, ...] = ()
    total: int = 0
    scopes: tuple[Choice, ...] = ()
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """What was just deleted. key: of the skill, for Undo; "" = it is too late."""

    words: str
    key: str = ""
    scope: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillsPage:
    """proposals: what waits for this person. for_staff: how many wait for staff, if this is one of them.
    executor: name of what runs code here, "" = nothing."""

    me: Me
    sessions: Sessions
    skills: List
    proposals: tuple[Proposal, ...] = ()
    for_staff: int = 0
    unavailable: bool = False
    deleted: Deleted | None = None
    told: str = ""
    executor: str = ""
    words: dict[str, str] = field(default_factory=skillwords.script)

    @property
    def code_words(self) -> str:
        return skillwords.runs_code(self.executor)

    @property
    def suggested_words(self) -> str:
        n = len(self.proposals)
        return ngettext("{n} skill suggested", "{n} skills suggested", n).format(n=n)


def load(owner_id: int, filters: Filters, *, staff: bool = False) -> List:
    """Return the list. At most five statements, whatever there is."""
    rows = everything(owner_id, staff=staff)
    asked = [row for row in rows if _says(row, filters.q)]
    shown = tuple(row for row in asked if filters.scope in ("", row.scope))
    labels = {"": _("All"), **{one.value: skillwords.scope(one) for one in ORDER}}
    return List(
        filters=filters,
        rows=shown,
        total=len(rows),
        scopes=tuple(
            Choice(
                key=key,
                label=label,
                shown=key == filters.scope,
                address=replace(filters, scope=key).address(),
                documents=sum(key in ("", row.scope) for row in asked),
            )
            for key, label in labels.items()
        ),
        words=_words(shown, rows),
    )


def everything(owner_id: int, *, staff: bool = False) -> tuple[Row, ...]:
    """Return all skills a person can see, own first, by name. staff: also those for everyone that nobody can use."""
    off = frozenset(SkillSwitch.objects.of(owner_id).values_list("scope", "slug"))
    uses = _uses(owner_id)
    rows = [*_stored(owner_id, off, staff=staff), *(_bundled(skill, off) for skill in bundledskills.bundled())]
    rows = [replace(row, **uses.get((row.scope, row.slug), {})) for row in rows]
    rows.sort(key=lambda row: (ORDER.index(row.scope), row.name.casefold(), row.slug))
    return tuple(_shadowed(rows))


def find(owner_id: int, scope: SkillScope, slug: str, *, staff: bool = False) -> Row | None:
    rows = everything(owner_id, staff=staff)
    return next((row for row in rows if (row.scope, row.slug) == (scope, slug)), None)


def _stored(owner_id: int, off: frozenset[tuple[str, str]], *, staff: bool) -> list[Row]:
    skills, revisions = Skill.objects.of(owner_id), SkillRevision.objects.of(owner_id)
    if staff:  # they repair what cannot be used yet
        skills, revisions = skills | Skill.objects.in_scope(None), revisions | SkillRevision.objects.in_scope(None)
    shown = list(skills.filter(deleted_at=None))
    active: dict[int, SkillRevision] = {}
    broken: dict[int, SkillRevision] = {}
    told = ~Q(problem="") | Q(status=SkillRevision.Status.ACTIVE)
    wanted = revisions.filter(told, skill__in=[skill.pk for skill in shown]).defer(*HEAVY)
    for revision in wanted.order_by("number"):
        if revision.status == SkillRevision.Status.ACTIVE:
            active[revision.skill_id] = revision
        elif revision.problem:
            broken[revision.skill_id] = revision
    found = (_row(skill, active.get(skill.pk), broken.get(skill.pk), off) for skill in shown)
    return [row for row in found if row is not None]


def _row(
    skill: Skill, active: SkillRevision | None, broken: SkillRevision | None, off: frozenset[tuple[str, str]]
) -> Row | None:
    """Return None for a skill that is only suggested, or was refused: then no row was ever its.

    broken: the last revision that cannot be used.
    """
    says = active or broken
    if says is None:
        return None
    scope = SkillScope.EVERYONE if skill.owner_id is None else SkillScope.MINE
    row = Row(
        scope=scope,
        slug=skill.slug,
        name=says.name,
        description=says.description,
        version=says.number,
        state=State.ON,
    )
    reason = skillwords.problem(broken.problem, broken.words) if broken else ""
    if active is None:
        return replace(row, state=State.BROKEN, note=reason)
    if skill.active_id is None:
        note = _("It was deleted. Its versions are kept: one of them can be brought back.")
        return replace(row, state=State.GONE, note=note)
    if broken is not None and broken.number > active.number:
        row = replace(row, note=_("The last import is not used. {reason}").format(reason=reason))
    if not skill.enabled:
        return replace(row, state=State.OFF if scope is SkillScope.MINE else State.BARRED)
    return replace(row, state=State.OFF) if (scope.value, skill.slug) in off else row


def _bundled(skill: Any, off: frozenset[tuple[str, str]]) -> Row:
    row = Row(
        scope=SkillScope.BUNDLED,
        slug=skill.name,
        name=skill.name,
        description=skill.description,
        version=0,
        state=State.OFF if (SkillScope.BUNDLED.value, skill.name) in off else State.ON,
    )
    if isinstance(skill, Broken):
        return replace(row, state=State.BROKEN, note=skillwords.problem(skill.problem, skill.words))
    return row


def _shadowed(rows: Sequence[Row]) -> list[Row]:
    """Say of a skill that another of the same name is used in its place. rows: those that win first."""
    winners: dict[str, Row] = {}
    out = []
    for row in rows:
        winner = winners.get(row.slug)
        if row.state is State.ON and winner is not None:
            mine = winner.scope is SkillScope.MINE
            note = _("Yours of the same name is used instead.") if mine else _("The one for everyone is used instead.")
            row = replace(row, note=note)
        elif row.state is State.ON:
            winners[row.slug] = row
        out.append(row)
    return out


def _uses(owner_id: int) -> Mapping[Key, Mapping[str, Any]]:
    counted = SkillUse.objects.of(owner_id).values("scope", "slug").annotate(uses=Count("pk"), used=Max("at"))
    return {(SkillScope(one["scope"]), one["slug"]): {"uses": one["uses"], "used": one["used"]} for one in counted}


def _says(row: Row, q: str) -> bool:
    text = f"{row.name} {row.slug} {row.description}".casefold()
    return all(word in text for word in q.casefold().split())


def _words(shown: Sequence[Row], rows: Sequence[Row]) -> str:
    if len(shown) < len(rows):
        return ngettext("{shown} of {n} skill", "{shown} of {n} skills", len(rows)).format(
            shown=len(shown), n=len(rows)
        )
    on = sum(row.state is State.ON for row in rows)
    return ngettext("{n} skill, {on} on", "{n} skills, {on} on", len(rows)).format(n=len(rows), on=on)
