"""A text that fits no request of the writer is read piece by piece: nothing that was pasted stops the summaries."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from agents.runtime.errors import ContextTooLong, ModelUnavailable
from agents.runtime.summary.pieces import LEAST_CHARS, MOST_PIECES, next_piece
from agents.runtime.summary.report import Reason
from agents.runtime.testing import WaitFor, text, turn
from tests.runtime.summary.talks import KEY, LONG, LONG_ZH, POLICY, Desk, Talk

ROOM = replace(POLICY, max_input_tokens=1_500, summary_words=0)


def pasted(words: str, times: int) -> tuple[Talk, list[str]]:
    """Return a conversation whose first message is long, and marks that stand all over that message."""
    marks = [f"<{n:04}>" for n in range(times)]
    talk = Talk()
    talk.exchange("".join(f"{words}{mark} " for mark in marks), "Answer 1.")
    return talk, marks


@pytest.mark.parametrize(("words", "times"), [(LONG, 180), (LONG_ZH, 110)])
async def test_all_of_a_message_that_fits_no_request_is_read_piece_by_piece(words: str, times: int) -> None:
    talk, marks = pasted(words, times)
    desk = Desk(*[f"So far {n}." for n in range(1, 17)], policy=ROOM)
    made = await desk.update(talk)
    assert made.advanced is not None and made.report.call.shrunk == ("pieces",)
    calls = len(desk.model.requests)
    assert 2 < calls <= 16 and made.report.call.calls == calls == len(desk.calls)
    told = "".join(desk.asked(n) for n in range(calls))
    assert all(told.count(mark) == 1 for mark in marks)
    assert "So far 1." in desk.asked(1) and "So far 1." not in desk.asked(2)
    assert made.advanced.text == f"So far {calls}."
    assert made.advanced.boundary.position == talk.history[-2].position  # the answer; the end of the run says nothing


async def test_the_next_summary_goes_on_as_always() -> None:
    talk, _ = pasted(LONG, 180)
    desk = Desk(*[f"So far {n}." for n in range(1, 17)], policy=ROOM)
    first = (await desk.update(talk)).advanced
    assert first is not None
    talk.exchange("Question 2. " + LONG * 8, "Answer 2. " + LONG * 8)
    asked = len(desk.model.requests)
    second = (await desk.update(talk)).advanced
    assert second is not None and second.base == first.id
    assert len(desk.model.requests) == asked + 1 and first.text in desk.asked()


async def test_a_piece_that_fails_changes_nothing() -> None:
    talk, _ = pasted(LONG, 180)
    desk = Desk("So far 1.", turn(ModelUnavailable()), policy=ROOM)
    made = await desk.update(talk)
    assert made.reason is Reason.MODEL_ERROR and desk.store.rows == []
    assert made.report.call.calls == 2

    blank = Desk("So far 1.", " ", policy=ROOM)
    assert (await blank.update(talk)).reason is Reason.EMPTY and blank.store.rows == []


async def test_what_the_provider_finds_too_long_is_read_in_pieces_of_half_the_budget() -> None:
    talk, marks = pasted(LONG, 100)
    desk = Desk(
        turn(ContextTooLong()), *[f"So far {n}." for n in range(1, 17)], policy=replace(ROOM, max_input_tokens=3_000)
    )
    made = await desk.update(talk)
    assert made.advanced is not None and made.report.call.shrunk == ("pieces",)
    assert made.report.call.calls == len(desk.model.requests) > 2
    told = "".join(desk.asked(n) for n in range(1, len(desk.model.requests)))
    assert all(told.count(mark) == 1 for mark in marks)


@pytest.mark.parametrize(("words", "times"), [(LONG, 3_000), (LONG_ZH, 1_800)])
async def test_what_takes_more_calls_than_one_making_has_is_read_on_by_the_next(words: str, times: int) -> None:
    talk, marks = pasted(words, times)
    desk = Desk(*[f"So far {n}." for n in range(1, 100)], policy=ROOM)
    first = await desk.update(talk)
    assert first.reason is Reason.UNFINISHED and first.report.call.calls == MOST_PIECES
    assert desk.store.rows == [] and desk.store.drafts[KEY].text == f"So far {MOST_PIECES}."
    makings = 1
    while (made := await desk.update(talk)).reason is Reason.UNFINISHED:
        makings += 1
    calls = len(desk.model.requests)
    assert made.advanced is not None and made.advanced.text == f"So far {calls}."
    assert makings >= 2 and calls > makings * MOST_PIECES
    told = "".join(desk.asked(n) for n in range(calls))
    assert all(told.count(mark) == 1 for mark in marks)
    assert desk.store.drafts == {}


@pytest.mark.parametrize("broken", [turn(ModelUnavailable()), turn(WaitFor(asyncio.Event()), text("Never."))])
async def test_what_was_read_before_a_failure_is_not_read_again(broken: Any) -> None:
    talk, marks = pasted(LONG, 180)
    policy = replace(ROOM, summary_timeout_s=0.3)
    desk = Desk("So far 1.", "So far 2.", broken, *[f"So far {n}." for n in range(3, 17)], policy=policy)
    failed = await desk.update(talk)
    assert failed.reason in (Reason.MODEL_ERROR, Reason.UNFINISHED) and desk.store.drafts[KEY].text == "So far 2."
    made = await desk.update(talk)
    assert made.advanced is not None
    told = "".join(desk.asked(n) for n in range(len(desk.model.requests)) if n != 2)
    assert all(told.count(mark) == 1 for mark in marks)
    assert "So far 2." in desk.asked(3)


async def test_a_making_that_reads_no_piece_in_its_time_has_failed() -> None:
    talk, _ = pasted(LONG, 180)
    desk = Desk(turn(WaitFor(asyncio.Event()), text("Never.")), policy=replace(ROOM, summary_timeout_s=0.05))
    assert (await desk.update(talk)).reason is Reason.TIMEOUT and desk.store.drafts == {}


async def test_what_was_read_of_another_text_counts_nothing() -> None:
    talk, _ = pasted(LONG, 3_000)
    desk = Desk(*[f"So far {n}." for n in range(1, 100)], policy=ROOM)
    assert (await desk.update(talk)).reason is Reason.UNFINISHED
    other, marks = pasted("Edited: " + LONG, 180)
    made = await desk.update(other)
    assert made.advanced is not None
    told = "".join(desk.asked(n) for n in range(MOST_PIECES, len(desk.model.requests)))
    assert all(told.count(mark) == 1 for mark in marks)
    assert f"So far {MOST_PIECES}." not in desk.asked(MOST_PIECES)


@pytest.mark.parametrize(
    ("words", "most", "piece"),
    [
        ("short", 1_000, "short"),
        ("word " * 100, 302, "word " * 60),
        ("第一句。" * 100, 303, "第一句。" * 75),
        ("x" * 500, 300, "x" * 300),
        ("x" * 500, LEAST_CHARS - 1, ""),
    ],
)
def test_a_piece_ends_where_a_line_a_sentence_or_a_word_ends(words: str, most: int, piece: str) -> None:
    assert next_piece(words, lambda part: len(part) <= most) == piece
