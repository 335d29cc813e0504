"""Whatever a conversation is like and whatever the model answers: what a summary promises holds."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.runtime.context.assemble import Assembled, Frame, View, assemble
from agents.runtime.errors import ModelBusy
from agents.runtime.events import AssistantMessage, Stored, ToolReturned, UserMessage, UserMessageKind
from agents.runtime.model import ModelRequest, Role, TextPart
from agents.runtime.policy import ContextPolicy
from agents.runtime.scopes import sees
from agents.runtime.summaries import Source, Summary
from agents.runtime.summary.extractive import ExtractiveSummarizer
from agents.runtime.summary.report import Mode, Reason
from agents.runtime.testing import Step, text
from agents.runtime.tokens import estimate, estimate_record
from tests.runtime.summary.talks import KEY, LONG, LONG_ZH, POLICY, Desk, Talk, call

MANY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SIZES = st.sampled_from([0, 1, 3, 12, 60])
ROUNDS = st.lists(
    st.tuples(
        st.sampled_from(["plain", "tools", "parallel", "orphan", "failed", "elsewhere", "steered"]),
        SIZES,
        st.sampled_from([LONG, LONG_ZH]),
    ),
    min_size=1,
    max_size=6,
)
POLICIES = st.builds(
    lambda rounds, tokens, placement, compact, fork, limit: replace(
        POLICY,
        keep_rounds=rounds,
        keep_tokens=tokens,
        placement=placement,
        compact=compact,
        fork=fork,
        max_input_tokens=limit,
        tailor=False,
    ),
    st.integers(0, 2),
    st.sampled_from([0, 300, 5_000]),
    st.sampled_from(["system", "user"]),
    st.booleans(),
    st.sampled_from(["off", "on"]),
    st.sampled_from([0, 1_500]),
)
ANSWERS = st.lists(st.sampled_from(["ratio", "long", "blank", "error", "same"]), min_size=4, max_size=12)


def play(talk: Talk, kind: str, size: int, words: str, number: int) -> None:
    """Add a round. Every text carries its number, so that it can be found again."""
    talk.begin(f"Q{number}q " + words * size)
    if kind in ("tools", "parallel", "orphan"):
        ids = [f"c{number % 2}"] if kind == "tools" else [f"c{number}a", f"c{number}b"]
        talk.answer(f"L{number}l ", *(call(id) for id in ids))
        for id in ids[: 1 if kind == "orphan" else None]:
            talk.result(id, f"R{number}r " + words * size * 2)
    if kind == "steered":
        talk.answer(f"H{number}h " + words)
        talk.say(f"S{number}s " + words, kind=UserMessageKind.STEER)
    if kind == "elsewhere":
        talk.answer(f"E{number}e " + words, key="elsewhere")
    if kind == "failed":
        talk.fail()
        return
    talk.answer(f"A{number}a " + words * size)
    talk.end()


def next_request(talk: Talk, policy: ContextPolicy, newest: dict[str, Summary], said: str) -> Assembled:
    """Return what a new run would send; a step of compaction is stored, as the run does."""
    ahead = Talk()
    ahead.history = list(talk.history)
    ahead.run_id = "next"
    ahead.say(said)
    view = View(agent=KEY, run_id="next", filter_key=KEY, policy=policy, summaries=newest, tailor=False)
    assembled = assemble(ahead.history, Frame(instruction="You help."), view)
    if assembled.compacted is not None:
        talk.add(assembled.compacted)
    return assembled


def answers(kinds: Sequence[str]) -> list[object]:
    def answer(kind: str) -> object:
        def steps(request: ModelRequest) -> list[Step]:
            given = "".join(message.text for message in request.messages)
            match kind:
                case "ratio":
                    return text("Kept: " + given[: len(given) // 8])
                case "long":
                    return text(given * 2)
                case "blank":
                    return text(" ")
                case "error":
                    return [ModelBusy("busy")]
                case _:
                    return text("The same.")

        return steps

    return [answer(kind) for kind in kinds]


def words_of(stored: Stored) -> str:
    record = stored.record
    if isinstance(record, UserMessage):
        return "".join(part.text for part in record.parts if isinstance(part, TextPart)).split(" ")[0]
    return record.text.split(" ")[0] if isinstance(record, AssistantMessage) else ""


@MANY
@given(played=ROUNDS, policy=POLICIES, kinds=ANSWERS)
def test_boundaries_only_move_forward_over_what_was_given_and_the_next_request_gets_shorter(
    played: list[tuple[str, int, str]], policy: ContextPolicy, kinds: list[str]
) -> None:
    async def go() -> None:
        desk = Desk(policy=policy)
        desk.model.turns = answers(kinds * 64)  # type: ignore[assignment]  # functions are turns too
        talk, since = Talk(), 0
        for number, (kind, size, words) in enumerate(played):
            play(talk, kind, size, words, number)
            raw = list(talk.history)
            old = dict(await desk.store.newest([KEY]))
            before = next_request(talk, policy, old, "And now?")
            rows, asked = list(desk.store.rows), len(desk.model.requests)
            made = await desk.update(talk, request=before.request, request_tokens=before.tokens)
            assert talk.history[: len(raw)] == raw
            if made.advanced is None:
                assert made.reason is not Reason.ADVANCED and desk.store.rows == rows
                continue
            assert desk.store.rows == [*rows, made.advanced]
            base = old.get(KEY)
            low, high = base.boundary.position if base else 0, made.advanced.boundary.position
            assert low < high and made.advanced.base == (base.id if base else "")
            requests = desk.model.requests[asked:]
            requests = requests if "pieces" in made.report.call.shrunk else requests[-1:]
            given = "".join(message.text for request in requests for message in request.messages)
            # a long text may have been read in part by makings that then failed
            read = given + str(desk.model.requests[since:] if "pieces" in made.report.call.shrunk else "")
            since = len(desk.model.requests)
            scoped = [s for s in talk.history if sees(KEY, s.origin.filter_key)]
            assert all(words_of(s) in read for s in scoped if low < s.position <= high)
            if made.report.call.mode is Mode.STANDALONE:
                assert not any(f"{w} " in given for s in scoped if s.position > high and (w := words_of(s)))
            assert not torn(talk.history, high)
            after = next_request(talk, policy, {KEY: made.advanced}, "And now?")
            assert after.tokens < before.tokens

    asyncio.run(go())


@MANY
@given(
    played=ROUNDS,
    policy=POLICIES,
    steps=st.lists(st.tuples(SIZES, st.booleans(), st.sampled_from([LONG, LONG_ZH])), min_size=1, max_size=5),
    source=st.sampled_from([Source.RUN, Source.CALL]),
)
def test_within_a_run_its_question_and_its_latest_tool_round_stay(
    played: list[tuple[str, int, str]], policy: ContextPolicy, steps: list[tuple[int, bool, str]], source: Source
) -> None:
    async def go() -> None:
        desk = Desk(policy=policy)
        desk.model.turns = answers(["ratio"] * 300)  # type: ignore[assignment]  # functions are turns too
        talk = Talk()
        for number, (kind, size, words) in enumerate(played):
            play(talk, kind, size, words, number)
        talk.begin("Qnow " + LONG)
        frame = Frame(instruction="You help.")
        for number, (size, parallel, words) in enumerate(steps):
            ids = [f"n{number}a", f"n{number}b"][: 1 + parallel]
            talk.answer(f"N{number}n ", *(call(id) for id in ids))
            for id in ids:
                talk.result(id, f"{id} " + words * size)
            view = View(agent=KEY, run_id=talk.run_id, invocation_id="i", filter_key=KEY, policy=policy, tailor=False)
            old = dict(await desk.store.newest([KEY]))
            before = assemble(talk.history, frame, replace(view, summaries=old))
            if before.compacted is not None:
                talk.add(before.compacted)
            made = await desk.update(
                talk, source=source, run_id=talk.run_id, request=before.request, request_tokens=before.tokens
            )
            if made.advanced is None:
                continue
            assert not torn(talk.history, made.advanced.boundary.position)
            after = assemble(talk.history, frame, replace(view, summaries={KEY: made.advanced}))
            assert after.tokens < before.tokens
            shown = [message for message in after.request.messages if message.text.startswith("Qnow")]
            carried = "".join(message.text for message in after.request.messages)
            assert shown or "Qnow" in carried
            results = [message.tool_call_id for message in after.request.messages if message.role is Role.TOOL]
            assert results[-len(ids) :] == ids

    asyncio.run(go())


def torn(history: Sequence[Stored], boundary: int) -> bool:
    """Return whether a result lies behind the boundary whose call does not."""
    open_calls: set[str] = set()
    for stored in history:
        record = stored.record
        if isinstance(record, AssistantMessage):
            ids = {c.id for c in record.tool_calls}
            open_calls = open_calls | ids if stored.position <= boundary else open_calls - ids
        elif isinstance(record, ToolReturned):
            if stored.position > boundary and record.call_id in open_calls:
                return True
            open_calls.discard(record.call_id)
    return False


@MANY
@given(played=ROUNDS, words=st.sampled_from([0, 40, 200]), template=st.sampled_from(["brief", "materials", "worksite"]))
def test_summaries_without_a_model_are_repeatable_short_and_pay(
    played: list[tuple[str, int, str]], words: int, template: str
) -> None:
    async def go() -> list[tuple[str, int]]:
        policy = replace(POLICY, template=template, summary_words=words, tailor=False)
        desk = Desk(policy=policy)
        talk = Talk()
        for number, (kind, size, said) in enumerate(played):
            play(talk, kind, size, said, number)
            made = await desk.update(talk, summarizer=ExtractiveSummarizer(), source=Source.BACKGROUND)
            assert made.reason in (
                Reason.ADVANCED, Reason.WOULD_NOT_PAY, Reason.NOTHING_NEW, Reason.NOTHING_TO_SAY, Reason.EMPTY
            )  # fmt: skip
        rows = desk.store.rows
        assert [r.boundary.position for r in rows] == sorted({r.boundary.position for r in rows})
        for row in rows:
            covered = [s for s in talk.history if s.position <= row.boundary.position]
            assert estimate(row.text) < sum(estimate_record(s.record) for s in covered)
        return [(row.text, row.boundary.position) for row in rows]

    assert asyncio.run(go()) == asyncio.run(go())
