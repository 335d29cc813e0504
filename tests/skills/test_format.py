"""Every bundled skill: the public format, its limits, documents and files that are there, two languages, no way out."""

import re
from pathlib import Path

import pytest

from agents.runtime.skills.format import skill_of
from agents.runtime.skills.skill import DESCRIPTION_CHARS, Skill, SkillFile, SkillScope
from tests.skills.running import NAMES, SKILLS, cases

ALL = pytest.mark.parametrize("name", NAMES)
BODY_LINES = 250
WITHOUT_RULES = ("clean-csv", "data-chart", "translate-with-glossary")  # code does it, or judgement
CHINESE = re.compile(r"[\u4e00-\u9fff]")
NAMED = re.compile(r"(?:docs/)?[\w-]+\.(?:md|py)\b")


def paths(name: str) -> list[Path]:
    """Return all files of a skill, without what running Python leaves."""
    return sorted(p for p in (SKILLS / name).rglob("*") if p.is_file() and "__pycache__" not in p.parts)


def read(name: str) -> Skill:
    files = [SkillFile(path=p.relative_to(SKILLS / name).as_posix(), data=p.read_bytes()) for p in paths(name)]
    skill = skill_of(files, directory=name, scope=SkillScope.BUNDLED)
    assert isinstance(skill, Skill), skill
    return skill


def test_the_eight_skills_are_there() -> None:
    assert NAMES == [
        "clean-csv",
        "compare-contracts",
        "data-chart",
        "decision-memo",
        "literature-review",
        "meeting-minutes",
        "translate-with-glossary",
        "weekly-report",
    ]


@ALL
def test_a_skill_is_read_and_keeps_the_limits(name: str) -> None:
    skill = read(name)
    assert skill.name == name
    assert re.fullmatch(r"[a-z]+(?:-[a-z]+)*", name)
    assert len(skill.body.splitlines()) <= BODY_LINES
    assert len(skill.description) <= DESCRIPTION_CHARS
    assert skill.runs and skill.docs


@ALL
def test_a_description_says_what_and_when_in_both_languages(name: str) -> None:
    description = read(name).description
    assert "Use when someone asks" in description
    assert len(re.findall(r"[\u4e00-\u9fff]{2,}", description)) >= 4


@ALL
def test_a_skill_has_steps_pitfalls_and_its_form_in_both_languages(name: str) -> None:
    body = read(name).body
    assert len(re.findall(r"(?m)^\d+\. ", body.partition("## Steps")[2].partition("\n## ")[0])) >= 5
    forms = re.findall(r"(?s)```markdown\n(.*?)```", body)
    assert [bool(CHINESE.search(form)) for form in forms] == [False, True]
    for text in read(name).texts:
        assert CHINESE.search(text.text) and re.search(r"[A-Za-z]{4}", text.text), text.path


@ALL
def test_every_file_that_a_skill_names_is_there_and_every_one_that_is_there_is_named(name: str) -> None:
    there = {path.relative_to(SKILLS / name).as_posix() for path in paths(name)} - {"SKILL.md"}
    body = read(name).body
    named = {match[0] for match in NAMED.finditer(body) if not body[: match.start()].endswith(("out/", "inputs/"))}
    assert there - named == set()
    assert {path for path in named if path.startswith("docs/") or path.endswith(".py")} - there == set()


@ALL
def test_nothing_in_a_skill_points_out_of_it(name: str) -> None:
    out = re.compile(r"https?:|www\.|(?<![\w.<\"'`+*/-])/(?:home|tmp|usr|work|etc|var|root|opt)\b|\.\./|\bC:\\")
    for path in paths(name):
        text = path.read_text(encoding="utf-8")
        assert [m[0] for m in out.finditer(text) if "xmlns" not in text[m.start() - 10 : m.start()]] == [], path


@ALL
def test_code_that_runs_anywhere_uses_nothing_that_the_restricted_interpreter_lacks(name: str) -> None:
    for path in paths(name):
        if path.suffix == ".py":
            code = path.read_text(encoding="utf-8")
            assert re.findall(r"(?m)^\s*(?:yield|del|class \w+\([A-Za-z])\b", code) == [], path


@ALL
def test_what_the_assistant_without_a_model_follows_is_written_as_agreed(name: str) -> None:
    body = read(name).body
    blocks = re.findall(r"(?s)```offline\n(.*?)```", body)
    assert len(blocks) == (name not in WITHOUT_RULES)
    for block in blocks:
        lines = [re.fullmatch(r"(search|section|report)( zh)?: (\S.*)", line) for line in block.strip().split("\n")]
        assert all(lines), block
        told = [(line[1], bool(line[2]), line[3]) for line in lines if line]
        assert sorted(verb for verb, zh, _ in told if zh) == sorted(verb for verb, zh, _ in told if not zh)
        assert [value for _, zh, value in told if zh is not bool(CHINESE.search(value.replace("{topic}", "")))] in (
            [],
            ["{topic}"],
        )
        assert "The block is for the assistant that goes by rules; pass it over." in body


def test_files_that_several_skills_have_are_the_same() -> None:
    found: dict[str, set[bytes]] = {}
    for name in NAMES:
        for path in paths(name):
            if path.suffix == ".py":
                found.setdefault(path.name, set()).add(path.read_bytes())
    assert [name for name, contents in found.items() if len(contents) > 1] == []


@ALL
def test_a_skill_has_three_graded_cases_in_both_languages(name: str) -> None:
    found = [case.name.partition("-")[0] for case in cases(name)]
    assert len(found) == 3 and {"en", "zh"} <= set(found)
