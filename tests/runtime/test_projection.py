"""What a request shows of a history behind a summary's boundary (specification of the context, 4.4)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from agents.runtime.context.assemble import assemble
from agents.runtime.events import Outcome, UserMessageKind
from agents.runtime.model import Role
from agents.runtime.policy import ContextPolicy
from tests.runtime.conversations import (
    FRAME,
    Chat,
    by_key,
    in_provider_order,
    lines,
    rebuilt,
    shown,
    summary,
    view,
    with_policy,
)


def two_runs() -> Chat:
    chat = Chat()
    chat.ask("One", run="r1")
    chat.answer("Answer one")
    chat.done()
    chat.ask("二", run="r2")
    return chat


def test_everything_up_to_the_boundary_is_hidden_and_everything_after_it_is_shown() -> None:
    chat = two_runs()
    chat.answer("Answer two")
    chat.ask("Three", run="r3")
    boundary = chat.events[2]
    made = assemble(chat.events, FRAME, view("r3", summaries=by_key(summary(boundary))))
    assert lines(made.request) == [("user", "二"), ("assistant", "Answer two"), ("user", "Three")]
    assert made.hidden == 2
    assert made.summary is not None and made.summary.boundary.position == boundary.position


def test_context_4_4_what_is_hidden_goes_by_position_even_if_times_are_out_of_order() -> None:
    chat = two_runs()
    chat.events[1] = replace(chat.events[1], at=chat.events[1].at + timedelta(days=3))
    chat.events[4] = replace(chat.events[4], at=chat.events[4].at - timedelta(days=3))
    assert shown(chat, view("r2", summaries=by_key(summary(chat.events[3])))) == [("user", "二")]


def test_context_4_5_a_history_that_begins_behind_the_boundary_is_shown_whole_whatever_its_times() -> None:
    chat = Chat(after=100)
    chat.ask("Late", run="r1")
    chat.answer("Later")
    made = assemble(chat.events, FRAME, view("r1", summaries=by_key(summary(100))))
    assert lines(made.request) == [("user", "Late"), ("assistant", "Later")]
    assert made.hidden == 0


def test_context_4_6_a_boundary_between_a_call_and_its_result_brings_back_that_call_only() -> None:
    chat = Chat()
    chat.ask("Look twice", run="r1")
    asked = chat.answer("I look", "c1", "c2")
    first = chat.result("c1", "first")
    chat.result("c2", "second")
    chat.answer("Both seen")
    chat.done()
    chat.ask("And now?", run="r2")
    messages = assemble(chat.events, FRAME, view("r2", summaries=by_key(summary(first)))).request.messages[1:]
    assert [(m.role.value, m.text) for m in messages] == [
        ("user", "Look twice"),
        ("assistant", ""),
        ("tool", "second"),
        ("assistant", "Both seen"),
        ("user", "And now?"),
    ]
    assert [call.id for call in messages[1].tool_calls] == ["c2"]
    assert len(asked.record.tool_calls) == 2  # type: ignore[union-attr]  # what is stored did not change


def test_context_4_7_a_boundary_behind_a_parallel_round_of_this_run_leaves_the_round_and_the_question() -> None:
    chat = two_runs()
    chat.tools("Once", "c0")
    chat.tools("Thrice", "c1", "c2", "c3")
    made = assemble(chat.events, FRAME, view("r2", summaries=by_key(summary(chat.events[-1]))))
    messages = made.request.messages[1:]
    assert [m.role.value for m in messages] == ["user", "assistant", "tool", "tool", "tool"]
    assert messages[0].text == "二"
    assert [call.id for call in messages[1].tool_calls] == ["c1", "c2", "c3"]
    assert [p.params["restored"] for p in made.parts if "restored" in p.params] == ["anchor", *["tail"] * 4]


def test_a_boundary_amid_the_results_of_this_runs_latest_round_leaves_the_whole_batch() -> None:
    chat = two_runs()
    round_ = chat.tools("Thrice", "c1", "c2", "c3")
    messages = assemble(chat.events, FRAME, view("r2", summaries=by_key(summary(round_[1])))).request.messages[1:]
    assert [m.tool_call_id for m in messages if m.role is Role.TOOL] == ["c1", "c2", "c3"]
    assert messages[1].text == "Thrice"


def test_only_the_latest_complete_round_comes_back_and_none_if_one_is_shown_anyway() -> None:
    chat = two_runs()
    old = chat.tools("Old", "c1")
    chat.tools("New", "c2")
    made = shown(chat, view("r2", summaries=by_key(summary(old[-1]))))
    assert made == [("user", "二"), ("assistant", "New"), ("tool", "found")]


def test_a_round_that_is_not_complete_is_not_the_one_that_comes_back() -> None:
    chat = two_runs()
    chat.tools("Complete", "c1")
    chat.answer("Half", "c2", "c3")
    half = chat.result("c2")
    assert [t for _, t in shown(chat, view("r2", summaries=by_key(summary(half))))] == ["二", "Complete", "found"]


def test_the_question_of_a_turn_that_the_boundary_splits_comes_back_with_what_is_left_of_it() -> None:
    chat = Chat()
    chat.ask("Zero", run="r0")
    chat.answer("Nought")
    chat.ask("Split", run="r1")
    chat.answer("First half")
    cut = chat.events[-1]
    chat.answer("Second half")
    chat.done()
    chat.ask("Next", run="r2")
    made = assemble(chat.events, FRAME, view("r2", summaries=by_key(summary(cut))))
    assert [t for _, t in lines(made.request)] == ["Split", "Second half", "Next"]
    assert [p.ref for p in made.parts if p.params.get("restored") == "anchor"] == [chat.events[4].id]


def test_a_turn_of_another_invocation_and_an_unnamed_one_bring_no_question_back() -> None:
    for invocation in ("child", " "):
        chat = Chat()
        chat.ask("Split", run="r1")
        cut = chat.answer("First half")
        stored = chat.answer("Second half", invocation=invocation)
        if invocation == " ":
            chat.events[-1] = replace(stored, origin=replace(stored.origin, invocation_id=""))
        chat.ask("Next", run="r2")
        assert [t for _, t in shown(chat, view("r2", summaries=by_key(summary(cut))))] == ["Second half", "Next"]


def test_context_4_10_seeds_before_the_boundary_are_hidden_and_the_turn_itself_is_not() -> None:
    chat = Chat().start("r1")
    chat.ask("Brought along", kind=UserMessageKind.SEED)
    chat.answer("Brought too")
    asked = chat.ask("The turn")
    assert shown(chat, view("r1", summaries=by_key(summary(asked)))) == [("user", "The turn")]


def test_what_steered_the_current_run_is_never_hidden() -> None:
    chat = two_runs()
    chat.tools("Look", "c1")
    chat.ask("Rather the blue one", kind=UserMessageKind.STEER)
    chat.tools("Look again", "c2")
    made = shown(chat, view("r2", summaries=by_key(summary(chat.events[-1]))))
    assert [t for _, t in made] == ["二", "Rather the blue one", "Look again", "found"]


def test_context_4_14_a_new_question_while_an_old_call_waits_is_sent_in_an_order_a_provider_accepts() -> None:
    chat = Chat()
    chat.ask("Ask the person", run="r1")
    chat.answer("I ask", "open")
    chat.answer("Still here")
    chat.ask("Never mind", run="r2")
    for at in range(len(chat.events)):
        made = assemble(chat.events, FRAME, view("r2", summaries=by_key(summary(at))))
        assert in_provider_order(made.request.messages)
        assert not any(m.tool_calls for m in made.request.messages)
        assert made.request.messages[-1].text == "Never mind"


def test_a_retry_keeps_the_question_that_an_earlier_run_was_asked() -> None:
    chat = Chat()
    asked = chat.ask("Asked once", run="r1")
    chat.start("r2", action="retry")
    assert shown(chat, view("r2", summaries=by_key(summary(asked)))) == [("user", "Asked once")]
    for timeline in ("request", "invocation"):
        assert shown(chat, view("r2", policy=with_policy(timeline=timeline))) == [("user", "Asked once")]


def test_a_continue_keeps_what_it_goes_on_with_and_the_instruction_to_do_so() -> None:
    chat = Chat()
    chat.ask("Tell a long story", run="r1")
    cut = chat.answer("Once upon a")
    chat.done(Outcome.CANCELLED)
    chat.start("r2", action="continue")
    made = shown(chat, view("r2", summaries=by_key(summary(cut))))
    assert [r for r, _ in made] == ["user", "assistant", "user"]
    assert made[1][1] == "Once upon a" and "Go on exactly where it stopped" in made[2][1]


def test_an_event_outside_a_summarys_scope_is_never_hidden_by_its_boundary() -> None:
    chat = Chat(key="a/x")
    chat.ask("Mine", run="r1")
    chat.answer("Of the other branch", key="a/y", invocation="y")
    chat.answer("Of the parent", key="a")
    cut = chat.answer("Mine too")
    chat.ask("Now", run="r2")
    looking = view("r2", filter_key="a", summaries=by_key(summary(cut, key="a/x")))
    assert [t for _, t in shown(chat, looking)] == ["Of the other branch", "Now"]


@pytest.mark.parametrize(
    ("branch", "expected"),
    [
        ("prefix", ["parent", "own", "child", "everywhere", "now"]),
        ("subtree", ["own", "child", "everywhere", "now"]),
        ("exact", ["own", "now"]),
        ("all", ["parent", "own", "child", "sibling", "everywhere", "now"]),
    ],
)
def test_the_branch_mode_says_which_scopes_are_seen(branch: str, expected: list[str]) -> None:
    chat = Chat().start("r1")
    for text, key in (
        ("parent", "a"),
        ("own", "a/x"),
        ("child", "a/x/z"),
        ("sibling", "a/xy"),
        ("everywhere", ""),
        ("now", "a/x"),
    ):
        chat.ask(text, key=key)
    assert [t for _, t in shown(chat, view("r1", filter_key="a/x", policy=with_policy(branch=branch)))] == expected


def test_the_timeline_can_be_one_request_or_one_invocation() -> None:
    chat = two_runs()
    chat.answer("By a child", invocation="child", author="b")
    chat.answer("By me")
    assert [t for _, t in shown(chat, view("r2", policy=with_policy(timeline="request")))] == [
        "二",
        "For context: b said: By a child",
        "By me",
    ]
    assert [t for _, t in shown(chat, view("r2", policy=with_policy(timeline="invocation")))] == ["二", "By me"]


def test_history_runs_counts_runs_not_messages_and_only_where_no_summary_is_kept() -> None:
    chat = Chat()
    for n in range(1, 5):
        chat.ask(f"Q{n}", run=f"r{n}")
        chat.tools(f"A{n}", f"c{n}")
        chat.done()
    policy = with_policy(history_runs=2, summarise=False)
    assert [t for _, t in shown(chat, view("r4", policy=policy))] == ["Q3", "A3", "found", "Q4", "A4", "found"]
    assert len(shown(chat, view("r4", policy=with_policy(history_runs=2)))) == 12
    assert len(shown(chat, view("r4", policy=with_policy(history_runs=0, summarise=False)))) == 12


def test_history_runs_leaves_no_result_without_its_call_at_the_beginning() -> None:
    chat = Chat()
    chat.ask("Q1", run="r1")
    chat.answer("Asking", "c1")
    chat.done()
    chat.start("r2")
    chat.result("c1", "from outside")
    chat.ask("Q2")
    chat.answer("A2")
    chat.ask("Q3", run="r3")
    policy = with_policy(history_runs=2, summarise=False)
    assert [t for _, t in shown(chat, view("r3", policy=policy))] == ["Q2", "A2", "Q3"]


def test_a_result_that_a_client_gave_for_this_run_keeps_its_call_whatever_is_seen() -> None:
    chat = Chat()
    chat.ask("Q1", run="r1")
    chat.answer("Asking", "c1", "c2")
    chat.done()
    chat.start("r2")
    chat.result("c1", "from outside")
    expected = [("user", "Q1"), ("assistant", "Asking"), ("tool", "from outside")]
    for values in ({"history_runs": 1, "summarise": False}, {"timeline": "request"}, {"timeline": "invocation"}):
        made = assemble(chat.events, FRAME, view("r2", policy=with_policy(**values)))
        assert lines(made.request) == expected
        assert [call.id for call in made.request.messages[2].tool_calls] == ["c1"]


def test_what_is_hidden_can_be_rebuilt_from_the_parts() -> None:
    chat = two_runs()
    chat.tools("Thrice", "c1", "c2", "c3")
    looking = view("r2", summaries=by_key(summary(chat.events[-2])))
    made = assemble(chat.events, FRAME, looking)
    assert rebuilt(made, chat.events, FRAME, looking) == made.request


def test_reasoning_comes_back_with_the_round_of_the_current_run() -> None:
    chat = two_runs()
    round_ = chat.tools("Look", "c1")
    chat.events[-2] = replace(round_[0], record=replace(round_[0].record, reasoning="因为"))
    made = assemble(chat.events, FRAME, view("r2", summaries=by_key(summary(chat.events[-1]))))
    assert made.request.messages[2].reasoning == "因为"


def test_a_policy_that_keeps_no_summary_hides_nothing() -> None:
    chat = two_runs()
    looking = view("r2", summaries=by_key(summary(chat.events[2])), policy=ContextPolicy(summarise=False))
    assert len(shown(chat, looking)) == 3
