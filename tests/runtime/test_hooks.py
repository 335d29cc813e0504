"""What a hook may not do (spec 4, test 13; spec 1.8)."""

from dataclasses import replace

import pytest

from agents.runtime.events import AssistantMessage, Event, Outcome, RunFailed, RunFinished
from agents.runtime.invocation import Hooks, Invocation
from agents.runtime.memorystores import MemorySessionStore
from agents.runtime.model import ModelRequest
from agents.runtime.session import CancelToken
from agents.runtime.testing import ScriptedModel, memory_runner, text, turn
from tests.runtime.samples import request

KINDS = ["run_started", "user_message", "run_failed"]


async def failed_by(hooks: Hooks, error: type[Exception]) -> tuple[RunFailed, list[str]]:
    """Return how a run with these hooks ends, and what is stored of it; the run itself must raise `error`."""
    store = MemorySessionStore()
    runner = memory_runner(ScriptedModel(turn(text("Hi"))), hooks=hooks, store=store)
    opened = await runner.open(request())
    with pytest.raises(error) as raised:
        [emitted async for emitted in runner.run(opened, CancelToken())]
    failed = (await runner.fail(opened, raised.value)).event
    assert isinstance(failed, RunFailed)
    return failed, [s.record.type for s in store.stored(owner_id=1, thread_id="t")]


async def test_4_13_a_hook_that_makes_an_end_of_the_run_out_of_an_answer_is_refused() -> None:
    async def end_it(invocation: Invocation, event: Event) -> Event | None:
        return RunFinished(outcome=Outcome.SUCCESS) if isinstance(event, AssistantMessage) else None

    failed, kinds = await failed_by(Hooks(on_event=(end_it,)), TypeError)
    assert failed.code == "internal"
    assert "run_finished" not in kinds and kinds.count("run_failed") == 1


async def test_4_13_a_hook_that_fails_ends_the_run_with_one_error() -> None:
    async def broken(invocation: Invocation, request: ModelRequest) -> ModelRequest | str | None:
        raise KeyError("secret detail")

    failed, kinds = await failed_by(Hooks(before_model=(broken,)), KeyError)
    assert (failed.code, failed.retryable) == ("internal", False)
    assert "secret" not in failed.message and failed.reference
    assert kinds == KINDS


async def test_an_event_hook_may_change_what_is_said() -> None:
    async def louder(invocation: Invocation, event: Event) -> Event | None:
        return replace(event, text=event.text.upper()) if isinstance(event, AssistantMessage) else None

    store = MemorySessionStore()
    runner = memory_runner(ScriptedModel(turn(text("Hi"))), hooks=Hooks(on_event=(louder,)), store=store)
    [emitted async for emitted in runner.run(await runner.open(request()), CancelToken())]
    said = [s.record.text for s in store.stored(owner_id=1, thread_id="t") if isinstance(s.record, AssistantMessage)]
    assert said == ["HI"]
