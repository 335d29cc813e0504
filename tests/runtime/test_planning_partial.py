"""A plan made on the end of a history is the plan made on all of it, wherever `enough` says that the end will do."""

from collections.abc import Callable
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.runtime.errors import Rejected
from agents.runtime.events import (
    AssistantMessage,
    Origin,
    Outcome,
    Record,
    RunFinished,
    RunStarted,
    Stored,
    ToolReturned,
    UserMessage,
    UserMessageKind,
)
from agents.runtime.memorystores import Clock
from agents.runtime.model import FinishReason, TextPart, ToolCall
from agents.runtime.planning import PERSON, Stamp, enough, plan
from agents.runtime.session import Action, Opening, Plan, RunRequest, Session
from tests.runtime.conversations import Chat

RUNS = 5
AT = Clock().at


def records(run: int, kind: str, waits: str = "") -> list[tuple[str, Record]]:
    """Return (author, record) of one run: a question or a retry, perhaps a call that waits, steering, no good end.

    waits: the call that waits from the run before; every run that begins answers it.
    """
    question = UserMessage(id=f"m{run}", parts=(TextPart(text=f"question {run} 第{run}问"),))
    call = ToolCall(id=f"c{run}", name="ask_person", arguments="{}")
    answer = AssistantMessage(id=f"a{run}", response_id=f"a{run}", text="so")
    out: list[tuple[str, Record]] = [(PERSON, RunStarted(agent="assistant", model="m", sources=(f"d{run}",)))]
    if waits:
        out.append((PERSON, ToolReturned(id=f"x{run}", call_id=waits, name="ask_person", content="not executed")))
    if kind != "retried":
        out.append((PERSON, question))
    if kind == "steered":
        steer = UserMessage(id=f"s{run}", parts=question.parts, kind=UserMessageKind.STEER)
        out += [("assistant", answer), (PERSON, steer)]
    if kind == "waiting":
        out.append(("assistant", AssistantMessage(id=f"w{run}", response_id=f"w{run}", tool_calls=(call,))))
    elif kind == "answered":
        out.append(("assistant", AssistantMessage(id=f"w{run}", response_id=f"w{run}", tool_calls=(call,))))
        out.append((PERSON, ToolReturned(id=f"t{run}", call_id=call.id, name=call.name, content="yes")))
        out.append(("assistant", answer))
    elif kind == "cut":
        cut = AssistantMessage(id=f"a{run}", response_id=f"a{run}", text="s", finish_reason=FinishReason.CANCELLED)
        out.append(("assistant", cut))
    elif kind != "steered":
        out.append(("assistant", answer))
    outcome = Outcome.CANCELLED if kind == "cut" else Outcome.SUCCESS
    return [*out, ("assistant", RunFinished(outcome=outcome))]


KINDS = st.sampled_from(["plain", "retried", "steered", "waiting", "answered", "cut"])
IDS = st.sampled_from(["", "nobody", *(f"{letter}{run}" for letter in "masw" for run in range(RUNS))])


@st.composite
def histories(draw: Callable[..., Any]) -> tuple[Stored, ...]:
    chat = Chat()
    kinds = draw(st.lists(KINDS, min_size=RUNS, max_size=RUNS))
    for run, kind in enumerate(kinds):
        waits = f"c{run - 1}" if run and kinds[run - 1] == "waiting" else ""
        chat.run = f"r{run}"
        for author, record in records(run, kind, waits):
            chat.add(record, author=author)
    return tuple(chat.events)


@st.composite
def requests(draw: Callable[..., Any]) -> RunRequest:
    action = draw(st.sampled_from(Action))
    message_id, named = str(draw(IDS)), str(draw(IDS))
    message = UserMessage(id=message_id, parts=(TextPart(text="again"),))
    results: tuple[ToolReturned, ...] = ()
    if action is Action.SEND and draw(st.booleans()):
        results = (ToolReturned(id="", call_id=f"c{draw(st.integers(0, RUNS))}", name="", content="yes"),)
    with_message = action is Action.EDIT or (action is Action.SEND and (not results or bool(draw(st.booleans()))))
    return RunRequest(
        owner_id=1,
        thread_id="t",
        run_id="new",
        action=Action(action),
        message_id="" if action is Action.SEND else named,
        message=message if with_message else None,
        tool_results=results,
    )


def planned(history: tuple[Stored, ...], asked: RunRequest, *, whole: bool, known: bool) -> Plan | str:
    """Return the plan, or the code with which it is refused. Its records have the same ids each time."""
    numbers = count()
    stamp = Stamp(
        origin=Origin(run_id="new", invocation_id="new", author=PERSON),
        now=lambda: AT,
        new_id=lambda: f"n{next(numbers)}",
    )
    session = Session(id="1", owner_id=1, thread_id="t", agent="assistant")
    opening = Opening(session=session, history=history, whole=whole, message_known=known)
    try:
        return plan(opening, asked, started=RunStarted(agent="assistant", model="m"), stamp=stamp)
    except Rejected as refused:
        return refused.code


@settings(max_examples=400, deadline=None)
@given(histories(), requests(), st.integers(1, RUNS - 1))
def test_the_end_of_a_history_gives_the_same_plan_where_it_is_enough(
    history: tuple[Stored, ...], asked: RunRequest, first_run: int
) -> None:
    end = tuple(stored for stored in history if int(stored.origin.run_id[1:]) >= first_run)
    message_id = asked.message.id if asked.message else ""
    known = any(isinstance(s.record, UserMessage) and s.record.id == message_id for s in history)
    session = Session(id="1", owner_id=1, thread_id="t", agent="assistant")
    if not enough(Opening(session=session, history=end, whole=False, message_known=known), asked):
        return
    on_end = planned(end, asked, whole=False, known=known)
    on_all = planned(history, asked, whole=True, known=known)
    if message_id.startswith(("a", "w")):
        return  # ids of answers are the server's own; that a client takes one is found on the whole history only
    assert on_end == on_all


def test_the_end_is_enough_for_what_people_do_most() -> None:
    made: list[Stored] = []
    for run in range(3):
        for author, record in records(run, "plain"):
            origin = Origin(run_id=f"r{run}", invocation_id=f"i{run}", author=author)
            position = len(made) + 1
            made.append(Stored(position=position, fork=0, id=f"e{position}", at=AT, origin=origin, record=record))
    session = Session(id="1", owner_id=1, thread_id="t", agent="assistant")
    opening = Opening(session=session, history=tuple(made[4:]), whole=False)
    message = UserMessage(id="new", parts=(TextPart(text="and?"),))
    base = {"owner_id": 1, "thread_id": "t", "run_id": "new"}
    assert enough(opening, RunRequest(**base, message=message))
    assert enough(opening, RunRequest(**base, action=Action.RETRY))
    assert enough(opening, RunRequest(**base, action=Action.EDIT, message=message, message_id="m2"))
    assert not enough(opening, RunRequest(**base, action=Action.EDIT, message=message, message_id="m0"))
    assert not enough(opening, RunRequest(**base, action=Action.RETRY, message_id="a0"))
