"""Summaries in PostgreSQL: what a chain sees of them, who may write one, and how much of a history a run then reads."""

import asyncio
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from django.contrib.auth import get_user_model
from django.db.models.functions import Now

from agents.background import sweep
from agents.models.session import Session
from agents.models.summary import Summary as Row
from agents.models.summary_draft import SummaryDraft
from agents.runtime.errors import Rejected
from agents.runtime.events import Origin, RunStarted, ToolReturned
from agents.runtime.knowledge import Citation, Place
from agents.runtime.memorysummaries import MemorySummaries
from agents.runtime.model import ToolCall
from agents.runtime.planning import Stamp, plan
from agents.runtime.session import Action, Opening, OpenRun, Plan, RunRequest
from agents.runtime.summaries import Draft, Source, SummaryStore
from agents.stores import db, histories, lines, pool, summaries
from agents.stores.sessions import PgSessionStore
from artifacts.rows import session_of_thread
from tests.agents.counting import counted
from tests.agents.records import AT, FINISHED, answer, finished, new_id, planner, request, stamp, texts, user
from tests.agents.summarising import AGENT, chain, elsewhere, say, store, up_to

pytestmark = pytest.mark.usefixtures("hot_stores")

ROOT = Path(__file__).parents[2]
WAIT_S = 20.0
RESULT = ToolReturned(id="", call_id="c", name="look", content="again")


@pytest_asyncio.fixture
async def alice(hot_stores: None) -> int:
    return int((await db.in_thread(get_user_model().objects.create_user)("alice")).pk)


@pytest_asyncio.fixture
async def bob(hot_stores: None) -> int:
    return int((await db.in_thread(get_user_model().objects.create_user)("bob")).pk)


async def turns(owner_id: int, count: int) -> OpenRun:
    """Play so many turns of four records each and return the last."""
    for n in range(1, count + 1):
        opened = await say(owner_id, f"question {n}", run_id=f"r{n}")
    return opened


async def opened_with(owner_id: int, asked: RunRequest) -> OpenRun:
    """Open a run as the runner does, with its planner."""

    def planning(opening: Opening) -> Plan:
        origin = Origin(run_id=asked.run_id, invocation_id="i", author="user", branch=AGENT, filter_key=AGENT)
        return plan(
            opening,
            asked,
            started=RunStarted(agent=AGENT, model="scripted"),
            stamp=Stamp(origin=origin, now=lambda: AT, new_id=new_id),
        )

    return await PgSessionStore().open_run(asked, planning)


async def end(opened: OpenRun) -> None:
    await opened.ledger.append([stamp(finished(), run_id=opened.request.run_id)], end=FINISHED)


# What is stored


async def test_a_summary_comes_back_as_it_was(alice: int) -> None:
    opened = await turns(alice, 2)
    there = await chain(alice)
    citation = Citation(
        id="k3f9ab", artifact_id="a", version=2, name="合同.pdf", start=3, end=9, place=Place(), quote="第三条"
    )
    given = up_to(
        there[3],
        "目标：比较两份合同。[[c:k3f9ab]] \U0001f600",
        source=Source.MANUAL,
        summarizer="materials",
        model="m",
        citations=(citation,),
        tokens=12,
        covered_tokens=345,
        covered_events=4,
        report={"trigger": {"name": "event", "value": 4.5}, "error": None},
    )
    assert await store(opened).advance(given)
    assert await store(opened).newest([AGENT, "", "other"]) == {AGENT: given}


async def test_characters_that_the_database_cannot_keep_do_not_lose_the_summary(alice: int) -> None:
    opened = await turns(alice, 1)
    assert await store(opened).advance(up_to((await chain(alice))[3], "a\0b\ud83d"))
    assert (await store(opened).newest([AGENT]))[AGENT].text == "a\ufffdb\ufffd"


async def test_each_scope_has_its_own_and_all_are_asked_for_in_one_statement(alice: int) -> None:
    opened = await turns(alice, 3)
    there = await chain(alice)
    for key, at in ((AGENT, 3), ("", 7), ("assistant/child", 7), ("assistant2", 7)):
        assert await store(opened).advance(up_to(there[at], key, key=key))
    with counted() as statements:
        found = await store(opened).newest([AGENT, "", "assistant/child", ""])
    assert {key: summary.text for key, summary in found.items()} == {
        AGENT: AGENT,
        "": "",
        "assistant/child": "assistant/child",
    }
    assert statements.total == 1


# Compare-and-set


async def test_a_second_summary_of_the_same_base_is_refused(alice: int) -> None:
    opened = await turns(alice, 3)
    there = await chain(alice)
    first = up_to(there[3])
    assert await store(opened).advance(first)
    assert not await store(opened).advance(up_to(there[7]))
    second = up_to(there[7], base=first.id)
    assert await store(opened).advance(second)
    assert not await store(opened).advance(up_to(there[11], base=first.id))
    assert await store(opened).newest([AGENT]) == {AGENT: second}


@pytest.mark.parametrize("at", [3, 1])
async def test_a_boundary_that_does_not_lie_beyond_the_bases_is_refused(alice: int, at: int) -> None:
    opened = await turns(alice, 2)
    there = await chain(alice)
    first = up_to(there[3])
    assert await store(opened).advance(first)
    assert not await store(opened).advance(up_to(there[at], base=first.id, read_from=1))


async def test_a_boundary_at_no_event_of_the_chain_is_refused(alice: int) -> None:
    opened = await turns(alice, 2)
    there = await chain(alice)
    nowhere = up_to(there[3])
    far = replace(nowhere, boundary=replace(nowhere.boundary, position=99))
    other_fork = replace(nowhere, boundary=replace(nowhere.boundary, fork=1))
    assert [await store(opened).advance(one) for one in (far, other_fork)] == [False, False]
    assert await store(opened).newest([AGENT]) == {}


async def test_a_summary_sent_twice_is_stored_once(alice: int) -> None:
    opened = await turns(alice, 1)
    one = up_to((await chain(alice))[3])
    assert [await store(opened).advance(one) for _ in range(2)] == [True, True]
    assert await db.in_thread(Row.objects.of(alice).count)() == 1


async def test_of_many_makers_at_once_in_several_processes_one_advances(alice: int) -> None:
    opened = await turns(alice, 2)
    there = await chain(alice)

    async def race(name: str) -> list[bool]:
        made = [up_to(there[3 + n % 2 * 4], f"{name} {n}") for n in range(4)]
        return list(await asyncio.gather(*(store(opened).advance(one) for one in made)))

    results = await asyncio.gather(*(elsewhere(lambda n=n: race(f"p{n}")) for n in range(3)))
    assert sum(sum(result) for result in results) == 1
    assert await db.in_thread(Row.objects.of(alice).count)() == 1


async def test_another_owner_neither_reads_nor_writes_nor_asks_for_one(alice: int, bob: int) -> None:
    opened = await turns(alice, 1)
    there = await chain(alice)
    assert not await store(opened, owner_id=bob).advance(up_to(there[3]))
    assert await store(opened).advance(up_to(there[3]))
    assert await store(opened, owner_id=bob).newest([AGENT]) == {}
    assert await db.in_thread(summaries.visible)(owner_id=bob, thread_id="t") is None
    with pytest.raises(Rejected) as refused:
        await db.in_thread(summaries.summarise_now)(owner_id=bob, thread_id="t")
    assert refused.value.code == "thread_not_found"


async def test_a_deleted_conversation_gets_none_and_a_purged_one_leaves_none(alice: int) -> None:
    opened = await turns(alice, 2)
    there = await chain(alice)
    first = up_to(there[3])
    assert await store(opened).advance(first)
    mark = Session.objects.of(alice).filter(thread_id="t").update
    await db.in_thread(mark)(deleted_at=Now() - sweep.UNDO_TIME * 2)
    assert not await store(opened).advance(up_to(there[7], base=first.id))
    assert await db.in_thread(summaries.visible)(owner_id=alice, thread_id="t") is None
    await db.in_thread(sweep._trim)()
    assert await db.in_thread(Row.objects.of_everyone().count)() == 0


# Making is serialised


@pytest.mark.parametrize("where", ["postgres", "memory"])
async def test_a_draft_is_kept_replaced_and_forgotten_per_scope(alice: int, where: str) -> None:
    opened = await turns(alice, 1)
    kept: SummaryStore = store(opened) if where == "postgres" else MemorySummaries()
    assert await kept.draft(AGENT) is None
    first = Draft(base="", read_chars=5_000_000, read_sha256="a" * 64, text="讨论了港口。")
    await kept.keep_draft(AGENT, first)
    await kept.keep_draft("", replace(first, base="s1"))
    second = replace(first, read_chars=6_000_000, text="They spoke of moorings.")
    await kept.keep_draft(AGENT, second)
    assert (await kept.draft(AGENT), await kept.draft("")) == (second, replace(first, base="s1"))
    await kept.keep_draft(AGENT, None)
    assert (await kept.draft(AGENT), await kept.draft("")) == (None, replace(first, base="s1"))


async def test_a_draft_is_of_its_owner_and_goes_with_its_conversation(alice: int, bob: int) -> None:
    opened = await turns(alice, 1)
    draft = Draft(base="", read_chars=1, read_sha256="a" * 64, text="a\0b\ud83d")
    await store(opened, owner_id=bob).keep_draft(AGENT, draft)
    assert await store(opened).draft(AGENT) is None
    await store(opened).keep_draft(AGENT, draft)
    await store(opened, owner_id=bob).keep_draft(AGENT, None)
    assert await store(opened, owner_id=bob).draft(AGENT) is None
    assert await store(opened).draft(AGENT) == replace(draft, text="ab\ufffd")
    await db.in_thread(Session.objects.of(alice).all().delete)()
    assert await db.in_thread(SummaryDraft.objects.of_everyone().count)() == 0


async def test_a_scope_is_held_by_one_and_others_wait_no_longer_than_they_said(alice: int) -> None:
    opened = await turns(alice, 1)
    loop = asyncio.get_running_loop()
    async with store(opened).hold(AGENT, wait_s=1) as mine:
        began = loop.time()
        async with store(opened).hold(AGENT, wait_s=0.1) as again:
            waited = loop.time() - began
        async with store(opened).hold("", wait_s=WAIT_S) as other_scope:
            pass
    async with store(opened).hold(AGENT, wait_s=WAIT_S) as after:
        pass
    assert (mine, again, other_scope, after) == (True, False, True, True)
    assert 0.1 <= waited < 0.1 + WAIT_S


async def test_who_waits_for_a_scope_gets_it_when_it_is_free(alice: int) -> None:
    opened = await turns(alice, 1)
    asking = asyncio.Event()

    async def second() -> bool:
        held = store(opened).hold(AGENT, wait_s=WAIT_S)
        asking.set()
        async with held as mine:
            return mine

    async with store(opened).hold(AGENT, wait_s=1):
        waiting = asyncio.create_task(second())
        await asking.wait()
    assert await waiting


async def test_no_transaction_is_open_and_no_connection_of_the_pool_is_taken_while_a_scope_is_held(alice: int) -> None:
    opened = await turns(alice, 1)
    async with store(opened).hold(AGENT, wait_s=1):
        rows = await pool.fetch(
            """
            SELECT a.state, a.xact_start FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
            WHERE l.locktype = 'advisory' AND l.granted AND a.datname = current_database()
            """,
            (),
        )
        assert rows == [("idle", None)]
        assert (await pool.current()).get_stats()["pool_available"] == (await pool.current()).get_stats()["pool_size"]


HOLDER = """
import asyncio, sys
import django; django.setup()
from django.conf import settings
settings.DATABASES["default"]["NAME"] = sys.argv[2]
from agents.stores.summaries import PgSummaries
async def main():
    async with PgSummaries(owner_id=1, session_id=int(sys.argv[1]), fork=0).hold("assistant", wait_s=5) as mine:
        print(mine, flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""


async def test_a_maker_that_is_killed_gives_the_scope_back(alice: int) -> None:
    opened = await turns(alice, 1)
    database = pool.params()["dbname"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HOLDER, opened.session.id, database),
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "workbench.settings"},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"True\n"
    async with store(opened).hold(AGENT, wait_s=0.1) as mine:
        assert not mine
    process.send_signal(signal.SIGKILL)
    await process.wait()
    async with store(opened).hold(AGENT, wait_s=WAIT_S) as mine:
        assert mine


# What a chain sees


async def test_an_edit_before_the_boundary_makes_the_summary_invisible_and_an_older_one_counts_again(
    alice: int,
) -> None:
    opened = await turns(alice, 4)
    there = await chain(alice)
    first = up_to(there[3], "one turn")
    assert await store(opened).advance(first)
    second = up_to(there[11], "three turns", base=first.id)
    assert await store(opened).advance(second)
    edited = await say(alice, "question 3, but otherwise", run_id="e", fork_after=8)
    assert edited.summaries == {AGENT: first}
    assert await store(edited).newest([AGENT]) == {AGENT: first}
    assert texts(edited.history) == ["question 1", "question 1 0", "question 2", "question 2 0"]
    visible = db.in_thread(summaries.visible)
    assert await visible(owner_id=alice, thread_id="t") == first
    await db.in_thread(lines.choose)(owner_id=alice, thread_id="t", fork=0)
    assert await visible(owner_id=alice, thread_id="t") == second
    # each line goes on from its own
    further = up_to((await chain(alice))[15], "four turns", base=second.id)
    assert await store(opened).advance(further)
    assert not await store(edited).advance(up_to(there[7], base=second.id))
    assert await store(edited).advance(up_to(there[7], "two turns", base=first.id))
    assert (await store(edited).newest([AGENT]))[AGENT].text == "two turns"
    assert await store(opened).newest([AGENT]) == {AGENT: further}


async def test_an_edit_before_every_boundary_leaves_no_summary(alice: int) -> None:
    opened = await turns(alice, 3)
    assert await store(opened).advance(up_to((await chain(alice))[7]))
    edited = await say(alice, "question 1, but otherwise", run_id="e", fork_after=0)
    assert (edited.history, edited.summaries) == ((), {})
    assert await db.in_thread(summaries.visible)(owner_id=alice, thread_id="t") is None


async def test_an_edit_after_the_boundary_keeps_the_summary(alice: int) -> None:
    opened = await turns(alice, 4)
    there = await chain(alice)
    one = up_to(there[7])
    assert await store(opened).advance(one)
    edited = await say(alice, "question 4, but otherwise", run_id="e", fork_after=12)
    assert edited.summaries == {AGENT: one}
    assert edited.history == there[4:12]
    more = await say(alice, "question 5", run_id="r5")
    assert more.summaries == {AGENT: one}
    assert more.history == (await chain(alice))[4:-4]


# How much a run reads


@pytest.mark.parametrize("known", [True, False])
async def test_a_run_reads_from_where_the_newest_summary_says(alice: int, known: bool) -> None:
    opened = await turns(alice, 12)
    there = await chain(alice)
    one = up_to(there[39])
    assert await store(opened).advance(one)
    if not known:
        histories._histories.clear()  # as a process that does not know the conversation
    with counted() as statements:
        more = await say(alice, "question 13", run_id="r13", answers=1)
    assert more.summaries == {AGENT: one}
    assert more.history == there[36:]
    assert statements.total == (2 if known else 3) + 2  # what is there, its history, the run; then two appends


async def test_a_conversation_that_began_with_a_file_is_read_from_its_summary_as_any_other(alice: int) -> None:
    session_id = await db.in_thread(session_of_thread)(alice, "t", make=True)  # a file comes before the first message
    await turns(alice, 12)
    assert await db.in_thread(Session.objects.of(alice).values_list("agent", flat=True).get)(pk=session_id) == AGENT
    there = await chain(alice)
    one = up_to(there[39])
    assert await store(await say(alice, "question 13", run_id="r13")).advance(one)
    planning = planner(user("question 14", id="u14"), run_id="r14")
    more = await PgSessionStore().open_run(request(alice, run_id="r14"), planning)
    assert not planning.seen.whole  # type: ignore[attr-defined]  # as in records.py
    assert more.summaries == {AGENT: one}
    assert more.history[0] == there[36]


async def test_a_conversation_keeps_the_agent_that_it_has(alice: int) -> None:
    await turns(alice, 1)
    await (
        await PgSessionStore().open_run(replace(request(alice, run_id="r2"), agent="other"), planner(run_id="r2"))
    ).ledger.append([stamp(finished(), run_id="r2")], end=FINISHED)
    assert await db.in_thread(Session.objects.of(alice).values_list("agent", flat=True).get)(thread_id="t") == AGENT


async def test_what_was_kept_of_a_chain_serves_when_the_boundary_moves_and_when_it_was_longer_before(
    alice: int,
) -> None:
    opened = await turns(alice, 12)
    first = up_to((await chain(alice))[3], read_from=1)
    assert await store(opened).advance(first)
    await say(alice, "a", run_id="a")
    there = await chain(alice)
    second = up_to(there[39], base=first.id)
    assert await store(opened).advance(second)
    with counted() as statements:
        b = await say(alice, "b", run_id="b", answers=32)
    assert (b.history, statements.total) == (there[36:], 4)
    # now only the end is known, and an edit far back needs the rest
    asked = request(alice, run_id="c", message=user("other", id="m-c"), action=Action.EDIT, message_id="m-r2")
    edited = await opened_with(alice, asked)
    assert texts(edited.history) == texts(there[:4])
    assert edited.summaries == {AGENT: first}
    await end(edited)
    await db.in_thread(lines.choose)(owner_id=alice, thread_id="t", fork=0)
    there = await chain(alice)
    assert (await say(alice, "d", run_id="d")).history == there[36:]


async def test_what_another_process_appended_is_read_behind_the_part_that_is_known(alice: int) -> None:
    opened = await turns(alice, 12)
    one = up_to((await chain(alice))[3], read_from=1)
    assert await store(opened).advance(one)
    await say(alice, "here", run_id="a")
    await elsewhere(lambda: say(alice, "there", run_id="b"))
    there = await chain(alice)
    two = up_to(there[-1], base=one.id)
    assert await store(opened).advance(two)
    assert (await say(alice, "here again", run_id="c")).history == there[-4:]


async def test_a_summary_of_the_whole_session_serves_an_agent_without_one_of_its_own(alice: int) -> None:
    opened = await turns(alice, 3)
    there = await chain(alice)
    whole = up_to(there[7], key="")
    assert await store(opened).advance(whole)
    more = await say(alice, "question 4", run_id="r4")
    assert (more.summaries, more.history) == ({"": whole}, there[4:])


async def test_summaries_of_scopes_below_do_not_shorten_what_is_read(alice: int) -> None:
    opened = await turns(alice, 3)
    there = await chain(alice)
    for key in ("assistant/child", ""):
        assert await store(opened).advance(up_to(there[7], key=key))
    more = await say(alice, "question 4", run_id="r4")
    assert set(more.summaries) == {"assistant/child", ""}
    assert more.history == there


async def test_an_agent_whose_requests_are_made_without_summaries_reads_everything(alice: int) -> None:
    opened = await turns(alice, 3)
    there = await chain(alice)
    assert await store(opened).advance(up_to(there[7]))
    more = await PgSessionStore(summarised=lambda agent: agent != AGENT).open_run(
        request(alice, run_id="r4"), planner(run_id="r4")
    )
    assert more.history == there


# What planning needs from behind the boundary


async def summarised(owner_id: int, count: int, *, at: int) -> tuple[Any, ...]:
    """Play turns, with a summary up to the end of turn `at`, and forget what the process knows."""
    opened = await turns(owner_id, count)
    there = await chain(owner_id)
    assert await store(opened).advance(up_to(there[4 * at - 1]))
    histories._histories.clear()
    return there


@pytest.mark.parametrize(
    ("action", "message_id", "shown", "most"),
    [
        (Action.EDIT, "m-r2", ["question 1", "question 1 0"], 5),  # behind the boundary
        (Action.EDIT, "m-r1", [], 5),
        (
            Action.EDIT,
            "m-r4",
            [f"question {n}{s}" for n in (1, 2, 3) for s in ("", " 0")],
            5,
        ),  # its turn
        (Action.RETRY, "m-r2", ["question 1", "question 1 0", "question 2"], 5),
        (Action.EDIT, "m-r6", ["question 4", "question 4 0", "question 5", "question 5 0"], 4),  # after it
        (Action.RETRY, "m-r6", [f"question {n}{s}" for n in (4, 5) for s in ("", " 0")] + ["question 6"], 4),
        (Action.RETRY, "", [f"question {n}{s}" for n in (4, 5) for s in ("", " 0")] + ["question 6"], 4),
    ],
)
async def test_going_back_works_whether_the_message_lies_before_or_behind_the_boundary(
    alice: int, action: Action, message_id: str, shown: list[str], most: int
) -> None:
    await summarised(alice, 6, at=4)
    message = user("otherwise", id="new") if action is Action.EDIT else None
    asked = request(alice, run_id="x", action=action, message_id=message_id, message=message)
    with counted() as statements:
        opened = await opened_with(alice, asked)
    assert texts(opened.history) == shown
    assert bool(opened.summaries) == (shown[:1] == ["question 4"])
    assert statements.total <= most
    there = texts(await chain(alice))
    assert there[-1] == ("otherwise" if message else shown[-1])
    if message_id == "m-r6":
        assert there[:2] == ["question 1", "question 1 0"]


async def test_a_message_that_is_sent_again_is_known_although_it_lies_behind_the_boundary(alice: int) -> None:
    await summarised(alice, 4, at=4)
    with pytest.raises(Rejected) as refused:
        await opened_with(alice, request(alice, run_id="x", message=user("question 1", id="m-r1")))
    assert refused.value.code == "invalid_input"
    again = await opened_with(alice, request(alice, run_id="y", message=user("question 4", id="m-r4")))
    assert again.records[0].record.action == "retry"  # type: ignore[union-attr]  # the first is RunStarted
    assert texts(again.history)[-1] == "question 4"


async def test_a_message_of_an_abandoned_line_may_be_sent_again(alice: int) -> None:
    await say(alice, "question 1", run_id="r1")
    await say(alice, "question 2", run_id="r2")
    edited = await say(alice, "other", run_id="r3", fork_after=4)
    there = await chain(alice)
    assert await store(edited).advance(up_to(there[-1]))
    opened = await opened_with(alice, request(alice, run_id="x", message=user("question 2", id="m-r2")))
    assert texts(opened.history) == ["other", "other 0"]
    assert opened.summaries


async def test_the_state_of_a_fork_is_the_fold_of_all_its_changes_although_only_the_end_was_read(alice: int) -> None:
    for n in range(1, 7):
        await say(alice, f"question {n}", run_id=f"r{n}", last=n, **{f"k{n}": n})
    there = await chain(alice)
    opened = await say(alice, "question 7", run_id="r7")
    assert await store(opened).advance(up_to(there[5 * 3 - 1], read_from=11))
    asked = request(alice, run_id="x", action=Action.EDIT, message_id="m-r6", message=user("otherwise", id="new"))
    edited = await opened_with(alice, asked)
    assert texts(edited.history)[0] == "question 3"
    assert edited.session.state == {"last": 5, **{f"k{n}": n for n in range(1, 6)}}
    await end(edited)
    session = await db.in_thread(Session.objects.of(alice).get)()
    assert session.state == edited.session.state


async def test_an_answer_to_a_call_that_was_answered_long_ago_is_still_told_from_an_unknown_one(alice: int) -> None:
    call = answer("", tool_calls=(ToolCall(id="c", name="look", arguments="{}"),))
    opened = await PgSessionStore().open_run(
        request(alice, run_id="r0"),
        planner(
            user("look", id="m0"), call, ToolReturned(id="x", call_id="c", name="look", content="seen"), run_id="r0"
        ),
    )
    await end(opened)
    last = await turns(alice, 3)
    assert await store(last).advance(up_to((await chain(alice))[-1]))
    for call_id, code in (("c", "tool_result_duplicate"), ("d", "unknown_tool_call")):
        result = replace(RESULT, call_id=call_id)
        with pytest.raises(Rejected) as refused:
            await opened_with(alice, request(alice, run_id=call_id, message=None, tool_results=(result,)))
        assert refused.value.code == code
