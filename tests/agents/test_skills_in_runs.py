"""Skills over the real stores: what a run is told of them, what it loads, and that it is noted where it was used."""

from typing import Any

import pytest

from agents.models.skill import SkillUse
from agents.runtime.events import ToolReturned
from agents.runtime.model import ModelRequest, Role
from agents.runtime.testing import call, text, turn
from agents.stores import skillcontent
from agents.stores.db import in_thread
from agents.stores.skillfiles import desk
from agents.stores.skilllibrary import Proposal, SkillLibraryRows
from agents.tools import skills
from tests.agents.house import ask
from tests.agents.wiredruns import records_of, runner_of

pytestmark = pytest.mark.usefixtures("hot_stores")


def told(request: ModelRequest) -> str:
    return "\n".join(message.text for message in request.messages if message.role is Role.SYSTEM)


def suggested(owner_id: int) -> int:
    with desk() as on:
        content = skillcontent.of_text("Board memo", "Writes a paper.", "1. Ask qwxzkva.", on, None)
        return int(SkillLibraryRows(owner_id).submit(content.slug, content, Proposal()).pk)


async def test_evolution_5_9_the_run_after_an_approval_is_told_of_the_skill_and_loads_it(alice: Any) -> None:
    owner_id = alice.pk
    pk = await in_thread(suggested)(owner_id)
    runner, model = runner_of(
        skills.tools(),
        turn(text("Nothing.")),
        turn(call("c1", "skill_load", {"skill": "board-memo"})),
        turn(text("Done.")),
    )
    await records_of(runner, ask(owner_id, "Write the memo.", run="r1"))
    assert "board-memo" not in told(model.requests[0])
    await in_thread(SkillLibraryRows(owner_id, actor_id=owner_id).approve)(pk)
    records = await records_of(runner, ask(owner_id, "Write it now.", run="r2"))
    assert "board-memo: Writes a paper." in told(model.requests[1])
    returned = next(record for record in records if isinstance(record, ToolReturned))
    assert "qwxzkva" in returned.content
    use = await SkillUse.objects.of(owner_id).select_related("revision").aget()
    assert (use.run_id, use.slug, use.revision.pk) == ("r2", "board-memo", pk)
