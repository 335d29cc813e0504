"""Every scenario of the specification that holds here is a test whose name carries its number: test_1_4_..., or
"1.4 ..." in the tests of the Node client. "context_1" is the specification of the context, section 1; "memory_1"
that of memory, "skills_2", "code_3" and "evolution_5" those of skills, code and evolution."""

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
LAST = {
    "1": 15,
    "2": 15,
    "3": 12,
    "4": 15,
    "5": 15,
    "context_1": 13,
    "context_8": 8,
    "context_2": 15,
    "context_3": 12,
    "context_9": 7,
    "context_4": 14,
    "context_5": 14,
    "context_6": 11,
    "context_7": 13,
    "memory_1": 15,
    "skills_2": 15,
    "code_3": 10,
    "evolution_5": 15,
}
# What does not hold, and why. The number goes when the thing comes.
ABSENT = {
    "2": {
        "delegation, composed agents and graphs are not built": {5, 6, 7, 8, 9, 10, 11, 12, 15},
        "placeholders in instructions are not built": {13},
    },
    "3": {"MCP is not built": {7, 8, 9}},
    "5": {"interrupts are not built": {7, 8, 9}, "agents under agents are not built": {15}},
    "context_1": {"the model gets the whole visible chain (docs/architecture.md, deviations)": {10}},
    "context_2": {"jobs are rows, there is no queue in the process (design, section 10)": {11}},
    "context_5": {"a result has no content parts": {9}, "the estimate is total: it cannot fail": {13}},
    "context_6": {"the estimate is total: it cannot fail": {10}},
}
_AREAS = "context|memory|skills|code|evolution"
_PYTHON = re.compile(rf"def test_((?:{_AREAS})_\d+|\d+)_(\d+)_(?=[a-z])")  # a third number: another specification's
_NODE = re.compile(r'\btest\("(\d+)\.(\d+) ')


def carried() -> set[tuple[str, int]]:
    """Return (section, scenario) of every test that carries a number of these sections."""
    found: set[tuple[str, int]] = set()
    for path in TESTS.rglob("test_*.py"):
        found |= {(s, int(n)) for s, n in _PYTHON.findall(path.read_text(encoding="utf-8"))}
    for path in (TESTS / "client" / "test").glob("*.js"):
        found |= {(s, int(n)) for s, n in _NODE.findall(path.read_text(encoding="utf-8"))}
    return {(section, number) for section, number in found if section in LAST}


def expected() -> set[tuple[str, int]]:
    absent = {(s, n) for s, reasons in ABSENT.items() for numbers in reasons.values() for n in numbers}
    return {(section, n) for section, last in LAST.items() for n in range(1, last + 1)} - absent


def test_every_scenario_that_holds_has_a_test_that_carries_its_number() -> None:
    assert sorted(expected() - carried()) == []


def test_no_test_carries_a_number_that_no_scenario_has_or_that_is_said_to_be_absent() -> None:
    assert sorted(carried() - expected()) == []
