import asyncio

import pytest

from agents.runtime.interrupt import Interrupt, Interrupted
from agents.runtime.session import CancelReason, CancelToken
from tests.runtime.samples import soon


async def test_a_wait_ends_at_once_and_the_task_is_not_left_cancelled() -> None:
    cancel, never = CancelToken(), asyncio.Event()
    asyncio.get_running_loop().call_soon(cancel.cancel, CancelReason.USER)
    with Interrupt(cancel) as interrupt, pytest.raises(Interrupted):
        await interrupt.wait(never.wait())
    task = asyncio.current_task()
    assert task is not None and task.cancelling() == 0
    await asyncio.sleep(0)


async def test_a_token_that_is_set_already_lets_nothing_begin() -> None:
    cancel, began = CancelToken(), []
    cancel.cancel(CancelReason.USER)

    async def work() -> None:
        began.append(1)

    with Interrupt(cancel) as interrupt, pytest.raises(Interrupted):
        await interrupt.wait(work())
    assert began == []


async def test_setting_the_token_from_inside_the_wait_strikes_there_and_nowhere_later() -> None:
    cancel = CancelToken()

    async def work() -> str:
        cancel.cancel(CancelReason.USER)
        return "done"

    with Interrupt(cancel) as interrupt:
        assert await interrupt.wait(work()) == "done"
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_what_swallows_the_interruption_gives_its_value() -> None:
    cancel, waiting = CancelToken(), asyncio.Event()

    async def stubborn() -> str:
        try:
            waiting.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "anyway"
        raise AssertionError

    async def stop() -> None:
        await soon(waiting)
        cancel.cancel(CancelReason.USER)

    stopping = asyncio.create_task(stop())
    with Interrupt(cancel) as interrupt:
        assert await interrupt.wait(stubborn()) == "anyway"
    await stopping
    task = asyncio.current_task()
    assert task is not None and task.cancelling() == 0


async def test_cancelling_the_task_sets_the_token_to_shutdown() -> None:
    cancel, waiting = CancelToken(), asyncio.Event()

    async def work() -> None:
        with Interrupt(cancel) as interrupt:
            waiting.set()
            await interrupt.wait(asyncio.Event().wait())

    task = asyncio.create_task(work())
    await soon(waiting)
    task.cancel()
    with pytest.raises(Interrupted):
        await task
    assert cancel.reason is CancelReason.SHUTDOWN


async def test_nobody_listens_after_the_end() -> None:
    cancel = CancelToken()
    with Interrupt(cancel):
        assert len(cancel._listeners) == 1
    assert cancel._listeners == []
