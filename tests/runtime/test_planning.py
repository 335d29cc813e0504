"""What a request does to a conversation: edit, retry, continue, answers to external calls, seeds, state."""

import pytest

from agents.runtime.errors import Rejected, StreamCut
from agents.runtime.events import (
    AssistantMessage,
    Emitted,
    RunStarted,
    StateChanged,
    ToolReturned,
    ToolStatus,
    UserMessage,
)
from agents.runtime.memorystores import MemorySessionStore
from agents.runtime.model import FilePart, FinishReason, TextPart
from agents.runtime.planning import CONTEXT_BYTES, EXTERNAL_RESULT_BYTES, NOT_EXECUTED, cap_context
from agents.runtime.runner import Runner
from agents.runtime.session import Action, CancelReason, CancelToken, RunRequest, Upload
from agents.runtime.testing import ScriptedModel, Turn, call, collect, finish, memory_runner, said, text, turn
from tests.runtime.samples import of, request, texts, tool

ASK = tool("ask_person").spec


def conversation(*turns: Turn) -> tuple[Runner, ScriptedModel, MemorySessionStore]:
    store, model = MemorySessionStore(), ScriptedModel(*turns)
    return memory_runner(model, store=store, tools=(tool("look"),)), model, store


def result(call_id: str, content: str = "yes") -> ToolReturned:
    return ToolReturned(id=f"res-{call_id}", call_id=call_id, name="", content=content)


def heard(model: ScriptedModel) -> list[str]:
    """Return what the last call was told, without the system text."""
    return [m.text for m in model.requests[-1].messages[1:]]


async def refused(runner: Runner, wrong: RunRequest) -> str:
    with pytest.raises(Rejected) as rejected:
        await runner.open(wrong)
    return rejected.value.code


async def pending(*call_ids: str, after: Turn = ()) -> tuple[Runner, ScriptedModel, MemorySessionStore]:
    runner, model, store = conversation(turn(*[call(c, "ask_person", {}) for c in call_ids]), after, after)
    await collect(runner, request(external_tools=(ASK,)))
    return runner, model, store


# Messages


@pytest.mark.parametrize(
    "wrong",
    [
        request(message=None),
        request(message=said("  \n")),
        request(message=UserMessage(id="u", parts=())),
        request(thread_id=""),
        RunRequest(owner_id=1, thread_id="t", run_id="", message=said("x")),
        request(state={"app:all": 1}),
        request(action=Action.RETRY),
        request(action=Action.CONTINUE),
        request(action=Action.EDIT),
        request(action=Action.EDIT, message=None, message_id="u"),
    ],
    ids=["none", "blank", "no parts", "no thread", "no run", "app state", "retry+", "continue+", "edit-id", "edit-msg"],
)
async def test_a_request_that_says_nothing_sensible_is_refused(wrong: RunRequest) -> None:
    runner, _, store = conversation()
    assert await refused(runner, wrong) == "invalid_input"
    assert not store._threads


async def test_a_file_alone_is_a_message() -> None:
    runner, model, _ = conversation(text("ok"))
    part = FilePart(artifact_id="a", version=1, name="x.pdf", mime="application/pdf", size_bytes=3)
    await collect(runner, request(message=UserMessage(id="u", parts=(part,))))
    assert model.requests[0].messages[1].parts == (part,)
    upload = Upload(name="x", mime="text/plain", data=b"x")
    await runner.open(request(message=UserMessage(id="u2", parts=()), uploads=(upload,), run_id="r2"))


async def test_a_message_without_an_id_gets_one() -> None:
    runner, _, _ = conversation(text("ok"))
    emitted = await collect(runner, request(message=said("Hi", id="")))
    assert of(emitted, UserMessage)[0].id


async def test_the_same_last_message_sent_again_after_a_failure_is_a_retry_and_not_a_second_message() -> None:
    runner, model, store = conversation(turn(text("Ha"), StreamCut()), text("Whole."))
    await collect(runner, request(message=said("Hi", id="u")))
    await collect(runner, request(message=said("Hi", id="u"), run_id="r2"))
    assert heard(model) == ["Hi"]
    assert [s.record.type for s in store.stored(owner_id=1, thread_id="t")].count("user_message") == 1


async def test_an_older_message_sent_again_is_refused() -> None:
    runner, _, _ = conversation(text("a"), text("b"))
    await collect(runner, request(message=said("1", id="u1")))
    await collect(runner, request(message=said("2", id="u2"), run_id="r2"))
    assert await refused(runner, request(message=said("1", id="u1"), run_id="r3")) == "invalid_input"


def test_open_context_is_capped_at_16_kb_without_splitting_a_character() -> None:
    kept = cap_context([("a", "x" * 10_000), ("b", "数" * 10_000), ("c", "gone")])
    assert [name for name, _ in kept] == ["a", "b"]
    assert sum(len(n.encode()) + len(v.encode()) for n, v in kept) <= CONTEXT_BYTES
    assert set(kept[1][1]) == {"数"}


async def test_state_of_a_request_is_stored_where_it_differs() -> None:
    runner, _, store = conversation(text("a"), text("b"))
    first = await collect(runner, request(state={"page": 1, "temp:x": 2}))
    assert of(first, StateChanged) == [StateChanged(delta={"page": 1})]
    second = await collect(runner, request(run_id="r2", state={"page": 1}))
    assert not of(second, StateChanged)
    assert store.session(owner_id=1, thread_id="t").state == {"page": 1}


# Answers to external calls


async def test_3_6_a_pending_call_gets_no_false_result_and_a_later_answer_goes_on() -> None:
    runner, model, store = await pending("c1", after=text("Thanks."))
    assert not [s for s in store.stored(owner_id=1, thread_id="t") if isinstance(s.record, ToolReturned)]
    emitted = await collect(runner, request(message=None, tool_results=(result("c1"),), run_id="r2"))
    (answer,) = of(emitted, ToolReturned)
    assert (answer.name, answer.external, answer.content) == ("ask_person", True, "yes")
    assert [m.role.value for m in model.requests[-1].messages] == ["system", "user", "assistant", "tool"]
    assert texts(emitted) == ["Thanks."]


async def test_answers_are_kept_in_the_order_given_and_read_in_call_order() -> None:
    runner, model, _ = await pending("c1", "c2", after=text("ok"))
    answers = (result("c2", "two"), result("c1", "one"))
    emitted = await collect(runner, request(message=None, tool_results=answers, run_id="r2"))
    assert [r.call_id for r in of(emitted, ToolReturned)] == ["c2", "c1"]
    assert heard(model)[-2:] == ["one", "two"]


async def test_4_3_wrong_answers_are_refused_by_name_and_the_thread_goes_on() -> None:
    runner, _, _ = await pending("c1", "c2", after=text("ok"))

    async def code(*answers: ToolReturned) -> str:
        return await refused(runner, request(message=None, tool_results=answers, run_id="r2"))

    assert await code(result("c9"), result("c1"), result("c2")) == "unknown_tool_call"
    assert await code(result("c1"), result("c1"), result("c2")) == "tool_result_duplicate"
    assert await code(result("c1")) == "tool_results_incomplete"
    assert await code(result("c1", "x" * (EXTERNAL_RESULT_BYTES + 1)), result("c2")) == "payload_too_large"
    both = (result("c1"), result("c2"))
    await collect(runner, request(message=None, tool_results=both, run_id="r3"))
    again = request(message=None, tool_results=(result("c1"),), run_id="r4")
    assert await refused(runner, again) == "tool_result_duplicate"


async def test_context_4_14_a_message_after_a_pending_call_writes_that_it_was_not_executed() -> None:
    runner, model, store = await pending("c1", "c2", after=text("Fine."))
    emitted = await collect(runner, request("Never mind", run_id="r2"))
    assert [(r.call_id, r.content, r.status) for r in of(emitted, ToolReturned)] == [
        ("c1", NOT_EXECUTED, ToolStatus.CANCELLED),
        ("c2", NOT_EXECUTED, ToolStatus.CANCELLED),
    ]
    roles = [m.role.value for m in model.requests[-1].messages]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user"]
    types = [s.record.type for s in store.stored(owner_id=1, thread_id="t")][-6:-2]
    assert types == ["run_started", "tool_returned", "tool_returned", "user_message"]


# Edit, retry, continue


async def test_an_edit_forks_and_the_model_hears_only_the_new_message() -> None:
    runner, model, store = conversation(text("a1"), text("a2"), text("b2"))
    await collect(runner, request(message=said("one", id="u1")))
    await collect(runner, request(message=said("two", id="u2"), run_id="r2"))
    edit = request(message=said("TWO", id="u3"), action=Action.EDIT, message_id="u2", run_id="r3")
    emitted = await collect(runner, edit)
    assert heard(model) == ["one", "a1", "TWO"]
    chain = store.stored(owner_id=1, thread_id="t")
    assert {s.fork for s in chain} == {0, 1}
    assert [s.record.text for s in chain if isinstance(s.record, AssistantMessage)] == ["a1", "b2"]
    assert of(emitted, RunStarted)[0].action == "edit"


async def test_a_run_that_does_not_say_where_the_person_is_takes_it_from_the_one_before() -> None:
    runner, _, store = conversation(text("a"), text("b"), text("c"))
    for run, zone in (("r1", "Asia/Shanghai"), ("r2", ""), ("r3", "Europe/Oslo")):
        await collect(runner, request(message=said("one", id=f"u-{run}"), run_id=run, zone=zone))
    started = [s.record.zone for s in store.stored(owner_id=1, thread_id="t") if isinstance(s.record, RunStarted)]
    assert started == ["Asia/Shanghai", "Asia/Shanghai", "Europe/Oslo"]


async def test_an_edit_of_the_first_message_shares_nothing() -> None:
    runner, model, store = conversation(text("a"), text("b"))
    await collect(runner, request(message=said("one", id="u1"), state={"x": 1}))
    edit = request(message=said("ONE", id="u2"), action=Action.EDIT, message_id="u1", run_id="r2")
    await collect(runner, edit)
    assert heard(model) == ["ONE"]
    assert {s.fork for s in store.stored(owner_id=1, thread_id="t")} == {1}
    assert store.session(owner_id=1, thread_id="t").state == {}


@pytest.mark.parametrize("which", ["answer", "question", "nothing named"])
async def test_a_retry_answers_the_same_question_again_on_a_fork(which: str) -> None:
    runner, model, store = conversation(turn(call("c1", "look", {})), text("first"), text("second"))
    emitted = await collect(runner, request(message=said("one", id="u1")))
    message_id = {"answer": of(emitted, AssistantMessage)[-1].id, "question": "u1"}.get(which, "")
    again = await collect(runner, request(message=None, action=Action.RETRY, message_id=message_id, run_id="r2"))
    assert heard(model) == ["one"]
    assert not of(again, UserMessage)
    said_now = [s.record.text for s in store.stored(owner_id=1, thread_id="t") if s.record.type == "assistant_message"]
    assert said_now == ["second"]


async def test_a_retry_of_a_failed_run_whose_last_word_is_the_question() -> None:
    runner, model, store = conversation(turn(StreamCut()), text("ok"))
    await collect(runner, request(message=said("one", id="u1")))
    await collect(runner, request(message=None, action=Action.RETRY, message_id="u1", run_id="r2"))
    assert heard(model) == ["one"]
    assert "run_failed" not in [s.record.type for s in store.stored(owner_id=1, thread_id="t")]


async def test_a_retry_of_a_retry_and_forks_of_forks_keep_one_line() -> None:
    runner, model, store = conversation(text("1"), text("2"), text("3"), text("4"), text("5"))
    await collect(runner, request(message=said("one", id="u1")))
    for number in (2, 3):
        await collect(runner, request(message=None, action=Action.RETRY, run_id=f"r{number}"))
    await collect(runner, request(message=said("two", id="u2"), run_id="r4"))
    assert heard(model) == ["one", "3", "two"]
    await collect(runner, request(message=None, action=Action.RETRY, run_id="r5"))
    assert heard(model) == ["one", "3", "two"]
    chain = store.stored(owner_id=1, thread_id="t")
    assert len({s.fork for s in chain}) == 3
    assert [s.position for s in chain] == sorted({s.position for s in chain})


async def test_a_retry_after_answers_to_external_calls_keeps_the_answers() -> None:
    runner, model, _ = await pending("c1", after=text("ok"))
    await collect(runner, request(message=None, tool_results=(result("c1"),), run_id="r2"))
    await collect(runner, request(message=None, action=Action.RETRY, run_id="r3"))
    assert heard(model)[-1] == "yes"


async def stopped_after(words: str, store_turns: tuple[Turn, ...]) -> tuple[Runner, ScriptedModel, list[Emitted]]:
    runner, model, _ = conversation(text(words, " never"), *store_turns)
    cancel, emitted = CancelToken(), []
    opened = await runner.open(request())
    async for one in runner.run(opened, cancel):
        emitted.append(one)
        if one.event == getattr(one.event, "text", None) or type(one.event).__name__ == "TextDelta":
            cancel.cancel(CancelReason.USER)
    return runner, model, emitted


async def test_continue_goes_on_with_the_partial_answer_and_an_instruction_not_to_repeat() -> None:
    runner, model, emitted = await stopped_after("Half an", ((text(" answer.")), text("later")))
    partial = of(emitted, AssistantMessage)[-1]
    assert partial.finish_reason is FinishReason.CANCELLED
    go_on = request(message=None, action=Action.CONTINUE, message_id=partial.id, run_id="r2")
    more = await collect(runner, go_on)
    assert not of(more, UserMessage)
    roles = [m.role.value for m in model.requests[-1].messages]
    assert roles == ["system", "user", "assistant", "user"]
    assert heard(model)[1] == "Half an" and "Do not repeat" in heard(model)[2]
    await collect(runner, request("And?", run_id="r3"))
    assert model.requests[-1].messages[:4] == model.requests[-2].messages
    assert heard(model)[3:] == [" answer.", "And?"]


@pytest.mark.parametrize(
    "first",
    [turn(text("Half"), StreamCut()), turn(text("Half"), finish(FinishReason.LENGTH)), turn(StreamCut())],
    ids=["cut", "length", "failed without a word"],
)
async def test_what_stopped_early_can_be_continued(first: Turn) -> None:
    runner, model, _ = conversation(first, text("rest"))
    await collect(runner, request())
    more = await collect(runner, request(message=None, action=Action.CONTINUE, run_id="r2"))
    assert texts(more) == ["rest"] and "Do not repeat" in heard(model)[-1]


async def test_a_complete_answer_cannot_be_continued() -> None:
    runner, _, _ = conversation(text("a"))
    await collect(runner, request())
    assert await refused(runner, request(message=None, action=Action.CONTINUE, run_id="r2")) == "invalid_input"


@pytest.mark.parametrize("action", [Action.EDIT, Action.RETRY, Action.CONTINUE])
async def test_an_unknown_message_or_thread_is_not_found(action: Action) -> None:
    runner, _, _ = conversation(turn(text("a"), finish(FinishReason.LENGTH)))
    message = said("new", id="new") if action is Action.EDIT else None
    missing = request(message=message, action=action, message_id="ghost", run_id="r2")
    assert await refused(runner, missing) == "thread_not_found"
    await collect(runner, request())
    assert await refused(runner, missing) == "message_not_found"


async def test_an_answer_cannot_be_edited() -> None:
    runner, _, _ = conversation(text("a"))
    emitted = await collect(runner, request())
    wrong = request(
        message=said("x", id="x"), action=Action.EDIT, message_id=of(emitted, AssistantMessage)[0].id, run_id="r2"
    )
    assert await refused(runner, wrong) == "invalid_input"


async def test_seeds_lose_their_calls_and_the_message_that_is_sent_anyway() -> None:
    runner, model, _ = conversation(text("ok"))
    seed = (
        said("Old", id="o1"),
        AssistantMessage(id="o2", response_id="", text="Answer"),
        UserMessage(id="", parts=(TextPart(text="Hi"),)),
    )
    emitted = await collect(runner, request("Hi", seed=seed))
    assert heard(model) == ["Old", "Answer", "Hi"]
    assert [m.seeded for m in of(emitted, AssistantMessage)] == [True, False]
