"""Whole rounds left out as the last resort (specification of the context, 6)."""

from dataclasses import replace
from typing import Any

import pytest

from agents.runtime.context.assemble import Assembled, assemble
from agents.runtime.context.injection import Block
from agents.runtime.context.window import Window
from agents.runtime.context.words import FINISH
from agents.runtime.events import UserMessageKind
from agents.runtime.model import Role
from agents.runtime.tokens import estimate
from tests.runtime.conversations import (
    FRAME,
    WIDE,
    Chat,
    by_key,
    in_provider_order,
    lines,
    rebuilt,
    summary,
    view,
    with_policy,
)

ROUND = "one two three four five six seven eight nine ten " * 10


def rounds(count: int) -> Chat:
    chat = Chat()
    for n in range(1, count + 1):
        chat.ask(f"Q{n} {ROUND}", run=f"r{n}")
        if n < count:
            chat.answer(f"A{n}")
            chat.done()
    return chat


def room_for(chat: Chat, count: int) -> int:
    """Return a budget in which the system message and so many of the rounds fit, and no more."""
    whole = assemble(chat.events, FRAME, view("r9", policy=with_policy(compact=False)))
    system = sum(p.tokens for p in whole.parts if p.kind == "system")
    one = sum(p.tokens for p in whole.parts if p.position in (2, 3))
    return system + one * count + one // 2


def tailored(chat: Chat, budget: int, **more: Any) -> Assembled:
    policy = with_policy(max_input_tokens=budget, **more.pop("policy", {}))
    return assemble(chat.events, more.pop("frame", FRAME), view("r9", policy=policy, **more))


def questions(made: Assembled) -> list[str]:
    return [text.split()[0] for role, text in lines(made.request) if role == "user"]


def test_context_6_1_under_budget_nothing_changes() -> None:
    chat = rounds(3)
    whole = assemble(chat.events, FRAME, view("r9", policy=with_policy(tailor=False)))
    made = tailored(chat, whole.tokens)
    assert made == replace(whole, window_used=made.window_used)
    assert (made.dropped_rounds, made.overflow) == (0, False)


@pytest.mark.parametrize(
    ("strategy", "kept"),
    [("middle", ["Q1", "Q4", "Q5"]), ("head", ["Q3", "Q4", "Q5"]), ("tail", ["Q1", "Q2", "Q5"])],
)
def test_context_6_2_the_system_message_the_last_round_and_what_the_strategy_leaves(
    strategy: str, kept: list[str]
) -> None:
    chat = rounds(5)
    made = tailored(chat, room_for(chat, 3), policy={"tailoring": strategy})
    assert made.request.messages[0].text == "You help."
    assert questions(made) == kept
    assert (made.dropped_rounds, made.overflow) == (2, False)


def test_context_6_3_a_round_with_parallel_calls_goes_or_stays_as_a_whole() -> None:
    chat = Chat()
    chat.ask(f"Q1 {ROUND}", run="r1")
    chat.tools("Looking", "c1", "c2", "c3", content=ROUND)
    chat.answer("Seen")
    chat.ask("Q2", run="r2")
    chat.tools("Looking", "c4", "c5", content=ROUND)
    whole = assemble(chat.events, FRAME, view("r9", policy=with_policy(tailor=False)))
    for budget in range(50, whole.tokens + 50, 40):
        made = tailored(chat, budget)
        assert in_provider_order(made.request.messages)
        calls = [call.id for m in made.request.messages for call in m.tool_calls]
        assert calls in (["c1", "c2", "c3", "c4", "c5"], ["c4", "c5"])


def test_context_6_4_a_last_message_that_does_not_fit_is_sent_all_the_same_and_told() -> None:
    chat = rounds(2)
    made = tailored(chat, 10)
    assert questions(made) == ["Q2"] and made.overflow
    assert tailored(chat, room_for(chat, 1)).overflow is False


def test_context_6_5_what_is_left_begins_with_a_person_and_does_not_end_with_an_answer() -> None:
    chat = Chat().start("r0")
    chat.answer(f"Out of nowhere {ROUND}")
    chat.ask(f"Q1 {ROUND}")
    chat.answer("A1")
    chat.ask("Q2", run="r2")
    chat.answer("Begun and")
    made = tailored(chat, 60)
    assert [role for role, _ in lines(made.request)] == ["user"]
    assert questions(made) == ["Q2"]
    tail = tailored(chat, 60, frame=replace(FRAME, tail=FINISH))
    assert tail.request.messages[-1].text == FINISH and tail.request.messages[-2].role is Role.ASSISTANT


def test_context_6_9_a_summary_in_the_system_message_stays_and_one_in_the_first_round_may_go() -> None:
    chat = rounds(5)
    told = by_key(summary(chat.events[2], "要点。" * 60))
    costs = sum(p.tokens for p in tailored(chat, 100_000, summaries=told).parts if p.tag == "summary")
    system = tailored(chat, room_for(chat, 1) + costs, summaries=told)
    assert system.overflow is False and "要点" in system.request.messages[0].text
    user = tailored(chat, room_for(chat, 1), summaries=told, policy={"placement": "user", "tailoring": "head"})
    assert "要点" not in "".join(m.text for m in user.request.messages)
    assert [p.kind for p in user.parts if p.tag == "summary"] == ["dropped"]


def test_what_the_first_round_carried_moves_to_the_next_that_stays_if_it_fits() -> None:
    chat = rounds(5)
    blocks = (Block(kind="memory", text="Prefers blue."), Block(kind="recall", text="Asked about paint."))
    looking: dict[str, Any] = {"blocks": blocks, "summaries": by_key(summary(1, "Short."))}
    policy = {"tailoring": "head", "placement": "user", "preload_placement": "user"}
    made = tailored(chat, room_for(chat, 2) + 150, policy=policy, **looking)
    assert made.dropped_rounds >= 2 and not made.overflow
    first = made.request.messages[1].text
    assert first.index("Prefers blue.") < first.index("Short.") < first.index("Asked about paint.") < first.index("Q4")
    view_ = view("r9", policy=with_policy(max_input_tokens=room_for(chat, 2) + 150, **policy), **looking)
    assert rebuilt(made, chat.events, FRAME, view_) == made.request


def test_what_is_left_out_stays_in_the_parts_and_costs_nothing() -> None:
    chat = rounds(5)
    made = tailored(chat, room_for(chat, 3))
    dropped = [p for p in made.parts if p.kind == "dropped"]
    assert [(p.ref, p.params["was"]) for p in dropped] == [(f"e{n}", "event") for n in (6, 7, 10, 11)]
    assert made.tokens == sum(p.tokens for p in made.parts if p.kind != "dropped")
    assert dict(made.window_used.parts)["dropped"] == sum(p.tokens for p in dropped)
    assert made.window_used.tokens == made.tokens


def test_a_message_that_steers_does_not_begin_a_round() -> None:
    chat = rounds(2)
    chat.tools("Looking", "c1", content=ROUND)
    chat.ask("Rather blue", kind=UserMessageKind.STEER)
    made = tailored(chat, 10)
    assert questions(made) == ["Q2", "Rather"]


def test_questions_without_answers_are_one_round_unless_there_is_no_answer_at_all() -> None:
    chat = Chat()
    for n in range(1, 4):
        chat.ask(f"Q{n} {ROUND}", run=f"r{n}")
    two = sum(p.tokens for p in tailored(chat, 100_000).parts if p.position in (0, 2, 4) and p.kind != "tools") + 50
    assert questions(tailored(chat, two)) == ["Q1", "Q3"]
    chat.answer("At last")
    chat.ask("Q4", run="r4")
    assert questions(tailored(chat, two)) == ["Q4"]


@pytest.mark.parametrize("words", ["one two three four five ", "钥匙由朵拉保管，预算是四千二百万欧元。"])
def test_a_question_that_was_too_long_to_be_answered_does_not_stand_in_the_way_of_the_next(words: str) -> None:
    chat = Chat()
    chat.ask("Q1 what is the budget?", run="r1")
    chat.answer("A1")
    chat.done()
    chat.ask(f"Q2 {words * 500}", run="r2")
    chat.failed()
    chat.ask("Q3 and now?", run="r3")
    chat.ask("Q4 hello?", run="r4")
    made = tailored(chat, 300)
    assert not made.overflow and made.dropped_rounds > 0
    assert questions(made) == ["Q3", "Q4"]
    assert sum(p.tokens for p in made.parts if p.kind == "dropped") > 1_000
    everything = tailored(chat, 100_000)
    assert questions(everything) == ["Q1", "Q2", "Q3", "Q4"]


def test_the_budget_comes_from_the_window_less_the_tools() -> None:
    chat = rounds(40)
    narrow = Window(tokens=4_000, source="settings")
    made = assemble(chat.events, FRAME, view("r9", window=narrow))
    messages = made.tokens - dict(made.window_used.parts)["tools"]
    assert made.dropped_rounds > 0
    assert messages <= 4_000 - 2_048 - 512 - 400 - dict(made.window_used.parts)["tools"]
    whole = assemble(chat.events, FRAME, view("r9", window=narrow, tailor=False))
    assert whole.dropped_rounds == 0 and whole.overflow
    assert assemble(chat.events, FRAME, view("r9", window=WIDE)).request == whole.request
    assert estimate(ROUND) > 50
