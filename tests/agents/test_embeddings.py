"""Embedders, and the job that fills vectors in."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Barrier, Thread
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from django.utils import timezone

from agents import jobs, wiring
from agents.background import embed, work
from agents.models.job import Job
from agents.models.search_entry import Embedding, Kind, SearchEntry, Text, add, drop
from agents.providers import minilm
from agents.providers.embeddings import OpenAIEmbedder
from agents.providers.minilm import MiniLM
from agents.runtime.embedding import EmbedderFailed, model_id
from artifacts.models import Artifact, Passage, Version
from workbench import doctor


def cosine(a: Sequence[float] | None, b: Sequence[float] | None) -> float:
    assert a is not None and b is not None
    return float(np.dot(a, b))


# The first components and the likeness that sentence-transformers gives for these two sentences
# https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2
def test_minilm_gives_the_vectors_of_the_original() -> None:
    one, two = MiniLM().embed(["This is an example sentence", "Each sentence is converted"])
    assert one is not None and two is not None
    assert len(one) == 384
    assert one[:5] == pytest.approx([0.0676569, 0.0634960, 0.0487131, 0.0793049, 0.0374481], abs=2e-6)
    assert two[:3] == pytest.approx([0.0864386, 0.1027628, 0.0053946], abs=2e-6)
    assert np.linalg.norm(one) == pytest.approx(1, abs=1e-5)


def test_a_text_has_the_same_vector_alone_and_beside_longer_ones() -> None:
    model = MiniLM()
    short, long = "Notice period", "The committee agreed to move the migration to Thursday. " * 30
    alone = model.embed([short])[0]
    beside = model.embed([long, short, "中文", long, short])
    assert cosine(alone, beside[1]) == pytest.approx(1, abs=1e-5)
    assert beside[1] == beside[4]
    assert beside[2] is None


def test_what_means_the_same_is_near() -> None:
    asked, near, far = MiniLM().embed(
        ["What is the notice period?", "Either party may terminate with thirty days' warning.", "The cat sat there."]
    )
    assert cosine(asked, near) > cosine(asked, far) + 0.2


@pytest.mark.parametrize(
    "text", ["", "  ", "123 456", "合同的通知期限是多久？", "Привет, мир", "API 限流策略与配额说明"]
)
def test_minilm_says_nothing_of_what_it_cannot_read(text: str) -> None:
    assert not minilm.reads(text)


def test_several_threads_may_ask_at_once() -> None:
    model, start, found = MiniLM(), Barrier(4), []

    def ask() -> None:
        start.wait()
        found.append(model.embed(["This is an example sentence"])[0])

    threads = [Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and len(set(found)) == 1


def test_each_embedder_and_model_has_a_number_of_its_own() -> None:
    numbers = {model_id(OpenAIEmbedder(base_url="http://x", api_key="", model=m)) for m in ("a", "b")}
    numbers.add(model_id(MiniLM()))
    assert len(numbers) == 3 and all(0 <= n < 2**31 for n in numbers)


class Endpoint:
    """A server of vectors: as long as told, larger with the text; or of something else."""

    def __init__(self) -> None:
        self.dimension, self.status, self.asked = 3, 200, list[Any]()
        self.answer: Any = None
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.asked.append((self.path, self.headers.get("Authorization"), body))
                data = [
                    {"object": "embedding", "index": i, "embedding": [float(len(text))] * endpoint.dimension}
                    for i, text in enumerate(body["input"])
                ]
                given = endpoint.answer or {"object": "list", "model": body["model"], "data": data[::-1]}
                sent = json.dumps(given).encode()
                self.send_response(endpoint.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            def log_message(self, *_: Any) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"


@contextmanager
def serving() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    thread = Thread(target=endpoint.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.server.shutdown()
        thread.join()
        endpoint.server.server_close()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as made:
        yield made


def test_an_endpoint_gives_vectors_of_length_one_in_order(endpoint: Endpoint) -> None:
    made = OpenAIEmbedder(base_url=endpoint.url, api_key="k", model="m").embed(["a", "", "bb"])
    assert made[1] is None
    assert made[0] == pytest.approx([3**-0.5] * 3)
    path, key, body = endpoint.asked[0]
    assert (path, key, body["model"], body["input"]) == ("/v1/embeddings", "Bearer k", "m", ["a", "bb"])


@pytest.mark.parametrize("answer", [{"data": []}, {"data": [{"index": 0, "embedding": [0.0]}]}, {"error": "no"}])
def test_an_endpoint_that_gives_no_vectors_fails(endpoint: Endpoint, answer: Any) -> None:
    endpoint.answer = answer
    with pytest.raises(EmbedderFailed):
        OpenAIEmbedder(base_url=endpoint.url, api_key="", model="m").embed(["a"])


def test_a_refusal_says_nothing_of_the_key(endpoint: Endpoint) -> None:
    endpoint.status, endpoint.answer = 401, {"error": {"message": "wrong key sk-secret"}}
    with pytest.raises(EmbedderFailed) as failed:
        OpenAIEmbedder(base_url=endpoint.url, api_key="sk-secret", model="m").embed(["a"])
    assert "secret" not in str(failed.value) and failed.value.__cause__ is None


# The job


def document(owner: Any, *texts: str) -> Artifact:
    """Save passages as a document, findable by word."""
    artifact = Artifact.objects.of(owner.pk).create(
        owner=owner, public_id=uuid4(), name=f"user:{uuid4()}.txt", last_version=1
    )
    version = Version.objects.of(owner.pk).create(
        owner=owner, artifact=artifact, number=1, mime="text/plain", size_bytes=1, origin="upload", text_status="ready"
    )
    rows = [
        Passage(owner=owner, version=version, number=i, start=i, end=i + 1, text=text, place={"heading": ["Terms"]})
        for i, text in enumerate(texts)
    ]
    made = Passage.objects.of(owner.pk).bulk_create(rows)
    now = timezone.now()
    add(
        owner.pk,
        Kind.PASSAGE,
        artifact.pk,
        [Text(ref=row.pk, position=row.number, text=row.text, created=now) for row in made],
    )
    return artifact


def do_all() -> int:
    """Do every waiting job of this kind; return how many there were."""
    count = 0
    while (row := Job.objects.filter(kind=jobs.EMBED, status=Job.Status.QUEUED).order_by("id").first()) is not None:
        claim = jobs.claim(row.pk)
        assert claim is not None
        work.do(claim)
        jobs.done(claim)
        count += 1
    return count


@pytest.fixture
def by_endpoint(endpoint: Endpoint, settings: Any) -> Endpoint:
    settings.EMBEDDER, settings.EMBEDDER_MODEL, settings.EMBEDDER_BASE_URL = "openai", "m", endpoint.url
    return endpoint


def test_a_documents_entries_get_vectors_of_heading_and_text(alice: Any, by_endpoint: Endpoint) -> None:
    mine, other = document(alice, "one", "two"), document(alice, "three")
    jobs.plant(jobs.EMBED, owner_id=alice.pk, scope=f"artifact:{mine.pk}")
    assert do_all() == 1
    assert by_endpoint.asked[0][2]["input"] == ["Terms\none", "Terms\ntwo"]
    assert {e.group_id for e in Embedding.objects.of(alice.pk)} == {mine.pk}
    assert embed.progress(alice.pk) == embed.progress() == (2, 3)
    assert doctor.embeddings().startswith("2 of 3 passages have theirs")
    jobs.plant(jobs.EMBED, owner_id=None, scope="all")
    do_all()
    assert embed.progress() == (3, 3)
    assert doctor.embeddings() == "all 3 passages have theirs"
    assert Embedding.objects.of(alice.pk).filter(group_id=other.pk).count() == 1


def test_a_long_document_is_done_in_slices(alice: Any, by_endpoint: Endpoint) -> None:
    mine = document(alice, *[f"text {i}" for i in range(embed.SLICE + 1)])
    jobs.plant(jobs.EMBED, owner_id=alice.pk, scope=f"artifact:{mine.pk}")
    assert do_all() == 2
    assert embed.progress() == (embed.SLICE + 1, embed.SLICE + 1)


def test_another_embedder_makes_all_vectors_anew(alice: Any, by_endpoint: Endpoint, settings: Any) -> None:
    document(alice, "one", "two")
    jobs.plant(jobs.EMBED, owner_id=None, scope="all")
    do_all()
    settings.EMBEDDER_MODEL, by_endpoint.dimension = f"m{uuid4()}", 5
    assert embed.progress() == (0, 2)
    assert embed.owe_missing()
    assert not embed.owe_missing()  # looked a moment ago
    do_all()
    assert embed.progress() == (2, 2)
    assert [len(e.vector) for e in Embedding.objects.of(alice.pk)] == [5, 5]


def test_what_an_embedder_cannot_read_is_not_tried_for_ever(alice: Any, settings: Any) -> None:
    settings.EMBEDDER = "minilm"
    document(alice, "合同的通知期限是三十天")
    Passage.objects.of(alice.pk).update(place={})
    jobs.plant(jobs.EMBED, owner_id=None, scope="all")
    assert do_all() == 1
    assert embed.progress() == (1, 1)
    assert Embedding.objects.of(alice.pk).get().vector is None


def test_a_failing_embedder_hides_nothing_and_is_tried_again(alice: Any, by_endpoint: Endpoint) -> None:
    document(alice, "one")
    by_endpoint.status, by_endpoint.answer = 400, {"error": {"message": "no"}}
    jobs.plant(jobs.EMBED, owner_id=None, scope="all")
    with pytest.raises(EmbedderFailed):
        do_all()
    assert SearchEntry.objects.of(alice.pk).count() == 1 and embed.progress() == (0, 1)


def test_a_document_deleted_meanwhile_is_passed_over(alice: Any, by_endpoint: Endpoint) -> None:
    mine = document(alice, "one", "two")
    jobs.plant(jobs.EMBED, owner_id=alice.pk, scope=f"artifact:{mine.pk}")
    Passage.objects.of(alice.pk).filter(number=0).delete()
    do_all()
    assert embed.progress() == (1, 2)
    drop(alice.pk, Kind.PASSAGE, [mine.pk])
    assert embed.progress() == (0, 0)


def test_without_an_embedder_there_is_nothing_to_do(alice: Any, settings: Any) -> None:
    settings.EMBEDDER = "none"
    document(alice, "one")
    jobs.plant(jobs.EMBED, owner_id=None, scope="all")
    assert do_all() == 1
    assert wiring.embedder() is None and not embed.owe_missing() and embed.progress() == (1, 1)


def test_the_models_key_is_not_for_another_server(by_endpoint: Endpoint, settings: Any) -> None:
    settings.OPENAI_API_KEY = "sk-models"
    embedder = wiring.embedder()
    assert embedder is not None
    embedder.embed(["a"])
    assert by_endpoint.asked[0][1] == "Bearer none"
