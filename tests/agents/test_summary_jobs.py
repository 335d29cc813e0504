"""The job that brings a conversation's summary up to date: when it is owed, what it does, and what it leaves alone."""

import asyncio
import os
import socket
import sys
import threading
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from channels.layers import get_channel_layer
from django.contrib.auth import get_user_model
from django.utils import timezone

from agents import hints, jobs, tasks, wiring
from agents.background import summarize, work
from agents.models.agent_policy import AgentPolicy
from agents.models.job import Job
from agents.models.model_call import ModelCall
from agents.models.session import Session
from agents.models.summary import Summary as Row
from agents.models.summary_draft import SummaryDraft
from agents.runtime.context.assemble import Frame, View, assemble
from agents.runtime.context.digests import request_sha256
from agents.runtime.events import Stamped
from agents.runtime.session import CancelToken, OpenRun, RunRequest
from agents.runtime.summaries import Source, Summary
from agents.runtime.summary import summarizer
from agents.stores import chains, db, histories, pool, summaries, writer
from agents.stores.sessions import PgSessionStore
from tests.agents.counting import counted
from tests.agents.records import FINISHED, answer, finished, planner, request, stamp, user
from tests.agents.summarising import AGENT, elsewhere
from tests.modelserver import WAIT_S, Gate, Hang, ModelServer, Reply, error, finish, text, usage

pytestmark = pytest.mark.usefixtures("hot_stores")

ROOT = Path(__file__).parents[2]
SAID = {
    "en": "We decided to keep the second chamber at four degrees. The survey counts 120 crates and 9 % loss a year. ",
    "zh": "我们决定把第二冷库保持在四度。调查显示共有120箱，每年损失百分之九，预算为三万元，期限到六月底。",
}


@pytest_asyncio.fixture
async def alice(hot_stores: None) -> int:
    return int((await db.in_thread(get_user_model().objects.create_user)("alice")).pk)


def stamped(record: Any, run_id: str) -> Stamped:
    return stamp(record, run_id=run_id, branch=AGENT, filter_key=AGENT)


async def conversation(
    owner_id: int, turns: int = 6, *, first: int = 0, language: str = "en", model: str = "offline"
) -> OpenRun:
    """Play turns of long answers, numbered from `first`, and return the last."""
    for n in range(first, first + turns):
        run_id, message = f"r{n}", user(f"Question {n}: {SAID[language]}", id=f"m{n}")
        plan = planner(message, run_id=run_id, model=model, branch=AGENT, filter_key=AGENT)
        opened = await PgSessionStore().open_run(request(owner_id, run_id=run_id, message=message), plan)
        await opened.ledger.append([stamped(answer(SAID[language] * 12), run_id)])
        await opened.ledger.append([stamped(finished(), run_id)], end=FINISHED)
    return opened


async def owed(opened: OpenRun, scope: str = "") -> jobs.Claim:
    """Plant the job and take it, as a worker does."""

    def take() -> jobs.Claim:
        session_id = int(opened.session.id)
        jobs.plant(jobs.SUMMARY, owner_id=opened.session.owner_id, scope=scope, session_id=session_id)
        row = Job.objects.get(kind=jobs.SUMMARY, session_id=session_id, scope=scope, status="queued")
        claim = jobs.claim(row.pk)
        assert claim is not None
        return claim

    return await db.in_thread(take)()


async def done(claim: jobs.Claim) -> str:
    """Do the job in a thread of its own, as a worker does."""
    return str(await asyncio.to_thread(work.do, claim))


async def stored(owner_id: int) -> list[Row]:
    return await db.in_thread(lambda: list(Row.objects.of(owner_id).order_by("id")))()


async def newest(owner_id: int) -> Summary | None:
    return await db.in_thread(summaries.visible)(owner_id=owner_id, thread_id="t")


async def policy(**values: Any) -> None:
    await db.in_thread(AgentPolicy.objects.create)(agent=AGENT, values={"keep_rounds": 1, **values})


async def calls(owner_id: int) -> list[ModelCall]:
    rows = ModelCall.objects.of(owner_id).filter(purpose="summary").order_by("id")
    return await db.in_thread(lambda: list(rows))()


# When it is owed


async def summary_jobs() -> list[tuple[str, str, int | None]]:
    rows = Job.objects.filter(kind=jobs.SUMMARY).order_by("id").values_list("scope", "status", "session_id")
    return await db.in_thread(lambda: list(rows))()


async def test_an_append_that_asks_plants_the_job_in_its_own_statement_and_asking_again_adds_none(alice: int) -> None:
    opened = await PgSessionStore().open_run(request(alice), planner())
    session_id = int(opened.session.id)
    await opened.ledger.append([stamp(answer("one"))])
    assert await summary_jobs() == []
    with counted() as statements:
        await opened.ledger.append([stamp(answer("two"))], summarise=True)
    assert statements.total == 1
    await opened.ledger.append([stamp(answer("three"))], summarise=True)
    assert await summary_jobs() == [("", "queued", session_id)]
    await opened.ledger.append([stamp(finished())], end=FINISHED, summarise=True)
    assert await summary_jobs() == [("", "queued", session_id)]
    planted = await db.in_thread(lambda: Job.objects.get(kind=jobs.SUMMARY))()
    assert (planted.owner_id, planted.range) == (alice, {"run": "r"})
    assert await db.in_thread(Job.objects.filter(kind=jobs.TITLE).count)() == 1


async def test_what_is_asked_for_while_the_job_runs_is_a_job_of_its_own(alice: int) -> None:
    opened = await PgSessionStore().open_run(request(alice), planner())
    await opened.ledger.append([stamp(answer("one"))], summarise=True)
    row = await db.in_thread(lambda: Job.objects.get(kind=jobs.SUMMARY))()
    assert await db.in_thread(jobs.claim)(row.pk) is not None
    await opened.ledger.append([stamp(answer("two"))], summarise=True)
    assert [status for _, status, _ in await summary_jobs()] == ["running", "queued"]


async def test_a_run_that_was_fenced_plants_nothing(alice: int) -> None:
    opened = await PgSessionStore().open_run(request(alice), planner())
    await pool.fetch("UPDATE agents_run SET epoch = 2 WHERE id = %s", (opened.run_key,))
    with pytest.raises(Exception, match="closed"):
        await opened.ledger.append([stamp(answer("one"))], summarise=True)
    assert await summary_jobs() == []


async def test_a_person_and_the_archive_ask_each_once(alice: int) -> None:
    opened = await conversation(alice, 1)
    ask = db.in_thread(summaries.summarise_now)
    for _ in range(2):
        await ask(owner_id=alice, thread_id="t")
        await ask(owner_id=alice, thread_id="t", scope=summaries.ARCHIVE)
    session_id = int(opened.session.id)
    assert await summary_jobs() == [("manual", "queued", session_id), ("archive", "queued", session_id)]


AWAY = """
import asyncio, sys
import django; django.setup()
from django.conf import settings
from agents.stores import pool, writer
from agents.stores.sessions import PgSessionStore
from tests.agents.records import FINISHED, answer, finished, planner, request, stamp
async def main():
    settings.DATABASES["default"]["NAME"] = sys.argv[2]
    opened = await PgSessionStore().open_run(request(int(sys.argv[1])), planner())
    await opened.ledger.append([stamp(answer("one"))], summarise=True)
    await opened.ledger.append([stamp(finished())], end=FINISHED, summarise=True)
    await writer.close()
    await pool.close()
asyncio.run(main())
"""


async def test_with_the_broker_away_the_row_waits_and_the_run_is_unharmed(alice: int) -> None:
    database = pool.params()["dbname"]
    with socket.socket() as held:  # bound and not listening: refused, and nobody else gets the port
        held.bind(("127.0.0.1", 0))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", AWAY, str(alice), database),
            cwd=ROOT,
            env={
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "workbench.settings",
                "CELERY_BROKER_URL": f"redis://127.0.0.1:{held.getsockname()[1]}/0",
            },
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        said = await process.stderr.read()
        assert await process.wait() == 0, said
    assert b"jobs not sent" in said
    assert [status for _, status, _ in await summary_jobs()] == ["queued"]
    session = await db.in_thread(Session.objects.of(alice).get)()
    assert session.last_position == 3
    later = Job.objects.filter(kind=jobs.SUMMARY).update
    await db.in_thread(later)(next_at=timezone.now() - jobs.GRACE - timedelta(seconds=1))
    row = await db.in_thread(lambda: Job.objects.get(kind=jobs.SUMMARY))()
    assert row.pk in await db.in_thread(jobs.due)()


# What it does


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_without_a_model_a_person_gets_a_summary_by_rules_and_open_pages_hear_of_it(
    alice: int, language: str
) -> None:
    opened = await conversation(alice, language=language)
    layer = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add(hints.group(alice), channel)
    claim = await owed(opened, summaries.MANUAL)
    result = await done(claim)
    async with asyncio.timeout(WAIT_S):
        (heard,) = (await layer.receive(channel))["hints"]
    assert (result, heard["changed"], heard["thread_id"]) == ("advanced", "summary", "t")
    found = await newest(alice)
    assert found is not None
    assert (found.source, found.filter_key, found.base) == (Source.MANUAL, AGENT, "")
    assert ("120" in found.text) and ("第二冷库" in found.text or language == "en")
    assert 0 < found.boundary.position < (await db.in_thread(Session.objects.of(alice).get)()).last_position
    assert await calls(alice) == []
    # asked again, recent rounds stay as they are, so nothing is new, and the person hears that
    result = await done(await owed(opened, summaries.MANUAL))
    async with asyncio.timeout(WAIT_S):
        (heard,) = (await layer.receive(channel))["hints"]
    assert (result, heard["changed"]) == ("nothing_new", "summary_unchanged")
    assert len(await stored(alice)) == 1
    await layer.flush()


async def test_a_models_summary_is_stored_its_call_booked_and_the_next_run_begins_there(
    alice: int, server: ModelServer
) -> None:
    opened = await conversation(alice, model="test")
    await policy(summary_events=4, summary_least=100)
    server.script(Reply(steps=(*text("Goal: keep the chamber cold."), *finish(counts=usage(900, 12, cached=128)))))
    assert await done(await owed(opened)) == "advanced"
    found = await newest(alice)
    assert found is not None and found.text == "Goal: keep the chamber cold."
    assert (found.model, found.source) == ("test", Source.BACKGROUND)
    sent = str(server.chats[0].body["messages"])
    assert "Question 0" in sent and "Question 5" not in sent
    (booked,) = await calls(alice)
    assert (booked.prompt_tokens, booked.cached_tokens, booked.completion_tokens) == (900, 128, 12)
    assert booked.request_sha256 and booked.parts
    more = await PgSessionStore().open_run(request(alice, run_id="next"), planner(run_id="next"))
    assert more.summaries == {AGENT: found}
    assert more.history[0].position == found.read_from > 1


async def test_the_next_summary_is_built_from_the_one_before_and_reads_only_what_is_new(
    alice: int, server: ModelServer
) -> None:
    opened = await conversation(alice, 4, model="test")
    await policy(summary_events=4, summary_least=100)
    server.script(Reply(steps=(*text("First summary."), *finish())), Reply(steps=(*text("Second summary."), *finish())))
    assert await done(await owed(opened)) == "advanced"
    first = await newest(alice)
    opened = await conversation(alice, 3, first=4, language="zh", model="test")
    assert await done(await owed(opened)) == "advanced"
    second = await newest(alice)
    assert first is not None and second is not None
    assert (second.base, second.text) == (first.id, "Second summary.")
    assert second.covered_events > first.covered_events
    sent = str(server.chats[1].body["messages"])
    assert "First summary." in sent and "Question 4" in sent
    assert "Question 0" not in sent


async def test_nothing_is_made_while_no_trigger_fires(alice: int, server: ModelServer) -> None:
    opened = await conversation(alice, model="test")
    await policy(summary_ratio=1.0)
    assert await done(await owed(opened)) == "not_due"
    assert server.chats == [] and await stored(alice) == []


async def test_a_policy_without_summaries_makes_none_even_when_asked(alice: int) -> None:
    opened = await conversation(alice)
    await policy(summarise=False)
    assert await done(await owed(opened, summaries.MANUAL)) == "not_allowed"
    assert await stored(alice) == []


async def test_a_models_error_leaves_everything_as_it_was_and_an_archived_one_is_tried_again(
    alice: int, server: ModelServer
) -> None:
    opened = await conversation(alice, model="test")
    await policy(summary_events=4, summary_least=100)
    server.script(error(400, "no"), error(400, "no"))
    assert await done(await owed(opened)) == "model_error"
    with pytest.raises(summarize.NotMade):
        await done(await owed(opened, summaries.ARCHIVE))
    assert await stored(alice) == []
    assert [call.error_code != "" for call in await calls(alice)] == [True, True]


@pytest.mark.parametrize("how", ["deleted", "foreign"])
async def test_a_conversation_that_is_gone_or_another_persons_is_left_alone(alice: int, how: str) -> None:
    opened = await conversation(alice)
    claim = await owed(opened, summaries.MANUAL)
    if how == "deleted":
        await db.in_thread(Session.objects.of(alice).update)(deleted_at=timezone.now())
    else:
        bob = await db.in_thread(get_user_model().objects.create_user)("bob")
        claim = replace(claim, owner_id=bob.pk)
    assert await done(claim) == "gone"
    assert await stored(alice) == []


async def test_context_2_13_of_two_workers_at_once_one_advances(alice: int, server: ModelServer) -> None:
    opened = await conversation(alice, model="test")
    await policy(summary_events=4, summary_least=100)
    gate = threading.Event()
    server.script(Reply(steps=(Gate(gate), *text("One."), *finish())), Reply(steps=(*text("Two."), *finish())))
    first, second = await owed(opened), await owed(opened)
    both = [asyncio.ensure_future(done(claim)) for claim in (first, second)]
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED, timeout=WAIT_S)
    gate.set()
    results = await asyncio.gather(*both, return_exceptions=True)
    assert sum(result == "advanced" for result in results) == 1
    assert sum(isinstance(result, jobs.NotYet) for result in results) == 1
    assert await done(second) in ("not_due", "nothing_new")
    assert len(await stored(alice)) == 1 and len(server.chats) == 1


@pytest.mark.parametrize("first", ["", summaries.MANUAL])
async def test_what_a_person_asks_for_while_a_summary_is_made_joins_that_one(
    alice: int, server: ModelServer, first: str
) -> None:
    opened = await conversation(alice, model="test")
    await policy(summary_events=4, summary_least=100)
    made = db.in_thread(summaries.being_made)
    layer = get_channel_layer()
    channel = await layer.new_channel()
    gate = threading.Event()
    server.script(Reply(steps=(Gate(gate), *text("One."), *finish())), Reply(steps=(*text("Two."), *finish())))
    assert not await made(owner_id=alice, thread_id="t")
    going = asyncio.create_task(done(await owed(opened, first)))
    await asyncio.to_thread(server.wait_for, 1)
    assert await made(owner_id=alice, thread_id="t")
    assert not await made(owner_id=alice + 1, thread_id="t")
    asked = await owed(opened, summaries.MANUAL)
    began = time.monotonic()
    await db.in_thread(tasks.run_job)(job_id=await again(asked))  # a worker's thread, which is free again at once
    assert time.monotonic() - began < 5
    row = await db.in_thread(Job.objects.get)(pk=asked.id)
    assert (row.status, row.attempts, row.range, row.error_code) == ("queued", 0, {}, "")
    gate.set()
    assert await going == "advanced"
    await layer.group_add(hints.group(alice), channel)
    await db.in_thread(tasks.run_job)(job_id=asked.id)
    outcome = db.in_thread(jobs.latest)
    session_id = int(opened.session.id)
    assert await outcome(jobs.SUMMARY, owner_id=alice, session_id=session_id, scope="manual") == ("done", "advanced")
    async with asyncio.timeout(WAIT_S):
        assert (await layer.receive(channel))["hints"][0]["changed"] == "summary"
    assert len(await stored(alice)) == 1 and len(server.chats) == 1
    await layer.flush()


async def again(claim: jobs.Claim) -> int:
    """Give a job back as if nobody had taken it."""
    await db.in_thread(Job.objects.filter(pk=claim.id).update)(status="queued", attempts=0, lease_expires_at=None)
    return claim.id


async def test_a_job_that_waits_for_a_summary_is_sent_as_soon_as_that_is_made(
    alice: int, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    monkeypatch.setattr(jobs, "_publish", lambda ids, queue: sent.extend(ids))
    opened = await conversation(alice, model="test")
    await policy(summary_events=4, summary_least=100)
    server.script(Reply(steps=(*text("One."), *finish())))
    waiting = await again(await owed(opened, summaries.MANUAL))
    sent.clear()
    assert await done(await owed(opened)) == "advanced"
    await asyncio.to_thread(lambda: jobs._sender.submit(int).result(WAIT_S))  # what was sent before is sent
    assert sent.count(waiting) == 1


async def test_a_text_too_long_for_one_job_is_read_on_by_the_same_one_until_it_is_summarised(
    alice: int, server: ModelServer, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.OPENAI_MODEL, settings.MODELS = "", [{"name": "test", "window": 8_000, "base_url": server.base_url}]
    monkeypatch.setattr(summarizer, "MOST_PIECES", 2)
    marks = [f"<{n:03}>" for n in range(150)]
    monkeypatch.setitem(SAID, "en", "".join(f"The survey counts 120 crates {mark}. " for mark in marks))
    opened = await conversation(alice, 1, model="test")
    await policy(keep_rounds=0)
    server.script(*[Reply(steps=(*text(f"So far {n}."), *finish())) for n in range(1, 40)])
    job_id, calls_made, rounds = await again(await owed(opened, summaries.MANUAL)), 0, 0
    rows = Job.objects.filter(pk=job_id)
    while await db.in_thread(rows.filter(status="queued").exists)():
        await db.in_thread(tasks.run_job)(job_id=job_id)
        made, calls_made, rounds = len(server.chats) - calls_made, len(server.chats), rounds + 1
        assert made <= 2
    found = await newest(alice)
    assert found is not None and found.text == f"So far {calls_made}." and rounds > 2
    told = "".join(str(chat.body["messages"][-1]) for chat in server.chats)
    assert all(told.count(mark) == 13 for mark in marks)  # once in the question, and in the answer
    row = await db.in_thread(rows.get)()
    assert (row.status, row.attempts, row.range) == ("done", 1, {"result": "advanced"})
    assert await db.in_thread(SummaryDraft.objects.of(alice).count)() == 0


async def test_a_job_that_was_put_back_gives_way_to_one_that_was_asked_for_meanwhile(alice: int) -> None:
    opened = await conversation(alice, 1)
    first = await owed(opened, summaries.MANUAL)
    second = await again(await owed(opened, summaries.MANUAL))
    await db.in_thread(jobs.put_back)(first)
    rows = Job.objects.filter(kind=jobs.SUMMARY).order_by("id").values_list("id", "status")
    assert await db.in_thread(lambda: list(rows))() == [(first.id, "done"), (second, "queued")]


async def test_a_job_that_takes_longer_than_its_lease_keeps_it(
    alice: int, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summarize, "RENEW_S", 0.02)
    opened = await conversation(alice, model="test")
    await policy(summary_events=4, summary_least=100)
    gate = threading.Event()
    server.script(Reply(steps=(Gate(gate), *text("Late."), *finish())))
    claim = await owed(opened)
    rows = Job.objects.filter(pk=claim.id)
    await db.in_thread(rows.update)(lease_expires_at=timezone.now() - timedelta(seconds=1))
    going = asyncio.create_task(done(claim))
    async with asyncio.timeout(WAIT_S):
        while not await db.in_thread(rows.filter(lease_expires_at__gt=timezone.now()).exists)():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    gate.set()
    assert await going == "advanced"


async def test_a_job_whose_lease_was_lost_stores_nothing(
    alice: int, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summarize, "RENEW_S", 0.02)
    opened = await conversation(alice, model="test")
    await policy(summary_events=4, summary_least=100)
    gate = threading.Event()
    server.script(Reply(steps=(Gate(gate), *text("Late."), *finish())))
    claim = await owed(opened)
    going = asyncio.create_task(done(claim))
    await asyncio.to_thread(server.wait_for, 1)
    await db.in_thread(Job.objects.filter(pk=claim.id).update)(attempts=2)
    assert await going == "taken"
    gate.set()
    assert await stored(alice) == []


WORKER = """
import sys
import django; django.setup()
from django.conf import settings
settings.DATABASES["default"]["NAME"] = sys.argv[2]
from agents import jobs
from agents.background import work
work.do(jobs.claim(int(sys.argv[1])))
"""


async def test_a_worker_killed_while_the_model_writes_leaves_nothing_and_the_next_one_does_it(
    alice: int, server: ModelServer
) -> None:
    opened = await conversation(alice, model="test")
    await policy(summary_events=4, summary_least=100)
    server.script(Reply(steps=(Hang(),)), Reply(steps=(*text("Done by the next."), *finish())))
    await db.in_thread(jobs.plant)(jobs.SUMMARY, owner_id=alice, scope="", session_id=int(opened.session.id))
    rows = Job.objects.filter(kind=jobs.SUMMARY)
    row = await db.in_thread(rows.get)()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", WORKER, str(row.pk), pool.params()["dbname"]),
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "workbench.settings",
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_MODEL": "test",
        },
    )
    await asyncio.to_thread(server.wait_for, 1)
    process.kill()
    await process.wait()
    assert await stored(alice) == []
    claim = await db.in_thread(jobs.claim)(row.pk)
    assert claim is not None and claim.attempt == 2
    assert await done(claim) == "advanced"
    assert [one.text for one in await stored(alice)] == ["Done by the next."]


async def test_the_result_stays_with_the_row(alice: int) -> None:
    opened = await conversation(alice, 1)
    claim = await owed(opened, summaries.MANUAL)
    await db.in_thread(jobs.done)(claim, await done(claim))
    row = await db.in_thread(Job.objects.get)(pk=claim.id)
    assert (row.status, row.error_code) == ("done", "")
    assert row.range["result"] == "advanced"
    assert await db.in_thread(jobs.latest)(
        jobs.SUMMARY, owner_id=alice, session_id=int(opened.session.id), scope=summaries.MANUAL
    ) == ("done", "advanced")


# With real runs


async def ask(owner_id: int, words: str, run_id: str) -> OpenRun:
    """Run the assistant as the site does."""
    runner = wiring.build().runner
    asked = RunRequest(
        owner_id=owner_id, thread_id="t", run_id=run_id, model="test", message=user(words, id=f"m-{run_id}")
    )
    opened = await runner.open(asked)
    async for _ in runner.run(opened, CancelToken()):
        pass
    return opened


async def test_a_fork_is_the_runs_own_request_and_one_message_more(alice: int, server: ModelServer) -> None:
    await policy(fork="on", summary_events=4, summary_least=100, keep_rounds=1, presummary_ratio=0.0)
    for n in range(4):
        server.script(Reply(steps=(*text(SAID["en"] * 12), *finish(counts=usage(100, 200)))))
        opened = await ask(alice, f"Question {n}: {SAID['zh']}", f"r{n}")
    await db.in_thread(Job.objects.filter(kind=jobs.SUMMARY).delete)()
    parent = server.chats[-1].body
    server.script(Reply(steps=(*text("Summary of the chamber."), *finish())))
    assert await done(await owed(opened, summaries.MANUAL)) == "advanced"
    fork = server.chats[-1].body
    shared = len(parent["messages"])
    assert fork["messages"][:shared] == parent["messages"]
    assert [m["role"] for m in fork["messages"][shared:]] == ["assistant", "user"]
    assert (fork["tools"], fork["model"]) == (parent["tools"], parent["model"])
    (booked,) = await calls(alice)
    assert booked.run_id == opened.run_key
    await wiring.close_clients()


async def test_a_reload_gives_the_same_prompt(alice: int) -> None:
    opened = await conversation(alice, 12, language="zh")
    assert await done(await owed(opened, summaries.MANUAL)) == "advanced"
    await conversation_end(alice)

    async def prompt() -> str:
        found = await chains.find(alice, "t", "")
        since = chains.read_from(found.summaries, AGENT)
        history = await chains.known_chain(found, since=since)
        view = View(agent=AGENT, run_id="next", filter_key=AGENT, summaries=found.summaries)
        return request_sha256(assemble(history, Frame(instruction="You help."), view).request)

    known = await prompt()
    assert histories.current().size > 0
    assert await elsewhere(prompt) == known


async def conversation_end(owner_id: int) -> None:
    """Play one more turn, long enough for the process to keep what it knows."""
    opened = await PgSessionStore().open_run(request(owner_id, run_id="last"), planner(run_id="last"))
    await opened.ledger.append([stamped(answer(f"{n} {SAID['zh']}"), "last") for n in range(40)])
    await opened.ledger.append([stamped(finished(), "last")], end=FINISHED)
    await writer.close()
