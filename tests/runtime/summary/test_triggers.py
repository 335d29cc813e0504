"""When a summary is due (section 2.6)."""

from dataclasses import replace
from datetime import timedelta

from agents.runtime.context.window import Window
from agents.runtime.policy import ContextPolicy
from agents.runtime.summaries import Boundary, Source, Summary
from agents.runtime.summary.report import Reason
from agents.runtime.summary.triggers import (
    Facts,
    all_of,
    any_of,
    context_threshold,
    custom,
    evaluate,
    event_threshold,
    of_policy,
    time_threshold,
    token_threshold,
)
from tests.runtime.summary.talks import KEY, LONG, POLICY, START, Desk, Talk, long_talk


def facts(talk: Talk, **more: object) -> Facts:
    plain = Facts(
        events=talk.history,
        filter_key=KEY,
        source=Source.BACKGROUND,
        window=Window(tokens=8_192, source="test"),
        now=START,
    )
    return replace(plain, **more)  # type: ignore[arg-type]  # fields by name


def base(text: str = "Old.", *, minutes: float = 0, tokens: int = 50) -> Summary:
    at = START + timedelta(minutes=minutes)
    boundary = Boundary(position=1, fork=0, event_id="e1", at=at)
    return Summary(id="s", text=text, filter_key=KEY, boundary=boundary, read_from=1, made_at=at, tokens=tokens)


def test_context_2_7_half_the_window_and_a_floor_both_strict() -> None:
    talk = long_talk(1)
    check = context_threshold(0.5)
    assert check(facts(talk, request_tokens=4_097)).fired
    assert not check(facts(talk, request_tokens=4_096)).fired
    small = Window(tokens=1_000, source="test")
    at_floor = check(facts(talk, window=small, request_tokens=2_000))
    assert (at_floor.fired, at_floor.threshold, at_floor.context_window) == (False, 2_000, 1_000)
    assert check(facts(talk, window=small, request_tokens=2_001)).fired
    assert context_threshold(0.5, 0)(facts(talk, window=small, request_tokens=501)).fired
    for ratio in (0.0, 1.5):
        assert context_threshold(ratio)(facts(talk, request_tokens=1)).threshold_ratio == 0.5


async def test_context_2_8_only_a_pause_before_the_request_counts_and_only_once() -> None:
    policy = replace(POLICY, summary_idle_s=300.0)
    talk = Talk()
    talk.exchange("Question 1. " + LONG * 4, "Answer 1. " + LONG * 4)
    talk.minutes = 1
    talk.begin("Question 2. " + LONG * 4)
    started = talk.history[-1].at
    talk.minutes = 11  # the model took ten minutes
    talk.answer("Answer 2. " + LONG * 4)
    talk.end()
    desk = Desk("Short.", policy=policy)
    slow = await desk.update(talk, run_id="r2", request_started_at=started)
    assert slow.reason is Reason.NOT_DUE

    talk.minutes = 21  # nobody said anything for ten minutes
    talk.begin("Question 3. " + LONG * 4)
    started = talk.history[-1].at
    talk.answer("Answer 3. " + LONG * 4)
    desk.clock.advance(21 * 60 + 5)
    idle = await desk.update(talk, run_id="r3", request_started_at=started)
    assert idle.advanced is not None
    assert (idle.report.trigger.value, idle.report.trigger.unit) == (600_000, "milliseconds")
    talk.answer("And more. " + LONG * 9)
    talk.end()
    again = await desk.update(talk, run_id="r3", request_started_at=started)
    assert again.reason is Reason.NOT_DUE


def test_a_pause_that_cannot_be_known_does_not_count() -> None:
    talk = long_talk(1)
    check = time_threshold(1.0)
    late = START + timedelta(hours=1)
    assert check(facts(talk, run_id="r2", request_started_at=late)).fired
    assert not check(facts(talk, run_id="r2")).fired
    assert not check(facts(talk, run_id="r1", request_started_at=late)).fired  # its own events
    assert not check(facts(talk, run_id="r2", request_started_at=START)).fired  # nothing is earlier
    assert not check(facts(talk, run_id="r2", request_started_at=late, base=base(minutes=60))).fired
    assert check(facts(talk, now=late)).fired  # outside a run: since the newest event
    before = (START, "r0")
    assert check(facts(Talk(), run_id="r2", request_started_at=late, previous_at=before)).fired


def test_a_summary_before_does_not_trigger_the_next_by_its_own_size() -> None:
    talk = long_talk(1)
    check = token_threshold(1_000)
    assert not check(facts(talk, request_tokens=1_050, base=base(tokens=50))).fired
    assert check(facts(talk, request_tokens=1_051, base=base(tokens=50))).fired
    assert not check(facts(talk, new_tokens=1_000)).fired and check(facts(talk, new_tokens=1_001)).fired


def test_several_are_joined_and_the_most_telling_is_named() -> None:
    talk = long_talk(2)
    events, tokens, context = event_threshold(1), token_threshold(10), context_threshold(0.5)
    found = any_of(events, tokens, context)(facts(talk, request_tokens=5_000))
    assert (found.fired, found.name) == (True, "context_threshold")
    assert [check.name for check in found.checks] == ["event_threshold", "token_threshold", "context_threshold"]
    assert any_of(events, tokens, context)(facts(talk, request_tokens=20)).name == "token_threshold"
    none = all_of(events, tokens, context)(facts(talk, request_tokens=20))
    assert (none.fired, none.name) == (False, "context_threshold")
    assert all_of(events, tokens)(facts(talk, request_tokens=20)).fired
    assert not any_of()(facts(talk)).fired and not all_of()(facts(talk)).fired


def test_a_check_of_ones_own_sees_the_request() -> None:
    check = custom(lambda f: f.source is Source.CALL and f.attributes.get("plan") == "large" and f.model == "m")
    talk = long_talk(1)
    assert not evaluate(check, facts(talk)).fired
    found = evaluate(check, facts(talk, source=Source.CALL, attributes={"plan": "large"}, model="m"))
    assert (found.fired, found.name, found.filter_key) == (True, "custom", KEY)


def test_without_a_check_every_new_event_is_enough_and_a_forced_one_needs_none() -> None:
    talk = long_talk(1)
    assert evaluate(None, facts(talk)).name == "always"
    assert not evaluate(None, facts(Talk())).fired
    never = custom(lambda f: False)
    assert evaluate(never, facts(talk, forced=True)).name == "force"
    assert evaluate(never, facts(talk, forced=True, source=Source.MANUAL)).name == "manual"


def test_a_policy_makes_its_triggers() -> None:
    talk = long_talk(2)
    assert of_policy(ContextPolicy(summary_ratio=None)) is None
    both = ContextPolicy(summary_events=1, summary_ratio=0.5, summary_join="all")
    check = of_policy(both)
    assert check is not None and not check(facts(talk, request_tokens=10)).fired
    either = of_policy(replace(both, summary_join="any"))
    assert either is not None and either(facts(talk, request_tokens=10)).name == "event_threshold"
    ratio = of_policy(ContextPolicy())
    assert ratio is not None and ratio(facts(talk, request_tokens=5_000)).threshold == int(8_192 * 0.6)
