"""How long a search in memories takes: `make bench ARGS="--only memory_search"`.

One owner has 1,000 memories, as many as there may be, among those of 999 others; a fifth is Chinese. Times are of
PgMemories, warm: query text in, memories out; the question's vector is given.
"""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import django

from tests.bench.search import QUESTIONS, Given, Language, Library, at

OWN = 1_000
BEGAN = datetime(2020, 1, 1, tzinfo=UTC)

# the rows behind the entries of the crowd
ROWS = """
insert into agents_memory (owner_id, memory_id, text, kind, topics, event_precision, participants, location, source,
  origin_thread, origin_event, content_hash, version, muted, created_at, updated_at)
select e.owner_id, 'm' || e.id, pool.t, 'fact', '{}', '', '{}', '', 'extractor', '', '', md5(e.id::text), 1, false,
  e.created, e.created
from agents_searchentry e join pool on pool.n = e.ref where e.kind = 'memory'
"""


def remembered(language: Language, number: int) -> Any:
    """Return a draft: every third an episode, each of those on a day of its own."""
    from agents.runtime.memory.dates import Period, Precision
    from agents.runtime.memory.memories import Draft, Kind, Source

    text = language.chinese()[:40] if number % 5 == 4 else language.english(60 + number % 120)
    draft = Draft(text=f"{text} {number}", topics=(language.words[number % 50],), source=Source.EXTRACTOR)
    if number % 3:
        return draft
    start = BEGAN + timedelta(days=number)
    time_ = Period(start=start, end=start + timedelta(days=1), precision=Precision.DAY)
    return replace(draft, kind=Kind.EPISODE, event_time=time_, participants=("Ana",), location="Oslo")


async def timed(ask: Callable[[str], Awaitable[Any]], questions: Sequence[str]) -> list[float]:
    """Return the milliseconds of each, the best of three rounds; a round before them is warm-up."""
    best: list[float] = []
    for _ in range(4):
        times = []
        for question in questions:
            begun = time.perf_counter()
            if not await ask(question):
                raise RuntimeError(f"nothing found for {question!r}")
            times.append((time.perf_counter() - begun) * 1000)
        best = min(best or times, times, key=lambda t: at(t, 0.95))
    return best


def lines(owner: int, entries: int, questions: Sequence[str], near: dict[str, tuple[float, ...]]) -> Iterator[str]:
    from agents.runtime.memory.dates import Between
    from agents.runtime.memory.memories import Kind, Query
    from agents.stores.memories import PgMemories

    plain = PgMemories(owner, heeds_switch=True)
    dense = PgMemories(owner, heeds_switch=True, embedder=Given(near))
    since = Between(after=BEGAN + timedelta(days=OWN // 4))
    asked: dict[str, Callable[[str], Awaitable[Any]]] = {
        "by words": lambda q: plain.search(Query(text=q)),
        "with vectors": lambda q: dense.search(Query(text=q)),
        "with vectors, one kind and the other behind": lambda q: dense.search(
            Query(text=q, kind=Kind.EPISODE, fallback=True)
        ),
        "with vectors, since a day": lambda q: dense.search(Query(text=q, between=since)),
        "the latest 21, no search": lambda q: plain.read(21),
    }
    for name, ask in asked.items():
        times = asyncio.run(timed(ask, questions))
        seen = " / ".join(f"{at(times, part):.1f}" for part in (0.5, 0.95, 0.99))
        yield f"memory_search, {OWN} of {entries}, {name}: ms p50 / p95 / p99|{seen}|20 (p95)"


def among(entries: int) -> Iterator[str]:
    from agents.runtime.embedding import model_id
    from agents.stores.memoryrows import MemoryRows

    language = Language(4)
    library = Library(language)
    begun = time.perf_counter()
    library.crowd(entries - OWN, 999, [language.english(60 + i % 120) for i in range(10_000)], "memory")
    with library.connection.cursor() as cursor:
        cursor.execute(ROWS)
    owner = library.owner(f"rememberer{time.time_ns()}")
    rows = MemoryRows(owner)
    texts = [rows.add(remembered(language, number)).memory.text for number in range(OWN)]
    made = library.embed(owner, model_id(Given({})))
    library.analyze()
    with library.connection.cursor() as cursor:
        cursor.execute("vacuum analyze agents_memory")
    yield f"{entries} memories of 1,000 owners written: s|{time.perf_counter() - begun:.0f}|"
    english = [text for text in texts if len(text.split()) > 8]
    questions = [language.question(language.random.choice(english)) for _ in range(QUESTIONS)]
    near = {question: tuple(float(x) for x in made[i]) for i, question in enumerate(questions)}
    yield from lines(owner, entries, questions, near)


def main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("--entries", type=int, default=1_000_000)
    options = words.parse_args()
    django.setup()
    for line in among(options.entries):
        print(line, flush=True)


if __name__ == "__main__":
    main()
