"""The skills of one invocation: read once when it begins, and what of them the next request shows."""

import logging

from agents.runtime.context.injection import Block
from agents.runtime.context.projection import last_turn
from agents.runtime.context.skillparts import ShownSkill
from agents.runtime.events import AssistantMessage, ToolReturned
from agents.runtime.invocation import Invocation
from agents.runtime.policy import ContextPolicy
from agents.runtime.skills.loaded import ONCE, Loaded, RunSkills
from agents.runtime.skills.skill import Skill, SkillMissing, SkillUnavailable
from agents.runtime.skills.telling import content, overview_block

logger = logging.getLogger(__name__)


class Skilled:
    """After `open`: `overview` to put into the system message, and invocation.skills, None = there are none."""

    def __init__(self, invocation: Invocation, policy: ContextPolicy) -> None:
        self.overview: Block | None = None
        self._invocation = invocation
        self._policy = policy
        self._away = False  # they cannot be read now

    async def open(self) -> None:
        """Look which skills there are. Never fails: a run goes on without skills that cannot be read."""
        store = self._invocation.services.skills
        if store is None or not self._policy.skills:
            return
        try:
            found = await store.summaries()
        except SkillUnavailable:
            logger.warning("run %s goes on without skills, they cannot be read", self._invocation.run_id)
            self._away = True
            return
        self.overview = overview_block(found, self._policy.skills_overview)
        if found:
            asked = last_turn(self._invocation.history)
            self._invocation.skills = RunSkills(
                store=store,
                summaries={one.name: one for one in found},
                agent=self._invocation.agent_name,
                turn=asked.id if asked is not None else self._invocation.id,
                mode=self._policy.skill_mode,
                most=self._policy.skills_loaded,
            )

    async def shown(self) -> tuple[ShownSkill, ...] | None:
        """Return what is loaded for the next request, None if that cannot be read."""
        skills = self._invocation.skills
        if skills is None:
            return None if self._away else ()
        loaded = skills.loaded(self._invocation.state)
        if skills.mode == ONCE:
            fresh = self._fresh()
            loaded = tuple(one for one in loaded if fresh.intersection(one.held.values()))
        found = []
        for one in loaded:
            try:
                found.append(_shown(one, await skills.skill(one.name)))
            except SkillMissing:  # deleted for good meanwhile
                continue
            except SkillUnavailable:
                logger.warning("run %s: a loaded skill cannot be read", self._invocation.run_id)
                return None
        return tuple(found)

    def _fresh(self) -> set[str]:
        """Return the calls whose results no request has shown yet."""
        found: set[str] = set()
        for stored in reversed(self._invocation.history):
            if isinstance(stored.record, AssistantMessage):
                break
            if isinstance(stored.record, ToolReturned):
                found.add(stored.record.call_id)
        return found


def _shown(loaded: Loaded, skill: Skill) -> ShownSkill:
    docs = loaded.chosen(skill)
    text = content(skill, docs)
    return ShownSkill(name=skill.name, digest=skill.digest, text=text, docs=docs, calls=loaded.calls(skill))
