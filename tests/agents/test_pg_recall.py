"""A run's past over the tables: vectors, outages, statements, deleted conversations, and the whole way of a run."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.utils import timezone

from agents import wiring
from agents.models.event import Event
from agents.models.search_entry import Embedding, Kind, SearchEntry
from agents.models.session import Session
from agents.runtime.embedding import Vector, model_id
from agents.runtime.errors import StorageUnavailable
from agents.runtime.events import AssistantMessage, ToolReturned, UserMessage
from agents.runtime.model import ModelRequest
from agents.runtime.recall import Anchor, EventMissing, RecallFailed, RecallScope
from agents.runtime.runner import Runner
from agents.runtime.session import OpenRun
from agents.runtime.testing import ScriptedModel, call, collect, text, turn
from agents.stores import pool, writer
from agents.stores.recall import PgRecall
from tests.agents.counting import counted
from tests.agents.records import request, user
from tests.agents.test_recall_contract import PgHouse, event, say, texts

BOAT, CUP = (1.0, 0.0), (0.0, 1.0)
ALL, OTHERS = RecallScope.ALL_SESSIONS, RecallScope.OTHER_SESSIONS


@pytest_asyncio.fixture
async def home(transactional_db: Any) -> AsyncIterator[PgHouse]:
    make = sync_to_async(User.objects.create_user)
    alice, bob = await make("alice"), await make("bob")
    yield PgHouse(alice.pk, bob.pk)
    await writer.close()
    await pool.close()


class Directions:
    """An embedder for which a question that holds one of two words means that direction, and others mean nothing."""

    name, model, query_s = "directions", "1", 5.0

    def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        return [BOAT if "boat" in text else CUP if "cup" in text else None for text in texts]


def recall(home: PgHouse, opened: OpenRun, embedder: Any = None) -> PgRecall:
    session = opened.session
    return PgRecall(
        session.owner_id,
        int(session.id),
        fork=session.fork,
        filter_key="assistant",
        before=opened.records[0].position,
        embedder=embedder,
    )


def give_vectors(owner: int, **words: Vector) -> None:
    """Give the messages that hold these words vectors."""
    for word, vector in words.items():
        found = Event.objects.of(owner).get(type="user_message", payload__parts__0__text__icontains=word)
        entry = SearchEntry.objects.of(owner).get(kind=Kind.EVENT, group_id=found.session_id, ref=found.position)
        Embedding.all_owners.create(
            owner_id=owner,
            entry=entry,
            kind=Kind.EVENT,
            group_id=entry.group_id,
            model=model_id(Directions()),
            vector=list(vector),
        )


async def test_a_dense_search_goes_by_meaning_alone(home: PgHouse) -> None:
    await say(home, "The vessel lies in the harbour.", thread="a")
    await say(home, "We speak of a boat that is none.", thread="b")
    await sync_to_async(give_vectors)(home.alice, vessel=BOAT, speak=CUP)
    now = await say(home, "?", thread="c", end=False)
    past = recall(home, now, Directions())
    found = await past.search("boat", scope=OTHERS, dense=True)
    assert [(one.piece.text, one.score) for one in found] == [("The vessel lies in the harbour.", 1.0)]
    assert await past.search("cup", scope=OTHERS, dense=True, min_score=0.9)
    hybrid = await past.search("boat", scope=OTHERS)
    assert {one.piece.thread_id for one in hybrid} == {"a", "b"}
    # no vector for the question: words answer
    assert await past.search("harbour", scope=OTHERS, dense=True)


async def test_a_deleted_conversation_is_neither_found_nor_loaded(home: PgHouse) -> None:
    await say(home, "The cup is called Lindgren.", thread="old")
    old = await event(home, "Lindgren", thread_id="old")
    now = await say(home, "?", thread="new", end=False)
    assert await texts(recall(home, now), "cup", OTHERS) == ["The cup is called Lindgren."]
    await sync_to_async(
        lambda: Session.objects.of(home.alice).filter(thread_id="old").update(deleted_at=timezone.now())
    )()
    for scope in (OTHERS, ALL):
        assert await texts(recall(home, now), "cup", scope) == []
    with pytest.raises(EventMissing):
        await recall(home, now).load(Anchor(thread_id="old", event_id=old.id), before=1, after=1)


async def test_quoted_words_must_stand_together(home: PgHouse) -> None:
    await say(home, "The cup of the harbour.", thread="a")
    await say(home, "The harbour cup.", thread="b")
    now = await say(home, "?", thread="c", end=False)
    found = await recall(home, now).search('"harbour cup"', scope=OTHERS)
    assert [one.piece.text for one in found] == ["The harbour cup."]


async def test_a_search_takes_three_statements_and_a_load_two(home: PgHouse) -> None:
    await say(home, "The cup is called Lindgren.", thread="old")
    now = await say(home, "?", thread="new", end=False)
    past = recall(home, now)
    with counted() as statements:
        found = await past.search("cup", scope=ALL)
    assert len([one for one in statements.texts if one]) == 3  # "" asks whether the connection lives
    with counted() as statements:
        await past.load(Anchor(thread_id="old", event_id=found[0].piece.event_id), before=1, after=1)
    assert statements.total == 2, statements.texts


async def test_context_7_7_an_outage_is_no_event_that_is_not_there(
    home: PgHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = await say(home, "The cup.", end=False)

    async def away(*_: Any, **__: Any) -> list[Any]:
        raise StorageUnavailable

    monkeypatch.setattr(pool, "fetch", away)
    with pytest.raises(RecallFailed):
        await recall(home, now).load(Anchor(event_id="e", call_id="c"), before=1, after=1)
    with pytest.raises(RecallFailed):
        await recall(home, now).search("cup", scope=ALL)


async def test_a_run_searches_loads_and_cites_what_was_said_elsewhere(home: PgHouse) -> None:
    await say(home, "The mooring costs nine hundred crowns.", "Noted.", thread="old")
    cited: list[str] = []

    def marked(asked: ModelRequest, tool: str) -> str:
        result = next(m.text for m in reversed(asked.messages) if m.name == tool)
        return result.split("[[c:")[1][:6]

    def load(asked: ModelRequest) -> Any:
        return turn(call("c2", "session_load", {"event_id": marked(asked, "session_search")}))

    def answer(asked: ModelRequest) -> Any:
        cited.append(marked(asked, "session_load"))
        return turn(text(f"Nine hundred [[c:{cited[0]}]]."))

    model: Any = ScriptedModel(
        turn(call("c1", "session_search", {"query": "mooring", "scope": "all_sessions"})), load, answer
    )
    (agent,) = wiring.agents()
    runner = Runner(
        agents={agent.name: agent},
        default_agent=agent.name,
        sessions=home.store,
        services=lambda request, opened: replace(wiring.services(request, opened), model=model),
        limits=wiring.LIMITS,
        now=wiring.now,
        new_id=wiring.new_id,
    )
    await collect(runner, request(home.alice, "new", message=user("What did it cost?")))
    chain = await home.visible(home.alice, "new")
    results = [s.record for s in chain if isinstance(s.record, ToolReturned)]
    assert [r.name for r in results] == ["session_search", "session_load"]
    assert all(r.artifact is None for r in results)
    (message,) = [s.record for s in chain if isinstance(s.record, AssistantMessage) and s.record.text]
    assert message.text == f"Nine hundred [1](#c-{cited[0]})."
    citation = message.citations[0].citation
    assert (citation.thread_id, citation.quote) == ("old", "The mooring costs nine hundred crowns.")
    assert json.dumps(results[0].data)


@pytest.mark.parametrize(
    ("told", "asked", "says"),
    [
        (
            "For the harbour project we agreed on a budget of 90,000 crowns.",
            "What was the budget we agreed on for the harbour project?",
            "90,000 crowns",
        ),
        ("港口项目的预算定为九十万元。", "之前说的港口项目预算是多少？", "九十万元"),
    ],
)
async def test_without_a_key_a_number_from_the_first_day_is_quoted_with_its_message(
    home: PgHouse, settings: Any, told: str, asked: str, says: str
) -> None:
    settings.EMBEDDER = "none"
    first = await say(home, told, "Noted.", thread="first")
    for n in range(5):
        await say(home, f"Something else, number {n}.", "Noted.", thread=f"t{n}")
    runner = wiring.build().runner
    await collect(runner, request(home.alice, "new", message=user(asked)))
    answers = [s.record for s in await home.visible(home.alice, "new") if isinstance(s.record, AssistantMessage)]
    assert says in answers[-1].text
    cited = answers[-1].citations[0].citation
    message = first.records[1].record
    assert isinstance(message, UserMessage)
    assert (cited.thread_id, cited.message_id, cited.quote) == ("first", message.id, told)
