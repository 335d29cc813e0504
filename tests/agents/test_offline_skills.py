"""The offline provider and skills: it reads one that a wish plainly calls for, and follows the part made for rules."""

from typing import Any

import pytest

from agents.presets import assistant
from agents.providers.offline.following import plan_of
from agents.providers.offline.model import OfflineModel
from agents.providers.offline.words import CHINESE, ENGLISH
from agents.runtime.events import Emitted
from agents.runtime.memoryknowledge import MemoryKnowledge
from agents.runtime.memorystores import MemoryArtifactStore, MemorySessionStore
from agents.runtime.session import RunRequest
from agents.runtime.skills.memoryskills import MemorySkills
from agents.runtime.testing import collect, memory_runner, said
from agents.tools import artifacts as artifact_tools
from agents.tools import knowledge as knowledge_tools
from agents.tools import skills as skill_tools
from tests.agents.test_offline_provider import calls
from tests.agents.test_offline_provider import said as answer_of

NOTES = """\
# Board meeting, 4 May

Ana reported on the harbour.
The board decided to raise the mooring fee to 900 crowns.
Ben will send the letters by Friday.
The date of the regatta stays undecided.
"""
NOTES_ZH = "# 理事会\n\n安娜介绍了港口的情况。\n会议决定把泊位费提高到九百元。\n由小王负责在周五之前发信。\n"
BODY = """\
Read the notes, then write the minutes.

```offline
# for rules
section: Decisions | decid* approv*
section zh: 决定 | 决定 通过
section: Actions | "will send" deadline
section zh: 待办 | 负责
section: Votes | vote*
```
"""
DESCRIPTION = "Writes minutes. Use for a summary of a call, board protocols or board protocol. 会议纪要、会议记录。"


class Desk:
    def __init__(self, body: str = BODY, name: str = "meeting-minutes") -> None:
        self.skills = MemorySkills()
        self.skills.write(name, DESCRIPTION, body)
        self.skills.write("charts", "Draws charts.", "It takes an eye.")
        self.knowledge = MemoryKnowledge()
        self.knowledge.add("board.md", NOTES)
        self.files = MemoryArtifactStore()
        self.sessions = MemorySessionStore()
        self.runs = 0

    async def ask(self, words: str) -> list[Emitted]:
        modules: tuple[Any, ...] = (knowledge_tools, artifact_tools, skill_tools)
        runner = memory_runner(
            OfflineModel(),
            agent=assistant.build(tuple(tool for module in modules for tool in module.tools())),
            knowledge=self.knowledge,
            artifacts=self.files,
            store=self.sessions,
            skills=self.skills,
        )
        self.runs += 1
        message = said(words, id=f"u{self.runs}")
        return await collect(runner, RunRequest(owner_id=1, thread_id="t", run_id=f"r{self.runs}", message=message))

    async def answer(self, words: str) -> str:
        return answer_of(await self.ask(words)).replace(ENGLISH.notice, "").replace(CHINESE.notice, "").strip()


def called(emitted: list[Emitted]) -> list[str]:
    return [name for name, _ in calls(emitted)]


async def test_a_wish_that_names_a_skill_is_done_by_its_sections_with_sources() -> None:
    desk = Desk()
    emitted = await desk.ask("Write the meeting minutes of board.md")
    assert called(emitted) == ["skill_load", "list_documents", "read_document"]
    text = answer_of(emitted)
    assert text.startswith("Following the skill “meeting-minutes”, by rules, with quotations only:")
    decisions, actions, votes = text.split("\n## ")[1:]
    assert decisions.startswith("Decisions\n\n- The board decided to raise the mooring fee to 900 crowns. [1](#c-")
    assert actions.startswith("Actions\n\n- Ben will send the letters by Friday. [")
    assert votes.startswith("Votes\n\n- nothing found")
    assert "Ana reported" not in text and "regatta" not in text


async def test_a_chinese_wish_gets_the_chinese_sections() -> None:
    desk = Desk()
    desk.knowledge = MemoryKnowledge()
    desk.knowledge.add("理事会.md", NOTES_ZH)
    text = await desk.answer("请根据理事会.md写一份会议纪要")
    assert text.startswith("按技能“meeting-minutes”的步骤")
    assert "## 决定\n\n- 会议决定把泊位费提高到九百元。" in text
    assert "## 待办\n\n- 由小王负责在周五之前发信。" in text
    assert "Votes" not in text


async def test_what_is_read_may_be_in_another_language_than_the_wish() -> None:
    desk = Desk(BODY.replace("section: Votes | vote*", "section: Votes | vote*\nsection zh: 表决 | 表决"))
    text = await desk.answer("请根据board.md写一份会议纪要")
    assert "## 决定\n\n- The board decided to raise the mooring fee to 900 crowns." in text
    assert "## 表决\n\n- 没有找到" in text


async def test_a_report_is_saved_as_a_file() -> None:
    desk = Desk(BODY.replace("# for rules", "report: Minutes: {topic}\nsearch: {topic}"))
    emitted = await desk.ask("Write meeting minutes about the mooring fee")
    assert called(emitted)[0] == "skill_load" and called(emitted)[-1] == "save_artifact"
    (saved,) = [arguments for name, arguments in calls(emitted) if name == "save_artifact"]
    assert saved["name"] == "minutes-mooring-fee.md"
    assert saved["content"].startswith("# Minutes: mooring fee\n\nFollowing the skill")
    assert "The board decided to raise the mooring fee to 900 crowns. [[c:" in saved["content"]
    assert "Saved as" in answer_of(emitted)


async def test_what_was_saved_for_the_wish_before_is_not_what_the_next_one_is_made_of() -> None:
    desk = Desk(BODY.replace("# for rules", "report: Meeting minutes\nsearch: {topic}"))
    saved = "# Meeting minutes\n\nThe board decided to sell the pier.\n"
    desk.knowledge.add("meeting-minutes.md", saved, second_hand=True)
    emitted = await desk.ask("Write meeting minutes about the mooring fee")
    (content,) = [arguments["content"] for name, arguments in calls(emitted) if name == "save_artifact"]
    assert "raise the mooring fee to 900 crowns" in content and "sell the pier" not in content


@pytest.mark.parametrize(
    "question",
    [
        "What do the meeting minutes say about the mooring fee?",
        "How high is the mooring fee?",
        "会议纪要中泊位费是多少？",
        "Hello",
        "Write a report about the mooring fee",
        "Summarise board.md",
    ],
)
async def test_a_question_is_answered_as_ever_and_no_skill_is_read(question: str) -> None:
    assert "skill_load" not in called(await Desk().ask(question))


@pytest.mark.parametrize("question", ["Prepare a board protocol", "Use meeting-minutes for board.md", "整理会议记录"])
async def test_a_phrase_of_the_description_calls_for_it_too(question: str) -> None:
    assert called(await Desk().ask(question))[0] == "skill_load"


async def test_what_rules_cannot_follow_is_read_and_answered_with_the_usual_means() -> None:
    desk = Desk("Think hard.")
    emitted = await desk.ask("Write the meeting minutes of the mooring fee")
    assert called(emitted)[0] == "skill_load" and "search_knowledge" in called(emitted)
    assert "Following the skill" not in answer_of(emitted)


async def test_when_nothing_belongs_into_any_section_the_usual_answer_is_given() -> None:
    desk = Desk()
    desk.knowledge = MemoryKnowledge()
    desk.knowledge.add("paint.md", "Paint of the hull is renewed in May.")
    text = await desk.answer("Write the meeting minutes about hull paint")
    assert "Following the skill" not in text and "Paint of the hull" in text


async def test_without_documents_the_skill_is_not_pretended_to_be_followed() -> None:
    desk = Desk()
    desk.knowledge = MemoryKnowledge()
    text = await desk.answer("Write the meeting minutes")
    assert "Following the skill" not in text and text


def test_a_block_with_an_unknown_verb_is_not_followed() -> None:
    assert plan_of("```offline\nsection: A | a\nrun: rm\n```", wide=False) is None
    assert plan_of("```offline\nreport: A\n```", wide=False) is None
    assert plan_of("No block.", wide=False) is None


def test_words_are_matched_whole_by_beginning_or_as_a_phrase() -> None:
    plan = plan_of('```offline\nsection: A | by decid* "to do" 决定\n```', wide=False)
    assert plan is not None

    def hit(text: str) -> bool:
        return any(word.search(text) for word in plan.sections[0].words)

    assert all(map(hit, ("Done by Ana", "They Decided", "a list to do", "会议决定了")))
    assert not any(map(hit, ("a hobby", "undecided", "do to", "会议")))
