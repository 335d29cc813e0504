"""Section 3 of the specification: the summary request behind one that was sent before."""

import copy
from dataclasses import replace
from typing import Any

import pytest

from agents.runtime.context.digests import request_sha256
from agents.runtime.context.window import Window
from agents.runtime.errors import ContextTooLong, ModelBusy
from agents.runtime.model import ModelRequest, Role, ToolSpec, Usage
from agents.runtime.policy import ContextPolicy
from agents.runtime.summary.asking import SummaryHooks
from agents.runtime.summary.fork import first_budget, forked, request_tokens, shrunk, too_long
from agents.runtime.summary.prompts import prompts_of
from agents.runtime.summary.report import Mode, Reason
from agents.runtime.summary.summarizer import ModelSummarizer
from agents.runtime.testing import call as called
from agents.runtime.testing import text, turn, usage
from agents.runtime.tokens import DEFAULT_RATES, estimate
from tests.runtime.summary.talks import LONG, LONG_ZH, POLICY, Desk, Talk, call, long_talk, parent, said

FORK = replace(POLICY, fork="on")
SEARCH = ToolSpec(name="search", description="Searches. " + "Long words about searching. " * 20)
READ = ToolSpec(name="read", description="Reads.")


def with_results() -> Talk:
    talk = Talk()
    talk.begin("Compare. " + LONG * 2)
    talk.answer("I look.", call("c1", arguments='{"q": "' + "wheat " * 60 + '"}'), call("c2"))
    talk.result("c1", LONG * 30)
    talk.result("c2", LONG * 10)
    talk.answer("Compared. " + LONG * 2)
    talk.end()
    return talk


async def test_context_3_1_a_fork_is_the_parent_and_one_more_message() -> None:
    talk = long_talk(3)
    request = parent(talk, tools=(SEARCH, READ))
    before = copy.deepcopy(request)
    desk = Desk(turn(text("Short."), usage(900, 10, cached=850)), policy=FORK)
    made = await desk.update(talk, request=request, request_tokens=900)
    sent = desk.model.requests[0]
    assert made.advanced is not None and made.report.call.mode is Mode.FORK
    assert sent.messages[:-1] == request.messages and sent.messages[-1].role is Role.USER
    assert replace(sent, messages=()) == replace(request, messages=())
    assert request == before
    assert (made.report.call.prompt_tokens, made.report.call.cached_tokens) == (900, 850)
    assert desk.calls[0].request_sha256 == request_sha256(sent)


@pytest.mark.parametrize("template", ["brief", "materials", "worksite"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_fork_prompt_costs_at_most_200_tokens(template: str, language: str) -> None:
    assert estimate(prompts_of(template, language, 2_000).fork_text()) <= 200


async def test_context_3_2_without_a_parent_the_request_stands_alone() -> None:
    desk = Desk("Short.", policy=FORK)
    made = await desk.update(long_talk(3))
    assert made.advanced is not None and made.report.call.mode is Mode.STANDALONE
    assert "Question 3" in desk.asked()
    assert [m.role for m in desk.model.requests[0].messages] == [
        Role.SYSTEM,
        Role.USER,
    ]
    nothing = ModelRequest(messages=(said(Role.SYSTEM, "You help."),))
    with pytest.raises(ValueError):
        forked(nothing, "Summarise.")


async def test_context_3_3_what_the_parent_sets_stays_in_both() -> None:
    """Streams are not set and answers have no schema here: a fork has nothing to clear, and must not touch the rest."""
    talk = long_talk(3)
    request = replace(parent(talk, tools=(READ,)), max_tokens=700, temperature=0.2)
    desk = Desk("Short.", policy=FORK)
    await desk.update(talk, request=request)
    sent = desk.model.requests[0]
    assert (sent.max_tokens, sent.temperature, sent.tool_choice, sent.tools) == (700, 0.2, "auto", (READ,))
    assert (request.max_tokens, request.temperature) == (700, 0.2)


def tokens(request: ModelRequest) -> int:
    return request_tokens(request, DEFAULT_RATES)


def test_context_3_4_over_budget_the_tools_go_first() -> None:
    request = forked(parent(with_results(), tools=(SEARCH, READ)), "Summarise.")
    most = tokens(request) - 10
    fitted = shrunk(request, most, tokens)
    assert fitted is not None
    assert fitted[0] == replace(request, tools=()) and fitted[1] == ("tools",)


def test_context_3_5_then_the_largest_result_and_no_more_than_needed() -> None:
    request = forked(parent(with_results(), tools=(READ,)), "Summarise.")
    fitted = shrunk(request, tokens(replace(request, tools=())) - 100, tokens)
    assert fitted is not None
    smaller, done = fitted
    assert done == ("tools", "result")
    changed = [i for i, (old, new) in enumerate(zip(request.messages, smaller.messages, strict=True)) if old != new]
    assert [request.messages[i].tool_call_id for i in changed] == ["c1"]
    assert "characters is left out" in smaller.messages[changed[0]].text
    assert shrunk(request, 100, tokens) is None


def test_context_3_6_a_marker_that_is_longer_than_the_result_is_not_put_there() -> None:
    talk = Talk()
    talk.begin("Go.")
    talk.answer("", call("c1", arguments="{}"))
    talk.result("c1", "ok")
    request = forked(parent(talk), "Summarise.")
    assert shrunk(request, tokens(request) - 1, tokens) is None


async def test_context_3_7_a_request_that_was_too_long_is_tried_once_more_at_half_the_budget() -> None:
    talk = long_talk(6)
    policy = replace(FORK, max_input_tokens=4_000)
    desk = Desk([ContextTooLong()], "Short.", policy=policy)
    made = await desk.update(talk, request=parent(talk))
    assert made.advanced is not None and made.report.call.mode is Mode.STANDALONE and made.report.call.calls == 2
    assert tokens(desk.model.requests[1]) <= 2_000
    assert len(desk.calls) == 2 and desk.calls[0].error_code == ContextTooLong.code

    again = Desk([ContextTooLong()], [ContextTooLong()], policy=policy)
    failed = await again.update(talk, request=parent(talk))
    assert failed.reason is Reason.MODEL_ERROR and again.store.rows == [] and len(again.model.requests) == 2


def test_context_3_7_providers_say_it_in_many_words() -> None:
    assert too_long("Error: This model's maximum context length is 8192 tokens.")
    assert too_long("[context_length_exceeded] ...") and too_long("Prompt is too long: 9 > 8")
    assert not too_long("Rate limit reached for tokens per minute")


async def test_context_3_8_a_blank_answer_is_tried_once_more_but_not_a_custom_one() -> None:
    talk = long_talk(4)
    desk = Desk(turn(called("c9", "search", {"q": "x"})), "Short.", policy=FORK)
    made = await desk.update(talk, request=parent(talk, tools=(SEARCH,)))
    assert made.advanced is not None and made.report.call.calls == 2
    assert desk.model.requests[1].tools == ()

    async def blank(request: ModelRequest) -> str:
        return " "

    custom = Desk(policy=FORK)
    made = await custom.update(talk, request=parent(talk), hooks=SummaryHooks(before_model=blank))
    assert made.reason is Reason.EMPTY and custom.model.requests == []


async def test_context_3_9_another_error_is_not_tried_again_here() -> None:
    talk = long_talk(4)
    desk = Desk([ModelBusy("Too many requests.")], policy=FORK)
    made = await desk.update(talk, request=parent(talk))
    assert made.reason is Reason.MODEL_ERROR and len(desk.model.requests) == 1


async def test_context_3_10_a_request_that_was_tailored_is_no_parent() -> None:
    talk = long_talk(4)
    whole = parent(talk)
    tailored = replace(whole, messages=(whole.messages[0], *whole.messages[3:]))
    desk = Desk("Short.", policy=FORK)
    made = await desk.update(talk, request=tailored)
    assert made.report.call.mode is Mode.STANDALONE and "Question 1" in desk.asked()


async def test_a_request_with_another_summary_than_the_one_before_is_no_parent() -> None:
    talk = long_talk(3)
    desk = Desk("The harvest was good.", "Second.", "Third.", policy=FORK)
    first = (await desk.update(talk, request=parent(talk))).advanced
    assert first is not None
    begun = len(talk.history)
    talk.exchange("Question 4. " + LONG * 4, "Answer 4. " + LONG * 4)
    later = Talk()
    later.history = talk.history[begun:]
    without = await desk.update(talk, request=parent(later))
    assert without.report.call.mode is Mode.STANDALONE
    talk.exchange("Question 5. " + LONG * 4, "Answer 5. " + LONG * 4)
    later.history = talk.history[begun + 4 :]
    with_it = await desk.update(talk, request=parent(later, system="You help.\n\n<summary>\nSecond.\n</summary>"))
    assert with_it.report.call.mode is Mode.FORK


async def test_context_3_11_another_order_of_tools_is_another_prefix() -> None:
    talk = long_talk(3)
    request = parent(talk, tools=(SEARCH, READ))
    desk = Desk("Short.", policy=FORK)
    await desk.update(talk, request=request)
    sent = desk.model.requests[0]

    def prefix(r: ModelRequest) -> str:
        return request_sha256(replace(r, messages=r.messages[: len(request.messages)]))

    assert prefix(sent) == request_sha256(request)
    assert prefix(replace(sent, tools=(READ, SEARCH))) != request_sha256(request)


def test_context_3_12_the_providers_own_budget_counts_when_it_is_smaller() -> None:
    policy = ContextPolicy()
    assert first_budget(Window(tokens=131_072, source="test"), policy) == 111_411
    assert first_budget(Window(tokens=4_000, source="test"), policy) == 1_040
    assert first_budget(Window(tokens=131_072, source="test"), replace(policy, max_input_tokens=900)) == 900
    assert first_budget(Window(tokens=100, source="test"), policy) == 1


@pytest.mark.parametrize("template", ["materials", "worksite"])
@pytest.mark.parametrize("words", [LONG, LONG_ZH])
def test_a_fork_of_a_warm_parent_of_8000_tokens_is_cached_by_95_percent(template: str, words: str) -> None:
    language = "zh" if words is LONG_ZH else "en"
    talk = Talk()
    while tokens(parent(talk)) < 8_000:
        talk.exchange("Question. " + words * 4, "Answer. " + words * 4)
    request = parent(talk)
    fork = forked(request, prompts_of(template, language, 500).fork_text())
    for uncached in range(128):  # wherever the parent ends between two steps
        shared = (tokens(request) - uncached) // 128 * 128
        assert shared / (tokens(fork) - uncached) >= 0.95


async def test_auto_forks_only_where_that_is_cheaper() -> None:
    auto = replace(POLICY, fork="auto")
    talk = long_talk(12, times=8)
    request = parent(talk)

    async def mode(policy: ContextPolicy = auto, **more: Any) -> Mode:
        return (await Desk("Short.", policy=policy).update(talk, request=request, **more)).report.call.mode

    assert await mode() is Mode.FORK
    assert await mode(request_cached=2_000) is Mode.FORK
    assert await mode(request_cached=0) is Mode.STANDALONE  # this provider caches nothing
    assert await mode(replace(auto, summary_model="other")) is Mode.STANDALONE  # nothing of it is in the other's cache
    assert await mode(replace(auto, max_input_tokens=1_500)) is Mode.STANDALONE  # it would have to be shrunk
    assert await mode(replace(auto, fork="off")) is Mode.STANDALONE
    few = replace(auto, keep_rounds=10)  # two rounds are summarised of a request of twelve
    assert await mode(few) is Mode.STANDALONE


async def test_where_not_even_the_smallest_part_fits_it_is_refused_and_else_the_summary_before_gives_way() -> None:
    talk = long_talk(2, times=12)
    tiny = Desk(policy=replace(POLICY, max_input_tokens=200))
    made = await tiny.update(talk)
    assert made.reason is Reason.BUDGET and tiny.model.requests == [] and tiny.store.rows == []

    desk = Desk("Old words. " * 120, "New.", policy=replace(POLICY, summary_words=0))
    old = (await desk.update(talk)).advanced
    assert old is not None
    talk.exchange("Question 3. " + LONG * 12, "Answer 3. " + LONG * 12)
    made = await desk.update(talk, policy=replace(desk.policy, max_input_tokens=900))
    assert made.advanced is not None and made.report.call.shrunk == ("previous",)
    assert "characters left out" in desk.asked() and "Answer 3." in desk.asked()
    assert tokens(desk.model.requests[-1]) <= 900


async def test_usage_and_name_of_the_summarizer_stand_in_the_report() -> None:
    desk = Desk(turn(text("Short."), usage(500, 20, cached=100, reasoning=5)))
    made = await desk.update(long_talk(2), summarizer=ModelSummarizer(desk.model))
    assert made.report.summarizer == "scripted" == desk.reports[0].summarizer
    assert desk.calls[0].usage == Usage(prompt=500, cached=100, completion=20, reasoning=5)
    assert made.report.call.completion_tokens == 20
