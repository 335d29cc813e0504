"""What every SessionStore and RunLedger promises: one suite over the store in memory and the one in PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, Protocol

import pytest
import pytest_asyncio
from django.contrib.auth import get_user_model

from agents.runtime.errors import Rejected, RunFenced
from agents.runtime.events import Stored, ToolReturned, UserMessage
from agents.runtime.memorystores import MemorySessionStore
from agents.runtime.model import TextPart, ToolCall
from agents.runtime.session import Action, OpenRun, SessionStore
from agents.stores import db, inbox, pool, sessions, writer
from tests.agents.records import (
    AT,
    FINISHED,
    answer,
    changed,
    finished,
    planner,
    request,
    stamp,
    texts,
    user,
)


class House(Protocol):
    """A store under test, with what another process or a person would do to it."""

    store: SessionStore
    alice: int
    bob: int

    async def visible(self, owner_id: int, thread_id: str = "t") -> tuple[Stored, ...]: ...

    async def fence(self, opened: OpenRun) -> None: ...

    async def steer(self, opened: OpenRun, message: UserMessage) -> None: ...


class MemoryHouse:
    def __init__(self) -> None:
        self.store = MemorySessionStore()
        self.alice, self.bob = 1, 2

    async def visible(self, owner_id: int, thread_id: str = "t") -> tuple[Stored, ...]:
        return self.store.stored(owner_id=owner_id, thread_id=thread_id)

    async def fence(self, opened: OpenRun) -> None:
        asked = opened.request
        self.store.fence(owner_id=asked.owner_id, thread_id=asked.thread_id, run_id=asked.run_id)

    async def steer(self, opened: OpenRun, message: UserMessage) -> None:
        asked = opened.request
        assert self.store.steer(
            owner_id=asked.owner_id, thread_id=asked.thread_id, run_id=asked.run_id, message=message
        )


class PgHouse:
    def __init__(self, alice: int, bob: int) -> None:
        self.store = sessions.PgSessionStore()
        self.alice, self.bob = alice, bob

    async def visible(self, owner_id: int, thread_id: str = "t") -> tuple[Stored, ...]:
        return (await sessions.visible(owner_id=owner_id, thread_id=thread_id)).stored

    async def fence(self, opened: OpenRun) -> None:
        await pool.fetch("UPDATE agents_run SET epoch = epoch + 1, status = 'lost' WHERE id = %s", (opened.run_key,))

    async def steer(self, opened: OpenRun, message: UserMessage) -> None:
        asked = opened.request
        await inbox.put(
            owner_id=asked.owner_id,
            thread_id=asked.thread_id,
            run_id=asked.run_id,
            message=message,
            kind=inbox.Kind.STEER,
        )


@pytest_asyncio.fixture(params=["memory", "postgresql"])
async def house(request: pytest.FixtureRequest, transactional_db: Any) -> AsyncIterator[House]:
    if request.param == "memory":
        yield MemoryHouse()
        return
    make = db.in_thread(get_user_model().objects.create_user)
    alice, bob = await make("alice"), await make("bob")
    yield PgHouse(alice.pk, bob.pk)
    await writer.close()
    await pool.close()


async def say(house: House, words: str, reply: str, *, run_id: str, **more: Any) -> OpenRun:
    """Play a whole turn: a question, an answer, the end."""
    message = user(words, id=f"m-{run_id}")
    plan = planner(message, run_id=run_id, fork_after=more.pop("fork_after", None))
    opened = await house.store.open_run(request(house.alice, run_id=run_id, message=message, **more), plan)
    await opened.ledger.append([stamp(answer(reply), run_id=run_id)])
    await opened.ledger.append([stamp(finished(), run_id=run_id)], end=FINISHED)
    return opened


async def test_a_new_thread_becomes_a_session_and_its_first_records_have_positions_from_one(house: House) -> None:
    message = user("hello")
    opened = await house.store.open_run(request(house.alice, message=message), planner(message))
    assert opened.new_session
    assert opened.history == ()
    assert [stored.position for stored in opened.records] == [1, 2]
    assert [stored.record.type for stored in opened.records] == ["run_started", "user_message"]
    assert (opened.session.thread_id, opened.session.agent, opened.session.fork) == ("t", "assistant", 0)
    assert opened.session.id != ""
    assert await house.visible(house.alice) == opened.records


async def test_appended_records_come_back_as_they_were_with_their_positions(house: House) -> None:
    opened = await house.store.open_run(request(house.alice), planner())
    full = answer("it is", reasoning="hm", tool_calls=(ToolCall(id="c", name="look", arguments='{"q": "x"}'),))
    result = ToolReturned(id="x", call_id="c", name="look", content="found\0 it \U0001f600", data={"hits": [1, None]})
    given = [
        stamp(full, branch="assistant/child", filter_key="a/b"),
        stamp(result, parent_invocation_id="i0", trigger="tool_call", trigger_id="c", trigger_name="look"),
    ]
    stored = await opened.ledger.append(given)
    assert [one.position for one in stored] == [2, 3]
    assert stored[0].record == full
    assert (stored[0].origin, stored[1].origin) == (given[0].origin, given[1].origin)
    assert (stored[0].at, stored[0].tokens) == (AT, 7)
    assert (await house.visible(house.alice))[1:] == stored


async def test_context_1_3_the_same_event_id_appended_twice_in_a_run_is_one_row(house: House) -> None:
    opened = await house.store.open_run(request(house.alice), planner())
    once = stamp(answer("one"), id="same")
    first = await opened.ledger.append([once])
    again = await opened.ledger.append([stamp(answer("other"), id="same"), stamp(answer("two"))])
    assert again[0] == first[0]
    assert again[1].position == first[0].position + 1
    assert texts(await house.visible(house.alice)) == ["one", "two"]


async def test_an_id_twice_in_one_append_is_stored_once(house: House) -> None:
    opened = await house.store.open_run(request(house.alice), planner())
    one = stamp(answer("one"), id="same")
    stored = await opened.ledger.append([one, one, stamp(answer("two"))])
    assert [s.position for s in stored] == [2, 2, 3]


async def test_context_1_4_two_events_with_empty_ids_are_both_stored(house: House) -> None:
    opened = await house.store.open_run(request(house.alice), planner())
    await opened.ledger.append([stamp(answer("one"), id=""), stamp(answer("two"), id="")])
    await opened.ledger.append([stamp(answer("three"), id="")])
    assert texts(await house.visible(house.alice)) == ["one", "two", "three"]


async def test_context_1_9_a_none_in_a_state_delta_is_read_back_as_an_explicit_null(house: House) -> None:
    opened = await house.store.open_run(request(house.alice), planner())
    await opened.ledger.append([stamp(changed(color="red", size=3))])
    await opened.ledger.append([stamp(changed(color=None, user__name=None))])
    await opened.ledger.append([stamp(finished())], end=FINISHED)
    after = await house.store.open_run(request(house.alice, run_id="r2"), planner(run_id="r2"))
    assert after.session.state == {"color": None, "size": 3, "user:name": None}


async def test_context_1_8_a_temp_key_is_refused_at_the_door_and_nothing_of_the_append_is_stored(house: House) -> None:
    opened = await house.store.open_run(request(house.alice), planner())
    with pytest.raises(ValueError):
        await opened.ledger.append([stamp(answer("one")), stamp(changed(temp__x=1))])
    assert texts(await house.visible(house.alice)) == []


async def test_context_1_12_equal_timestamps_keep_their_append_order(house: House) -> None:
    opened = await house.store.open_run(request(house.alice), planner())
    words = [f"word {n}" for n in range(100)]
    await opened.ledger.append([stamp(answer(w), at=AT) for w in words[:60]])
    await opened.ledger.append([stamp(answer(w), at=AT) for w in words[60:]])
    assert texts(await house.visible(house.alice)) == words


async def test_prefixed_keys_outlive_the_session_each_in_its_own_scope(house: House) -> None:
    opened = await house.store.open_run(request(house.alice), planner())
    await opened.ledger.append(
        [stamp(changed(here=1, user__name="Al")), stamp(changed(app__motto="x", user__name="Alice"))]
    )
    mine = await house.store.open_run(request(house.alice, "t2"), planner())
    assert mine.session.state == {"user:name": "Alice", "app:motto": "x"}
    theirs = await house.store.open_run(request(house.bob), planner())
    assert theirs.session.state == {"app:motto": "x"}


async def test_state_in_the_opening_records_counts_at_once(house: House) -> None:
    opened = await house.store.open_run(request(house.alice), planner(changed(a=1, user__b=2)))
    assert opened.session.state == {"a": 1, "user:b": 2}
    await opened.ledger.append([stamp(changed(a=2))])
    await opened.ledger.append([stamp(finished())], end=FINISHED)
    plan = planner()
    await house.store.open_run(request(house.alice, run_id="r2"), plan)
    assert plan.seen.session.state == {"a": 2, "user:b": 2}


async def test_the_planner_sees_the_history_and_the_run_gets_it(house: House) -> None:
    await say(house, "one", "first", run_id="r1")
    plan = planner(user("two", id="m2"), run_id="r2")
    opened = await house.store.open_run(request(house.alice, run_id="r2"), plan)
    assert texts(plan.seen.history) == ["one", "first"]
    assert opened.history == plan.seen.history
    assert not opened.new_session
    assert [s.position for s in opened.records] == [5, 6]


async def test_a_second_run_is_refused_while_one_runs(house: House) -> None:
    opened = await house.store.open_run(request(house.alice), planner())
    with pytest.raises(Rejected) as refused:
        await house.store.open_run(request(house.alice, run_id="r2"), planner())
    assert refused.value.code == "run_conflict"
    await opened.ledger.append([stamp(finished())], end=FINISHED)
    await house.store.open_run(request(house.alice, run_id="r2"), planner())


async def test_twenty_tasks_open_a_run_in_one_session_and_exactly_one_wins(house: House) -> None:
    async def one(n: int) -> OpenRun:
        return await house.store.open_run(request(house.alice, run_id=f"r{n}"), planner(run_id=f"r{n}"))

    results = await asyncio.gather(*(one(n) for n in range(20)), return_exceptions=True)
    won = [r for r in results if isinstance(r, OpenRun)]
    lost = [r.code for r in results if isinstance(r, Rejected)]
    assert (len(won), lost) == (1, ["run_conflict"] * 19)
    assert len(await house.visible(house.alice)) == 1


async def test_a_run_id_is_used_up_for_ever_in_its_thread(house: House) -> None:
    await say(house, "one", "first", run_id="r1")
    with pytest.raises(Rejected) as refused:
        await house.store.open_run(request(house.alice, run_id="r1"), planner())
    assert refused.value.code == "run_id_reused"
    await house.store.open_run(request(house.alice, "other", run_id="r1"), planner())


async def test_what_the_planner_raises_leaves_nothing_behind(house: House) -> None:
    def refuse(opening: Any) -> Any:
        raise Rejected("message_not_found")

    with pytest.raises(Rejected, match="Message not found"):
        await house.store.open_run(request(house.alice), refuse)
    opened = await house.store.open_run(request(house.alice), planner())
    assert opened.new_session
    assert opened.records[0].position == 1


@pytest.mark.parametrize("action", [Action.EDIT, Action.RETRY, Action.CONTINUE])
async def test_an_action_on_a_thread_that_is_not_there_is_not_found(house: House, action: Action) -> None:
    with pytest.raises(Rejected) as refused:
        await house.store.open_run(request(house.alice, action=action), planner())
    assert refused.value.code == "thread_not_found"


async def test_a_parent_run_in_a_thread_that_is_not_there_is_not_found(house: House) -> None:
    with pytest.raises(Rejected) as refused:
        await house.store.open_run(request(house.alice, parent_run_id="p"), planner())
    assert refused.value.code == "thread_not_found"


async def test_a_foreign_owners_thread_id_is_simply_a_new_thread_of_mine(house: House) -> None:
    await say(house, "secret", "answer", run_id="r1")
    plan = planner(run_id="r1")
    opened = await house.store.open_run(request(house.bob, run_id="r1"), plan)
    assert opened.new_session
    assert plan.seen.history == ()
    with pytest.raises(Rejected) as refused:
        await house.store.open_run(request(house.bob, "nobody's", action=Action.RETRY), planner())
    assert refused.value.code == "thread_not_found"


async def test_a_fork_shares_up_to_its_position_and_leaves_the_old_line_alone(house: House) -> None:
    await say(house, "one", "first", run_id="r1")  # positions 1 to 4
    await say(house, "two", "second", run_id="r2")  # 5 to 8
    opened = await say(house, "TWO", "SECOND", run_id="r3", action=Action.EDIT, fork_after=4)
    assert texts(opened.history) == ["one", "first"]
    assert opened.session.fork == 1
    assert [s.fork for s in opened.records] == [1, 1]
    assert opened.records[0].position == 9
    assert texts(await house.visible(house.alice)) == ["one", "first", "TWO", "SECOND"]


async def test_history_is_read_through_forks_of_forks(house: House) -> None:
    await say(house, "a", "A", run_id="r1")  # 1-4, fork 0
    await say(house, "b", "B", run_id="r2")  # 5-8, fork 0
    await say(house, "c", "C", run_id="r3", action=Action.EDIT, fork_after=4)  # 9-12, fork 1
    await say(house, "d", "D", run_id="r4")  # 13-16, fork 1
    await say(house, "e", "E", run_id="r5", action=Action.EDIT, fork_after=12)  # 17-20, fork 2 of 1
    assert texts(await house.visible(house.alice)) == ["a", "A", "c", "C", "e", "E"]
    # a fork that leaves at a place its grandparent wrote
    opened = await say(house, "f", "F", run_id="r6", action=Action.EDIT, fork_after=4)  # 21-24, fork 3 of 2
    assert texts(opened.history) == ["a", "A"]
    assert texts(await house.visible(house.alice)) == ["a", "A", "f", "F"]
    # and one that shares nothing
    await say(house, "g", "G", run_id="r7", action=Action.EDIT, fork_after=0)
    assert texts(await house.visible(house.alice)) == ["g", "G"]
    positions = [s.position for s in await house.visible(house.alice)]
    assert positions == [25, 26, 27, 28]


async def test_an_abandoned_fork_leaves_nothing_in_the_state(house: House) -> None:
    opened = await house.store.open_run(request(house.alice), planner(changed(a=1)))  # 1, 2
    await opened.ledger.append([stamp(finished())], end=FINISHED)  # 3
    opened = await house.store.open_run(request(house.alice, run_id="r2"), planner(changed(a=2, b=2), run_id="r2"))
    await opened.ledger.append([stamp(changed(c=3)), stamp(finished())], end=FINISHED)
    assert opened.session.state == {"a": 2, "b": 2}
    forked = await house.store.open_run(
        request(house.alice, run_id="r3", action=Action.EDIT), planner(changed(d=4), run_id="r3", fork_after=3)
    )
    assert forked.session.state == {"a": 1, "d": 4}
    await forked.ledger.append([stamp(changed(a=5))])
    await forked.ledger.append([stamp(finished())], end=FINISHED)
    after = await house.store.open_run(request(house.alice, run_id="r4"), planner(run_id="r4"))
    assert after.session.state == {"a": 5, "d": 4}


async def test_a_run_that_another_process_closed_can_write_nothing_more(house: House) -> None:
    opened = await house.store.open_run(request(house.alice), planner())
    await house.fence(opened)
    with pytest.raises(RunFenced):
        await opened.ledger.append([stamp(answer("late"))])
    assert texts(await house.visible(house.alice)) == []


async def test_nothing_can_follow_the_end_of_a_run(house: House) -> None:
    opened = await house.store.open_run(request(house.alice), planner())
    await opened.ledger.append([stamp(finished())], end=FINISHED)
    with pytest.raises(RunFenced):
        await opened.ledger.append([stamp(answer("late"))])


@pytest.mark.parametrize("count", [0, 65])
async def test_an_append_takes_one_to_sixty_four_records(house: House, count: int) -> None:
    opened = await house.store.open_run(request(house.alice), planner())
    with pytest.raises(ValueError):
        await opened.ledger.append([stamp(answer(str(n))) for n in range(count)])
    assert len(await opened.ledger.append([stamp(answer(str(n))) for n in range(64)])) == 64


async def test_steering_messages_are_read_once_in_their_order(house: House) -> None:
    opened = await house.store.open_run(request(house.alice), planner())
    assert await opened.ledger.steered() == ()
    await house.steer(opened, user("first", id="s1"))
    await house.steer(opened, user("first", id="s1"))
    await house.steer(opened, user("second", id="s2"))
    read = await opened.ledger.steered()
    assert [(m.id, m.kind.value) for m in read] == [("s1", "steer"), ("s2", "steer")]
    assert await opened.ledger.steered() == ()
    await house.steer(opened, user("third", id="s3"))
    assert [m.id for m in await opened.ledger.steered()] == ["s3"]


async def test_two_runs_in_two_sessions_do_not_disturb_each_other(house: House) -> None:
    one = await house.store.open_run(request(house.alice, "t1"), planner())
    two = await house.store.open_run(request(house.bob, "t1"), planner())

    async def write(opened: OpenRun, word: str) -> None:
        for n in range(30):
            await opened.ledger.append([stamp(answer(f"{word}{n}"))])

    await asyncio.gather(write(one, "x"), write(two, "y"))
    assert texts(await house.visible(house.alice, "t1")) == [f"x{n}" for n in range(30)]
    assert texts(await house.visible(house.bob, "t1")) == [f"y{n}" for n in range(30)]
    assert [s.position for s in await house.visible(house.bob, "t1")] == list(range(1, 32))


async def test_the_caller_that_goes_away_does_not_take_its_records_along(house: House) -> None:
    """Spec context 1, test 13: the client goes right after the last token, and the last event is stored."""
    opened = await house.store.open_run(request(house.alice), planner())
    asked = asyncio.ensure_future(opened.ledger.append([stamp(answer("last"))]))
    await asyncio.sleep(0)
    shielded = asyncio.shield(asked)
    shielded.cancel()
    await asked
    assert texts(await house.visible(house.alice)) == ["last"]


async def test_a_message_with_a_lone_surrogate_or_a_null_is_kept_as_far_as_it_can_be(house: House) -> None:
    opened = await house.store.open_run(request(house.alice), planner())
    given = replace(user("x", id="u9"), parts=(TextPart(text="a\0b"),), context=(("open\0", "page"),))
    stored = await opened.ledger.append([stamp(given)])
    assert (await house.visible(house.alice))[-1] == stored[0]


async def test_the_planner_hears_whether_the_message_is_known_whatever_line_it_lies_in(house: House) -> None:
    await say(house, "one", "first", run_id="r1")
    await say(house, "two", "second", run_id="r2")
    await say(house, "other", "third", run_id="r3", fork_after=4)
    seen = {}
    for n, message_id in enumerate(("m-r1", "m-r2", "m-r3", "new", "")):
        plan = planner(run_id=f"x{n}")
        opened = await house.store.open_run(
            request(house.alice, run_id=f"x{n}", message=user("again", id=message_id)), plan
        )
        seen[message_id] = (plan.seen.message_known, plan.seen.whole)
        await opened.ledger.append([stamp(finished(), run_id=f"x{n}")], end=FINISHED)
    assert seen == {
        "m-r1": (True, True),
        "m-r2": (True, True),
        "m-r3": (True, True),
        "new": (False, True),
        "": (False, True),
    }
    plan = planner()
    await house.store.open_run(request(house.bob, message=user("mine", id="m-r1")), plan)
    assert not plan.seen.message_known


async def test_an_append_that_asks_for_a_summary_stores_what_it_was_given(house: House) -> None:
    opened = await house.store.open_run(request(house.alice), planner())
    stored = await opened.ledger.append([stamp(answer("one"))], summarise=True)
    assert texts(stored) == ["one"]
    await opened.ledger.append([stamp(finished())], end=FINISHED, summarise=True)
    assert texts(await house.visible(house.alice)) == ["one"]
    assert opened.summaries == {}
