"""Events are searchable from the statement that stores them: by word at once, by vector once a job has run."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
import pytest_asyncio
from django.contrib.auth import get_user_model
from django.db import connection
from django.utils import timezone

from agents import jobs, search
from agents.background import embed, sweep
from agents.models.job import Job
from agents.models.search_entry import Embedding, Kind, SearchEntry
from agents.models.session import Session
from agents.runtime.errors import RecordInvalid, RunFenced
from agents.runtime.events import AssistantMessage, Record, RunFailed, Stamped, ToolReturned, ToolStatus
from agents.runtime.knowledge import Citation, Cited, Place
from agents.runtime.model import FilePart, TextPart
from agents.runtime.pieces import content_of, pieces_of
from agents.runtime.session import OpenRun, RunEnd, RunStatus
from agents.search import Scope
from agents.stores import db, pool, runs, writer
from agents.stores.entries import EntryPlace, event_texts, pieces, tells_time
from agents.stores.sessions import PgSessionStore
from tests.agents.records import FINISHED, answer, finished, new_id, planner, request, stamp, user
from tests.agents.test_embeddings import Endpoint, do_all, document, serving

in_thread = db.in_thread


@pytest_asyncio.fixture
async def alice(hot_stores: None) -> int:
    return int((await in_thread(get_user_model().objects.create_user)("alice")).pk)


@pytest_asyncio.fixture
async def bob(hot_stores: None) -> int:
    return int((await in_thread(get_user_model().objects.create_user)("bob")).pk)


async def opened(
    owner_id: int, *records: Record, thread_id: str = "t", run_id: str = "r", fork_after: int | None = None
) -> OpenRun:
    plan = planner(*records, run_id=run_id, fork_after=fork_after)
    return await PgSessionStore().open_run(request(owner_id, thread_id, run_id), plan)


def returned(content: str, **more: Any) -> ToolReturned:
    return ToolReturned(id=new_id("t"), call_id=new_id("c"), name=more.pop("name", "look"), content=content, **more)


@db.in_thread
def found(owner_id: int, query: str) -> list[tuple[int, int]]:
    """Return what a search finds, best first: the event's position and the byte at which the piece begins."""
    out = []
    for hit in search.search(Scope(owner_id=owner_id, kinds=(Kind.EVENT,)), query):
        entry = SearchEntry.objects.of(owner_id).get(kind=Kind.EVENT, group_id=hit.group_id, position=hit.position)
        out.append((entry.ref, entry.offset))
    return out


@db.in_thread
def entries(owner_id: int) -> list[SearchEntry]:
    return list(SearchEntry.objects.of(owner_id).filter(kind=Kind.EVENT).order_by("group_id", "position"))


async def check_dense(owner_id: int) -> None:
    """Entries of a session are numbered 1, 2, 3 ... in the order of events and offsets, and the session knows it."""
    made = await entries(owner_id)
    for session in await in_thread(lambda: list(Session.objects.of(owner_id)))():
        own = [e for e in made if e.group_id == session.pk]
        assert [e.position for e in own] == list(range(1, len(own) + 1))
        assert [(e.ref, e.offset) for e in own] == sorted((e.ref, e.offset) for e in own)
        assert session.entries == len(own)


async def test_each_message_of_a_run_is_found_as_soon_as_it_is_stored(alice: int) -> None:
    run = await opened(alice, user("Where are the invoices kept?"))
    assert (await found(alice, "invoice"))[0] == (2, 0)
    await run.ledger.append([stamp(returned("Cabinet seven holds receipts.")), stamp(answer("In cabinet seven."))])
    assert (await found(alice, "receipt"))[0] == (3, 0)
    assert {ref for ref, _ in await found(alice, "cabinet")} == {2, 3, 4}  # a neighbour lends its words
    await run.ledger.append([stamp(finished())], end=FINISHED)
    made = await entries(alice)
    assert [(e.ref, e.position, e.fork, e.group_id) for e in made] == [
        (ref, position, 0, int(run.session.id)) for position, ref in enumerate((2, 3, 4), 1)
    ]
    assert {e.created for e in made} == {stamp(finished()).at}
    await check_dense(alice)


async def test_a_long_result_is_found_at_the_byte_where_its_piece_begins(alice: int) -> None:
    text = "".join(f"第{n}段：Paragraph {n} of the record says word{n}.\n\n" for n in range(2_000))[:100_000]
    run = await opened(alice)
    await run.ledger.append([stamp(returned(text))])
    made = await entries(alice)
    assert len(made) > 60
    content = text.encode()
    ends = [e.offset for e in made[1:]] + [len(content)]
    assert b"".join(content[e.offset : end] for e, end in zip(made, ends, strict=True)) == content
    ((_, offset), *_rest) = await found(alice, "word1234")
    assert "word1234" in dict(pieces_of(text))[offset]
    places = [EntryPlace(e.group_id, e.ref, e.offset) for e in made]
    texts = await in_thread(event_texts)(alice, places)
    assert "".join(texts[place] for place in places) == text
    await check_dense(alice)


@pytest.mark.parametrize("query", ["京", "预算", "北京的预算", "好", "限流"])
async def test_chinese_is_found_by_one_and_two_characters(alice: int, query: str) -> None:
    run = await opened(alice, user("今天的会议取消了"))
    await run.ledger.append([stamp(answer("北京的预算很好，API限流"))])
    assert (await found(alice, query))[0] == (3, 0)


async def test_an_id_met_again_is_indexed_once(alice: int) -> None:
    run = await opened(alice)
    twice = stamp(answer("singular words"), id="once")
    first, second = await asyncio.gather(run.ledger.append([twice, twice]), run.ledger.append([twice]))
    again = await run.ledger.append([twice, stamp(answer("others"))])
    assert first[0].position == second[0].position == again[0].position == 2
    assert [(e.ref, e.position) for e in await entries(alice)] == [(2, 1), (3, 2)]
    await check_dense(alice)


async def test_what_a_lost_run_had_written_is_indexed_when_it_is_closed(alice: int) -> None:
    run = await opened(alice, user("Tell me."))
    await pool.fetch("UPDATE agents_run SET lease_expires_at = now() - interval '1 second'", ())
    (lost,) = await runs.expired()

    async def closing(_: runs.Lost) -> tuple[Sequence[Stamped], RunEnd]:
        kept = (stamp(answer("Half a sentence about giraffes")), stamp(RunFailed(code="lost", message="Lost.")))
        return kept, RunEnd(status=RunStatus.LOST, error_code="lost")

    assert len(await runs.close_lost(lost, closing)) == 2
    assert (await found(alice, "giraffe"))[0] == (3, 0)
    with pytest.raises(RunFenced):
        await run.ledger.append([stamp(answer("zebras"))])
    assert await found(alice, "zebra") == []
    await check_dense(alice)


async def test_what_is_not_stored_is_not_indexed(alice: int) -> None:
    good, fenced = await opened(alice, thread_id="good"), await opened(alice, thread_id="fenced")
    await pool.fetch("UPDATE agents_run SET epoch = epoch + 1 WHERE id = %s", (fenced.run_key,))
    results = await asyncio.gather(
        fenced.ledger.append([stamp(answer("zebra"))]),
        good.ledger.append([stamp(answer("lion")), stamp(answer("tiger"), id="x" * 129)]),  # longer than the column
        good.ledger.append([stamp(answer("horse"))]),
        return_exceptions=True,
    )
    assert [type(r) for r in results[:2]] == [RunFenced, RecordInvalid]
    assert [len(await found(alice, word)) for word in ("zebra", "lion", "tiger", "horse")] == [0, 0, 0, 1]
    await check_dense(alice)


async def test_entries_are_numbered_on_over_forks_and_runs(alice: int) -> None:
    long = "word " * 900
    run = await opened(alice, user("one"), run_id="r1")
    await run.ledger.append([stamp(answer(long)), stamp(answer("two"))])
    await run.ledger.append([stamp(finished())], end=FINISHED)
    other = await opened(alice, user("another"), run_id="r2", fork_after=0)
    await asyncio.gather(*(other.ledger.append([stamp(answer(long))]) for _ in range(3)))
    made = await entries(alice)
    assert [e.fork for e in made] == [0] * 5 + [1] * 10
    await check_dense(alice)


async def test_owners_find_their_own_words_only(alice: int, bob: int) -> None:
    mine, theirs = await opened(alice), await opened(bob)
    await asyncio.gather(
        mine.ledger.append([stamp(answer("the secret is ultramarine"))]),
        theirs.ledger.append([stamp(answer(f"{alice}:ultramarin"))]),
    )
    assert len(await found(alice, "ultramarine")) == 1
    for query in ("ultramarine", f"{alice}:ultramarin", f"' | '{alice}:ultramarin"):
        hits = await in_thread(search.search)(Scope(owner_id=bob, kinds=(Kind.EVENT,)), query)
        assert {hit.group_id for hit in hits} <= {int(theirs.session.id)}
    assert {e.group_id for e in await entries(alice)} == {int(mine.session.id)}
    stolen = [EntryPlace(int(mine.session.id), 2, 0)]
    assert await in_thread(event_texts)(bob, stolen) == {}


async def test_an_append_stays_one_statement_and_keeps_what_postgresql_cannot(alice: int) -> None:
    run = await opened(alice)
    before = writer.current().batches
    await run.ledger.append([stamp(answer("halves \ud83d and \0 nothing"))])
    assert writer.current().batches - before == 1
    assert await found(alice, "halves") == [(2, 0)]


async def test_a_conversation_deleted_for_good_takes_its_entries_along(alice: int) -> None:
    gone, kept = await opened(alice, user("giraffe"), thread_id="gone"), await opened(alice, user("giraffe"))
    old = timezone.now() - sweep.UNDO_TIME - timedelta(seconds=1)
    await in_thread(lambda: Session.objects.of(alice).filter(pk=gone.session.id).update(deleted_at=old))()
    await in_thread(sweep._trim)()
    assert {e.group_id for e in await entries(alice)} == {int(kept.session.id)}


# What a record gives


@pytest.mark.parametrize(
    ("record", "marks"),
    [
        (answer("It is done."), "@assist @助手"),
        (answer("Shall I go on? "), "@assist @助手 #q"),
        (answer("要我继续吗？"), "@assist @助手 #q"),
        (user("Shall we go on?"), ""),
        (user("It was last week."), "#t"),
        (returned("上周三的会议"), "#t"),
        (answer("Did we meet in 2024?"), "@assist @助手 #t #q"),
    ],
)
def test_marks_tell_the_speaker_a_question_and_a_time(record: Record, marks: str) -> None:
    (piece,) = pieces(record)
    assert piece["marks"] == marks


def test_only_the_piece_that_ends_a_question_is_marked_as_one() -> None:
    made = pieces(answer("Words. " * 400 + "Shall I go on?"))
    assert [("#q" in piece["marks"]) for piece in made] == [False, True]


@pytest.mark.parametrize(
    "text", ["See you tomorrow.", "On Monday", "in 1999", "in June", "3天后", "昨天", "周五见", "上个月"]
)
def test_times_are_told(text: str) -> None:
    assert tells_time(text)


@pytest.mark.parametrize("text", ["You may march on.", "version 12", "没有", "周围", "项目经理", ""])
def test_other_words_tell_no_time(text: str) -> None:
    assert not tells_time(text)


@pytest.mark.parametrize(
    "record",
    [
        finished(),
        answer("", reasoning="hidden"),
        answer(" \n "),
        returned("no", status=ToolStatus.ERROR),
        returned("what was found before", name="session_search"),
    ],
)
def test_what_is_not_searched_gives_nothing(record: Record) -> None:
    assert pieces(record) == []


def cited(words: str) -> AssistantMessage:
    citation = Citation(id="k3x", artifact_id="a", version=1, name="Plan", quote="q", start=0, end=1, place=Place())
    return answer(words, citations=(Cited(number=1, citation=citation),))


def test_the_id_of_a_citation_is_no_word_and_its_bytes_count() -> None:
    message = cited("It costs ten euros [1](#c-k3x)." + " More." * 300)
    first, second = pieces(message)
    assert "k3x" not in first["body"] and "[[c:k3x]]" in content_of(message)
    assert content_of(message).encode()[second["start"] :].decode() == second["body"]


# What was there before


def backfill(owner_id: int, *, leave: bool) -> None:
    migration = import_module("agents.migrations.0008_event_entries")
    with connection.schema_editor() as editor:
        (migration.leave if leave else migration.enter)(None, editor)


def rows(owner_id: int) -> list[tuple[Any, ...]]:
    made = SearchEntry.objects.of(owner_id).filter(kind=Kind.EVENT).order_by("group_id", "position")
    return list(made.values_list("group_id", "position", "ref", "offset", "fork", "length", "terms", "created"))


async def test_events_that_were_there_become_searchable_as_if_they_came_now(alice: int) -> None:
    attached = FilePart(artifact_id="a", version=1, name="Plan.pdf", mime="application/pdf", size_bytes=1)
    message = user("Read 这份文件", id="m1")
    run = await opened(alice, type(message)(id="m1", parts=(TextPart(text="Read 这份文件"), attached)))
    await run.ledger.append(
        [
            stamp(returned("字" * 1_500 + "尾巴")),  # no border to cut at: by length alone
            stamp(returned("refused", status=ToolStatus.DENIED)),
            stamp(returned("found before", name="session_search")),
            stamp(cited("Ten euros [1](#c-k3x). Shall I go on?")),
            stamp(answer("", reasoning="Hm.")),
            stamp(finished()),
        ],
        end=FINISHED,
    )
    await opened(alice, user("another"), thread_id="other")
    now = await in_thread(rows)(alice)
    assert [row[1:4] for row in now] == [(1, 2, 0), (2, 3, 0), (3, 3, 4_500), (4, 6, 0), (1, 2, 0)]
    await in_thread(backfill)(alice, leave=True)
    assert await in_thread(rows)(alice) == []
    await check_dense(alice)
    await in_thread(backfill)(alice, leave=False)
    assert await in_thread(rows)(alice) == now
    await check_dense(alice)
    await in_thread(backfill)(alice, leave=False)  # cut short and begun anew
    assert await in_thread(rows)(alice) == now


# Vectors


@pytest.fixture
def endpoint(settings: Any) -> Any:
    with serving() as made:
        settings.EMBEDDER, settings.EMBEDDER_MODEL, settings.EMBEDDER_BASE_URL = "openai", "m", made.url
        yield made


async def test_a_runs_end_owes_vectors_of_its_conversation_once(alice: int, endpoint: Endpoint) -> None:
    run = await opened(alice, user("What of giraffes?"), run_id="r1")
    await run.ledger.append([stamp(answer("Tall. " * 400))])
    await run.ledger.append([stamp(finished())], end=FINISHED)
    run = await opened(alice, run_id="r2")
    await run.ledger.append([stamp(finished())], end=FINISHED)
    (job,) = await in_thread(lambda: list(Job.objects.filter(kind=jobs.EMBED)))()
    assert (job.scope, job.session_id, job.owner_id) == (f"session:{run.session.id}", int(run.session.id), alice)
    assert await in_thread(do_all)() == 1
    asked = endpoint.asked[0][2]["input"]
    assert asked[0] == "What of giraffes?" and "".join(asked[1:]) == "Tall. " * 400
    made = await in_thread(lambda: set(Embedding.objects.of(alice).values_list("kind", "group_id")))()
    assert made == {("event", int(run.session.id))}
    assert await in_thread(embed.progress)() == (0, 0)  # it is about documents


async def test_without_an_embedder_no_vectors_are_owed(alice: int, settings: Any) -> None:
    settings.EMBEDDER = "none"
    run = await opened(alice)
    await run.ledger.append([stamp(finished())], end=FINISHED)
    assert not await in_thread(lambda: Job.objects.filter(kind=jobs.EMBED).exists())()


async def test_what_has_no_vectors_gets_them_by_the_sweep_but_not_what_is_deleted(
    alice: int, bob: int, endpoint: Endpoint
) -> None:
    mine, gone = await opened(alice, user("mine")), await opened(alice, user("gone"), thread_id="gone")
    theirs = await opened(bob, user("theirs"))
    deleted = {"deleted_at": timezone.now()}
    await in_thread(lambda: Session.objects.of(alice).filter(pk=gone.session.id).update(**deleted))()
    await in_thread(lambda: jobs.plant(jobs.EMBED, owner_id=alice, scope=f"session:{gone.session.id}"))()
    assert await in_thread(do_all)() == 1
    assert endpoint.asked == []
    embed._looked_at.clear()
    assert await in_thread(embed.owe_missing)()
    await in_thread(do_all)()
    groups = await in_thread(lambda: set(Embedding.objects.of_everyone().values_list("group_id", flat=True)))()
    assert groups == {int(mine.session.id), int(theirs.session.id)}
    embed._looked_at.clear()
    assert not await in_thread(embed.owe_missing)()


async def test_a_job_for_a_conversation_reaches_no_other_owner(alice: int, bob: int, endpoint: Endpoint) -> None:
    mine = await opened(alice, user("mine"))
    await in_thread(lambda: jobs.plant(jobs.EMBED, owner_id=bob, scope=f"session:{mine.session.id}"))()
    await in_thread(do_all)()
    assert endpoint.asked == []


async def test_a_long_conversation_is_done_in_slices(alice: int, endpoint: Endpoint) -> None:
    run = await opened(alice)
    for _ in range(9):
        await run.ledger.append([stamp(answer(f"text {new_id()}")) for _ in range(60)])
    await run.ledger.append([stamp(finished())], end=FINISHED)
    assert await in_thread(do_all)() == 2
    assert await in_thread(lambda: Embedding.objects.of(alice).count())() == 540


async def test_one_job_does_passages_and_events(alice: int, endpoint: Endpoint) -> None:
    await opened(alice, user("said"))
    await in_thread(document)(await in_thread(get_user_model().objects.get)(pk=alice), "written")
    await in_thread(lambda: jobs.plant(jobs.EMBED, owner_id=None, scope="all"))()
    assert await in_thread(do_all)() == 1
    kinds = await in_thread(lambda: set(Embedding.objects.of(alice).values_list("kind", flat=True)))()
    assert kinds == {"event", "passage"}
    assert await in_thread(embed.progress)() == (1, 1)
