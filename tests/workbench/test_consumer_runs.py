"""Runs over a WebSocket: started, followed, joined, left, stopped."""

import asyncio
from typing import Any

import pytest

from agents.runtime.testing import ScriptedModel, WaitFor, call, reasoning, text, turn
from tests.agents.house import house
from tests.protocols.checker import apply, check
from tests.workbench.door import door, question, token_of

pytestmark = pytest.mark.django_db(transaction=True)


class Gate:
    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.reached = asyncio.Event()
        self.step = WaitFor(self.go, self.reached)


async def test_a_question_is_accepted_and_answered_on_the_same_socket(alice: Any) -> None:
    token = await token_of(alice)
    async with house(ScriptedModel(turn(reasoning("Hm."), text("Hello ", "you.")))), door(token=token) as socket:
        asked = question()
        events = await socket.run(asked)
        assert socket.frames[0]["type"] == "accepted"
        check(socket.raw_events(asked["runId"]))
        assert [m["content"] for m in apply(events)] == ["Hello?", "Hm.", "Hello you."]


async def test_a_bare_input_is_enough(alice: Any) -> None:
    token = await token_of(alice)
    async with house(ScriptedModel(turn(text("Hi")))), door(token=token) as socket:
        asked = question()
        await socket.say(**asked)
        await socket.until("RUN_FINISHED")
        check(socket.raw_events(asked["runId"]))


async def test_a_second_question_follows_on_the_same_socket(alice: Any) -> None:
    token = await token_of(alice)
    async with house(ScriptedModel(turn(text("one")), turn(text("two")))), door(token=token) as socket:
        first, second = question(), question()
        await socket.run(first)
        events = await socket.run(second)
        check(socket.raw_events(second["runId"]))
        assert [m["content"] for m in apply(events)] == ["Hello?", "two"]


async def test_4_4_a_second_run_on_a_busy_thread_is_refused_and_the_first_goes_on(alice: Any) -> None:
    token, gate = await token_of(alice), Gate()
    async with house(ScriptedModel(turn(text("a"), gate.step, text("b")))), door(token=token) as socket:
        first = question()
        await socket.say(type="run", input=first)
        await gate.reached.wait()
        await socket.say(type="run", input=question(), requestId="q2")
        refused = await socket.until("rejected")
        assert (refused["code"], refused["requestId"], refused["what"]) == ("run_conflict", "q2", "run")
        gate.go.set()
        await socket.until("RUN_FINISHED")
        check(socket.raw_events(first["runId"]))


async def test_4_11_a_socket_that_comes_back_gets_exactly_what_it_misses(alice: Any) -> None:
    token, gate = await token_of(alice), Gate()
    asked = question()
    async with house(ScriptedModel(turn(text("one ", "two "), gate.step, text("three")))):
        async with door(token=token) as socket:
            await socket.say(type="run", input=asked)
            await gate.reached.wait()
            await socket.until("TEXT_MESSAGE_CONTENT")
            before = socket.raw_events(asked["runId"])
        async with door(token=token) as socket:
            await socket.say(type="attach", threadId="t", runId=asked["runId"], after=len(before))
            attached = await socket.until("attached")
            assert (attached["mode"], attached["runId"]) == ("replay", asked["runId"])
            gate.go.set()
            await socket.until("RUN_FINISHED")
            after = socket.raw_events(asked["runId"])
        events = check(before + after)
        assert apply(events)[-1]["content"] == "one two three"


async def test_4_11_after_the_end_the_log_still_has_the_rest(alice: Any) -> None:
    token = await token_of(alice)
    async with house(ScriptedModel(turn(text("one ", "two")))), door(token=token) as socket:
        asked = question()
        await socket.run(asked)
        whole = socket.raw_events(asked["runId"])
        async with door(token=token) as late:
            await late.say(type="attach", threadId="t", runId=asked["runId"], after=2)
            await late.until("RUN_FINISHED")
            assert late.raw_events(asked["runId"]) == whole[2:]


async def test_5_14_joining_in_the_middle_shows_history_first_and_every_text_once(alice: Any) -> None:
    token, gate = await token_of(alice), Gate()
    script = ScriptedModel(turn(text("first")), turn(text("half "), gate.step, text("whole")))
    async with house(script), door(token=token) as socket:
        await socket.run(question("One"))
        second = question("Two")
        await socket.say(type="run", input=second)
        await gate.reached.wait()
        async with door(token=token) as other:
            await other.say(type="attach", threadId="t")
            assert (await other.until("attached"))["mode"] == "snapshot"
            gate.go.set()
            await other.until("RUN_FINISHED")  # of the history
            await other.until("RUN_FINISHED")
            raw = [r for r, f in zip(other.raw, other.frames, strict=True) if f["type"].isupper()]
            events = check(raw, first_seq=None)
            assert [m["content"] for m in apply(events)] == ["One", "first", "Two", "half whole"]
            check(other.raw_events(second["runId"]))


async def test_an_idle_thread_is_shown_and_its_next_run_arrives(alice: Any) -> None:
    token = await token_of(alice)
    async with house(ScriptedModel(turn(text("one")), turn(text("two")))), door(token=token) as first:
        await first.run(question("One"))
        async with door(token=token) as second:
            await second.say(type="attach", threadId="t", requestId="q")
            attached = await second.until("attached")
            assert (attached["mode"], attached["runId"], attached["requestId"]) == ("idle", None, "q")
            await second.until("RUN_FINISHED")
            asked = question("Two")
            await first.run(asked)
            await second.until("RUN_FINISHED")
            assert second.raw_events(asked["runId"]) == first.raw_events(asked["runId"])
            assert second.frames[-1]["type"] == "RUN_FINISHED"


async def test_after_detach_nothing_comes_any_more(alice: Any) -> None:
    token = await token_of(alice)
    async with house(ScriptedModel(turn(text("one")), turn(text("two")))), door(token=token) as first:
        await first.run(question())
        async with door(token=token) as second:
            await second.say(type="attach", threadId="t", after=0)
            await second.until("attached")
            for _ in range(2):
                await second.say(type="detach", threadId="t")
                await second.until("accepted")
            second.frames.clear()
            await first.run(question())
            await second.say(type="ping", requestId="p")
            assert (await second.until("pong"))["requestId"] == "p"
            assert not [f for f in second.frames if f["type"].isupper()]


async def test_4_15_cancel_is_accepted_while_the_run_goes_on_and_not_found_after(alice: Any) -> None:
    token, gate = await token_of(alice), Gate()
    async with house(ScriptedModel(turn(text("Once "), gate.step, text("never")))), door(token=token) as socket:
        asked = question()
        await socket.say(type="run", input=asked)
        await gate.reached.wait()
        await socket.say(type="cancel", threadId="t", runId=asked["runId"], requestId="c")
        end = await socket.until("RUN_FINISHED")
        assert end["outcome"] == {"type": "cancelled"}
        events = check(socket.raw_events(asked["runId"]))
        assert apply(events)[-1]["content"] == "Once "
        assert any(f["type"] == "accepted" and f["what"] == "cancel" for f in socket.frames) or (
            (await socket.until("accepted"))["what"] == "cancel"
        )
        await socket.say(type="cancel", threadId="t", runId=asked["runId"])
        assert (await socket.until("rejected"))["code"] == "thread_not_found"


async def test_the_same_run_sent_again_gets_the_same_answer_once(alice: Any) -> None:
    token = await token_of(alice)
    async with house(ScriptedModel(turn(text("one")))), door(token=token) as socket:
        asked = question()
        await socket.run(asked)
        count = len(socket.raw_events(asked["runId"]))
        async with door(token=token) as again:
            await again.say(type="run", input=asked, requestId="q")
            answer = await again.until("accepted")
            assert answer["duplicate"] is True
            await again.until("RUN_FINISHED")
            assert again.raw_events(asked["runId"]) == socket.raw_events(asked["runId"])
        await socket.say(type="run", input=asked)
        assert (await socket.until("accepted"))["duplicate"] is True
        assert len(socket.raw_events(asked["runId"])) == count


async def test_5_6_external_calls_wait_and_half_an_answer_changes_nothing(alice: Any) -> None:
    token = await token_of(alice)
    tools = [{"name": name, "description": name, "parameters": {"type": "object"}} for name in ("pick", "look")]
    script = ScriptedModel(turn(call("c1", "pick", {}), call("c2", "look", {})), turn(text("Thanks.")))
    async with house(script), door(token=token) as socket:
        first = question(tools=tools)
        events = await socket.run(first)
        assert set(events[-1]["outcome"]["pendingToolCallIds"]) == {"c1", "c2"}
        answers = [{"id": f"t{n}", "role": "tool", "toolCallId": f"c{n}", "content": "ok"} for n in (1, 2)]

        def answering(run: str, *given: Any) -> dict[str, Any]:
            return {"threadId": "t", "runId": run, "messages": [*first["messages"], *given], "tools": tools}

        for run, given, code in (
            ("r-half", answers[:1], "tool_results_incomplete"),
            ("r-odd", [*answers, {**answers[0], "id": "t3", "toolCallId": "c9"}], "unknown_tool_call"),
        ):
            await socket.say(type="run", input=answering(run, *given))
            assert (await socket.until("rejected"))["code"] == code
        whole = answering("r-whole", *answers)
        events = await socket.run(whole)
        assert [m["id"] for m in events[0]["input"]["messages"]] == ["t1", "t2"]
        check(socket.raw_events("r-whole"))
        assert apply(events)[-1]["content"] == "Thanks."


async def test_an_edit_forks_and_the_second_viewer_drops_what_was_replaced(alice: Any) -> None:
    token = await token_of(alice)
    async with house(ScriptedModel(turn(text("one")), turn(text("two")))), door(token=token) as socket:
        first = question("Old")
        held = apply(await socket.run(first))
        second = question(
            "New", forwardedProps={"workbench": {"action": "edit", "messageId": first["messages"][0]["id"]}}
        )
        held = apply(await socket.run(second), held)
        assert [m["content"] for m in held] == ["New", "two"]
        check(socket.raw_events(second["runId"]))


async def test_html_blocks_come_only_to_who_asked_for_them(alice: Any) -> None:
    token = await token_of(alice)
    script = ScriptedModel(turn(text("# One\n\ntwo")), turn(text("# One\n\ntwo")))
    async with house(script), door(token=token) as socket:
        plain = await socket.run(question())
        rich = await socket.run(question(forwardedProps={"workbench": {"render": "html"}}))
        blocks = [[e["value"]["html"] for e in run if e.get("name") == "workbench.block"] for run in (plain, rich)]
        assert blocks == [[], ["<h3>One</h3>\n", "<p>two</p>\n"]]


async def test_a_steering_message_reaches_the_run_and_every_viewer(alice: Any) -> None:
    token, gate = await token_of(alice), Gate()
    script = ScriptedModel(turn(call("c1", "nothing", {}), gate.step), turn(text("In metres.")))
    async with house(script), door(token=token) as socket:
        asked = question()
        await socket.say(type="run", input=asked)
        await gate.reached.wait()
        message = {"id": "u-steer", "role": "user", "content": "Use metres"}
        await socket.say(type="steer", threadId="t", runId=asked["runId"], message=message)
        assert (await socket.until("accepted"))["what"] in ("run", "steer")
        gate.go.set()
        await socket.until("RUN_FINISHED")
        events = check(socket.raw_events(asked["runId"]))
        assert "u-steer" in [m["id"] for m in apply(events)]
        await socket.say(type="steer", threadId="t", runId=asked["runId"], message={**message, "id": "u-late"})
        assert (await socket.until("rejected"))["what"] == "steer"
