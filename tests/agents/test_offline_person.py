"""The offline provider and what is remembered of the person: it quotes it, and claims to have saved nothing."""

from typing import Any

import pytest

from agents.presets import assistant
from agents.providers.offline.model import OfflineModel
from agents.providers.offline.person import fits
from agents.providers.offline.results import Remembered
from agents.providers.offline.words import CHINESE, ENGLISH
from agents.runtime.events import Emitted
from agents.runtime.memory.memories import Memory, MemoryUnavailable, Source
from agents.runtime.memory.memorystore import OwnMemories
from agents.runtime.memoryknowledge import MemoryKnowledge
from agents.runtime.memorystores import MemoryArtifactStore, MemorySessionStore
from agents.runtime.policy import ASSISTANT
from agents.runtime.session import RunRequest
from agents.runtime.testing import collect, memory_runner, said
from agents.tools import artifacts as artifact_tools
from agents.tools import knowledge as knowledge_tools
from agents.tools import memory as memory_tools
from agents.tools import session as session_tools
from tests.agents.test_offline_provider import calls
from tests.agents.test_offline_provider import said as answer_of
from tests.runtime.memory.samples import ZONE, House, day, draft, episode

HARBOUR = "# Harbour\n\nA mooring costs 900 crowns a season. The deposit is 400 crowns. Pay the deposit in May."


class Desk:
    """A person who is remembered, their documents, and the offline provider."""

    def __init__(self, *memories: str, memory: bool = True, store: OwnMemories | None = None) -> None:
        self.house = House()
        self.memories = store or self.house.shelves.of(1)
        self.told = memories
        self.memory = memory
        self.files = MemoryArtifactStore()
        self.knowledge = MemoryKnowledge()
        self.knowledge.add("harbour.md", HARBOUR)
        self.sessions = MemorySessionStore()
        self.runs = 0

    async def ask(self, words: str, *, thread: str = "t") -> list[Emitted]:
        for one in self.told:
            await self.memories.add(draft(one))
        modules: tuple[Any, ...] = (knowledge_tools, artifact_tools, session_tools, memory_tools)
        runner = memory_runner(
            OfflineModel(),
            agent=assistant.build(tuple(tool for module in modules for tool in module.tools())),
            knowledge=self.knowledge,
            artifacts=self.files,
            store=self.sessions,
            memories=self.memories if self.memory else None,
            zone=ZONE,
        )
        self.runs += 1
        message = said(words, id=f"u{self.runs}")
        return await collect(runner, RunRequest(owner_id=1, thread_id=thread, run_id=f"r{self.runs}", message=message))

    async def answer(self, words: str) -> str:
        """Return what is said to it, without the notice."""
        return answer_of(await self.ask(words)).replace(ENGLISH.notice, "").replace(CHINESE.notice, "").strip()


def called(emitted: list[Emitted]) -> list[str]:
    return [name for name, _ in calls(emitted)]


TEA, HOME, DENTIST = "I prefer green tea", "I live in Shanghai", "My dentist is Dr. Wu"
REPORTS = "I prefer reports in Chinese, tables first"


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What do I prefer?", [TEA, REPORTS]),
        ("Which tea do I like?", [TEA]),
        ("How do I like my reports?", [REPORTS]),
        ("Where do I live?", [HOME]),
        ("Do you remember where I live?", [HOME]),
        ("Who is my dentist?", [DENTIST]),
        ("我喜欢什么格式的报告？", [TEA, REPORTS]),  # words of another language cannot be compared
        ("我住在哪里？", [HOME]),
    ],
)
async def test_a_question_about_the_person_is_answered_by_quoting_what_is_remembered(
    question: str, expected: list[str]
) -> None:
    desk = Desk(TEA, HOME, DENTIST, REPORTS)
    emitted = await desk.ask(question)
    assert called(emitted) == []
    lines = [line.removeprefix("- ") for line in answer_of(emitted).splitlines() if line.startswith("- ")]
    assert lines == expected
    lead = CHINESE.remembered if "我" in question else ENGLISH.remembered
    assert answer_of(emitted).startswith(lead)


async def test_of_what_is_known_everything_is_told_however_much_stands_before_the_model() -> None:
    desk = Desk(*(f"I keep hive number {n}" for n in range(ASSISTANT.preload_memory + 3)))
    emitted = await desk.ask("What do you know about me?")
    assert called(emitted) == ["memory_load"]
    assert answer_of(emitted).startswith(ENGLISH.remembered_all)
    assert answer_of(emitted).count("- I keep hive number") == ASSISTANT.preload_memory + 3
    chinese = await Desk("我喜欢中文报告").ask("你记得我什么？")
    assert answer_of(chinese).startswith(f"{CHINESE.remembered_all}\n\n- 我喜欢中文报告")


async def test_an_episode_is_told_with_its_day_and_people() -> None:
    desk = Desk()
    await desk.memories.add(episode("I sign the lease", day(2026, 3, 12), participants=("Ana",)))
    assert "- I sign the lease (2026-03-12; with Ana)" in await desk.answer("What do you remember about me?")


async def test_nothing_known_is_said_and_nothing_made_up() -> None:
    assert await Desk().answer("What do you know about me?") == ENGLISH.remembered_nothing
    assert await Desk().answer("关于我你知道什么？") == CHINESE.remembered_nothing

    class Away(OwnMemories):
        async def read(self, limit: int = 0, *, muted: bool = False) -> tuple[Memory, ...]:
            raise MemoryUnavailable

    answer = await Desk(store=Away(House().shelves, {}, [])).answer("What do you know about me?")
    assert answer.startswith(ENGLISH.memory_not_read.partition("{")[0]) and answer != ENGLISH.remembered_nothing


@pytest.mark.parametrize(
    ("words", "reply"),
    [
        ("I prefer reports in Chinese, tables first.", ENGLISH.understood_remembered),
        ("Remember that the invoices go to Ana.", ENGLISH.understood_remembered),
        ("My name is Ana. I live in Oslo.", ENGLISH.understood_remembered),
        ("我住在上海。", CHINESE.understood_remembered),
        ("请记住我在腾讯工作。", CHINESE.understood_remembered),
        ("Forget that I live in Oslo.", ENGLISH.understood_forget),
        ("Please forget everything you know about me.", ENGLISH.understood_forget),
        ("忘掉关于我的一切。", CHINESE.understood_forget),
    ],
)
async def test_what_a_person_says_of_themselves_is_understood_and_nothing_is_claimed(words: str, reply: str) -> None:
    desk = Desk(HOME)
    emitted = await desk.ask(words)
    assert called(emitted) == []
    assert answer_of(emitted).startswith(reply)
    assert [memory.text for memory in await desk.memories.read()] == [HOME]


async def test_without_memories_a_statement_is_understood_and_nothing_more() -> None:
    assert await Desk(memory=False).answer("I prefer reports in Chinese.") == ENGLISH.understood
    assert await Desk(memory=False).answer("我住在上海。") == CHINESE.understood


@pytest.mark.parametrize(
    "words",
    [
        "What does a mooring cost?",
        "How do I pay the deposit?",
        "When must I pay the deposit in my harbour?",
        "I live in Oslo, find out what a mooring costs.",
        "I keep a boat. What does a mooring cost?",
        "What is my deposit for the mooring?",
        "我们的押金是多少？",
        "我住在奥斯陆，帮我查一下泊位费是多少。",
    ],
)
async def test_what_asks_for_documents_is_looked_up_in_documents(words: str) -> None:
    emitted = await Desk(TEA, HOME, DENTIST, REPORTS, "I am left-handed").ask(words)
    assert "search_knowledge" in called(emitted)
    assert ENGLISH.remembered not in answer_of(emitted) and CHINESE.remembered not in answer_of(emitted)


async def test_a_question_about_what_was_said_is_looked_up_where_it_was_said() -> None:
    emitted = await Desk("I keep bees in Lund").ask("What did I tell you about my bees?")
    assert called(emitted)[0] == "session_search"


async def test_a_report_is_put_together_in_the_language_that_the_person_prefers() -> None:
    async def report(*memories: str, asked: str = "Write a report about the mooring.") -> tuple[str, str]:
        desk = Desk(*memories)
        (arguments,) = [given for name, given in calls(await desk.ask(asked)) if name == "save_artifact"]
        return arguments["name"], arguments["content"]

    assert "Put together by rules" in (await report())[1]
    name, content = await report(REPORTS)
    assert name.startswith("报告-") and content.startswith("# 报告：") and "900 crowns" in content
    assert "Put together by rules" in (await report("Never write reports in Chinese"))[1]
    _, content = await report("I want answers in English", asked="写一份关于 mooring 的报告")
    assert content.startswith("# Report:")


async def test_a_memory_that_was_deleted_is_not_quoted_any_more() -> None:
    desk = Desk()
    memory = (await desk.memories.add(draft(HOME))).memory
    assert HOME in await desk.answer("Where do I live?")
    await desk.memories.delete(memory.id, by=Source.PERSON)
    assert HOME not in await desk.answer("Where do I live?")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What do I hate?", ["I can't stand coriander"]),
        ("What do I like?", ["I like jazz", "Always answer briefly"]),
        ("我讨厌什么？", ["我不喜欢香菜"]),
        ("What is my shoe size?", []),
    ],
)
def test_likes_and_dislikes_are_not_taken_for_one_another(question: str, expected: list[str]) -> None:
    said_before = ["I like jazz", "I can't stand coriander", "Always answer briefly"]
    if "我" in question:
        said_before = ["我喜欢爵士乐", "我不喜欢香菜"]
    known = [Remembered(id=f"m{n}", text=one, about="") for n, one in enumerate(said_before)]
    assert [memory.text for memory in fits(question, known)] == expected
