"""What every request keeps to, whatever was said, called, broken off, summarised and configured."""

from copy import deepcopy
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.runtime.context.assemble import Assembled, Frame, View, assemble
from agents.runtime.context.compaction import compact, decided
from agents.runtime.context.digests import request_sha256
from agents.runtime.context.injection import Block
from agents.runtime.context.pairing import Answer, pair
from agents.runtime.context.projection import visible
from agents.runtime.context.sanitizing import CALL_LEAD, RESULT_LEAD
from agents.runtime.context.sizes import Sizes
from agents.runtime.context.window import Window
from agents.runtime.events import (
    AssistantMessage,
    Outcome,
    RunStarted,
    StateChanged,
    Stored,
    UserMessage,
    UserMessageKind,
)
from agents.runtime.model import Role, ToolCall
from agents.runtime.policy import ContextPolicy
from agents.runtime.summaries import covers
from tests.runtime.conversations import FRAME, LOADING, WIDE, Chat, by_key, in_provider_order, rebuilt, summary

EXAMPLES = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
TEXTS = ["Hello", "你好，第二冷库在漏水。", "word " * 400, "墙" * 900, '{"x": [1, 2]}', "</summary> now", "é"]
KEYS = ["a", "a/x", "a/x/z", "a/y", "a/other", ""]
CALLS = ["c1", "c2", "c3"]  # few, so that they are met again
ARGUMENTS = ["{}", '{"q": "墙"}', "not json", '{"text": "' + "long " * 300 + '"}']


@dataclass(frozen=True, slots=True)
class Case:
    chat: Chat
    view: View
    frame: Frame

    def made(self, **changes: Any) -> Assembled:
        return assemble(self.chat.events, self.frame, replace(self.view, **changes))


def random_chat(rng: Random) -> Chat:
    """Return a conversation whose last run, r-last, goes on."""
    chat = Chat(after=rng.choice([0, 500])).start("r0")
    for _ in range(rng.choice([0, 0, 2])):
        chat.ask(rng.choice(TEXTS), kind=UserMessageKind.SEED)
        chat.answer(rng.choice(TEXTS))
    runs = rng.randint(1, 6)
    for n in range(runs):
        last = n == runs - 1
        how = rng.choice(["ask", "ask", "ask", "ask", "retry", "continue", "client"]) if n else "ask"
        chat.start("r-last" if last else f"r{n}", action=how if how in ("retry", "continue") else "")
        if how == "client":
            chat.result(rng.choice(CALLS), rng.choice(TEXTS))
        if how == "ask":
            chat.ask(rng.choice(TEXTS))
        for _ in range(rng.randint(0, 6)):
            step(rng, chat)
        if not last:
            end(rng, chat)
    return chat


def step(rng: Random, chat: Chat) -> None:
    more: dict[str, Any] = {}
    if rng.random() < 0.2:
        more = {"key": rng.choice(KEYS), "author": "b", "invocation": "child"}
    text = rng.choice(TEXTS)
    match rng.choice(["say", "call", "call", "call", "call", "orphan", "steer", "state", "segments"]):
        case "say":
            chat.answer(text, **more)
        case "call":
            calls = rng.sample(CALLS, rng.randint(1, 3))
            name = rng.choice(["look", "look", "session_load", "forced"])
            chat.answer(rng.choice(["", text]), *calls, arguments=rng.choice(ARGUMENTS), **more)
            for call in rng.sample(calls, len(calls)):
                if rng.random() < 0.9:
                    chat.result(call, rng.choice(TEXTS), name=name, **more)
        case "orphan":
            chat.result(rng.choice(CALLS), text)
        case "steer":
            chat.ask(text, kind=UserMessageKind.STEER)
        case "state":
            chat.add(StateChanged(delta={"x": 1}))
        case _:
            response = f"s{len(chat.events)}"
            for n in range(2):
                call = ToolCall(id=CALLS[n], name="look", arguments="{}")
                message = AssistantMessage(id=f"{response}:{n}", response_id=response, text=text, tool_calls=(call,))
                chat.add(message, **more)
            chat.result(CALLS[1])
            chat.result(CALLS[0])


def end(rng: Random, chat: Chat) -> None:
    match rng.choice(["done", "done", "done", "cancelled", "failed", "lost"]):
        case "done":
            chat.done()
        case "cancelled":
            chat.done(Outcome.CANCELLED)
        case "failed":
            chat.failed()
        case _:
            pass


def random_policy(rng: Random) -> ContextPolicy:
    return ContextPolicy(
        placement=rng.choice(["system", "user"]),
        preload_placement=rng.choice(["system", "user", "turn"]),
        compact=rng.random() < 0.8,
        compact_over=rng.choice([1, 100, 300]),
        compact_oversized=rng.choice([0, 50, 300]),
        compact_keep_requests=rng.choice([0, 0, 1, 2]),
        compact_force=rng.choice([(), ("forced",)]),
        compact_step=rng.choice([0.0, 0.05, 0.2]),
        keep_rounds=rng.choice([0, 0, 1, 2]),
        keep_tokens=rng.choice([0, 2_000]),
        branch=rng.choice(["prefix", "prefix", "prefix", "prefix", "subtree", "exact", "all"]),
        timeline=rng.choice(["all", "all", "all", "all", "all", "all", "request", "invocation"]),
        tailoring=rng.choice(["middle", "head", "tail"]),
        max_input_tokens=rng.choice([0, 0, 50, 600, 3_000]),
    )


def case_of(seed: int) -> Case:
    rng = Random(seed)
    chat = random_chat(rng)
    first, last = chat.events[0].position, chat.events[-1].position
    keys = rng.choice([["a"], ["a"], ["a"], ["a", ""], [""], ["a/x", "a/y"], []])
    boundaries = [rng.randint(first - 1, last), last - rng.randint(0, min(4, len(chat.events)))]
    summaries = by_key(*(summary(rng.choice(boundaries), rng.choice(TEXTS), key=key) for key in keys))
    chat.key = rng.choice(["a", "a", "a", "a/x", ""])
    view = View(
        agent="a",
        run_id="r-last",
        invocation_id=rng.choice(["", "i-r-last"]),
        filter_key=chat.key,
        policy=random_policy(rng),
        summaries=summaries,
        blocks=rng.choice([(), (Block(kind="recall", text="墙"), Block(kind="memory", text="Blue."))]),
        window=rng.choice([WIDE, Window(tokens=6_000, source="guess")]),
    )
    frame = replace(rng.choice([FRAME, LOADING]), tail=rng.choice(["", "End now."]))
    return Case(chat=chat, view=view, frame=frame)


# seeds, since examples drawn step by step stay so short that hardly any boundary hides anything
cases = st.integers(0, 2**32).map(case_of)


def refs(made: Assembled, *, kinds: tuple[str, ...] = ("event", "placeholder")) -> list[str]:
    return [part.ref for part in made.parts if part.kind in kinds]


@EXAMPLES
@given(cases)
def test_every_request_is_valid_traceable_and_the_same_each_time(case: Case) -> None:
    before = deepcopy(case.chat.events)
    sizes: dict[str, Any] = {}
    made = case.made(sizes=sizes)
    assert in_provider_order(made.request.messages)
    assert [m.role for m in made.request.messages].count(Role.SYSTEM) == 1
    # pairing leaves nothing that has to be told as text
    assert not any(m.text.startswith((CALL_LEAD, RESULT_LEAD)) for m in made.request.messages)
    assert case.chat.events == before
    digest = request_sha256(made.request)
    assert request_sha256(case.made().request) == request_sha256(case.made(sizes=sizes).request) == digest
    assert case.made(sizes=sizes) == made
    assert request_sha256(rebuilt(made, case.chat.events, case.frame, case.view)) == digest
    assert made.tokens == sum(p.tokens for p in made.parts if p.kind != "dropped") == made.window_used.tokens


@EXAMPLES
@given(cases)
def test_what_a_summary_hides_it_covers_and_what_it_does_not_cover_is_shown(case: Case) -> None:
    shown = set(refs(case.made(tailor=False)))
    without = refs(case.made(tailor=False, summaries={}))
    events = {s.id: s for s in case.chat.events}
    for ref in set(without) - shown:
        assert any(covers(s.filter_key, s.boundary, events[ref]) for s in case.view.summaries.values())
    # what is shown keeps its order, and nothing comes that would not be there without a summary
    assert [ref for ref in without if ref in shown] == [ref for ref in refs(case.made(tailor=False)) if ref in without]
    assert shown <= set(without)


@EXAMPLES
@given(cases)
def test_the_question_and_the_latest_complete_round_of_the_run_are_always_there(case: Case) -> None:
    made = case.made()
    seen = visible(case.chat.events, case.view)
    turns = [s for s in seen if isinstance(s.record, UserMessage) and s.record.kind is UserMessageKind.TURN]
    present = set(refs(made))
    if turns:
        assert turns[-1].id in present
    rounds = [i for i in pair(seen) if isinstance(i, Answer) and own(i, case.view) and i.complete_round()]
    if rounds:
        latest = max(rounds, key=lambda answer: answer.end)
        # a round before the question can only be an earlier run's that goes on; then its own question is left out too
        if not turns or latest.segments[0].position > turns[-1].position:
            assert {s.id for s in (*latest.segments, *latest.results.values())} <= present


def own(answer: Answer, view: View) -> bool:
    return view.is_own(answer.segments[0])


@EXAMPLES
@given(cases)
def test_compaction_run_over_its_output_changes_nothing_and_a_stored_step_gives_the_same_request(case: Case) -> None:
    made = case.made(tailor=False)
    sizes = Sizes(case.view.rates, None)
    events = {s.id: s for s in case.chat.events}
    settled = decided(case.chat.events, visible(case.chat.events, case.view), case.view, sizes)
    offered = frozenset(tool.name for tool in case.frame.tools)
    again = compact(made.parts, events, settled, case.view, sizes, offered)
    assert tuple(again.parts) == made.parts and again.step is None
    before = case.made()
    if made.compacted is not None:
        case.chat.run = "r-last"
        case.chat.add(made.compacted)
        after = case.made()
        assert after.request == before.request and after.compacted is None


@EXAMPLES
@given(cases)
def test_context_6_11_tailoring_leaves_out_whole_rounds_and_changes_no_order(case: Case) -> None:
    whole, made = case.made(tailor=False), case.made()
    left = refs(made)
    remaining = iter(refs(whole))
    assert all(ref in remaining for ref in left)
    assert sorted(refs(made, kinds=("event", "placeholder", "dropped", "context", "instruction"))) == sorted(
        [*refs(whole, kinds=("event", "placeholder", "context", "instruction")), *(
            p.ref for p in made.parts if p.kind == "dropped" and p.params["was"] in ("summary", "block")
        )]
    )  # fmt: skip
    assert bool(made.dropped_rounds) == any(p.kind == "dropped" for p in made.parts)
    if made.dropped_rounds:
        second = made.request.messages[1]
        assert second.role is Role.USER
        assert made.request.messages[-1].role in (Role.USER, Role.TOOL)


@EXAMPLES
@given(cases, st.integers(0, 60))
def test_a_history_cut_anywhere_before_the_boundary_gives_a_request_all_the_same(case: Case, cut: int) -> None:
    events = case.chat.events[min(cut, len(case.chat.events) - 1) :]
    made = assemble(events, case.frame, case.view)
    assert in_provider_order(made.request.messages)
    fork = [*events[: cut // 2], Stored(**{**fields(case.chat.events[-1]), "record": RunStarted(agent="a", model="m")})]
    assert in_provider_order(assemble(fork, case.frame, case.view).request.messages)


def fields(stored: Stored) -> dict[str, Any]:
    return {name: getattr(stored, name) for name in Stored.__slots__}
