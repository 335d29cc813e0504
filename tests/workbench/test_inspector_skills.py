"""Skills in real runs over the tables: they outlive the process, and the inspector makes their texts again."""

import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from agents.models.agent_policy import AgentPolicy
from agents.models.model_call import ModelCall
from agents.stores.skilllibrary import SkillLibraryRows
from tests.modelserver import ModelServer, Reply, call, finish
from tests.workbench.door import question
from tests.workbench.test_inspector import PAGE, checked, page, rows, said, tags, talk, texts
from tests.workbench.test_inspector import server as server  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)

DESCRIPTION = "Writes letters. Use when: a letter # is wanted"


def loading(name: str) -> Reply:
    arguments = json.dumps({"skill": name})
    return Reply(steps=(*[call(arguments, index=0, id="c-1", name="skill_load")], *finish("tool_calls")))


async def shown(owner: Any) -> str:
    """Return the page of the newest call for an answer."""
    calls = await rows(ModelCall, owner, purpose="chat")
    return await page(owner, f"{PAGE}?call={calls[-1].call_id}")


async def test_a_skill_is_loaded_outlives_the_process_and_is_made_again_of_its_revision(
    alice: Any, server: ModelServer
) -> None:
    library = SkillLibraryRows(alice.pk, actor_id=alice.pk)
    await sync_to_async(AgentPolicy.objects.create)(agent="assistant", values={"skill_mode": "session"})
    await sync_to_async(library.make)("letters", DESCRIPTION, "1. Begin with the reason.")
    server.script(loading("letters"), said("Written."))
    async with talk(alice) as socket:
        await socket.run(question("Write a letter"))
    sent = server.chats[1].body["messages"]
    assert f"letters: {DESCRIPTION}\n" in sent[0]["content"]
    assert "1. Begin with the reason." in sent[-1]["content"]
    assert checked(await shown(alice)) == "same"

    await sync_to_async(library.edit)("letters", "letters", DESCRIPTION, "1. The new way.", parent=1)
    server.script(said("Written again."))
    async with talk(alice) as socket:  # everything anew, as after a restart
        await socket.run(question("Another one"))
    told = "\n".join(str(message["content"]) for message in server.chats[2].body["messages"])
    assert told.count("1. The new way.") == 1 and "1. Begin with the reason." not in told
    html = await shown(alice)
    assert checked(html) == "same"
    assert tags(html) == [
        "system",
        "tools",
        "skills",
        "skills",
        "history",
        "history",
        "placeholder",
        "history",
        "history",
    ]
    assert any("1. The new way." in text for text in texts(html)) and "Skill letters" in html

    await sync_to_async(library.edit)("letters", "letters", DESCRIPTION, "1. A third way.", parent=2)
    assert checked(await shown(alice)) == "same"  # of the revision that was shown
    await sync_to_async(library.edit)("letters", "letters", "Something else.", "1. A third way.", parent=3)
    html = await shown(alice)
    assert checked(html) == "unknown" and "The skills were changed since" in html


async def test_skills_2_13_another_persons_skill_is_neither_listed_nor_loaded(
    alice: Any, bob: Any, server: ModelServer
) -> None:
    await sync_to_async(SkillLibraryRows(bob.pk, actor_id=bob.pk).make)("secret", "Bob's own.", "1. Nobody else's.")
    server.script(loading("secret"), said("There is none."))
    async with talk(alice) as socket:
        await socket.run(question("Load it"))
    sent = server.chats[1].body["messages"]
    assert "Bob's own." not in str(sent) and sent[-1]["content"].startswith("Error: unknown skill: secret")
