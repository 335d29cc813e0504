"""clean-csv: the cleaned table is exactly the expected one, and the report says what was done and what is open."""

from pathlib import Path

from tests.skills.running import Workshop, expected, graded, load

LOAD = load("clean.py")


@graded("clean-csv")
def test_a_table_is_cleaned_exactly_and_the_report_says_how(case: Path, interpreter: str, tmp_path: Path) -> None:
    wanted = expected(case)
    shop = Workshop(tmp_path, "clean-csv", case, interpreter)
    call = f'print(clean("inputs/input.csv", "out/clean.csv", {wanted.get("plan")!r}, {wanted["lang"]!r}))'
    report = shop.run(*LOAD, call)
    assert shop.out("clean.csv") == (case / "expected.csv").read_text(encoding="utf-8")
    assert [words for words in wanted["report"] if words not in report] == [], report
    assert [words for words in wanted["not"] if words in report] == [], report


@graded("clean-csv")
def test_a_cleaned_table_stays_as_it_is(case: Path, interpreter: str, tmp_path: Path) -> None:
    shop = Workshop(tmp_path, "clean-csv", case, interpreter)
    shop.run(*LOAD, 'clean("inputs/expected.csv", "out/again.csv")')
    assert shop.out("again.csv") == (case / "expected.csv").read_text(encoding="utf-8")


@graded("clean-csv")
def test_what_a_person_decided_is_done(case: Path, interpreter: str, tmp_path: Path) -> None:
    decided = expected(case).get("decided", {"plan": {}, "rows": {}})
    shop = Workshop(tmp_path, "clean-csv", case, interpreter)
    shop.run(*LOAD, f'clean("inputs/input.csv", "out/decided.csv", {decided["plan"]!r})')
    lines = shop.out("decided.csv").splitlines()
    assert {row: lines[int(row) - 1] for row in decided["rows"]} == decided["rows"]
