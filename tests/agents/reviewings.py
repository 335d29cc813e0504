"""Conversations that a job reviews for what is to be learned, for its tests."""

import json
from typing import Any

from agents import jobs
from agents.models.review import Review, ReviewCursor
from agents.models.skill import SkillAudit, SkillRevision
from agents.runtime.events import Record, ToolReturned, ToolStatus
from agents.runtime.model import ToolCall
from agents.runtime.session import OpenRun
from agents.stores import db
from agents.stores.skillcontent import of_text
from agents.stores.skillfiles import desk
from agents.stores.skilllibrary import SkillLibraryRows
from tests.agents.records import answer, new_id
from tests.agents.rememberings import say, statuses, work
from tests.modelserver import Reply, finish, text
from tests.runtime.evolution.doing import Step

SPEC = {
    "name": "Supplier letter",
    "description": "Answers an offer of a supplier",
    "when_to_use": "An offer is to be answered.",
    "steps": ["Read the offer.", "Name price and delivery.", "Save the letter."],
    "pitfalls": [],
}


def steps(*made: Step) -> list[Record]:
    """Return the records of calls and their results."""
    out: list[Record] = []
    for tool, arguments, ok in made:
        call_id = new_id("c")
        call = answer("", tool_calls=(ToolCall(id=call_id, name=tool, arguments=json.dumps(arguments)),))
        status = ToolStatus.OK if ok else ToolStatus.ERROR
        content = "found" if ok else "error: it is not there"
        out += [call, ToolReturned(id=new_id("t"), call_id=call_id, name=tool, content=content, status=status)]
    return out


async def play(owner_id: int, words: str, *made: Step, **more: Any) -> OpenRun:
    """Play a turn with calls of tools, and nothing behind it."""
    return await say(owner_id, words, *steps(*made), **more)


async def review() -> None:
    """Do the reviews that wait."""
    await work(jobs.REVIEW)


async def played(owner_id: int, words: str, *made: Step, **more: Any) -> OpenRun:
    """Play a turn and do the review behind it."""
    opened = await play(owner_id, words, *made, **more)
    await review()
    return opened


def decides(**values: Any) -> Reply:
    """Return a reviewer's answer."""
    decision = {"skip_reason": "", "skills": [], "updates": [], "deletions": [], **values}
    return Reply(steps=(*text(json.dumps(decision)), *finish("stop")))


def says(words: str) -> Reply:
    return Reply(steps=(*text(words), *finish("stop")))


async def cursor(owner_id: int) -> ReviewCursor | None:
    """Return the one cursor; a claim is not left behind."""
    row = await db.in_thread(lambda: ReviewCursor.objects.of(owner_id).first())()
    assert row is None or (row.claimed_by, row.claimed_until) == ("", None)
    return row


async def results(owner_id: int) -> list[str]:
    """Return what came of the reviews, in order."""
    rows = Review.objects.of(owner_id).order_by("pk").values_list("result", flat=True)
    return await db.in_thread(lambda: list(rows))()


async def came(owner_id: int) -> list[dict[str, Any]]:
    """Return what came of each proposal, in order."""
    rows = Review.objects.of(owner_id).order_by("pk").values_list("came", flat=True)
    return [one for some in await db.in_thread(lambda: list(rows))() for one in some]


async def revisions(owner_id: int) -> list[SkillRevision]:
    """Return the revisions of a person, in order, with skill and parent."""
    rows = SkillRevision.objects.in_scope(owner_id).select_related("skill", "parent").order_by("pk")
    return await db.in_thread(lambda: list(rows))()


async def only(owner_id: int) -> SkillRevision:
    (revision,) = await revisions(owner_id)
    return revision


async def verbs(owner_id: int) -> list[str]:
    rows = SkillAudit.objects.in_scope(owner_id).order_by("pk").values_list("verb", flat=True)
    return await db.in_thread(lambda: list(rows))()


async def jobs_stand() -> list[str]:
    return await statuses(jobs.REVIEW)


async def managed(owner_id: int, name: str, description: str = "Of its own", body: str = "1. Do.\n2. Go on.") -> int:
    """Make a skill as a person does on the page; return the number of its revision."""

    def make() -> int:
        return SkillLibraryRows(owner_id, actor_id=owner_id).make(name, description, body).number

    return await db.in_thread(make)()


async def brought(owner_id: int, name: str, description: str = "Brought along", body: str = "1. Do.") -> None:
    """Bring a skill along as an import does: nobody manages it here."""

    def bring() -> None:
        with desk() as on:
            SkillLibraryRows(owner_id).bring([of_text(name, description, body, on, None)])

    await db.in_thread(bring)()
