"""What the offline provider must reach on questions and documents that its rules were not made on."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents import jobs
from agents.providers.minilm import MiniLM
from agents.stores.knowledge import PgKnowledge
from tests.agents.answering.asking import Answer, ask, score
from tests.agents.answering.library import ROOT, documents, questions
from tests.artifacts.finding import do_jobs, upload

DOCUMENTS, PASSAGES = 0.85, 0.70  # of the questions that the documents answer
LIBRARIES = ("tuning", "held")


@pytest.fixture
def reader(transactional_db: Any, settings: Any, tmp_path: Path) -> User:
    """Somebody whose library was uploaded, read and given vectors."""
    storage = "django.core.files.storage.FileSystemStorage"
    artifacts = {"BACKEND": storage, "OPTIONS": {"location": str(tmp_path)}}
    settings.STORAGES = {**settings.STORAGES, "artifacts": artifacts}
    settings.EMBEDDER = "minilm"
    user = User.objects.create_user("reader")
    for name, data in documents("held").items():
        upload(user, name, data)
    assert do_jobs() == len(documents("held")) == 8
    assert do_jobs(jobs.EMBED) == 8
    return user


async def test_questions_are_answered_from_the_right_passage_or_said_to_have_no_answer(reader: User) -> None:
    for embedder in (None, MiniLM(query_s=30.0)):
        knowledge = PgKnowledge(reader.pk, None, None, embedder=embedder)
        answers = await ask(knowledge, questions("held"))
        reached = score(answers)
        assert (reached.answerable, reached.unanswerable) == (30, 10)
        assert reached.refused == reached.unanswerable, wrong(answers)
        assert reached.documents >= DOCUMENTS * reached.answerable, wrong(answers)
        assert reached.passages >= PASSAGES * reached.answerable, wrong(answers)


def wrong(answers: list[Answer]) -> list[tuple[str, str]]:
    return [(a.question.text, a.text) for a in answers if not (a.right_passage if a.question.document else a.refused)]


def test_every_answer_stands_in_its_document() -> None:
    for library in LIBRARIES:
        written = {path.name: path.read_text() for path in (ROOT / library).iterdir()}
        for question in (q for q in questions(library) if q.document):
            text = written.get(question.document) or written[f"{question.document}.md"]
            assert question.says in text, question


def test_the_rules_were_made_on_other_documents_and_questions() -> None:
    first, second = ({*documents(name)} | {q.text for q in questions(name)} for name in LIBRARIES)
    assert not first & second
