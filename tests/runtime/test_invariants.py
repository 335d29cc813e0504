"""Whatever a model, a tool and a person do in whatever order: one end, one result per call, a history that goes on."""

import asyncio
import random
from collections.abc import Mapping
from typing import Any

import pytest

from agents.runtime.context.assemble import Frame, View, assemble
from agents.runtime.errors import LimitExceeded, ModelBusy, StreamCut, ToolFailed
from agents.runtime.events import RunFinished, Stored
from agents.runtime.invocation import Limits
from agents.runtime.memorystores import MemorySessionStore
from agents.runtime.model import FinishReason, Message, ModelRequest, Role, ToolCallChunk
from agents.runtime.session import Action, CancelReason, CancelToken
from agents.runtime.testing import ScriptedModel, Step, finish, memory_runner, said, text
from agents.runtime.tools import ToolContext, ToolResult, Traits
from tests.runtime.samples import end_of, every_call_has_one_result, records, request, tool

SEEDS = 150
EXTERNAL = tool("ask_person").spec


def random_turn(rng: random.Random) -> list[Step]:
    steps: list[Step] = []
    for _ in range(rng.randrange(6)):
        kind = rng.randrange(6)
        if kind < 3:
            steps += text(rng.choice(["Hello", " ", "你好", "\n\n"]))
        elif kind < 5:
            name = rng.choice(["look", "look", "slow", "lok", "ask_person", ""])
            arguments = rng.choice(["{}", '{"q": "x"}', '{"q": ', "nonsense", ""])
            steps.append(
                ToolCallChunk(
                    index=rng.randrange(2), id=rng.choice(["", "c0", "c1", "c2"]), name=name, arguments=arguments
                )
            )
        else:
            steps.append(rng.choice([StreamCut(), ModelBusy()]))
            return steps
    if rng.randrange(4) == 0:
        steps += finish(rng.choice([FinishReason.LENGTH, FinishReason.STOP]))
    return steps


def provider_accepts(messages: tuple[Message, ...]) -> bool:
    """Return whether every call is followed by exactly its results, and no result stands alone."""
    waiting: list[str] = []
    for message in messages:
        if message.role is Role.TOOL:
            if message.tool_call_id not in waiting:
                return False
            waiting.remove(message.tool_call_id)
        elif waiting:
            return False
        else:
            waiting = [call.id for call in message.tool_calls]
    return not waiting


def accepted(history: tuple[Stored, ...]) -> bool:
    view = View(agent="assistant", run_id="r0", filter_key="assistant")
    return provider_accepts(assemble(history, Frame(instruction="x"), view).request.messages)


@pytest.mark.parametrize("block", range(5))
async def test_every_run_ends_once_and_leaves_a_history_that_goes_on(block: int) -> None:
    for seed in range(block * SEEDS // 5, (block + 1) * SEEDS // 5):
        await one_conversation(random.Random(seed), seed)


async def one_conversation(rng: random.Random, seed: int) -> None:
    async def look(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        for _ in range(rng.randrange(4)):
            await asyncio.sleep(0)
            context.progress("…", None, None)
        match rng.randrange(6):
            case 0:
                raise ToolFailed("no")
            case 1:
                raise LimitExceeded
            case 2:
                return ToolResult(content="x" * 20_000, end_run=rng.random() < 0.5)
            case _:
                return ToolResult(content="ok", state={"n": seed})

    def answer(asked: ModelRequest) -> list[Step]:
        assert provider_accepts(asked.messages), seed
        return random_turn(rng)

    store = MemorySessionStore()
    tools = (tool("look", look, traits=Traits(concurrency_safe=True)), tool("slow", look))
    limits = Limits(model_calls=4, tool_rounds=3, parallel_tools=3, finish_without_tools=rng.random() < 0.5)
    model = ScriptedModel(answer, repeat_last=True)
    runner = memory_runner(model, tools=tools, store=store, limits=limits)
    for number in range(4):
        run_id = f"r{number}"
        retry = number > 0 and rng.random() < 0.3
        asked = request(
            message=None if retry else said("Hi", id=f"u{number}"),
            action=Action.RETRY if retry else Action.SEND,
            run_id=run_id,
            external_tools=(EXTERNAL,),
        )
        opened = await runner.open(asked)
        stop_at, cancel, emitted = rng.choice([2, 3, 5, 8, 999]), CancelToken(), []
        async for one in runner.run(opened, cancel):
            emitted.append(one)
            if len(emitted) == stop_at:
                cancel.cancel(rng.choice([CancelReason.USER, CancelReason.SHUTDOWN, CancelReason.TIMEOUT]))
            if rng.random() < 0.1:
                store.steer(owner_id=1, thread_id="t", run_id=run_id, message=said("!", id=f"s{number}"))
        end = end_of(emitted)
        chain = store.stored(owner_id=1, thread_id="t")
        assert [s.record for s in chain][-len(records(emitted)) :] == records(emitted), seed
        assert [s.position for s in chain] == sorted({s.position for s in chain}), seed
        assert accepted(chain), seed
        if not (isinstance(end, RunFinished) and end.pending_call_ids):
            assert every_call_has_one_result(chain), seed
