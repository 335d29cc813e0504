"""How log lines look."""

import json
import logging
import sys

import pytest

from agents.runtime import logcontext
from workbench.logs import Ids, JsonFormatter, PlainFormatter


def record(message: str, *args: object, **extra: str) -> logging.LogRecord:
    try:
        raise ValueError("inner")
    except ValueError:
        failed = sys.exc_info() if extra.pop("failed", "") else None
    made = logging.LogRecord("agents.live", logging.INFO, "live.py", 1, message, args, failed)
    for name, value in extra.items():
        setattr(made, name, value)
    Ids().filter(made)
    return made


@pytest.fixture(autouse=True)
def no_context() -> None:
    for variable in (logcontext.run_id, logcontext.session_id, logcontext.reference):
        variable.set("")


def test_a_json_line_is_one_object_with_message_and_ids() -> None:
    logcontext.run_id.set("r1")
    logcontext.reference.set("abc")
    line = JsonFormatter().format(record("run %s ended\nreally", "x", session_id="s1"))
    said = json.loads(line)
    assert "\n" not in line
    assert {k: said[k] for k in ("level", "logger", "message", "run_id", "session_id", "reference")} == {
        **{"level": "info", "logger": "agents.live", "message": "run x ended\nreally"},
        **{"run_id": "r1", "session_id": "s1", "reference": "abc"},
    }
    assert said["at"].endswith("+00:00")


def test_an_error_brings_its_traceback_and_ids_that_are_not_known_are_left_out() -> None:
    said = json.loads(JsonFormatter().format(record("broken", failed="yes")))
    assert "ValueError: inner" in said["traceback"]
    assert "run_id" not in said


def test_what_the_caller_says_wins_over_the_context() -> None:
    logcontext.run_id.set("outer")
    assert json.loads(JsonFormatter().format(record("m", run_id="inner")))["run_id"] == "inner"


def test_a_plain_line_ends_with_the_ids() -> None:
    logcontext.run_id.set("r1")
    assert PlainFormatter().format(record("run ended")).endswith("agents.live: run ended run_id=r1")
