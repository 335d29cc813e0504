"""What the model reads of skills."""

from agents.runtime.skills.memoryskills import MemorySkills
from agents.runtime.skills.skill import Doc, Skill, SkillScope, SkillSummary
from agents.runtime.skills.telling import DOCS_CHARS, OVERVIEW_CHARS, content, overview, overview_block


def summary(name: str, description: str = "", scope: SkillScope = SkillScope.MINE) -> SkillSummary:
    return SkillSummary(name=name, description=description or f"Does {name}.", scope=scope, digest=name)


def described(text: str) -> list[str]:
    return [line.partition(":")[0] for line in text.splitlines() if ": Does " in line]


def test_skills_2_14_of_200_skills_50_are_described_all_are_named_and_the_count_is_said() -> None:
    names = [f"skill-{n:03}" for n in range(200)]
    text = overview([summary(name) for name in reversed(names)], 50)
    assert described(text) == names[:50]
    last = text.splitlines()[-1]
    assert last.startswith("Showing 50 of 200 descriptions.")
    assert last.rpartition(": ")[2].split(", ") == names[50:]


def test_skills_2_14_none_of_300_is_hidden_whatever_the_limit() -> None:
    names = {f"skill-{n:03}" for n in range(300)}
    for most in (0, 1, 299, 300, 301):
        text = overview([summary(name) for name in names], most)
        assert all(name in text for name in names)
        assert ("Showing" in text) == (most < 300)


def test_a_persons_own_skills_are_described_first_and_all_stand_by_name() -> None:
    every = [
        summary("a", scope=SkillScope.BUNDLED),
        summary("b", scope=SkillScope.EVERYONE),
        summary("z", scope=SkillScope.MINE),
    ]
    assert described(overview(every, 2)) == ["b", "z"]
    assert described(overview(every, 3)) == ["a", "b", "z"]


def test_long_descriptions_take_no_more_room_than_there_is() -> None:
    every = [summary(f"s{n}", f"Does {'x' * 1_000}") for n in range(50)]
    text = overview(every, 50)
    assert OVERVIEW_CHARS * 0.9 < len(text) < OVERVIEW_CHARS * 1.1
    assert f"Showing {len(described(text))} of 50 descriptions." in text


def test_without_skills_there_is_no_overview() -> None:
    assert overview([], 50) == "" and overview_block([], 50) is None


def test_a_document_that_is_too_long_is_cut_and_says_so() -> None:
    skill = Skill(
        name="a",
        description="d",
        scope=SkillScope.MINE,
        digest="",
        docs=("a.md", "b.md", "c.md"),
        body="Do it.",
        texts=(
            Doc(path="a.md", text="a" * (DOCS_CHARS - 10)),
            Doc(path="b.md", text="b" * 30),
            Doc(path="c.md", text="c"),
        ),
    )
    whole = content(skill, ("a.md", "b.md"))
    assert "b" * 10 in whole and "b" * 11 not in whole and "[Cut here: 20 more characters are not shown." in whole
    assert whole.endswith("[Documents of this skill, to be read with skill_select_docs if needed: c.md]")
    assert len(whole) < DOCS_CHARS + 500


async def test_the_store_in_memory_keeps_a_snapshot() -> None:
    skills = MemorySkills()
    skills.write("b", "Does b.", "B")
    skills.write("a", "Does a.", "A", doc="D")
    snapshot = skills.snapshot()
    skills.remove("b")
    assert [one.name for one in await snapshot.summaries()] == ["a", "b"]
    assert [one.name for one in await skills.summaries()] == ["a"]
    assert [file.path for file in await snapshot.files("a")] == ["SKILL.md", "doc.md"]
    assert (await snapshot.skill("b")).body == "B"
