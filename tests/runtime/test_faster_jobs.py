"""A job that made the summary while a run was about to make one: the run shows what the job made."""

from dataclasses import replace

import pytest

from agents.runtime.context.injection import Block
from agents.runtime.events import AssistantMessage, Summarising
from agents.runtime.invocation import Invocation
from agents.runtime.summaries import Boundary, Summary
from agents.runtime.testing import text, turn
from tests.runtime.samples import AT, of, texts
from tests.runtime.test_preparing import EAGER, WORDS, ZH_WORDS, Talk, told

POLICY = replace(EAGER, summarise_in="background")


@pytest.mark.parametrize(("words", "times", "said"), [(WORDS, 60, "Of moorings."), (ZH_WORDS, 60, "谈了泊位。")])
async def test_a_run_that_finds_nothing_left_to_summarise_shows_what_a_job_has_just_made(
    words: str, times: int, said: str
) -> None:
    talk = Talk(POLICY)
    for _ in range(4):
        await talk.say(words * times, turn(text("Noted.")))

    async def job(invocation: Invocation) -> Block | None:
        """Store a summary as a job does: after the run was opened, and before it looks."""
        last = [s for s in invocation.history if isinstance(s.record, AssistantMessage)][-1]
        made = Summary(
            id="by-a-job",
            text=said,
            filter_key=invocation.filter_key,
            boundary=Boundary(position=last.position, fork=last.fork, event_id=last.id, at=last.at),
            read_from=1,
            made_at=AT,
        )
        assert await invocation.services.summaries.advance(made)
        return None

    talk.preloads = [job]
    emitted = await talk.say(words * times, turn(text("Yes.")))
    assert told(emitted) == ["started", "done"]
    assert of(emitted, Summarising)[-1].summary_id == "by-a-job"
    assert talk.writer.requests == [] and texts(emitted) == ["Yes."]
    (sent,) = talk.model.requests
    assert said in sent.messages[0].text + sent.messages[1].text
    assert "Noted." not in "".join(message.text for message in sent.messages)
