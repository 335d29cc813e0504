"""A run's documents over the tables: what is found, read and listed, and what is not."""

from collections.abc import Sequence
from threading import Event
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.models.search_entry import Embedding, Kind, SearchEntry, Text, add
from agents.models.session import Session
from agents.runtime.embedding import EmbedderFailed, Vector, model_id
from agents.runtime.knowledge import DocumentMissing, DocumentState, DocumentUnread, Place, citation_id
from agents.stores import documents as rows
from agents.stores.knowledge import PgKnowledge
from artifacts.models import Artifact, Passage, Version


class Library:
    """Documents written row by row, as the reading of a file leaves them."""

    def __init__(self) -> None:
        self.anna, self.boris = (User.objects.create_user(name) for name in ("anna", "boris"))
        self.session = Session.objects.of(self.anna.pk).create(owner=self.anna, thread_id="t", agent="assistant")
        self.other = Session.objects.of(self.anna.pk).create(owner=self.anna, thread_id="u", agent="assistant")

    def add(
        self, name: str, *texts: str, owner: User | None = None, session: Session | None = None, **more: Any
    ) -> str:
        """Save the next version of a document and return the artifact's id. more: fields of the version; places."""
        owner, places = owner or self.anna, more.pop("places", None)
        full = name if session else f"user:{name}"
        artifact, _ = Artifact.objects.of(owner.pk).get_or_create(
            owner=owner, session=session, name=full, defaults={"public_id": uuid4()}
        )
        artifact.last_version += 1
        artifact.save()
        SearchEntry.objects.of(owner.pk).filter(group_id=artifact.pk).delete()
        version = Version.objects.of(owner.pk).create(
            **{
                "owner": owner,
                "artifact": artifact,
                "number": artifact.last_version,
                "mime": "text/plain",
                "size_bytes": 1,
                "origin": "upload",
                "text_status": "ready",
                "text_chars": 100 * len(texts),
                **more,
            }
        )
        made = Passage.objects.of(owner.pk).bulk_create(
            Passage(
                owner=owner,
                version=version,
                number=i,
                start=100 * i,
                end=100 * i + len(text),
                text=text,
                place=places[i] if places else {"page": i + 1, "lines": [10 * i + 1, 10 * i + 9]},
            )
            for i, text in enumerate(texts)
        )
        now = timezone.now()
        entries = [Text(ref=row.pk, position=row.number, text=row.text, created=now) for row in made]
        add(owner.pk, Kind.PASSAGE, artifact.pk, entries)
        return str(artifact.public_id)

    def knowledge(
        self, sources: tuple[str, ...] | None = None, *, owner: User | None = None, embedder: Any = None
    ) -> PgKnowledge:
        return PgKnowledge((owner or self.anna).pk, self.session.pk, sources, embedder=embedder)


@pytest.fixture
def library(transactional_db: Any) -> Library:
    return Library()


def save(library: Library, *args: Any, **more: Any) -> Any:
    return sync_to_async(library.add)(*args, **more)


async def names(knowledge: PgKnowledge, query: str, **more: Any) -> list[str]:
    return [hit.citation.name for hit in (await knowledge.search(query, **more)).hits]


async def test_a_hit_is_a_whole_passage_with_its_citation(library: Library) -> None:
    place = {"page": 3, "heading": ["Results", "Costs"], "lines": [4, 9]}
    made = await save(library, "报告.pdf", "About rockets.", "The audit cost forty thousand euros.", places=[{}, place])
    await save(library, "empty.txt", "nothing of note")
    found = await library.knowledge().search("what did the audit cost")
    hit = found.hits[0]
    assert found.searched == 2 and found.unread == ()
    assert hit.text == hit.citation.quote == "The audit cost forty thousand euros."
    assert hit.citation.id == citation_id(made, 1, 100, 136)
    assert (hit.citation.artifact_id, hit.citation.version, hit.citation.name) == (made, 1, "报告.pdf")
    assert hit.citation.place == Place(page=3, heading=("Results", "Costs"), lines=(4, 9))
    assert hit.score > found.hits[-1].score or len(found.hits) == 1


async def test_a_hit_says_that_its_document_was_written_in_runs_only(library: Library) -> None:
    await save(library, "report.md", "The budget is nine.", origin="tool")
    await save(library, "report.md", "The budget is nine or ten.", origin="tool")
    await save(library, "plan.md", "The budget is ten.")
    await save(library, "plan.md", "The budget is eleven.", origin="tool")  # a person's, changed in a run
    await save(library, "memo.md", "The budget is twelve.", origin="tool")
    await save(library, "memo.md", "The budget is twelve at most.", origin="edit")
    hits = (await library.knowledge().search("budget")).hits
    assert {hit.citation.name: hit.second_hand for hit in hits} == {
        "report.md": True,
        "plan.md": False,
        "memo.md": False,
    }


async def test_only_the_latest_version_is_searched_and_an_old_one_can_be_read(library: Library) -> None:
    await save(library, "plan.md", "The budget is nine.")
    old = (await library.knowledge().search("budget")).hits[0].citation
    made = await save(library, "plan.md", "The budget is ten.")
    found = await library.knowledge().search("budget")
    assert [hit.text for hit in found.hits] == ["The budget is ten."]
    reading = await library.knowledge().read(f"artifact://{made}@1")
    assert (reading.version, reading.passages[0].text) == (1, "The budget is nine.")
    cited = await library.knowledge().read("plan.md", at=old.id)
    assert (cited.version, cited.passages[0].citation) == (1, old)


async def test_nothing_of_another_owner_is_found_read_or_listed(library: Library) -> None:
    theirs = await save(library, "secret.txt", "The password is swordfish.", owner=library.boris)
    cited = citation_id(theirs, 1, 0, 26)
    for knowledge in (library.knowledge(), library.knowledge((theirs,))):
        assert (await knowledge.search("password swordfish")).hits == ()
        assert await knowledge.list() == ()
        for name in ("secret.txt", theirs, f"artifact://{theirs}@1", "artifact://secret.txt@1"):
            with pytest.raises(DocumentMissing):
                await knowledge.read(name)
            with pytest.raises(DocumentMissing):
                await knowledge.search("password", documents=[name])
    await save(library, "mine.txt", "hello")
    with pytest.raises(DocumentUnread):
        await library.knowledge().read("mine.txt", at=cited)


async def test_deleted_documents_and_conversations_are_not_there(library: Library) -> None:
    await save(library, "kept.txt", "budget kept")
    gone = await save(library, "gone.txt", "budget gone")
    await save(library, "of-gone.txt", "budget of gone", session=library.other)
    await Artifact.objects.of(library.anna.pk).filter(public_id=gone).aupdate(deleted_at=timezone.now())
    await Session.objects.of(library.anna.pk).filter(pk=library.other.pk).aupdate(deleted_at=timezone.now())
    assert await names(library.knowledge(), "budget") == ["kept.txt"]
    assert [d.name for d in await library.knowledge().list()] == ["kept.txt"]
    for name in (gone, "gone.txt", "of-gone.txt"):
        with pytest.raises(DocumentMissing):
            await library.knowledge().read(f"artifact://{name}@1")


async def test_a_guarded_tool_result_is_no_document(library: Library) -> None:
    await save(library, "result.txt", "budget", session=library.session, origin="guard")
    assert (await library.knowledge().search("budget")).hits == ()
    assert await library.knowledge().list() == ()


async def test_the_sources_narrow_everything(library: Library) -> None:
    a, b = await save(library, "a.txt", "budget a"), await save(library, "b.txt", "budget b")
    assert await names(library.knowledge((a,)), "budget") == ["a.txt"]
    assert sorted(await names(library.knowledge((a, b)), "budget")) == ["a.txt", "b.txt"]
    assert [d.name for d in await library.knowledge((b,)).list()] == ["b.txt"]
    with pytest.raises(DocumentMissing):
        await library.knowledge((b,)).search("budget", documents=["a.txt"])
    nothing = await library.knowledge(()).search("budget")
    assert (nothing.hits, nothing.searched) == ((), 0)
    assert await library.knowledge(()).list() == ()


async def test_documents_may_be_named_in_a_search(library: Library) -> None:
    a, _ = await save(library, "a.txt", "budget a"), await save(library, "b.txt", "budget b")
    for name in ("a.txt", a, f"artifact://{a}@1", "artifact://a.txt"):
        found = await library.knowledge().search("budget", documents=[name])
        assert ([hit.citation.name for hit in found.hits], found.searched) == (["a.txt"], 1)


async def test_a_search_takes_two_statements(library: Library) -> None:
    a = await save(library, "a.txt", "budget a")

    def counted(knowledge: PgKnowledge, documents: Sequence[str] = ()) -> int:
        with CaptureQueriesContext(connection) as queries:
            knowledge._search("budget", tuple(documents), 8, None)
        return len(queries)

    assert await sync_to_async(counted)(library.knowledge()) == 2
    assert await sync_to_async(counted)(library.knowledge((a,))) == 2
    assert await sync_to_async(counted)(library.knowledge(), ["a.txt"]) == 3


async def test_a_quoted_phrase_stands_in_every_hit(library: Library) -> None:
    await save(library, "a.txt", "The notice period is a month.", "A period of notice is usual.")
    hits = (await library.knowledge().search('"notice period"')).hits
    assert [hit.text for hit in hits] == ["The notice period is a month."]


async def test_what_is_not_read_yet_is_named(library: Library) -> None:
    await save(library, "reading.pdf", text_status="reading")
    await save(library, "broken.pdf", text_status="failed", text_error="broken")
    await save(library, "a.txt", "budget")
    found = await library.knowledge().search("budget")
    assert (found.searched, found.unread) == (1, ("reading.pdf",))
    with pytest.raises(DocumentUnread, match="being read"):
        await library.knowledge().read("reading.pdf")
    with pytest.raises(DocumentUnread, match="broken"):
        await library.knowledge().read("broken.pdf")
    states = {d.name: (d.state, bool(d.reason)) for d in await library.knowledge().list()}
    assert states == {
        "a.txt": (DocumentState.READY, False),
        "broken.pdf": (DocumentState.FAILED, True),
        "reading.pdf": (DocumentState.READING, False),
    }


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Quarterly Report 2025.pdf", "Quarterly Report 2025.pdf"),
        ("quarterly report 2025.PDF", "Quarterly Report 2025.pdf"),
        ("Quarterly Report 2025", "Quarterly Report 2025.pdf"),
        ("quarterly", "Quarterly Report 2025.pdf"),
        ("Quartely Report 2025.pdf", "Quarterly Report 2025.pdf"),
        ("user:Quarterly Report 2025.pdf", "Quarterly Report 2025.pdf"),
        ("plan.md", "notes/plan.md"),
        ("合同", "服务合同（2025）.docx"),
        ("服务合同(2025).docx", "服务合同（2025）.docx"),
        ("mail@home.txt", "mail@home.txt"),
    ],
)
async def test_a_name_need_not_be_exact(library: Library, name: str, meant: str) -> None:
    for known in ("Quarterly Report 2025.pdf", "notes/plan.md", "服务合同（2025）.docx", "mail@home.txt"):
        await save(library, known, "text")
    assert (await library.knowledge().read(name)).document.name == meant


async def test_a_name_that_may_be_several_names_them(library: Library) -> None:
    await save(library, "report-a.pdf", "a")
    await save(library, "report-b.pdf", "b")
    with pytest.raises(DocumentMissing, match=r"report-a\.pdf.*report-b\.pdf|report-b\.pdf.*report-a\.pdf"):
        await library.knowledge().read("report")
    with pytest.raises(DocumentMissing, match="There are 2"):
        await library.knowledge().read("invoice")


@pytest.mark.parametrize("name", ["report 2025.pdf", "b.pdf"])
async def test_another_number_or_letter_is_another_document(library: Library, name: str) -> None:
    await save(library, "report 2024.pdf", "text")
    await save(library, "a.pdf", "text")
    with pytest.raises(DocumentMissing):
        await library.knowledge().read(name)


async def test_of_two_of_the_same_name_the_conversations_own_is_meant(library: Library) -> None:
    shared = await save(library, "a.txt", "shared")
    own = await save(library, "a.txt", "own", session=library.session)
    await save(library, "a.txt", "elsewhere", session=library.other)
    assert (await library.knowledge().read("a.txt")).document.artifact_id == own
    assert (await library.knowledge().read("user:a.txt")).document.artifact_id == shared
    assert {d.here for d in await library.knowledge().list()} == {True, False}


PLACES = [
    {"page": 1, "lines": [1, 9]},
    {"page": 2, "heading": ["Results"], "lines": [10, 19]},
    {"page": 2, "heading": ["Results", "Total Costs"], "rows": [2, 40]},
    {"page": 4, "heading": ["Costs"], "rows": [41, 80]},
]


@pytest.mark.parametrize(
    ("at", "text"),
    [
        ("", "one"),
        ("page:2", "two"),
        ("page:3", "four"),
        ("line:12", "two"),
        ("row:40", "three"),
        ("row:41", "four"),
        ("char:101", "two"),
        ("char:103", "three"),
        ("heading:results", "two"),
        ("heading:Costs", "four"),
        ("heading:total", "three"),
    ],
)
async def test_reading_begins_at_a_place(library: Library, at: str, text: str) -> None:
    await save(library, "a.pdf", "one", "two", "three", "four", places=PLACES, pages=4)
    assert (await library.knowledge().read("a.pdf", at=at)).passages[0].text == text


@pytest.mark.parametrize(
    "at", ["page:9", "page:x", "line:500", "heading:Nowhere", "somewhere", "page:" + "9" * 30, "aaaaaa"]
)
async def test_a_place_that_is_not_there_is_said_so(library: Library, at: str) -> None:
    await save(library, "a.pdf", "one", "two", "three", "four", places=PLACES, pages=4)
    with pytest.raises(DocumentUnread):
        await library.knowledge().read("a.pdf", at=at)


async def test_reading_goes_on_where_it_ended(library: Library) -> None:
    texts = [f"passage {i}" for i in range(450)]
    await save(library, "a.txt", *texts)
    read, at, stretches = list[str](), "", 0
    while True:
        reading = await library.knowledge().read("a.txt", at=at, max_chars=50_000)
        read += [hit.text for hit in reading.passages]
        stretches, at = stretches + 1, reading.next_at
        if not at:
            break
    assert read == texts and stretches == 3
    short = await library.knowledge().read("a.txt", at="page:3", max_chars=150)
    assert [hit.text for hit in short.passages] == ["passage 2", "passage 3"]
    assert short.next_at == "char:400"


async def test_the_list_is_newest_first_and_by_words_of_the_name(library: Library) -> None:
    for name in ("Old Report.txt", "notes.txt", "new report.txt"):
        await save(library, name, "text")
    assert [d.name for d in await library.knowledge().list()] == ["new report.txt", "notes.txt", "Old Report.txt"]
    assert [d.name for d in await library.knowledge().list("REPORT old")] == ["Old Report.txt"]


class Near:
    """An embedder for which every question means the same."""

    name, model, query_s = "near", "1", 5.0

    def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        return [(1.0, 0.0) for _ in texts]


class Failing(Near):
    def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        raise EmbedderFailed("away")


class Slow(Near):
    query_s = 0.01

    def __init__(self) -> None:
        self.go = Event()

    def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        self.go.wait(30)
        return super().embed(texts)


def with_vectors(vector: list[float]) -> None:
    for entry in SearchEntry.objects.of_everyone():
        Embedding.objects.of(entry.owner_id).create(
            entry=entry,
            owner_id=entry.owner_id,
            kind=entry.kind,
            group_id=entry.group_id,
            model=model_id(Near()),
            vector=vector,
        )


async def test_the_questions_vector_finds_what_shares_no_word(library: Library) -> None:
    await save(library, "a.txt", "thirty days' warning")
    await sync_to_async(with_vectors)([0.9, 0.1])
    assert await names(library.knowledge(embedder=Near()), "notice period") == ["a.txt"]
    assert await names(library.knowledge(), "notice period") == []


async def test_words_answer_without_the_embedder(library: Library) -> None:
    await save(library, "a.txt", "thirty days' warning")
    await sync_to_async(with_vectors)([0.9, 0.1])
    slow = Slow()
    for embedder in (Failing(), slow):
        assert await names(library.knowledge(embedder=embedder), "warning") == ["a.txt"]
        assert await names(library.knowledge(embedder=embedder), "notice period") == []
    slow.go.set()


async def test_words_answer_when_vectors_of_that_name_have_another_length(library: Library) -> None:
    await save(library, "a.txt", "thirty days' warning")
    await sync_to_async(with_vectors)([0.9, 0.1, 0.0])
    assert await names(library.knowledge(embedder=Near()), "warning") == ["a.txt"]


def test_the_reasons_for_no_text_are_words() -> None:
    assert "password" in rows.reason("encrypted", "a.pdf")
    assert "a.pdf" in rows.reason("not_read", "a.pdf")
