"""Titles: by rule without any database, by a model and into the row with both."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from channels.layers import get_channel_layer

from agents import hints, jobs
from agents.background import title
from agents.models.model_call import ModelCall
from agents.models.session import Session
from agents.runtime.events import Record, RunStarted, Stored, UserMessage
from agents.runtime.model import FilePart, Part, TextPart
from agents.runtime.session import Opening, Plan
from agents.stores import pool, writer
from agents.stores.db import in_thread
from agents.stores.sessions import PgSessionStore
from tests.agents.records import FINISHED, answer, finished, request, stamp
from tests.modelserver import WAIT_S, ModelServer, Reply, error, finish, text, usage

PDF = FilePart(artifact_id="a", version=1, name="plans/harbour.pdf", mime="application/pdf", size_bytes=9)


def asked(*parts: Part | str) -> Stored:
    message = UserMessage(id="u", parts=tuple(TextPart(text=p) if isinstance(p, str) else p for p in parts))
    made = stamp(message)
    return Stored(position=1, fork=0, id=made.id, at=made.at, origin=made.origin, record=message, tokens=1)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("How do tides work?", "How do tides work?"),
        ("Compare the two offers. Then tell me which is cheaper.", "Compare the two offers"),
        ("# Plan\n\n- **buy** `ropes` and [paint](https://example.org)", "Plan"),
        ("**Summarise** the _minutes_ of [Monday](x)", "Summarise the minutes of Monday"),
        ("```python\nprint(1)\n```\nWhy does this fail?", "Why does this fail?"),
        ("请总结这份合同的主要条款。然后列出风险。", "请总结这份合同的主要条款"),
        ("   \n\n  spaces \t and\nlines", "spaces and"),
        ("snake_case_name is undefined", "snake_case_name is undefined"),
        ("e.g. is short", "e.g. is short"),
        ("???", ""),
    ],
)
def test_a_title_by_rule_is_the_first_sentence_without_markdown(message: str, expected: str) -> None:
    assert title.by_rule(asked(message)) == expected


def test_a_long_message_is_cut_at_a_word_within_sixty_columns() -> None:
    found = title.by_rule(asked("Explain how the harbour authority decides which ships may enter before the others do"))
    assert found == "Explain how the harbour authority decides which ships may…"
    assert title.width(found) <= title.MOST_COLUMNS


def test_a_long_chinese_message_is_cut_by_its_width() -> None:
    found = title.by_rule(asked("港口管理局如何决定哪些船只可以先于其他船只进入港口并在码头停靠装卸货物以及补给燃料"))
    assert found.endswith("…")
    assert 50 <= title.width(found) <= 60


def test_a_word_without_an_end_is_cut_too() -> None:
    assert title.by_rule(asked("x" * 500)) == "x" * 59 + "…"


def test_a_message_of_files_alone_is_called_after_them() -> None:
    assert title.by_rule(asked(PDF)) == "harbour.pdf"


@pytest.mark.parametrize(
    "written", ['"Harbour Fees"', "**Harbour Fees**", "Title: Harbour Fees.", "Harbour Fees\n\nOK?"]
)
def test_a_models_title_is_cleaned(written: str) -> None:
    assert title.clean(written) == "Harbour Fees"


# In the database


async def heard(layer: Any, channel: str) -> dict[str, Any]:
    """Return the next hint that an open page of this owner would get."""
    async with asyncio.timeout(WAIT_S):
        message: dict[str, Any] = await layer.receive(channel)
    return message


async def conversation(owner_id: int, *, model: str) -> jobs.Claim:
    """Store a run of one question and one answer and return the job that follows it."""

    def plan(opening: Opening) -> Plan:
        message = UserMessage(id="m1", parts=(TextPart(text="What does the harbour charge?"),))
        records: tuple[Record, ...] = (RunStarted(agent="assistant", model=model), message)
        return Plan(records=tuple(stamp(r) for r in records))

    opened = await PgSessionStore().open_run(request(owner_id), plan)
    await opened.ledger.append((stamp(answer("It charges 90 euros a day.")), stamp(finished())), end=FINISHED)
    await writer.close()
    await pool.close()
    return jobs.Claim(
        id=1,
        kind=jobs.TITLE,
        owner_id=owner_id,
        session_id=int(opened.session.id),
        scope="",
        attempt=1,
        asked_at=datetime.now(UTC),
    )


async def title_of(job: jobs.Claim) -> str:
    return (await in_thread(_session)(job)).title


def _session(job: jobs.Claim) -> Session:
    assert job.session_id is not None
    return Session.objects.of_everyone().get(pk=job.session_id)


def _calls(owner_id: int) -> list[ModelCall]:
    return list(ModelCall.objects.of(owner_id).filter(purpose="title"))


def _rename(job: jobs.Claim, name: str) -> None:
    Session.all_owners.filter(pk=job.session_id).update(title=name, title_by_person=True)


@pytest.mark.django_db(transaction=True)
async def test_without_a_model_the_title_comes_by_rule_and_open_pages_hear_of_it(anna: Any) -> None:
    job = await conversation(anna.pk, model="offline")
    layer = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add(hints.group(anna.pk), channel)
    await title.run(job)
    message = await heard(layer, channel)
    await layer.flush()
    assert (message["type"], message["hints"]) == ("workbench.hint", [{"thread_id": "t", "changed": "title"}])
    assert await title_of(job) == "What does the harbour charge?"
    assert await in_thread(_calls)(anna.pk) == []


@pytest.mark.django_db(transaction=True)
async def test_a_model_gives_the_title_and_the_call_is_in_the_books(anna: Any, server: ModelServer) -> None:
    job = await conversation(anna.pk, model="test")
    server.script(Reply(steps=(*text('"Harbour Fees"'), *finish(counts=usage(60, 4)))))
    await title.run(job)
    assert await title_of(job) == "Harbour Fees"
    sent = server.chats[0].body["messages"]
    assert "What does the harbour charge?" in sent[1]["content"]
    assert "90 euros" in sent[1]["content"]
    (call,) = await in_thread(_calls)(anna.pk)
    assert (call.model, call.prompt_tokens, call.finish_reason, call.error_code) == ("test", 60, "stop", "")
    assert [p["kind"] for p in call.parts] == ["system", "event", "event"]
    assert call.run_id is not None and len(call.request_sha256) == 64


@pytest.mark.django_db(transaction=True)
async def test_a_failing_model_leaves_the_title_to_the_rule(anna: Any, server: ModelServer) -> None:
    job = await conversation(anna.pk, model="test")
    server.script(error(401, "bad key"))
    await title.run(job)
    assert await title_of(job) == "What does the harbour charge?"
    (call,) = await in_thread(_calls)(anna.pk)
    assert call.error_code == "model_error"


@pytest.mark.django_db(transaction=True)
async def test_a_model_that_is_no_longer_configured_is_replaced(anna: Any, server: ModelServer) -> None:
    job = await conversation(anna.pk, model="taken-out")
    server.script(Reply(steps=(*text("Harbour Fees"), *finish())))
    await title.run(job)
    assert await title_of(job) == "Harbour Fees"


@pytest.mark.django_db(transaction=True)
async def test_a_persons_title_is_never_written_over(anna: Any, server: ModelServer) -> None:
    job = await conversation(anna.pk, model="test")
    await in_thread(_rename)(job, "")  # also one that the person made empty
    await title.run(job)
    assert await title_of(job) == ""
    await in_thread(_rename)(job, "Mine")
    await title.run(job)
    assert await title_of(job) == "Mine"
    assert server.chats == []


@pytest.mark.django_db(transaction=True)
async def test_a_second_run_of_the_job_changes_nothing(anna: Any, server: ModelServer) -> None:
    job = await conversation(anna.pk, model="test")
    server.script(Reply(steps=(*text("Harbour Fees"), *finish())), Reply(steps=(*text("Other"), *finish())))
    await title.run(job)
    await title.run(job)
    assert await title_of(job) == "Harbour Fees"
    assert len(server.chats) == 1


@pytest.fixture
def anna(transactional_db: Any) -> Any:
    from django.contrib.auth.models import User

    return User.objects.create_user("anna")
