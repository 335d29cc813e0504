"""Prompts are checked when they are made, and what they are filled with is data (section 2.8)."""

import pytest

from agents.runtime.policy import TEMPLATES
from agents.runtime.summary.prompts import PromptInvalid, Prompts, missing_headings, prompts_of, render
from agents.runtime.summary.summarizer import ModelSummarizer
from agents.runtime.summary.templates import HEADINGS
from tests.runtime.summary.talks import LONG, Desk, long_talk

GOOD = {
    "system": "Summarise in {max_summary_words} words.",
    "user": "{previous_summary} {conversation_text}",
    "fork": "Sum up.",
}


async def test_context_2_5_a_summary_with_its_own_place_is_not_repeated_in_the_conversation() -> None:
    talk = long_talk(2)
    apart = Prompts(**GOOD, words=50)
    beside = Prompts(**{**GOOD, "user": "{{conversation_text}}"}, words=50)
    for prompts in (apart, beside):
        desk = Desk("THE OLD TEXT.", "New.")
        summarizer = ModelSummarizer(desk.model, prompts=lambda ask, prompts=prompts: prompts)
        await desk.update(talk, summarizer=summarizer)
        more = long_talk(2)
        more.exchange("Question 3. " + LONG * 4, "Answer 3. " + LONG * 4)
        await desk.update(more, summarizer=summarizer)
        asked = desk.asked()
        assert asked.count("THE OLD TEXT.") == 1
        assert asked.startswith("THE OLD TEXT." if prompts.apart else "system: THE OLD TEXT.\n")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"user": "No place for the text."}, 0),
        ({"user": "{conversation_text} {unheard_of}"}, 0),
        ({"system": "About {conversation_text}"}, 0),
        ({"system": "After {previous_summary}"}, 0),
        ({"fork": "{conversation_text}"}, 0),
        ({"fork": "{{previous_summary}}"}, 0),
        ({"system": "No limit is said."}, 100),
        ({"system": " "}, 0),
        ({"fork": ""}, 0),
    ],
)
def test_an_invalid_prompt_cannot_be_made(changed: dict[str, str], words: int) -> None:
    with pytest.raises(PromptInvalid):
        Prompts(**{**GOOD, **changed}, words=words)


def test_without_a_limit_the_placeholder_says_nothing() -> None:
    assert Prompts(**GOOD).system_text() == "Summarise in  words."
    assert Prompts(**GOOD, words=70).system_text() == "Summarise in 70 words."


def test_what_is_filled_in_is_not_filled_in_again_and_the_unknown_is_refused() -> None:
    assert render("{a} {{b}}", {"a": "{b}", "b": "2"}) == "{b} 2"
    with pytest.raises(PromptInvalid):
        render("{a} {c}", {"a": "1"})
    prompts = Prompts(**{**GOOD, "user": "<c>{conversation_text}</c>"})
    assert prompts.user_text("x </c> y", "") == "<c>x <\\/c> y</c>"


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("words", [0, 500])
def test_every_template_is_valid_and_names_its_ten_headings(template: str, language: str, words: int) -> None:
    prompts = prompts_of(template, language, words)
    assert len(prompts.headings) == (0 if template == "brief" else 10) == len(set(prompts.headings))
    for text in (prompts.system_text(), prompts.fork_text()):
        assert all(heading in text for heading in prompts.headings)
        assert ("500" in text) == bool(words)
        assert "[[c:" in text
    assert prompts.user_text("SAID", "BEFORE").index("BEFORE") < prompts.user_text("SAID", "BEFORE").index("SAID")


def test_there_is_no_other_template() -> None:
    with pytest.raises(PromptInvalid):
        prompts_of("novel", "en", 0)


def test_headings_are_found_however_they_are_marked() -> None:
    headings = HEADINGS["worksite"]["en"]
    text = "\n".join(
        f"{mark}{heading}{end}\ntext"
        for heading, (mark, end) in zip(headings, 5 * [("## ", ""), ("**3. ", ":**")], strict=True)
    )
    assert missing_headings(text, headings) == ()
    assert missing_headings(text.replace("Next step", "Afterwards"), headings) == ("Next step",)
    chinese = HEADINGS["materials"]["zh"]
    assert missing_headings("\n".join(f"{i}、{h}：" for i, h in enumerate(chinese)), chinese) == ()
