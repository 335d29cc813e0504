"""How many questions are answered rightly without a key: `make bench ARGS="--only answering"`.

The questions and documents are those of tests/agents/answering/held, through the real extraction and search, by words
alone and with vectors. Right: the first source of the answer is the right document, and the right passage of it.
"""

import asyncio
import logging
import time
from collections.abc import Iterator

import django

MOST_S = 120.0


def lines() -> Iterator[str]:
    from django.contrib.auth.models import User

    from agents.models.job import Job
    from agents.providers.minilm import MiniLM
    from agents.stores.knowledge import PgKnowledge
    from tests.agents.answering.asking import ask, score
    from tests.agents.answering.library import documents, questions
    from tests.artifacts.finding import upload

    reader = User.objects.create(username=f"reader{time.time_ns()}")
    for name, data in documents("held").items():
        upload(reader, name, data)
    begun = time.perf_counter()
    while Job.objects.filter(owner=reader, status__in=(Job.Status.QUEUED, Job.Status.RUNNING)).exists():
        time.sleep(0.05)
        if time.perf_counter() - begun > MOST_S:
            raise RuntimeError("the worker has not read the documents")
    yield f"{len(documents('held'))} documents, upload to searchable: s|{time.perf_counter() - begun:.1f}|"
    for with_what, embedder in (("by words", None), ("with vectors", MiniLM(query_s=30.0))):
        begun = time.perf_counter()
        knowledge = PgKnowledge(reader.pk, None, None, embedder=embedder)
        answers = asyncio.run(ask(knowledge, questions("held")))
        each = (time.perf_counter() - begun) * 1000 / len(answers)
        reached = score(answers)
        name = f"Questions without a key, {with_what}"
        yield f"{name}: right document cited first|{reached.documents} of {reached.answerable}|85 %"
        yield f"{name}: right passage cited first|{reached.passages} of {reached.answerable}|70 %"
        yield f"{name}: unanswerable said so|{reached.refused} of {reached.unanswerable}|10 of 10"
        yield f"{name}: ms each|{each:.0f}|"


def main() -> None:
    django.setup()
    logging.disable(logging.INFO)
    for line in lines():
        print(line, flush=True)


if __name__ == "__main__":
    main()
