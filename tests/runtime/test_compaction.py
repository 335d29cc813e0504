"""Large results as placeholders (specification of the context, 5)."""

from dataclasses import replace
from typing import Any

import pytest

from agents.runtime.artifacts import ArtifactRef
from agents.runtime.context.assemble import Frame, assemble
from agents.runtime.context.compaction import compact, decided
from agents.runtime.context.projection import visible
from agents.runtime.context.sizes import Sizes
from agents.runtime.events import AssistantMessage, ContextCompacted, Outcome, ToolReturned, ToolStatus
from agents.runtime.model import ToolCall
from agents.runtime.tokens import DEFAULT_RATES, MESSAGE_TOKENS, Rates, estimate, estimate_record
from tests.runtime.conversations import (
    FRAME,
    LOADING,
    Chat,
    by_key,
    in_provider_order,
    rebuilt,
    shown,
    summary,
    view,
    with_policy,
)
from tests.runtime.samples import tool

PLACEHOLDER = "[Result left out"


def words(tokens: int) -> str:
    """Return a text of about so many tokens, by our own measure."""
    text = "word " * tokens
    while estimate(text) > tokens:
        text = text[: len(text) * tokens // estimate(text)]
    return text


def chat_with(*contents: str, name: str = "look", runs: int = 3) -> Chat:
    """Return a first run with these results, completed runs without any, and a question in the run r9."""
    chat = Chat()
    chat.ask("Look at all", run="r1")
    for n, content in enumerate(contents):
        chat.tools("", f"c{n}", content=content, name=name)
    chat.answer("Seen")
    chat.done()
    for n in range(2, runs):
        chat.ask("And?", run=f"r{n}")
        chat.answer("Yes")
        chat.done()
    chat.ask("Now?", run="r9")
    return chat


def results(chat: Chat, frame: Frame = FRAME, run: str = "r9", **policy: Any) -> list[str]:
    made = assemble(chat.events, frame, view(run, policy=with_policy(**policy)))
    return [m.text for m in made.request.messages if m.role.value == "tool"]


def test_context_5_1_a_large_old_result_is_replaced_and_a_smaller_one_stays() -> None:
    small, large = words(900), words(1100)
    chat = chat_with(small, large)
    stored = list(chat.events)
    made = results(chat)
    assert made[0] == small
    assert made[1].startswith(PLACEHOLDER) and "event_id: e6" in made[1] and "c1" in made[1] and "look" in made[1]
    assert "earlier_request" in made[1] and "succeeded" in made[1]
    assert chat.events == stored


def test_context_5_2_a_result_of_the_current_request_is_left_to_pass_2_which_keeps_head_and_tail() -> None:
    content = "HEAD " + words(5000) + " TAIL"
    chat = Chat()
    chat.ask("Look", run="r9")
    chat.tools("", "c1", content=content)
    assert results(chat, compact_oversized=0) == [content]
    (cut,) = results(chat, compact_oversized=1024)
    assert cut.startswith("HEAD ") and cut.endswith(" TAIL") and "characters left out here" in cut
    assert estimate(cut) + MESSAGE_TOKENS <= 1024
    assert estimate(cut) > 900
    omitted = int(cut.split(" characters left out")[0].rsplit("[", 1)[1])
    marker = cut[cut.index("[") : cut.rindex("]") + 1]
    assert len(content) - omitted == len(cut) - len(marker) - 2


@pytest.mark.parametrize("text", ["冷库的第二层漏水。" * 900, "word " * 5000, "ärger über öl " * 900])
def test_pass_2_holds_its_limit_in_any_script(text: str) -> None:
    chat = Chat()
    chat.ask("看", run="r9")
    chat.tools("", "c1", content=text)
    (cut,) = results(chat, compact_oversized=600)
    assert 450 < estimate(cut) + MESSAGE_TOKENS <= 600
    assert cut[:50] == text[:50] and cut[-50:] == text[-50:]


def test_pass_2_shows_the_marker_alone_where_there_is_no_room() -> None:
    chat = Chat()
    chat.ask("Look", run="r9")
    chat.tools("", "c1", content=words(3000))
    (cut,) = results(chat, compact_oversized=20)
    assert cut.startswith("[") and cut.endswith("]") and cut.count("\n") == 0


def test_context_5_3_the_last_completed_request_is_kept_and_a_failed_one_does_not_take_its_place() -> None:
    large = words(1500)
    chat = Chat()
    for run, end in (("r1", "done"), ("r2", "done"), ("r3", "failed"), ("r4", "cancelled")):
        chat.ask("Look", run=run)
        chat.tools("", f"c-{run}", content=large)
        chat.answer("Seen")
        match end:
            case "done":
                chat.done()
            case "failed":
                chat.failed()
            case _:
                chat.done(Outcome.CANCELLED)
    chat.ask("Now?", run="r9")
    assert [r == large for r in results(chat)] == [False, True, False, False]
    assert [r == large for r in results(chat, compact_keep_requests=0)] == [False] * 4
    assert [r == large for r in results(chat, compact_keep_requests=2)] == [True, True, False, False]


def test_recent_rounds_stay_raw_as_far_as_they_fit() -> None:
    large = words(1500)
    chat = Chat()
    for n in range(1, 4):
        chat.ask("Look", run=f"r{n}")
        chat.tools("", f"c{n}", content=large)
        chat.answer("Seen")
        chat.done()
    chat.ask("Now?", run="r9")
    keep = {"compact_keep_requests": 0}
    assert [r == large for r in results(chat, **keep)] == [False] * 3
    assert [r == large for r in results(chat, **keep, keep_rounds=2, keep_tokens=9_000)] == [False, True, True]
    assert [r == large for r in results(chat, **keep, keep_rounds=2, keep_tokens=2_000)] == [False, False, True]
    assert [r == large for r in results(chat, **keep, keep_rounds=2, keep_tokens=100)] == [False] * 3


def test_the_turn_that_is_answered_is_protected_whatever_runs_it_takes() -> None:
    large = words(1500)
    chat = Chat()
    chat.ask("Look", run="r1")
    chat.tools("", "c1", content=large)
    chat.failed()
    chat.start("r2", action="continue")
    assert results(chat, run="r2", compact_keep_requests=0) == [large]


def test_context_5_4_the_keep_list_beats_the_force_list_and_both_sizes() -> None:
    large = words(3000)
    chat = chat_with(large, name="look")
    kept = results(chat, compact_keep=("look",), compact_force=("look",), compact_oversized=1000)
    assert kept == [large]


def test_context_5_5_a_forced_tools_result_goes_whatever_its_size_but_not_in_the_current_request() -> None:
    chat = chat_with("ten tokens")
    chat.tools("", "c9", content="ten tokens")
    old, new = results(chat, compact_force=("look",), frame=LOADING)
    assert "by policy" in old and "session_load" not in old
    assert new == "ten tokens"


def test_context_5_6_the_hint_names_only_tools_that_are_offered() -> None:
    chat = chat_with(words(1500))
    assert "session_load" not in results(chat)[0] and "read and change nothing" in results(chat)[0]
    hinted = results(chat, LOADING)[0]
    assert 'call session_load with {"event_id": "e4", "tool_call_id": "c0"}' in hinted


def test_a_result_that_is_kept_as_a_file_says_how_to_read_it() -> None:
    chat = chat_with(words(1500))
    record = chat.events[3].record
    assert isinstance(record, ToolReturned)
    ref = ArtifactRef(
        artifact_id="x", name="results/look.txt", version=1, mime="text/plain", size_bytes=9_000, sha256="0" * 64
    )
    chat.events[3] = replace(chat.events[3], record=replace(record, artifact=ref))
    reading = replace(FRAME, tools=(*LOADING.tools, tool("read_artifact").spec))
    assert f'call read_artifact with {{"name": "{ref.uri}"}}' in results(chat, reading)[0]
    assert "session_load" in results(chat, LOADING)[0]


def test_context_5_7_a_placeholder_larger_than_the_result_is_not_used() -> None:
    text = words(40)
    assert results(chat_with(text), compact_over=20) == [text]


def test_context_5_8_run_over_its_own_output_it_changes_nothing() -> None:
    chat = chat_with(words(1500), words(9000), "small")
    chat.tools("", "c9", content=words(9500))
    looking = view("r9", policy=with_policy(compact_keep_requests=0))
    first = assemble(chat.events, FRAME, looking)
    assert [p.params.get("why") for p in first.parts if p.tag == "tool"] == [
        "earlier_request",
        "earlier_request",
        None,
        "oversized",
    ]
    sizes = Sizes(looking.rates, None)
    events = {s.id: s for s in chat.events}
    settled = decided(chat.events, visible(chat.events, looking), looking, sizes)
    again = compact(first.parts, events, settled, looking, sizes)
    assert tuple(again.parts) == first.parts and again.step is None


def test_context_5_14_chinese_is_counted_as_what_it_costs() -> None:
    chinese, english = "查看冷库" * 250, "look" * 250
    assert results(chat_with(chinese), compact_over=400)[0].startswith(PLACEHOLDER)
    assert results(chat_with(english), compact_over=400) == [english]


def test_a_failed_call_is_not_said_to_have_succeeded() -> None:
    chat = chat_with(words(1500))
    record = chat.events[3].record
    assert isinstance(record, ToolReturned)
    chat.events[3] = replace(chat.events[3], record=replace(record, status=ToolStatus.TIMEOUT))
    assert "ended with status timeout" in results(chat)[0] and "succeeded" not in results(chat)[0]


def test_a_step_is_made_only_for_a_good_share_of_the_request_and_holds_from_then_on() -> None:
    chat = chat_with(words(1500), *[words(900)] * 9)
    looking = view("r9", policy=with_policy(compact_step=0.2))
    made = assemble(chat.events, FRAME, looking)
    assert made.compacted is None and not any(p.kind == "placeholder" for p in made.parts)

    chat = chat_with(words(3000), words(900))
    made = assemble(chat.events, FRAME, looking)
    step = made.compacted
    assert step is not None and (step.up_to, step.results) == (4, 1)
    assert 2_700 < step.tokens < 3_000
    chat.stepped(step)
    again = assemble(chat.events, FRAME, looking)
    assert again.request == made.request and again.compacted is None
    chat.answer("More")
    chat.ask("Next", run="r10")
    later = assemble(chat.events, FRAME, view("r10", policy=with_policy(compact_step=0.9)))
    assert later.request.messages[: len(made.request.messages)] == made.request.messages
    assert later.compacted is None


def test_a_further_step_takes_what_came_since() -> None:
    large = words(2000)
    chat = chat_with(large)
    chat.stepped(assemble(chat.events, FRAME, view("r9")).compacted)
    for n in (10, 11, 12):
        chat.tools("", f"c{n}", content=large)
        chat.answer("Seen")
        chat.done()
        chat.ask("Now?", run=f"r{n}")
    made = assemble(chat.events, FRAME, view("r12", policy=with_policy(compact_step=0.2)))
    assert made.compacted is not None and made.compacted.results == 2
    assert [p.kind for p in made.parts if p.tag == "tool"] == ["placeholder"] * 3 + ["event"]


def test_a_step_does_not_flip_when_the_rates_change() -> None:
    chat = chat_with(words(1100), words(900))
    chat.stepped(ContextCompacted(up_to=6, results=1, tokens=1000))
    dear = Rates(tuple(value * 3 for value in DEFAULT_RATES.values))
    cheap = Rates(tuple(value / 3 for value in DEFAULT_RATES.values))
    requests = [
        assemble(chat.events, FRAME, view("r9", rates=rates, policy=with_policy(compact_step=1.0))).request
        for rates in (DEFAULT_RATES, dear, cheap)
    ]
    assert requests[0] == requests[1] == requests[2]


def test_a_policy_without_compaction_replaces_nothing() -> None:
    large = words(9000)
    assert results(chat_with(large), compact=False, compact_force=("look",)) == [large]


def test_the_round_that_comes_back_behind_a_summary_has_its_large_payloads_replaced_one_by_one() -> None:
    chat = Chat()
    chat.ask("Save it", run="r9")
    asked = chat.answer("Saving", "c1", "c2", "c3", arguments='{"text": "' + words(1500) + '"}')
    assert isinstance(asked.record, AssistantMessage)
    calls = list(asked.record.tool_calls)
    calls[1] = ToolCall(id="c2", name="look", arguments='{"q": "short"}')
    chat.events[-1] = replace(asked, record=replace(asked.record, tool_calls=tuple(calls)))
    chat.result("c1", "short")
    chat.result("c2", words(1500))
    last = chat.result("c3", words(1500), name="skill_load")
    looking = view("r9", summaries=by_key(summary(last)))
    made = assemble(chat.events, LOADING, looking)
    message, *returned = made.request.messages[2:]
    arguments = [call.arguments for call in message.tool_calls]
    assert "omitted" in arguments[0] and arguments[1] == '{"q": "short"}' and "omitted" in arguments[2]
    assert message.text == "Saving"
    assert returned[0].text == "short"
    assert "current_invocation_summary" in returned[1].text and "session_load" in returned[1].text
    assert returned[2].text == words(1500)
    assert in_provider_order(made.request.messages)
    assert rebuilt(made, chat.events, LOADING, looking) == made.request
    plain = assemble(chat.events, LOADING, replace(looking, policy=with_policy(compact=False)))
    assert [m.text for m in plain.request.messages[3:]] == ["short", words(1500), words(1500)]


def test_what_another_agent_got_is_replaced_too() -> None:
    chat = Chat()
    chat.ask("Look", run="r1")
    chat.tools("", "c1", content=words(1500), author="b")
    chat.ask("Now?", run="r9")
    looking = view("r9", policy=with_policy(compact_keep_requests=0))
    told = shown(chat, looking)[2][1]
    assert told.startswith("For context: the tool look returned: [Result left out")
    made = assemble(chat.events, FRAME, looking)
    assert rebuilt(made, chat.events, FRAME, looking) == made.request


def test_parts_say_what_a_placeholder_costs() -> None:
    chat = chat_with(words(1500))
    made = assemble(chat.events, FRAME, view("r9"))
    (part,) = [p for p in made.parts if p.kind == "placeholder"]
    message = next(m for m in made.request.messages if m.role.value == "tool")
    record = chat.events[3].record
    assert isinstance(record, ToolReturned)
    assert part.tokens == estimate_record(replace(record, content=message.text)) < 150
    assert dict(made.window_used.parts)["placeholder"] == part.tokens
