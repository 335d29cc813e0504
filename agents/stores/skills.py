"""The skills of one run over tables, storage and the program's own directory: SkillStore.

What a person sees is kept per process with the numbers of the libraries it was made from; a run learns the numbers
when it is opened, and reads the rest only when they have changed. Bodies and files are read by revision, which never
changes, so a run goes on with what it began with.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Final, ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError
from django.db.models import F
from django.utils import timezone

from agents.models import skill as tables
from agents.runtime.skills.format import Broken
from agents.runtime.skills.skill import (
    Doc,
    Skill,
    SkillFile,
    SkillMissing,
    SkillScope,
    SkillSummary,
    SkillUnavailable,
)
from agents.stores import bundledskills, skillcontent, skillfiles
from agents.stores.db import in_thread
from artifacts import blobs

P = ParamSpec("P")
R = TypeVar("R")

MOST_OWNERS: Final = 200  # whose skills a process keeps in mind
COLUMNS: Final = ("pk", "skill__slug", "owner_id", "description", "digest", "files")

Versions = tuple[int, int]  # of everyone's library and of the person's own


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A skill that can be used. revision: primary key, 0 = of a bundled one."""

    summary: SkillSummary
    revision: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Which run reads them: what it reads is noted as used in it."""

    session_id: int
    run_id: str


_kept: OrderedDict[int, tuple[Versions, Mapping[str, Known]]] = OrderedDict()
_lock = Lock()


class PgSkills:
    """Implements agents.runtime.skills.skill.SkillStore for one run. Belongs to one event loop.

    run: None = nobody is told that a skill was used. versions: as the run was opened, None = they are asked for.
    """

    def __init__(
        self,
        owner_id: int,
        *,
        run: Run | None = None,
        versions: Versions | None = None,
        now: Callable[[], datetime] = timezone.now,
    ) -> None:
        self._owner_id = owner_id
        self._versions = versions
        self._run = run
        self._now = now
        self._seen: Mapping[str, Known] | None = None
        self._noted: set[str] = set()
        self._reading = asyncio.Lock()

    async def summaries(self) -> tuple[SkillSummary, ...]:
        return tuple(known.summary for known in (await self._snapshot()).values())

    async def skill(self, name: str) -> Skill:
        """See the protocol. One statement; one more the first time in a run, which is noted as a use."""
        known = await self._known(name)
        return await _asked(self._whole, known)

    async def files(self, name: str) -> tuple[SkillFile, ...]:
        known = await self._known(name)
        return await _asked(self._files, known)

    async def _snapshot(self) -> Mapping[str, Known]:
        async with self._reading:
            if self._seen is None:
                kept = _found(self._owner_id, self._versions) if self._versions is not None else None
                self._seen = kept if kept is not None else await _asked(visible, self._owner_id, self._versions)
            return self._seen

    async def _known(self, name: str) -> Known:
        known = (await self._snapshot()).get(name)
        if known is None:
            raise SkillMissing
        return known

    def _whole(self, known: Known) -> Skill:
        whole = _bundled(known.summary.name) if not known.revision else _skill(known, self._row(known))
        if self._run is not None and known.summary.name not in self._noted:
            tables.SkillUse.objects.of(self._owner_id).bulk_create(
                [
                    tables.SkillUse(
                        owner_id=self._owner_id,
                        session_id=self._run.session_id,
                        run_id=self._run.run_id,
                        scope=known.summary.scope.value,
                        slug=known.summary.name,
                        revision_id=known.revision or None,
                        at=self._now(),
                    )
                ],
                ignore_conflicts=True,
            )
            self._noted.add(known.summary.name)
        return whole

    def _files(self, known: Known) -> tuple[SkillFile, ...]:
        if not known.revision:
            return bundledskills.files(known.summary.name)
        row = self._row(known)
        try:
            read = (SkillFile(path=file["path"], data=skillfiles.read(row.skill.key, file)) for file in row.files)
            return tuple(sorted(read, key=lambda file: file.path))
        except blobs.BlobMissing as error:
            raise SkillUnavailable from error

    def _row(self, known: Known) -> tables.SkillRevision:
        """Return the revision that the run began with. It may have been deleted for good since."""
        rows = tables.SkillRevision.objects.of(self._owner_id).select_related("skill")
        found: tables.SkillRevision | None = rows.filter(pk=known.revision).first()
        if found is None:
            raise SkillMissing
        return found


def visible(owner_id: int, versions: Versions | None = None) -> Mapping[str, Known]:
    """Return what a person's runs may use now, by name. versions: as they were a moment ago, None = they are asked for.

    No statement if these are given and nothing has changed, one if they are not; two more if something has.
    """
    versions = versions or library_versions(owner_id)
    if (kept := _found(owner_id, versions)) is not None:
        return kept
    # read after the numbers: what changed in between is read once more next time
    found = _read(owner_id)
    with _lock:
        _kept[owner_id] = versions, found
        _kept.move_to_end(owner_id)
        while len(_kept) > MOST_OWNERS:
            _kept.popitem(last=False)
    return found


def _found(owner_id: int, versions: Versions) -> Mapping[str, Known] | None:
    """Return what is kept of a person's skills, None if it is not of these versions."""
    with _lock:
        kept = _kept.get(owner_id)
        if kept is None or kept[0] != versions:
            return None
        _kept.move_to_end(owner_id)
        return kept[1]


def library_versions(owner_id: int) -> Versions:
    """Return how often what the person sees has changed. One statement."""
    rows = tables.SkillLibrary.objects.of(owner_id).values_list("owner_id", "version")
    found = dict(rows)
    return found.get(None, 0), found.get(owner_id, 0)


def _read(owner_id: int) -> Mapping[str, Known]:
    off = set(tables.SkillSwitch.objects.of(owner_id).values_list("scope", "slug"))
    # where two have one name, the later one in this order is seen
    found = {
        skill.name: Known(summary=_summary(skill))
        for skill in bundledskills.bundled()
        if isinstance(skill, Skill) and (SkillScope.BUNDLED.value, skill.name) not in off
    }
    rows = tables.SkillRevision.objects.of(owner_id).filter(
        skill__active=F("pk"), skill__enabled=True, skill__deleted_at=None
    )
    for row in rows.order_by(F("owner_id").asc(nulls_first=True)).values(*COLUMNS):
        scope = SkillScope.EVERYONE if row["owner_id"] is None else SkillScope.MINE
        if (scope.value, row["skill__slug"]) in off:
            continue
        summary = SkillSummary(
            name=row["skill__slug"],
            description=row["description"],
            scope=scope,
            digest=row["digest"],
            docs=skillcontent.docs(row["files"]),
            runs=skillcontent.runs(row["files"]),
        )
        found[summary.name] = Known(summary=summary, revision=row["pk"])
    return dict(sorted(found.items()))


def _summary(skill: Skill) -> SkillSummary:
    names = ("name", "description", "scope", "digest", "docs", "runs")
    return SkillSummary(**{name: getattr(skill, name) for name in names})


def _bundled(name: str) -> Skill:
    found = next((skill for skill in bundledskills.bundled() if skill.name == name), None)
    if found is None or isinstance(found, Broken):
        raise SkillMissing
    return found


def _skill(known: Known, row: tables.SkillRevision) -> Skill:
    texts = tuple(Doc(path=doc["path"], text=doc["text"]) for doc in row.docs)
    names = ("name", "description", "scope", "digest", "docs", "runs")
    return Skill(**{name: getattr(known.summary, name) for name in names}, body=row.body, texts=texts)


async def _asked(work: Callable[P, R], *args: P.args, **more: P.kwargs) -> R:
    try:
        return await in_thread(work)(*args, **more)
    except (OperationalError, InterfaceError, OSError) as error:
        raise SkillUnavailable from error
