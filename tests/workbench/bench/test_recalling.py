"""The bench of recall, on small made-up sets and the real search."""

import json
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from agents.models.search_entry import Embedding, SearchEntry
from agents.runtime.embedding import Vector
from agents.runtime.tokens import estimate
from workbench.bench import context, recalling
from workbench.bench.figures import Figure
from workbench.bench.readers import Turn

LOCOMO = {
    "turns": [
        {"session": 1, "date": "1:56 pm on 8 May, 2023", "dia_id": "D1:1", "speaker": "Ann", "text": "Hello Ben!"},
        {
            "session": 1,
            "date": "1:56 pm on 8 May, 2023",
            "dia_id": "D1:2",
            "speaker": "Ben",
            "text": "I sold the boat.",
        },
        {"session": 1, "date": "1:56 pm on 8 May, 2023", "dia_id": "D1:3", "speaker": "Ann", "text": "What a pity."},
        {"session": 2, "date": "9:00 am on 2 June, 2023", "dia_id": "D2:1", "speaker": "Ann", "text": "My harp broke."},
        {
            "session": 2,
            "date": "9:00 am on 2 June, 2023",
            "dia_id": "D2:2",
            "speaker": "Ben",
            "text": "A string, again?",
        },
    ],
    "qa": [
        {"question": "What did Ben sell?", "answer": "the boat", "category": 4, "evidence": ["D1:2"]},
        {"question": "What broke and what was sold?", "answer": "both", "category": 1, "evidence": ["D2:1", "D1:2"]},
        {"question": "What is unknown?", "answer": "", "category": 5, "evidence": []},
        {"question": "Who likes quinces?", "answer": "", "category": 5, "evidence": ["D9:9"]},
    ],
}
LONGMEMEVAL = [
    {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "How tall is my lemon tree?",
        "answer": "two metres",
        "haystack_session_ids": ["s1", "s2"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"],
        "haystack_sessions": [
            [{"role": "user", "content": "My lemon tree is two metres tall.", "has_answer": True}],
            [{"role": "user", "content": "Which bus goes to the harbour?"}],
        ],
    }
]
QMSUM = {
    "meeting_transcripts": [
        {"speaker": "Chair", "content": "Welcome."},
        {"speaker": "Clerk", "content": "The harbour fees rise by a tenth."},
        {"speaker": "Chair", "content": "Until when?"},
    ],
    "specific_query_list": [
        {"query": "What was said about harbour fees?", "answer": "they rise", "relevant_text_span": [["1", "2"]]}
    ],
}


class Counting:
    """Vectors of one dimension for each of a few words."""

    name, model, query_s = "counting", "words", 1.0

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        self.asked += texts
        return [self._vector(text.lower()) for text in texts]

    def _vector(self, text: str) -> Vector | None:
        found = [1.0 if word in text else 0.0 for word in ("boat", "harp", "harbour", "lemon")]
        length = sum(found) ** 0.5
        return tuple(x / length for x in found) if length else None


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    for name, data in (("locomo", LOCOMO), ("longmemeval", LONGMEMEVAL), ("qmsum", QMSUM)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.json").write_text(json.dumps(data), encoding="utf-8")
    return tmp_path


def measured(sets: Path, embedder: Any = None, **more: Any) -> dict[str, Figure]:
    figures, _ = recalling.measure(context.read(sets), embedder, **more)
    return {figure.name: figure for figure in figures}


@pytest.mark.django_db
def test_evidence_is_found_by_words(sets: Path) -> None:
    found = measured(sets)
    any_of = found["LoCoMo, any evidence in the first 10"]
    assert (any_of.value, any_of.bar, any_of.details["n"]) == (1.0, 0.88, 2)
    assert any_of.details["of_category"] == {"multi-hop": [1.0, 1], "single-hop": [1.0, 1]}
    assert found["LoCoMo, multi-hop, all evidence in up to three calls"].value == 1.0
    assert found["LoCoMo, 1 in one owner, any evidence in one call"].bar is None


@pytest.mark.django_db
def test_sessions_and_spans_are_found(sets: Path) -> None:
    found = measured(sets)
    session = found["LongMemEval, session among the first 5"]
    assert (session.value, session.details["n"]) == (1.0, 1)
    assert found["QMSum, turns of the span covered in 26, one document chosen"].value == 1.0


@pytest.mark.django_db
def test_nothing_is_left_in_the_database(sets: Path, alice: Any) -> None:
    measured(sets, Counting())
    assert list(User.objects.values_list("pk", flat=True)) == [alice.pk]
    assert SearchEntry.objects.of_everyone().count() == Embedding.objects.of_everyone().count() == 0


@pytest.mark.django_db
def test_every_text_is_embedded_once(sets: Path) -> None:
    embedder = Counting()
    measured(sets, embedder)
    assert len(embedder.asked) == len(set(embedder.asked))
    assert "What did Ben sell?" in embedder.asked


@pytest.mark.django_db
def test_a_part_without_its_data_is_named(sets: Path) -> None:
    read = {name: histories for name, histories in context.read(sets).items() if name != "qmsum"}
    figures, missing = recalling.measure(read, None, parts=("longmemeval", "qmsum"))
    assert [figure.name[:11] for figure in figures] == ["LongMemEval"] * 2
    assert [part for part, _ in missing] == ["qmsum"]


def test_a_call_shows_as_many_turns_as_its_budget_takes() -> None:
    short = [Turn(id=f"s{i}", said_by="a", text="word " * 10, user=True) for i in range(40)]
    long = Turn(id="long", said_by="a", text="word " * 1_480, user=True)
    assert len(recalling.fitting(short)) == 26
    shown = recalling.fitting([long, *short])
    assert shown[0] is long
    assert 1_600 - estimate(short[0].text) < sum(estimate(turn.text) for turn in shown) <= 1_600
    assert recalling.fitting([*short[:9], long, short[9]]) == tuple(short[:10])  # what does not fit is passed over


@pytest.mark.django_db
def test_the_command_says_and_writes_the_figures(sets: Path, tmp_path: Path) -> None:
    said, out = StringIO(), tmp_path / "result.json"
    call_command("bench", "recall", "--sets", str(sets), "--words", "--only", "locomo", "--out", str(out), stdout=said)
    assert "any evidence in the first 10" in said.getvalue()
    document = json.loads(out.read_text(encoding="utf-8"))
    assert document["model"] == "none"
    assert document["sets"]["locomo"] == {"histories": 1, "turns": 5, "questions": 4}
    assert document["figures"][0]["bar"] == 0.88


def test_the_command_refuses_what_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="is not a folder"):
        call_command("bench", "recall", "--sets", str(tmp_path / "none"))
