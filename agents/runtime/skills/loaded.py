"""Which skills are loaded: kept as state of the session, one key for each agent and skill, written with the result of
the tool that loaded it. So it is folded along the line of the conversation like any state, and outlives summaries,
compaction and restarts; a fork goes back to what held there.

    "skill:assistant/meeting-minutes": {"digest": "…", "touched": 3, "turn": "e12", "docs": ["a.md"], "all": false,
                                        "held": {"": "call_1", "a.md": "call_1"}}

Nothing is ever cleared: what counts is worked out of the mode, the turn and the order of touch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from agents.runtime.skills.skill import Skill, SkillStore, SkillSummary

KEY: Final = "skill:"
BODY: Final = ""  # the key of SKILL.md among what results hold
TURN: Final = "turn"
ONCE: Final = "once"
SESSION: Final = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A skill that an agent loaded. digest: of the skill then. touched: counts up with each load and choice of docs.

    turn: which person's message was answered. docs: paths chosen, sorted; all: every one, whatever docs says. held: the
    ids of the calls whose results hold the body (BODY) and documents, by path.
    """

    name: str
    digest: str
    touched: int
    turn: str
    held: Mapping[str, str]
    docs: tuple[str, ...] = ()
    all: bool = False

    def chosen(self, skill: SkillSummary) -> tuple[str, ...]:
        """Return the documents that are shown with it, as far as it has them."""
        return skill.docs if self.all else tuple(path for path in self.docs if path in skill.docs)

    def calls(self, skill: SkillSummary) -> frozenset[str]:
        """Return the calls whose results together say all of it; empty if none do, as after it was changed."""
        needed = (BODY, *self.chosen(skill))
        if self.digest != skill.digest or any(path not in self.held for path in needed):
            return frozenset()
        return frozenset(self.held[path] for path in needed)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSkills:
    """The skills of one run, as they were when it began. summaries: by name. turn: which message is answered.

    mode: TURN, ONCE or SESSION. most: so many stay loaded, those touched last; 0 = all.
    """

    store: SkillStore
    summaries: Mapping[str, SkillSummary]
    agent: str
    turn: str
    mode: str = TURN
    most: int = 0
    _read: dict[str, Skill] = field(default_factory=dict)

    async def skill(self, name: str) -> Skill:
        """Return one whole; it is read once in a run. Raises SkillMissing, SkillUnavailable."""
        if name not in self._read:
            self._read[name] = await self.store.skill(name)
        return self._read[name]

    def loaded(self, state: Mapping[str, Any]) -> tuple[Loaded, ...]:
        """Return what is loaded for this turn, the one touched last at the end."""
        here = [one for one in self._every(state) if one.name in self.summaries]
        if self.mode != SESSION:
            here = [one for one in here if one.turn == self.turn]
        here.sort(key=lambda one: (one.touched, one.name))
        return tuple(here[-self.most :] if self.most else here)

    def find(self, state: Mapping[str, Any], name: str) -> Loaded | None:
        """Return the skill as it is loaded for this turn, None if it is not."""
        return next((one for one in self.loaded(state) if one.name == name), None)

    def was_loaded(self, state: Mapping[str, Any], name: str) -> bool:
        """Return whether the agent loaded it at any time in this conversation, and may see it now."""
        return name in self.summaries and any(one.name == name for one in self._every(state))

    def load(
        self, state: Mapping[str, Any], skill: Skill, *, docs: tuple[str, ...], every: bool, held: Mapping[str, str]
    ) -> Mapping[str, Any]:
        """Return the change of state after which the skill is loaded, with these documents, and touched last."""
        touched = 1 + max((one.touched for one in self._every(state)), default=0)
        value = {
            "digest": skill.digest,
            "touched": touched,
            "turn": self.turn,
            "docs": sorted(docs),
            "all": every,
            "held": dict(held),
        }
        return {f"{self._prefix}{skill.name}": value}

    @property
    def _prefix(self) -> str:
        return f"{KEY}{quote(self.agent, safe='')}/"

    def _every(self, state: Mapping[str, Any]) -> list[Loaded]:
        prefix = self._prefix
        found = (_loaded(key.removeprefix(prefix), value) for key, value in state.items() if key.startswith(prefix))
        return [one for one in found if one is not None]


def _loaded(name: str, value: object) -> Loaded | None:
    """Return what a state says; None for what no tool of ours wrote: a client may set state too."""
    if not isinstance(value, Mapping):
        return None
    match value:
        case {"digest": str(digest), "touched": int(touched), "turn": str(turn), "held": Mapping() as held, **more}:
            docs = more.get("docs")
            return Loaded(
                name=name,
                digest=digest,
                touched=touched,
                turn=turn,
                held={str(path): str(call) for path, call in held.items()},
                docs=tuple(map(str, docs)) if isinstance(docs, list | tuple) else (),
                all=more.get("all") is True,
            )
    return None
