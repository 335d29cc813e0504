"""The offline provider and what was said before: it searches, reads on, answers with the message's marker."""

from typing import Any

import pytest

from agents.presets import assistant
from agents.providers.offline.model import OfflineModel
from agents.providers.offline.words import CHINESE, ENGLISH
from agents.runtime.events import AssistantMessage, Emitted
from agents.runtime.memoryknowledge import MemoryKnowledge
from agents.runtime.memorystores import MemoryArtifactStore, MemorySessionStore
from agents.runtime.session import RunRequest
from agents.runtime.testing import ScriptedModel, collect, memory_runner, said, text, turn
from agents.tools import artifacts as artifact_tools
from agents.tools import knowledge as knowledge_tools
from agents.tools import session as session_tools
from tests.agents.test_offline_provider import calls, quoted
from tests.agents.test_offline_provider import said as answer_of


class Desk:
    """Conversations of one person; others' answers are scripted, the last question goes to the offline provider."""

    def __init__(self, **documents: str) -> None:
        self.knowledge = MemoryKnowledge()
        self.sessions = MemorySessionStore()
        self.runs = 0
        for name, words in documents.items():
            self.knowledge.add(f"{name}.md", words)

    async def tell(self, words: str, reply: str = "Noted.", *, thread: str = "t") -> None:
        await self._run(ScriptedModel(turn(text(reply))), words, thread)

    async def ask(self, words: str, *, thread: str = "t") -> list[Emitted]:
        return await self._run(OfflineModel(), words, thread)

    async def _run(self, model: Any, words: str, thread: str) -> list[Emitted]:
        self.runs += 1
        agent = assistant.build((*knowledge_tools.tools(), *artifact_tools.tools(), *session_tools.tools()))
        runner = memory_runner(
            model, agent=agent, knowledge=self.knowledge, artifacts=MemoryArtifactStore(), store=self.sessions
        )
        message = said(words, id=f"u{self.runs}")
        return await collect(runner, RunRequest(owner_id=1, thread_id=thread, run_id=f"r{self.runs}", message=message))


def sources(emitted: list[Emitted]) -> list[tuple[str, str]]:
    """Return thread and message of what the last answer cites."""
    last = [e.event for e in emitted if isinstance(e.event, AssistantMessage)][-1]
    return [(cited.citation.thread_id, cited.citation.message_id) for cited in last.citations]


async def test_what_was_agreed_on_in_another_conversation_is_quoted_with_its_message() -> None:
    desk = Desk()
    await desk.tell("The weather is fine.", thread="old")
    await desk.tell("We agreed on a budget of 90,000 crowns for the harbour project.", thread="old")
    await desk.tell("Lunch is at noon.", thread="old")
    emitted = await desk.ask("What was the budget we agreed on for the harbour project?", thread="new")
    assert [name for name, _ in calls(emitted)] == ["session_search", "session_search"]
    assert answer_of(emitted).startswith(ENGLISH.said_before)
    assert "90,000 crowns" in quoted(answer_of(emitted))
    assert sources(emitted) == [("old", "u2")]


async def test_a_number_from_this_conversation_is_found_too() -> None:
    desk = Desk()
    await desk.tell("The deposit for the hall is 400 euros.")
    for n in range(3):
        await desk.tell(f"Something else, number {n}.")
    emitted = await desk.ask("How much did I say the deposit for the hall is?")
    assert "400 euros" in quoted(answer_of(emitted))
    assert sources(emitted)[0] == ("t", "u1")


async def test_chinese_is_answered_in_chinese() -> None:
    desk = Desk()
    await desk.tell("项目的预算定为九十万元。", "好的。", thread="old")
    await desk.tell("明天开会。", "好的。", thread="old")
    emitted = await desk.ask("之前说的项目预算是多少？", thread="new")
    assert answer_of(emitted).startswith(CHINESE.said_before)
    assert "九十万元" in quoted(answer_of(emitted))
    assert sources(emitted) == [("old", "u1")]


async def test_a_message_whose_excerpt_is_not_enough_is_read_whole() -> None:
    desk = Desk()
    filler = "The committee met and talked about many things of no weight at all. " * 8
    long = f"On the harbour project and its budget there is much to say. {filler}It was set at 90,000 crowns. {filler}"
    await desk.tell(long, thread="old")
    emitted = await desk.ask("How much money did we settle on for the harbour project budget?", thread="new")
    names = [name for name, _ in calls(emitted)]
    assert names[:3] == ["session_search", "session_search", "session_load"]
    assert "It was set at 90,000 crowns." in answer_of(emitted)
    assert sources(emitted)[0] == ("old", "u1")


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        ("The vault code of the Lindqvist cabin is 4471-QX.", "What did I say the code of the Lindqvist cabin is?"),
        ("林家老宅的保险柜密码是 8826。", "我说过林家老宅的保险柜密码是多少？"),
    ],
)
async def test_asked_again_it_quotes_what_was_said_and_not_its_own_answers(told: str, asked: str) -> None:
    desk = Desk()
    await desk.tell(told)
    for thread in ("t", "t", "new", "t"):
        emitted = await desk.ask(asked, thread=thread)
        assert sources(emitted) == [("t", "u1")]
        assert told.rstrip(".。") in quoted(answer_of(emitted))
        assert "> >" not in answer_of(emitted)


async def test_what_a_tool_told_of_a_document_was_not_said() -> None:
    desk = Desk(harbour="# Harbour\n\nA mooring costs 900 crowns a season.")
    await desk.ask("What does a mooring cost?", thread="old")
    await desk.tell("I told them that a mooring costs 700 crowns.", thread="old")
    emitted = await desk.ask("What did I tell you a mooring costs?", thread="new")
    assert "700 crowns" in quoted(answer_of(emitted))
    assert ("old", "u2") in sources(emitted)
    assert "artifact://" not in answer_of(emitted)


async def test_nothing_found_is_said_and_nothing_made_up() -> None:
    desk = Desk()
    await desk.tell("The weather is fine.", thread="old")
    emitted = await desk.ask("What did we agree on about the Lindgren contract?", thread="new")
    assert answer_of(emitted).startswith(ENGLISH.not_said_before)
    assert sources(emitted) == []


async def test_documents_answer_what_was_not_said() -> None:
    desk = Desk(harbour="# Harbour\n\nA mooring costs 900 crowns a season.")
    await desk.tell("The weather is fine.", thread="old")
    emitted = await desk.ask("What did you say a mooring costs?", thread="new")
    assert [name for name, _ in calls(emitted)] == ["session_search", "session_search", "search_knowledge"]
    assert "900 crowns" in quoted(answer_of(emitted))


@pytest.mark.parametrize("words", ["What does a mooring cost?", "泊位费是多少？"])
async def test_a_question_that_refers_to_nothing_does_not_look_back(words: str) -> None:
    desk = Desk(harbour="# Harbour\n\nA mooring costs 900 crowns a season. 泊位费为九百元。")
    await desk.tell("A mooring costs 700 crowns, I think.", thread="old")
    emitted = await desk.ask(words, thread="new")
    assert "session_search" not in [name for name, _ in calls(emitted)]
