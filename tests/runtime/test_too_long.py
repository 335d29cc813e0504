"""A request that the provider finds too long: it is made shorter and sent once more, or the run says so."""

from dataclasses import replace

import pytest

from agents.runtime.errors import ContextTooLong
from agents.runtime.events import WindowUsed
from agents.runtime.model import FinishReason, ModelRequest
from agents.runtime.testing import call, finish, text, turn
from tests.runtime.samples import end_of, of, texts
from tests.runtime.test_preparing import EAGER, WORDS, ZH_WORDS, Talk, told

POLICY = replace(EAGER, summarise_in="background", presummary_ratio=0.9)


def length(request: ModelRequest) -> int:
    return sum(len(message.text) for message in request.messages)


async def filled(talk: Talk, words: str, times: int) -> None:
    for _ in range(4):
        await talk.say(words * times, turn(text("Noted.")))


@pytest.mark.parametrize(("words", "times"), [(WORDS, 60), (ZH_WORDS, 50)])
async def test_a_request_that_the_provider_finds_too_long_is_summarised_and_sent_again(words: str, times: int) -> None:
    talk = Talk(POLICY, turn(text("They spoke of moorings.")))
    await filled(talk, words, times)
    emitted = await talk.say(words, turn(ContextTooLong()), turn(text("Yes.")))
    assert told(emitted) == ["started", "done"]
    assert texts(emitted) == ["Yes."]
    first, second = talk.model.requests
    assert length(second) < length(first) / 2
    assert "They spoke of moorings." in second.messages[0].text + second.messages[1].text
    assert second.messages[-1].text.endswith(words)
    before, after = of(emitted, WindowUsed)
    assert (after.window, after.source) == (before.tokens // 2, "provider")


async def test_where_no_summary_can_be_made_rounds_are_left_out() -> None:
    talk = Talk(replace(POLICY, summarise=False))
    await filled(talk, WORDS, 60)
    emitted = await talk.say("And now?", turn(ContextTooLong()), turn(text("Yes.")))
    assert texts(emitted) == ["Yes."]
    first, second = talk.model.requests
    assert length(second) <= length(first) * 0.6
    assert second.messages[-1].text == "And now?"


async def test_a_request_that_cannot_be_made_shorter_is_not_sent_again() -> None:
    talk = Talk(POLICY)
    emitted = await talk.say(WORDS * 60, turn(ContextTooLong()))
    assert end_of(emitted).code == "context_too_long"
    assert len(talk.model.requests) == 1


async def test_what_is_too_long_a_second_time_ends_the_run() -> None:
    talk = Talk(replace(POLICY, summarise=False))
    await filled(talk, WORDS, 60)
    emitted = await talk.say("And now?", turn(ContextTooLong()), turn(ContextTooLong()))
    assert end_of(emitted).code == "context_too_long"
    assert len(talk.model.requests) == 2


async def test_later_requests_of_the_run_stay_short() -> None:
    talk = Talk(replace(POLICY, summarise=False))
    await filled(talk, WORDS, 60)
    emitted = await talk.say("Look.", turn(ContextTooLong()), turn(call("c1", "look", {})), turn(text("Forty.")))
    assert texts(emitted)[-1] == "Forty."
    first, _, third = talk.model.requests
    assert length(third) < length(first)


async def test_an_answer_that_has_begun_is_not_asked_for_again() -> None:
    talk = Talk(POLICY)
    await filled(talk, WORDS, 60)
    emitted = await talk.say("And now?", turn(text("It is"), ContextTooLong()))
    assert end_of(emitted).code == "context_too_long"
    assert texts(emitted) == ["It is"]
    assert len(talk.model.requests) == 1


async def test_an_answer_cut_at_its_length_is_not_taken_for_a_request_that_is_too_long() -> None:
    talk = Talk(POLICY)
    emitted = await talk.say("And now?", turn(text("It is"), finish(FinishReason.LENGTH)))
    assert len(talk.model.requests) == 1 and texts(emitted) == ["It is"]
