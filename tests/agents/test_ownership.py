"""Nobody reaches another person's rows through any function of the stores, whatever names they know."""

import inspect
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

import pytest
import pytest_asyncio
from django.contrib.auth import get_user_model

from agents.models.owned import OwnerRequired
from agents.models.run import Run
from agents.models.session import Session
from agents.runtime.errors import Rejected
from agents.runtime.model import NO_USAGE
from agents.runtime.session import ModelCall, OpenRun
from agents.stores import db, inbox, modelcalls, pool, runs, sessions, state, summaries
from agents.stores.sessions import PgSessionStore
from tests.agents.records import answer, changed, planner, request, stamp, user

pytestmark = pytest.mark.usefixtures("hot_stores")

MODULES: tuple[ModuleType, ...] = (inbox, modelcalls, runs, sessions, state, summaries)


@pytest_asyncio.fixture
async def people(hot_stores: None) -> tuple[int, int]:
    make = db.in_thread(get_user_model().objects.create_user)
    return int((await make("alice")).pk), int((await make("bob")).pk)


@pytest_asyncio.fixture
async def alices(people: tuple[int, int]) -> OpenRun:
    """A running run of alice with an answer, state of its own, a model call and a message in the inbox."""
    alice, _ = people
    run = await PgSessionStore().open_run(request(alice), planner(user("secret", id="m")))
    await run.ledger.model_called(call("c1"))
    await run.ledger.append([stamp(answer("hush")), stamp(changed(user__name="Alice", own=1))])
    await inbox.put(owner_id=alice, thread_id="t", message=user("queued", id="q"), kind=inbox.Kind.QUEUE)
    return run


def call(call_id: str, run_id: str = "r") -> ModelCall:
    return ModelCall(
        id=call_id,
        run_id=run_id,
        invocation_id="i",
        purpose="chat",
        provider="p",
        model="m",
        usage=NO_USAGE,
        ttft_ms=None,
        latency_ms=1.0,
        finish_reason="stop",
    )


async def refused(made: Awaitable[Any]) -> str:
    with pytest.raises(Rejected) as error:
        await made
    return error.value.code


async def test_bob_gets_nothing_of_alices_by_any_function_that_takes_an_owner(
    people: tuple[int, int], alices: OpenRun
) -> None:
    alice, bob = people
    names = {"owner_id": bob, "thread_id": "t"}
    run = {**names, "run_id": "r"}
    message = user("mine", id="b")
    steer = {"message": message, "kind": inbox.Kind.STEER}
    queue = {"message": message, "kind": inbox.Kind.QUEUE}
    in_thread = db.in_thread
    tried: dict[Callable[..., Any], Any] = {
        inbox.put: [
            await refused(inbox.put(**run, **steer)),
            await refused(inbox.put(**names, **queue)),
        ],
        inbox.waiting: await inbox.waiting(**names),
        inbox.next_queued: await inbox.next_queued(**names),
        inbox.take_back: await inbox.take_back(**names, message_id="q"),
        inbox.remove_waiting: await in_thread(inbox.remove_waiting)(**names, message_id="q"),
        runs.request_cancel: await runs.request_cancel(**run),
        runs.find_run: await runs.find_run(**run),
        runs.active_run: await runs.active_run(**names),
        runs.lost_run: await runs.lost_run(**names),
        runs.running_count: await runs.running_count(owner_id=bob),
        runs.status: await runs.status(**run),
        sessions.history: await refused(sessions.history(bob, "t")),
        sessions.read_history: await refused(in_thread(sessions.read_history)(bob, "t")),
        sessions.visible: await refused(sessions.visible(**names)),
        modelcalls.of_run: await in_thread(modelcalls.of_run)(owner_id=bob, run_key=alices.run_key),
        modelcalls.last_chat: await in_thread(modelcalls.last_chat)(owner_id=bob, session_id=int(alices.session.id)),
        summaries.being_made: await in_thread(summaries.being_made)(**names),
        summaries.visible: await in_thread(summaries.visible)(**names),
        summaries.summarise_now: await refused(in_thread(summaries.summarise_now)(**names)),
        state.of_user: await in_thread(state.of_user)(owner_id=bob),
        state.put_user: await in_thread(state.put_user)(owner_id=bob, values={"name": "Bob"}),
    }
    await in_thread(modelcalls.record)(owner_id=bob, session_id=None, call=call("c2", run_id="r"))
    tried[modelcalls.record] = await in_thread(modelcalls.of_run)(owner_id=alice, run_key=alices.run_key)
    assert [c.call_id for c in tried.pop(modelcalls.record)] == ["c1"]
    assert tried.pop(inbox.put) == ["thread_not_found", "thread_not_found"]
    assert {tried.pop(f) for f in (sessions.history, sessions.read_history, sessions.visible)} == {"thread_not_found"}
    assert tried.pop(summaries.summarise_now) == "thread_not_found"
    assert [f.__name__ for f, answer in tried.items() if answer] == []
    # and alice's are as they were
    assert [w.message.id for w in await inbox.waiting(owner_id=alice, thread_id="t")] == ["q"]
    assert await in_thread(state.of_user)(owner_id=alice) == {"user:name": "Alice"}
    assert not (await runs.heartbeat([(alices.run_key, 1)]))[0].cancel_requested


async def test_a_call_cannot_be_booked_on_a_foreign_session(people: tuple[int, int], alices: OpenRun) -> None:
    _, bob = people
    record = db.in_thread(modelcalls.record)
    await record(owner_id=bob, session_id=alices.session.id, call=call("c2"))
    rows = await pool.fetch("SELECT count(*) FROM agents_modelcall WHERE session_id = %s", (int(alices.session.id),))
    assert rows == [(1,)]


async def test_bobs_run_on_alices_thread_id_is_a_thread_of_his_own(people: tuple[int, int], alices: OpenRun) -> None:
    _, bob = people
    plan = planner(user("hello", id="m"))
    opened = await PgSessionStore().open_run(request(bob, "t", "r"), plan)
    assert opened.session.id != alices.session.id
    assert opened.history == ()
    assert opened.session.state == {}
    assert [w.message.id for w in await inbox.waiting(owner_id=bob, thread_id="t")] == []


def test_every_function_that_takes_an_owner_is_tried_here() -> None:
    source = inspect.getsource(test_bob_gets_nothing_of_alices_by_any_function_that_takes_an_owner)
    missing = [
        f"{module.__name__}.{name}"
        for module in MODULES
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__
        and not name.startswith("_")
        and "owner_id" in inspect.signature(function).parameters
        and f"{module.__name__.rpartition('.')[2]}.{name}:" not in source
        and f"{module.__name__.rpartition('.')[2]}.{name})(" not in source
    ]
    assert missing == []


@pytest.mark.parametrize("model", [Session, Run])
def test_a_query_that_names_no_owner_is_refused(model: Any) -> None:
    with pytest.raises(OwnerRequired):
        model.objects.filter(pk=1)
    with pytest.raises(OwnerRequired):
        model.objects.all()
