"""The bundled skills and the offline provider: a plain wish finds its skill, and the material's words are quoted in the
right sections."""

from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from agents.presets import assistant
from agents.providers.offline.model import OfflineModel
from agents.runtime.memoryknowledge import MemoryKnowledge
from agents.runtime.memorystores import MemoryArtifactStore, MemorySessionStore
from agents.runtime.session import RunRequest
from agents.runtime.skills.memoryskills import MemorySkills
from agents.runtime.skills.skill import SkillFile, SkillScope
from agents.runtime.testing import collect, memory_runner, said
from agents.tools import artifacts as artifact_tools
from agents.tools import knowledge as knowledge_tools
from agents.tools import skills as skill_tools
from tests.agents.test_offline_provider import calls
from tests.agents.test_offline_provider import said as answer_of
from tests.skills.running import CASES, NAMES, SKILLS

MODULES: Final[tuple[ModuleType, ...]] = (knowledge_tools, artifact_tools, skill_tools)
WISHES: Final = [
    ("Write meeting minutes of the notes", "meeting-minutes"),
    ("Please write the minutes of the meeting", "meeting-minutes"),
    ("帮我整理会议纪要", "meeting-minutes"),
    ("Write a literature review on heat pumps", "literature-review"),
    ("写一篇关于热泵的文献综述", "literature-review"),
    ("Please compare the contracts", "compare-contracts"),
    ("请对比合同的两个版本", "compare-contracts"),
    ("Please clean the table", "clean-csv"),
    ("帮我清洗数据", "clean-csv"),
    ("Draw a chart of sales", "data-chart"),
    ("画一个折线图", "data-chart"),
    ("Write my weekly report", "weekly-report"),
    ("写本周的周报", "weekly-report"),
    ("Translate with glossary this text", "translate-with-glossary"),
    ("请按术语表翻译这份文件", "translate-with-glossary"),
    ("Write a decision memo about the hall", "decision-memo"),
    ("写一份决策备忘录", "decision-memo"),
    ("Write a poem about the sea", ""),
    ("写一首关于大海的诗", ""),
]
# Case, its material, what is asked; then, by section, what must be quoted there.
QUOTED: Final = [
    (
        "meeting-minutes/en-board", "notes.md", "Write meeting minutes of notes.md",
        {"Decisions": ["approved the rental of hall 2 from 1 June"], "Action items": ["will send the lease"],
         "Open questions": ["budget for signs was postponed"]},
    ),
    (
        "meeting-minutes/zh-project", "notes.md", "请根据 notes.md 写会议纪要",
        {"决定": ["上线日期改为6月18日", "追加预算20万元"], "待办事项": ["李敏负责联系供应商"],
         "未决问题": ["培训方案尚未确定"]},
    ),
    (
        "literature-review/en-remote-work", "sources.md", "Write a literature review of sources.md",
        {"Methods and samples": ["panel of monthly commits"]},
    ),
    (
        "compare-contracts/en-supply", "new.md", "Please compare the contracts, new.md",
        {"Price and payment": ["pays within 60 days"], "Liability": ["liable without limit"]},
    ),
    (
        "decision-memo/en-hall", "facts.md", "Write a decision memo of facts.md",
        {"Costs and dates": ["4,000 a month"]},
    ),
]  # fmt: skip


class Desk:
    """A conversation of somebody who has the eight skills, and documents."""

    def __init__(self, **documents: str) -> None:
        self.skills = MemorySkills()
        self.knowledge = MemoryKnowledge()
        self.files = MemoryArtifactStore()
        for name in NAMES:
            files = [p for p in (SKILLS / name).rglob("*") if p.is_file() and "__pycache__" not in p.parts]
            kept = [SkillFile(path=p.relative_to(SKILLS / name).as_posix(), data=p.read_bytes()) for p in files]
            self.skills.put(name, kept, scope=SkillScope.BUNDLED)
        for name, text in documents.items():
            self.knowledge.add(name, text)

    async def ask(self, words: str) -> tuple[list[str], str, str]:
        """Return the skills that were loaded, the answer, and what was saved."""
        runner = memory_runner(
            OfflineModel(),
            agent=assistant.build(tuple(tool for module in MODULES for tool in module.tools())),
            knowledge=self.knowledge,
            artifacts=self.files,
            store=MemorySessionStore(),
            skills=self.skills,
        )
        emitted = await collect(runner, RunRequest(owner_id=1, thread_id="t", run_id="r", message=said(words, id="u")))
        made = calls(emitted)
        loaded = [str(arguments["skill"]) for name, arguments in made if name == "skill_load"]
        saved = "".join(str(arguments["content"]) for name, arguments in made if name == "save_artifact")
        return loaded, answer_of(emitted), saved


@pytest.mark.parametrize(("wish", "skill"), WISHES)
async def test_a_plain_wish_finds_its_skill(wish: str, skill: str) -> None:
    loaded, _, _ = await Desk(**{"pumps.md": "# Pumps\n\nHeat pumps are quiet.\n"}).ask(wish)
    assert loaded == ([skill] if skill else [])


@pytest.mark.parametrize(("case", "file", "wish", "wanted"), QUOTED, ids=[row[0] for row in QUOTED])
async def test_the_words_of_the_material_stand_in_their_sections(
    case: str, file: str, wish: str, wanted: dict[str, list[str]]
) -> None:
    material = (CASES / Path(case) / file).read_text(encoding="utf-8")
    loaded, answer, saved = await Desk(**{file: material}).ask(wish)
    assert loaded == [case.partition("/")[0]]
    parts = (saved or answer).split("\n## ")
    found = {part.partition("\n")[0]: part for part in parts[1:]}
    for heading, quotes in wanted.items():
        assert [quote for quote in quotes if quote not in found[heading]] == [], found


async def test_what_was_not_decided_is_no_decision() -> None:
    material = (CASES / "meeting-minutes" / "zh-project" / "notes.md").read_text(encoding="utf-8")
    _, answer, _ = await Desk(**{"notes.md": material}).ask("请根据 notes.md 写会议纪要")
    assert "## 决定" in answer
    assert "培训方案" not in answer.partition("## 决定")[2].partition("## ")[0]
