"""Skills that write: their code drafts from the material, passes a good answer, finds what is wrong in a bad one."""

from pathlib import Path
from typing import Final

import pytest

from tests.skills.running import INTERPRETERS, Workshop, cases, expected, load

READ: Final = 'def text(name): return open("inputs/" + name, encoding="utf-8").read()'
# By skill: its files, what drafts, what checks the answer `{answer}`. Other braces are filled from expected.json.
CODE: Final = {
    "meeting-minutes": (
        ("quotes.py", "minutes.py"),
        'collect(text("notes.md"), {lang!r})',
        'check(text("{answer}"), text("notes.md"), {lang!r})',
    ),
    "literature-review": (
        ("quotes.py", "review.py"),
        'matrix(text("sources.md"), {lang!r})',
        'check(text("{answer}"), text("sources.md"), {lang!r})',
    ),
    "compare-contracts": (("compare.py",), 'compare(text("old.md"), text("new.md"), {lang!r})', ""),
    "translate-with-glossary": (
        ("terms.py",),
        'terms(text("source.md"), text("glossary.csv"), {lang!r})',
        'check(text("source.md"), text("{answer}"), text("glossary.csv"), {lang!r})',
    ),
    "weekly-report": (
        ("quotes.py", "week.py"),
        'week("inputs/log.csv", {monday!r}, {lang!r})',
        'check(text("{answer}"), week("inputs/log.csv", {monday!r}, {lang!r}), {lang!r})',
    ),
    "decision-memo": (
        ("quotes.py", "score.py"),
        "score({call}, {lang!r})",
        'check(text("{answer}"), text("facts.md"), {lang!r})',
    ),
}
NOTHING: Final = {"en": "No problem found.", "zh": "没有发现问题。"}
EACH: Final = [
    pytest.param(skill, case, interpreter, id=f"{skill}-{case.name}-{interpreter}")
    for skill in CODE
    for case in cases(skill)
    for interpreter in INTERPRETERS
]
CHECKED: Final = [param for param in EACH if CODE[str(param.values[0])][2]]


def said(skill: str, case: Path, interpreter: str, root: Path, line: str) -> str:
    """Run one line of a skill's code on the files of a case and return what it gives."""
    return Workshop(root, skill, case, interpreter).run(*load(*CODE[skill][0]), READ, f"print({line})").strip()


@pytest.mark.parametrize(("skill", "case", "interpreter"), EACH)
def test_a_draft_holds_what_the_material_says(skill: str, case: Path, interpreter: str, tmp_path: Path) -> None:
    wanted = expected(case)
    draft = said(skill, case, interpreter, tmp_path, CODE[skill][1].format(**wanted))
    assert [words for words in wanted["draft"] if words not in draft] == [], draft
    assert [words for words in wanted["absent"] if words in draft] == [], draft
    places = [draft.index(words) for words in wanted.get("order", ())]
    assert places == sorted(places)


@pytest.mark.parametrize(("skill", "case", "interpreter"), CHECKED)
def test_a_good_answer_passes_the_check(skill: str, case: Path, interpreter: str, tmp_path: Path) -> None:
    wanted = expected(case)
    line = CODE[skill][2].format(answer="good.md", **wanted)
    assert said(skill, case, interpreter, tmp_path, line) == NOTHING[wanted["lang"]]


@pytest.mark.parametrize(("skill", "case", "interpreter"), CHECKED)
def test_a_bad_answer_is_told_each_of_its_faults_and_no_other(
    skill: str, case: Path, interpreter: str, tmp_path: Path
) -> None:
    wanted = expected(case)
    problems = said(skill, case, interpreter, tmp_path, CODE[skill][2].format(answer="bad.md", **wanted)).splitlines()
    assert [words for words in wanted["bad"] if not any(words in line for line in problems)] == [], problems
    assert [line for line in problems if not any(words in line for words in wanted["bad"])] == []
