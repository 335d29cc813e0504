"""How long a search takes: `make bench ARGS="--only search"` (and `--only search_million`, `--only recall_million`).

Text is made up, with the word frequencies of English (0.1 / rank) and a fifth of it Chinese. Times are of
PgKnowledge.search: query text in, passages with their places out, warm; the question's vector is given. What is said of
conversations is CPU, of this process and of its database's together, for the search alone.
"""

import argparse
import asyncio
import random
import string
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any
from uuid import UUID

import django

QUESTIONS = 200
PASSAGE_CHARS = 1_000
CHINESE_CHARS = 350
DIMENSION = 384
STOP = (
    "the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which "
    "one you were all her she there would their we him been has when who will no more if out so what up"
).split()


class Language:
    """A made-up language whose words come as often as those of a real one."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        letters = [self.random.choice(string.ascii_lowercase) for _ in range(400_000)]
        self.words = ["".join(letters[i * 8 : i * 8 + 4 + i % 5]) for i in range(40_000)]
        self.upto = list(accumulate(0.1 / (rank + 60) for rank in range(len(self.words))))
        self.characters = [chr(0x4E00 + (i * 7) % 6000) for i in range(3_000)]
        self.upto_chinese = list(accumulate(1 / (rank + 20) for rank in range(len(self.characters))))

    def passage(self, number: int) -> str:
        return self.chinese() if number % 5 == 4 else self.english(PASSAGE_CHARS)

    def english(self, chars: int) -> str:
        words = self.random.choices(self.words, cum_weights=self.upto, k=chars // 12)
        words += self.random.choices(STOP, k=len(words))
        self.random.shuffle(words)
        return " ".join(words)[:chars].rpartition(" ")[0]

    def chinese(self) -> str:
        return "".join(self.random.choices(self.characters, cum_weights=self.upto_chinese, k=CHINESE_CHARS))

    def question(self, text: str) -> str:
        """Return 5 to 12 words of a text, about half of them stop words, but at least two others."""
        words = text.split()
        while True:
            begin = self.random.randrange(max(1, len(words) - 12))
            chosen = words[begin : begin + self.random.randint(5, 12)]
            if len(set(chosen) - set(STOP)) > 1:
                return " ".join(chosen)


def vectors(count: int, seed: int) -> Any:
    import numpy as np

    made = np.random.default_rng(seed).standard_normal((count, DIMENSION)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def as_text(vector: Any) -> str:
    return "[" + ",".join(f"{x:.4f}" for x in vector) + "]"


class Library:
    """Documents of 100 passages each, written as a worker writes them."""

    def __init__(self, language: Language) -> None:
        from django.db import connection

        self.language, self.connection = language, connection

    def owner(self, name: str) -> int:
        from django.contrib.auth.models import User

        return int(User.objects.create(username=name).pk)

    def fill(self, owner: int, passages: int, texts: Callable[[int], str]) -> None:
        from django.utils import timezone

        from agents.models.search_entry import Kind, Text, add
        from artifacts.models import Passage

        for begin in range(0, passages, 100):
            version = self.document(owner, begin)
            rows = [
                Passage(
                    owner_id=owner,
                    version=version,
                    number=i,
                    start=i * 1000,
                    end=i * 1000 + 1000,
                    text=texts(begin + i),
                )
                for i in range(min(100, passages - begin))
            ]
            made = Passage.objects.of(owner).bulk_create(rows)
            now = timezone.now()
            add(
                owner,
                Kind.PASSAGE,
                version.artifact_id,
                [Text(ref=p.pk, position=p.number, text=p.text, created=now) for p in made],
            )

    def talk(self, owner: int, events: int, texts: Callable[[int], str]) -> None:
        """Give the owner conversations of 50 events each, half of them answers."""
        from django.utils import timezone

        from agents.models.search_entry import Kind, Text, add

        now = timezone.now()
        for begin in range(0, events, 50):
            said = [
                Text(
                    ref=i + 1,
                    position=i + 1,
                    text=texts(begin + i),
                    created=now,
                    fork=0,
                    marks=("@assist", "#q")[: i % 2 + i % 10 // 9],
                )
                for i in range(min(50, events - begin))
            ]
            add(owner, Kind.EVENT, begin // 50 + 1, said)

    def crowd(self, entries: int, owners: int, texts: Sequence[str], kind: str = "passage") -> None:
        """Give many owners entries of these texts: some have many, most have few."""
        from django.contrib.auth.models import User

        made = User.objects.bulk_create(User(username=f"other{i}-{time.time_ns()}") for i in range(owners))
        share = entries / sum(1 / (i + 5) for i in range(owners))
        with self.connection.cursor() as cursor:
            cursor.execute(
                "create temporary table pool as select n, t from unnest(%s::text[]) with ordinality x(t, n)", [texts]
            )
            for i, user in enumerate(made):
                cursor.execute(
                    'insert into agents_searchentry (owner_id, kind, ref, "offset", group_id, position, length, terms,'
                    " created) select %(owner)s, %(kind)s, n, 0, n / 50, n %% 50, length(z), z, now() from ("
                    "select g.n, wb_index(%(owner)s, t, '{}') z from generate_series(1, %(count)s) g(n)"
                    " join pool on pool.n = 1 + (g.n * 31 + %(owner)s) %% %(texts)s offset 0) x",
                    {"owner": user.pk, "count": round(share / (i + 5)), "texts": len(texts), "kind": kind},
                )

    def document(self, owner: int, number: int) -> Any:
        from artifacts.models import Artifact, Version

        artifact = Artifact.objects.of(owner).create(
            owner_id=owner, public_id=UUID(int=owner * 10**9 + number), name=f"user:doc{number}.txt", last_version=1
        )
        return Version.objects.of(owner).create(
            owner_id=owner,
            artifact=artifact,
            number=1,
            blob="",
            mime="text/plain",
            size_bytes=1,
            sha256="",
            origin="upload",
            text_status="ready",
        )

    def embed(self, owner: int, model: int) -> Any:
        """Give each of the owner's entries a vector; return them."""
        with self.connection.cursor() as cursor:
            cursor.execute("select id from agents_searchentry where owner_id = %s order by id", [owner])
            ids = [row[0] for row in cursor.fetchall()]
            made = vectors(len(ids), owner)
            for i in range(0, len(ids), 500):
                cursor.execute(
                    "insert into agents_embedding (entry_id, owner_id, kind, group_id, model, vector)"
                    " select e.id, e.owner_id, e.kind, e.group_id, %s, x.v::halfvec"
                    " from unnest(%s::bigint[], %s::text[]) x(id, v) join agents_searchentry e on e.id = x.id",
                    [model, ids[i : i + 500], [as_text(v) for v in made[i : i + 500]]],
                )
        return made

    def analyze(self) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute("vacuum analyze agents_searchentry, agents_embedding, artifacts_passage")


class Given:
    """An embedder whose vectors are made before the clock runs."""

    name, model, query_s = "bench", "bench", 1.0

    def __init__(self, answers: dict[str, tuple[float, ...]]) -> None:
        self.answers = answers

    def embed(self, texts: Sequence[str]) -> list[tuple[float, ...] | None]:
        return [self.answers.get(text) for text in texts]


def at(values: Sequence[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


async def asked(owner: int, questions: Sequence[str], answers: dict[str, tuple[float, ...]]) -> list[float]:
    """Return the milliseconds of each search, warm: everything was asked once before."""
    from agents.stores.knowledge import PgKnowledge

    knowledge = PgKnowledge(owner, None, None, embedder=Given(answers))
    times = []
    for warm in (True, False):
        for question in questions:
            begun = time.perf_counter()
            found = await knowledge.search(question)
            if not warm:
                times.append((time.perf_counter() - begun) * 1000)
            if not found.hits:
                raise RuntimeError(f"nothing found for {question!r}")
    return times


def lines(name: str, owner: int, language: Language, texts: Sequence[str], made: Any) -> Iterator[str]:
    english = [text for text in texts if " " in text]
    chinese = [text for text in texts if " " not in text]
    questions = [language.question(language.random.choice(english)) for _ in range(QUESTIONS)]
    near = {question: tuple(float(x) for x in made[i]) for i, question in enumerate(questions)}
    for words, answers in (("by words", {}), ("with vectors", near)):
        times = min((asyncio.run(asked(owner, questions, answers)) for _ in range(3)), key=lambda t: at(t, 0.95))
        seen = " / ".join(f"{at(times, part):.1f}" for part in (0.5, 0.95, 0.99))
        yield f"{name}, {words}: ms p50 / p95 / p99|{seen}|20"
    for count in (1, 2, 8):
        cut = [language.random.randrange(CHINESE_CHARS - count) for _ in range(QUESTIONS)]
        questions = [language.random.choice(chinese)[i : i + count] for i in cut]
        times = min((asyncio.run(asked(owner, questions, {})) for _ in range(3)), key=lambda t: at(t, 0.95))
        yield f"{name}, Chinese of {count}: ms p50 / p95|{at(times, 0.5):.1f} / {at(times, 0.95):.1f}|40"


class Cpu:
    """Milliseconds of CPU that this process and its database connection's have used."""

    def __init__(self) -> None:
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute("select pg_backend_pid()")
            self.file = Path(f"/proc/{cursor.fetchone()[0]}/schedstat")

    def ms(self) -> float:
        return int(self.file.read_text().split()[0]) / 1e6 + time.process_time() * 1000


def recalled(
    name: str, owner: int, questions: Sequence[str], near: dict[str, tuple[float, ...]], bar: str
) -> Iterator[str]:
    """Say what a search over the owner's conversations costs, one of which is the current one, on a fork."""
    from agents.models.search_entry import Kind
    from agents.runtime.embedding import model_id
    from agents.search import Scope, Vector, search

    cpu, model = Cpu(), model_id(Given({}))
    scope = Scope(owner_id=owner, kinds=(Kind.EVENT,), line=(1, ((0, 40),)), without=(2, 3))
    for words, answers in (("by words", {}), ("with vectors", near)):
        best: list[float] = []
        for _ in range(4):  # the first is warm-up
            times = []
            for question in questions:
                values = answers.get(question)
                begun = cpu.ms()
                vector = Vector(model=model, values=values) if values else None
                found = search(scope, question, limit=26, hits=10, vector=vector)
                times.append(cpu.ms() - begun)
                if not found:
                    raise RuntimeError(f"nothing found for {question!r}")
            best = min(best or times, times, key=lambda t: at(t, 0.95))
        seen = " / ".join(f"{at(best, part):.1f}" for part in (0.5, 0.95, 0.99))
        yield f"{name}, {words}: CPU ms p50 / p95 / p99|{seen}|{bar}"


def conversations(entries: int, sizes: Sequence[int]) -> Iterator[str]:
    """Owners of so many events each, among 1,000 owners of conversations."""
    from agents.runtime.embedding import model_id

    language = Language(3)
    library = Library(language)
    begun = time.perf_counter()
    library.crowd(entries - sum(sizes), 999, [language.english(60 + i % 400) for i in range(10_000)], "event")
    owners = []
    for size in sizes:
        owner = library.owner(f"talker{time.time_ns()}")
        texts = [language.chinese()[:120] if i % 5 == 4 else language.english(60 + i % 400) for i in range(size)]
        library.talk(owner, size, texts.__getitem__)
        owners.append((owner, size, texts, library.embed(owner, model_id(Given({})))))
    library.analyze()
    yield f"{entries} events of 1,000 owners written: s|{time.perf_counter() - begun:.0f}|"
    for owner, size, texts, made in owners:
        english = [text for text in texts[150:] if len(text.split()) > 8]  # behind what is left out
        questions = [language.question(language.random.choice(english)) for _ in range(QUESTIONS)]
        near = {question: tuple(float(x) for x in made[i]) for i, question in enumerate(questions)}
        bar = "12 (p95)" if size <= 10_000 else "40 (p95)"
        yield from recalled(f"session_search, {size} of {entries} events", owner, questions, near, bar)


def one_owner(passages: int) -> Iterator[str]:
    from agents.runtime.embedding import model_id

    language = Language(1)
    library = Library(language)
    texts = [language.passage(i) for i in range(passages)]
    owner = library.owner(f"reader{time.time_ns()}")
    begun = time.perf_counter()
    library.fill(owner, passages, texts.__getitem__)
    yield f"{passages} passages of one owner written: s|{time.perf_counter() - begun:.0f}|"
    made = library.embed(owner, model_id(Given({})))
    library.analyze()
    yield from lines(f"{passages} passages of one owner", owner, language, texts, made)


def million(entries: int, own: int) -> Iterator[str]:
    """The same among many: 1,000 owners, one of `own` passages, the others share shorter texts, as of conversations."""
    from agents.runtime.embedding import model_id

    language = Language(2)
    library = Library(language)
    begun = time.perf_counter()
    library.crowd(entries - own, 999, [language.english(60 + i % 400) for i in range(10_000)])
    texts = [language.passage(i) for i in range(own)]
    owner = library.owner(f"reader{time.time_ns()}")
    library.fill(owner, own, texts.__getitem__)
    yield f"{entries} entries of 1,000 owners written: s|{time.perf_counter() - begun:.0f}|"
    made = library.embed(owner, model_id(Given({})))
    library.analyze()
    yield from lines(f"{own} of {entries} entries", owner, language, texts, made)


def main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("--passages", type=int, default=20_000)
    words.add_argument("--entries", type=int, default=0)
    words.add_argument("--events", type=int, nargs="*", default=[], help="of owners of conversations")
    options = words.parse_args()
    django.setup()
    if options.events:
        made = conversations(options.entries, options.events)
    else:
        made = million(options.entries, options.passages) if options.entries else one_owner(options.passages)
    for line in made:
        print(line, flush=True)


if __name__ == "__main__":
    main()
