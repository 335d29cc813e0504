"""Stored answers that cite: what the page needs to draw their chips, and places in words."""

import html
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone, translation

from agents.runtime.events import AssistantMessage, Origin, RunStarted, Stored
from agents.runtime.knowledge import Citation, Cited, Place
from tests.workbench.conversations import answered, asked, conversation, ended, run
from workbench import documentwords, places, transcript

NOW = timezone.now()
ORIGIN = Origin(run_id="r", invocation_id="i", author="assistant")
CITED = Cited(
    number=1,
    citation=Citation(
        id="k3f2ab",
        artifact_id="00000000-0000-4000-8000-000000000000",
        version=2,
        name="报告.pdf",
        start=120,
        end=240,
        place=Place(page=3, heading=("Results", "Costs")),
        quote='It lost "43 kg" <b>of gas</b>.',
    ),
)


def shown(alice: Any, message: AssistantMessage) -> str:
    client = Client()
    client.force_login(alice)
    run(conversation(alice, "t"), "r", asked("How much?"), message, ended())
    return client.get("/c/t/").content.decode().partition('id="transcript"')[2].partition("</main>")[0]


def test_a_stored_answer_carries_its_citations(alice: Any) -> None:
    page = shown(alice, replace(answered("It lost 43 kg. [1](#c-k3f2ab)"), citations=(CITED,)))
    found = re.search(r'<div class="prose"[^>]*data-citations="([^"]*)"', page)
    assert found
    (one,) = json.loads(html.unescape(found[1]))
    assert (one["number"], one["id"], one["documentId"]) == (1, "k3f2ab", CITED.citation.artifact_id)
    assert (one["quote"], one["place"]) == (CITED.citation.quote, {"page": 3, "heading": ["Results", "Costs"]})
    assert '<a href="#c-k3f2ab" class="cite-chip"' in page
    assert "<b>of gas" not in page


@pytest.mark.parametrize("said", [True, False])
def test_that_documents_do_not_answer_is_a_state(alice: Any, said: bool) -> None:
    page = shown(alice, replace(answered("Nothing says so."), not_in_documents=said))
    banner = re.search(r'<div class="notice" data-state="info" data-slot="none"( hidden)?>', page)
    assert banner
    assert bool(banner[1]) is not said


@pytest.mark.parametrize(
    ("sources", "words"), [(None, ""), ((), "No documents"), (("a",), "1 document"), (("a", "b"), "2 documents")]
)
def test_an_answer_says_what_it_could_use(sources: tuple[str, ...] | None, words: str) -> None:
    begun = RunStarted(agent="assistant", model="test", sources=sources)
    records = (begun, asked("How much?"), answered("43 kg"), ended())
    stored = [
        Stored(position=n, fork=0, id=f"e{n}", at=NOW, origin=ORIGIN, record=record)
        for n, record in enumerate(records, 1)
    ]
    answer = transcript.build(stored)[-1]
    assert isinstance(answer, transcript.Answer)
    assert answer.scope == (f"Answered from: {words}" if words else "")


PLACES = [
    (Place(), "", ""),
    (Place(page=3), "Page 3", "第 3 页"),
    (Place(page=3, heading=("A", "B"), lines=(1, 2)), "Page 3, “B”", "第 3 页，“B”"),
    (Place(sheet="Prices", rows=(2, 40)), "Sheet Prices, Rows 2 to 40", "工作表 Prices，第 2 至 40 行"),
    (Place(rows=(7, 7)), "Row 7", "第 7 行"),
    (Place(lines=(4, 9)), "Lines 4 to 9", "第 4 至 9 行"),
    (Place(heading=("方案",), lines=(4, 9)), "“方案”", "“方案”"),
]


@pytest.mark.parametrize(("place", "english", "chinese"), PLACES)
def test_places_are_told_in_both_languages(place: Place, english: str, chinese: str) -> None:
    assert places.words(place) == english
    with translation.override("zh-hans"):
        assert places.words(place) == chinese


def test_every_word_of_the_scripts_is_translated() -> None:
    english = documentwords.script_words()
    with translation.override("zh-hans"):
        chinese = documentwords.script_words()
    same = {key for key, words in english.items() if chinese[key] == words}
    assert same == {"placeHeading", "citeQuote"}  # quotation marks around a name
