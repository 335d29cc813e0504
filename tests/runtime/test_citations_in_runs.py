"""Citations in runs: what streams, what is stored, what the model gets back, and what each run may answer from."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from agents.runtime import codec
from agents.runtime.errors import StreamCut
from agents.runtime.events import (
    AssistantMessage,
    CitationShown,
    Emitted,
    RunStarted,
    TextDelta,
    ToolReturned,
    UserMessage,
)
from agents.runtime.invocation import Hooks
from agents.runtime.knowledge import Citation, Cited, Place, citation_id
from agents.runtime.memoryknowledge import MemoryKnowledge
from agents.runtime.memorystores import MemorySessionStore
from agents.runtime.model import FinishReason, ModelRequest, Role
from agents.runtime.session import Action, CancelReason, CancelToken
from agents.runtime.testing import Do, ScriptedModel, call, collect, memory_runner, text, turn
from agents.tools import knowledge
from tests.runtime.samples import of, request

COSTS = "Costs fell by 5 % in May."
STAFF = "Twelve people work here."


def library() -> MemoryKnowledge:
    made = MemoryKnowledge()
    made.add("report.md", f"{COSTS}\n\nSales rose.")
    made.add("staff.md", STAFF)
    return made


def marker_of(document: str, passage: str) -> str:
    return f"[[c:{citation_id(document, 1, 0, len(passage))}]]"


COSTS_MARK, STAFF_MARK = marker_of("document-1", COSTS), marker_of("document-2", STAFF)
COSTS_LINK, STAFF_LINK = f"#c-{COSTS_MARK[4:-2]}", f"#c-{STAFF_MARK[4:-2]}"
SEARCH = turn(call("c1", "search_knowledge", {"query": "costs people"}))


def streamed(emitted: Sequence[Emitted]) -> dict[str, str]:
    out: dict[str, str] = {}
    for delta in of(emitted, TextDelta):
        out[delta.message_id] = out.get(delta.message_id, "") + delta.text
    return out


def answers(emitted: Sequence[Emitted]) -> list[AssistantMessage]:
    return [m for m in of(emitted, AssistantMessage) if m.text or m.not_in_documents]


async def run(*turns: Any, **more: Any) -> list[Emitted]:
    runner = memory_runner(ScriptedModel(*turns), tools=knowledge.tools(), knowledge=library(), **more)
    return await collect(runner, request())


async def test_what_streams_is_what_is_stored_and_each_citation_comes_before_its_link() -> None:
    answer = [f"Costs fell {COSTS_MARK[:5]}", f"{COSTS_MARK[5:]}. Twelve work here {STAFF_MARK}. No [[c:zzzzzz]]."]
    emitted = await run(SEARCH, turn(text(*answer)))
    (message,) = answers(emitted)
    assert message.text == f"Costs fell [1]({COSTS_LINK}). Twelve work here [2]({STAFF_LINK}). No."
    assert streamed(emitted) == {message.id: message.text}
    assert [(c.number, c.citation.name) for c in message.citations] == [(1, "report.md"), (2, "staff.md")]
    assert message.citations[0].citation.quote == COSTS
    assert message.citations_dropped == 1
    shown: set[str] = set()
    for event in (e.event for e in emitted):
        if isinstance(event, CitationShown):
            shown.add(event.cited.citation.id)
        elif isinstance(event, TextDelta):
            assert all(f"#c-{c.citation.id}" not in event.text or c.citation.id in shown for c in message.citations)
    (returned,) = of(emitted, ToolReturned)
    assert {c.id for c in returned.citations} >= {COSTS_MARK[4:-2], STAFF_MARK[4:-2]}


async def test_numbers_go_on_in_a_run_and_each_message_carries_its_own_citations() -> None:
    emitted = await run(
        SEARCH,
        turn(text(f"First {STAFF_MARK}"), call("c2", "list_documents", {})),
        turn(text(f"then {COSTS_MARK} and {STAFF_MARK}")),
    )
    one, two = answers(emitted)
    assert one.text == f"First [1]({STAFF_LINK})" and [c.number for c in one.citations] == [1]
    assert two.text == f"then [2]({COSTS_LINK}) and [1]({STAFF_LINK})" and [c.number for c in two.citations] == [2, 1]
    assert streamed(emitted) == {m.id: m.text for m in (one, two)}


async def test_what_is_held_back_comes_out_before_a_tool_call() -> None:
    emitted = await run(
        SEARCH, turn(text("See [[c:no"), call("c2", "list_documents", {}), text("more")), turn(text("."))
    )
    first, second, _ = answers(emitted)
    assert (first.text, second.text) == ("See [[c:no", "more")
    assert streamed(emitted)[first.id] == first.text


async def test_the_model_gets_its_own_markers_back() -> None:
    model = ScriptedModel(SEARCH, turn(text(f"Costs fell {COSTS_MARK}.")), turn(text("Yes.")))
    store = MemorySessionStore()
    runner = memory_runner(model, tools=knowledge.tools(), knowledge=library(), store=store)
    await collect(runner, request())
    await collect(runner, request("Sure?", run_id="r2"))
    said = [m.text for m in model.requests[-1].messages if m.role is Role.ASSISTANT and m.text]
    assert said == [f"Costs fell {COSTS_MARK}."]


async def test_an_earlier_runs_passages_can_be_cited_with_fresh_numbers() -> None:
    model = ScriptedModel(
        SEARCH,
        turn(text(f"{STAFF_MARK}{COSTS_MARK}")),
        turn(text(f"Yes {COSTS_MARK}")),
        turn(text(f"Yes {COSTS_MARK}")),
    )
    runner = memory_runner(model, tools=knowledge.tools(), knowledge=library())
    await collect(runner, request())
    (second,) = answers(await collect(runner, request("Sure?", run_id="r2")))
    assert second.text == f"Yes [1]({COSTS_LINK})"
    again = request(message=None, run_id="r3", action=Action.RETRY, message_id=second.id)
    (third,) = answers(await collect(runner, again))
    assert third.text == second.text and third.citations == second.citations


async def test_not_in_the_documents_is_a_state_of_the_answer_even_without_words() -> None:
    (message,) = answers(await run(SEARCH, turn(text("They do not say. [[c:none]]"))))
    assert message.text == "They do not say." and message.not_in_documents
    (message,) = answers(await run(SEARCH, turn(text("[[c:none]]"))))
    assert message.text == "" and message.not_in_documents


async def test_an_answer_that_breaks_or_is_stopped_keeps_the_citations_it_had() -> None:
    emitted = await run(SEARCH, turn(text(f"Costs {COSTS_MARK} and [[c:no"), [StreamCut()]))
    (message,) = answers(emitted)
    assert message.text == f"Costs [1]({COSTS_LINK}) and [[c:no" and message.finish_reason is FinishReason.ERROR
    assert streamed(emitted) == {message.id: message.text} and len(message.citations) == 1

    cancel = CancelToken()
    stop = Do(lambda: cancel.cancel(CancelReason.USER))
    model = ScriptedModel(SEARCH, turn(text(f"Costs {COSTS_MARK} and [[c:no"), [stop], text("ne]]")))
    runner = memory_runner(model, tools=knowledge.tools(), knowledge=library())
    emitted = await collect(runner, request(), cancel)
    (message,) = answers(emitted)
    assert message.finish_reason is FinishReason.CANCELLED and len(message.citations) == 1
    assert streamed(emitted) == {message.id: message.text}


async def test_texts_of_hooks_are_resolved_too() -> None:
    async def more(invocation: Any) -> str:
        return f"By the way: {STAFF_MARK}."

    async def louder(invocation: Any, segments: tuple[AssistantMessage, ...]) -> tuple[AssistantMessage, ...]:
        return tuple(replace(s, text=f"{s.text}!{STAFF_MARK}") if s.text else s for s in segments)

    hooks = Hooks(after_agent=(more,), after_model=(louder,))
    emitted = await run(SEARCH, turn(text(f"Costs {COSTS_MARK} [[c:none]]")), hooks=hooks)
    first, last = answers(emitted)
    assert first.text == f"Costs [1]({COSTS_LINK})! [2]({STAFF_LINK})"
    assert [c.number for c in first.citations] == [1, 2] and first.not_in_documents
    assert last.text == f"By the way: [2]({STAFF_LINK})." and [c.number for c in last.citations] == [2]


def found(model_request: ModelRequest) -> str:
    return model_request.messages[-1].text


@pytest.mark.parametrize(
    ("sources", "first_line"),
    [
        (None, "2 passages from 2 of 2 documents, best first:"),
        (("document-2",), "1 passage from 1 of 1 document, best first:"),
        ((), "There are no documents to search."),
        (("somebody-elses",), "There are no documents to search."),
    ],
)
async def test_a_run_searches_what_the_person_chose(sources: tuple[str, ...] | None, first_line: str) -> None:
    model = ScriptedModel(SEARCH, turn(text("ok")))
    runner = memory_runner(model, tools=knowledge.tools(), knowledge=library())
    emitted = await collect(runner, request(sources=sources, sources_given=True))
    assert found(model.requests[-1]).splitlines()[0] == first_line
    assert of(emitted, UserMessage)[0].sources == sources
    assert of(emitted, RunStarted)[0].sources == sources


async def test_going_back_or_on_keeps_the_sources_unless_others_are_given() -> None:
    turns = [turn(text("a")), turn(text("b"), [StreamCut()]), *(turn(text("c")) for _ in range(5))]
    runner = memory_runner(ScriptedModel(*turns), tools=knowledge.tools(), knowledge=library())

    async def sources(run_id: str, **more: Any) -> tuple[str, ...] | None:
        emitted = await collect(runner, request(run_id=run_id, **more))
        return of(emitted, RunStarted)[0].sources

    one, two = ("document-1",), ("document-2",)
    assert await sources("r1", sources=one, sources_given=True) == one
    assert await sources("r2", sources=two, sources_given=True) == two
    assert await sources("r3", message=None, action=Action.CONTINUE) == two
    assert await sources("r4", message=None, action=Action.RETRY, message_id="u-r1") == one
    assert await sources("r5", message=None, action=Action.RETRY, sources=None, sources_given=True) is None
    assert await sources("r6", action=Action.EDIT, message_id="u-r1") == one
    assert await sources("r7") is None


PLACE = Place(page=3, heading=("A", "B"), sheet="S", rows=(1, 2), lines=(3, 4))
PASSAGE = Citation(
    id="aaaaaa", artifact_id="a", version=2, name="报告.pdf", start=3, end=9, place=PLACE, quote="成本 fell"
)
SAID = replace(
    PASSAGE,
    artifact_id="",
    version=0,
    place=Place(),
    thread_id="t",
    message_id="u1",
    at=datetime(2026, 5, 3, 14, 2, 3, 4, UTC),
)


@pytest.mark.parametrize("citation", [PASSAGE, SAID])
def test_records_with_citations_and_sources_are_stored_and_read_back_as_they_were(citation: Citation) -> None:
    for record in (
        ToolReturned(id="t", call_id="c", name="search", content="x", citations=(citation,)),
        AssistantMessage(
            id="m",
            response_id="m",
            citations=(Cited(number=2, citation=citation),),
            citations_dropped=1,
            not_in_documents=True,
        ),
        UserMessage(id="u", parts=(), sources=()),
        UserMessage(id="u", parts=(), sources=("document-1",)),
        RunStarted(agent="a", model="m", sources=()),
    ):
        assert codec.load(record.type, json.loads(json.dumps(codec.dump(record)))) == record


def test_citations_that_were_stored_before_messages_could_be_cited_are_read() -> None:
    stored = {
        "id": "m",
        "response_id": "m",
        "citations": [
            {
                "number": 1,
                "citation": {
                    "id": "aaaaaa",
                    "artifact_id": "a",
                    "version": 2,
                    "name": "报告.pdf",
                    "start": 3,
                    "end": 9,
                    "place": {"page": 3},
                    "quote": "成本 fell",
                },
            }
        ],
    }
    read = codec.load("assistant_message", stored)
    assert isinstance(read, AssistantMessage)
    assert read.citations == (Cited(number=1, citation=replace(PASSAGE, place=Place(page=3))),)
    assert codec.dump(read) == stored
