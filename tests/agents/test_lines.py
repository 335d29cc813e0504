"""Where a conversation branches, and going back to another line of it."""

import pytest
import pytest_asyncio
from django.contrib.auth import get_user_model

from agents.models.session import Session
from agents.runtime.errors import Rejected
from agents.runtime.session import Action
from agents.stores import db, lines, sessions
from agents.stores.chains import Fork
from agents.stores.lines import Branching, branchings
from agents.stores.sessions import PgSessionStore
from tests.agents.records import FINISHED, answer, changed, finished, planner, request, stamp, texts, user


def fork(number: int, parent: int | None = None, after: int = 0) -> Fork:
    return Fork(number=number, parent=parent, shared_position=after)


TRUNK = fork(0)


def test_a_conversation_that_was_never_changed_has_no_branches() -> None:
    assert branchings([TRUNK], 0) == ()


def test_answers_to_one_question_are_ways_whoever_was_retried() -> None:
    """The second retry left fork 1, but at a place of the trunk: all three are answers to the same message."""
    forks = [TRUNK, fork(1, 0, 2), fork(2, 1, 2)]
    assert [branchings(forks, head) for head in (0, 1, 2)] == [
        (Branching(after=2, heads=(0, 1, 2), shown=shown),) for shown in (0, 1, 2)
    ]


def test_going_back_leads_to_the_newest_line_behind_that_way() -> None:
    """Fork 1 was answered anew at 12 (fork 2): who comes back from the trunk finds what was written there last."""
    forks = [TRUNK, fork(1, 0, 4), fork(2, 1, 12)]
    assert branchings(forks, 0) == (Branching(after=4, heads=(0, 2), shown=0),)
    assert branchings(forks, 2) == (
        Branching(after=4, heads=(0, 2), shown=1),
        Branching(after=12, heads=(1, 2), shown=1),
    )
    assert branchings(forks, 1)[1] == Branching(after=12, heads=(1, 2), shown=0)


def test_the_first_message_edited_branches_before_everything() -> None:
    assert branchings([TRUNK, fork(1, 0, 0)], 1) == (Branching(after=0, heads=(0, 1), shown=1),)


@pytest_asyncio.fixture
async def alice(hot_stores: None) -> int:
    person = await db.in_thread(get_user_model().objects.create_user)("alice")
    return int(person.pk)


async def say(owner_id: int, words: str, reply: str, *, run_id: str, fork_after: int | None = None) -> None:
    """Four events: the run's start, what was said, a state key, the answer; and the end as the fifth."""
    message = user(words, id=f"m-{run_id}")
    plan = planner(message, changed(**{run_id: words}), run_id=run_id, fork_after=fork_after)
    action = Action.SEND if fork_after is None else Action.EDIT
    opened = await PgSessionStore().open_run(request(owner_id, run_id=run_id, message=message, action=action), plan)
    await opened.ledger.append([stamp(answer(reply), run_id=run_id)])
    await opened.ledger.append([stamp(finished(), run_id=run_id)], end=FINISHED)


async def shown(owner_id: int) -> list[str]:
    return texts((await sessions.visible(owner_id=owner_id, thread_id="t")).stored)


async def test_a_person_goes_back_and_on_from_there_with_the_state_of_that_line(alice: int) -> None:
    await say(alice, "a", "A", run_id="r1")
    await say(alice, "b", "B", run_id="r2")
    await say(alice, "c", "C", run_id="r3", fork_after=5)
    choose = db.in_thread(lines.choose)
    await choose(owner_id=alice, thread_id="t", fork=0)
    assert await shown(alice) == ["a", "A", "b", "B"]
    session = await db.in_thread(Session.objects.of(alice).get)()
    assert session.state == {"r1": "a", "r2": "b"}
    assert await db.in_thread(lines.of_session)(session) == (Branching(after=5, heads=(0, 1), shown=0),)
    await say(alice, "d", "D", run_id="r4")
    assert await shown(alice) == ["a", "A", "b", "B", "d", "D"]
    await choose(owner_id=alice, thread_id="t", fork=1)
    assert await shown(alice) == ["a", "A", "c", "C"]


async def test_no_other_line_is_chosen_while_a_run_goes_on_nor_one_that_is_not_there(alice: int) -> None:
    await say(alice, "a", "A", run_id="r1")
    await say(alice, "b", "B", run_id="r2", fork_after=0)
    choose = db.in_thread(lines.choose)
    for owner_id, thread_id, number in ((alice, "t", 2), (alice, "u", 0), (alice + 1, "t", 0)):
        with pytest.raises(Rejected) as refused:
            await choose(owner_id=owner_id, thread_id=thread_id, fork=number)
        assert refused.value.code == "thread_not_found"
    message = user("going on", id="m")
    await PgSessionStore().open_run(request(alice, run_id="r3", message=message), planner(message, run_id="r3"))
    with pytest.raises(Rejected) as busy:
        await choose(owner_id=alice, thread_id="t", fork=0)
    assert busy.value.code == "run_conflict"
    assert (await shown(alice))[-1] == "going on"
