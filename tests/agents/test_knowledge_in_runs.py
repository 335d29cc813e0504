"""Documents and citations over the real stores: what a run saves, finds, reads, cites, and what is kept of it."""

from typing import Any

import pytest

from agents.protocols.agui import history
from agents.runtime.events import AssistantMessage, Record, ToolReturned, ToolStatus
from agents.runtime.model import ModelRequest, Role
from agents.runtime.testing import call, text, turn
from agents.stores import sessions
from agents.tools import artifacts, knowledge
from tests.agents.house import ask
from tests.agents.wiredruns import records_of, runner_of

pytestmark = pytest.mark.usefixtures("hot_stores")
TOOLS = (*knowledge.tools(), *artifacts.tools())
REPORT = "# Costs\n\nThe lighthouse cost 40 pounds in May.\n\n# 人员\n\n灯塔有十二名工作人员。\n"


def cites(*words: str) -> Any:
    """Return a turn that cites the passage of the last result that holds each of the words."""

    def answer(request: ModelRequest) -> Any:
        found = next(m.text for m in reversed(request.messages) if m.role is Role.TOOL)
        blocks = [block for block in found.split("[[c:")[1:] if "]] " in block]
        marks = ["[[c:" + next(b for b in blocks if word in b)[:8] for word in words]
        return turn(text(*(f"{word} {mark} " for word, mark in zip(words, marks, strict=True))))

    return answer


def results(records: list[Record]) -> list[ToolReturned]:
    return [r for r in records if isinstance(r, ToolReturned)]


async def test_what_a_run_saved_another_one_finds_reads_and_cites(alice: Any) -> None:
    runner, _ = runner_of(
        TOOLS,
        turn(call("c1", "save_artifact", {"name": "report.md", "content": REPORT})),
        turn(text("Saved.")),
        turn(call("c2", "search_knowledge", {"query": "What did the lighthouse cost?"})),
        cites("40 pounds"),
        turn(call("c3", "read_artifact", {"name": "report.md"})),
        cites("十二名", "40 pounds"),
    )
    await records_of(runner, ask(alice.id, "Save it"))
    found = await records_of(runner, ask(alice.id, "Cost?"))
    (search,) = results(found)
    assert search.status is ToolStatus.OK, search.content
    assert (
        search.content.startswith("1 passage from 1 of 1 document") or "passages from 1 of 1 document" in search.content
    )
    answer = next(r for r in found if isinstance(r, AssistantMessage) and r.text)
    (cited,) = answer.citations
    assert "40 pounds" in cited.citation.quote and cited.citation.version == 1
    read = await records_of(runner, ask(alice.id, "人员?"))
    again = next(r for r in read if isinstance(r, AssistantMessage) and r.text)
    assert [c.number for c in again.citations] == [1, 1]
    assert again.citations[1].citation == cited.citation  # the same passage has the same id however it came
    visible = await sessions.visible(owner_id=alice.id, thread_id="t")
    kept = [m["metadata"]["workbench"] for m in history.messages(visible.stored) if m["role"] == "assistant"]
    assert [history.cited(c) for c in kept[-1]["citations"]] == list(again.citations)


async def test_a_run_finds_nothing_of_others_nor_outside_its_sources(alice: Any, bob: Any) -> None:
    look = turn(call("c2", "search_knowledge", {"query": "lighthouse"}))
    runner, _ = runner_of(
        TOOLS,
        turn(call("c1", "save_artifact", {"name": "report.md", "content": REPORT})),
        *(turn(text("Saved.")), look, turn(text("ok")), look, turn(text("ok"))),
    )
    await records_of(runner, ask(alice.id, "Save it"))
    for request in (ask(bob.id, "Find"), ask(alice.id, "Find", sources=(), sources_given=True)):
        (search,) = results(await records_of(runner, request))
        assert search.content.startswith("There are no documents to search.") and search.citations == ()
