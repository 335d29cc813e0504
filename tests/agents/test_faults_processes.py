"""Kills and stops at random moments, on a whole installation. FAULT_ROUNDS repeats each; the seed is printed."""

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.agents.stack import Person, Stack, installation
from tests.modelserver import Reply, finish, text

ROUNDS = int(os.environ.get("FAULT_ROUNDS", "2"))
SEED = int(os.environ.get("FAULT_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
LOST_WITHIN_S = 30.0
JOB_AGAIN_S = 150.0  # its lease, the sweep and the start of a worker

pytestmark = [pytest.mark.fault, pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack() -> AsyncIterator[Stack]:
    async with installation() as stack:
        yield stack


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    print(f"FAULT_SEED={SEED} {request.node.name}")
    return random.Random(f"{SEED} {request.node.name}")


def model_reply(words: str) -> Reply:
    return Reply(steps=(*text(words), *finish()))


rounds = pytest.mark.parametrize("round_", range(ROUNDS))


@rounds
async def test_kill_9_of_the_web_process_in_the_middle_of_a_run(
    stack: Stack, chance: random.Random, round_: int
) -> None:
    async with Person(stack) as ann, Person(stack, web=1) as other:
        other.thread = ann.thread
        run_id = await ann.ask()
        await ann.hears(run_id, 3)
        await other.attach(run_id, after=0)
        await asyncio.sleep(chance.uniform(0, 0.8))
        stack.webs[0].kill()
        loop = asyncio.get_running_loop()
        died = loop.time()
        stack.webs[0].start()
        await ann.hears_the_end(run_id)
        end = await other.hears_the_end(run_id)
        assert end is None or end["type"] == "RUN_FINISHED" or end["code"] == "lost"
        assert loop.time() - died < LOST_WITHIN_S
        await stack.check_thread(ann.thread)
        await ann.next_message_works()
        await stack.check_thread(ann.thread)


@rounds
async def test_a_stalled_process_that_wakes_after_its_run_was_closed(
    stack: Stack, chance: random.Random, round_: int
) -> None:
    async with Person(stack) as near, Person(stack, web=1) as far:
        far.thread = near.thread
        run_id = await near.ask()
        await near.hears(run_id, 3)
        await far.attach(run_id, after=0)
        await asyncio.sleep(chance.uniform(0, 0.5))
        stack.webs[0].send(signal.SIGSTOP)
        try:
            end = await far.hears_the_end(run_id)
        finally:
            stack.webs[0].send(signal.SIGCONT)
        assert end is not None and end["type"] in ("RUN_ERROR", "RUN_FINISHED")
        await near.hears_the_end(run_id)
        await stack.check_thread(near.thread)
        await near.next_message_works()
        await stack.check_thread(near.thread)


@rounds
@pytest.mark.parametrize("server", ["valkey", "postgres"])
async def test_kill_9_of_a_server_in_the_middle_of_a_run(
    stack: Stack, chance: random.Random, server: str, round_: int
) -> None:
    async with Person(stack) as near, Person(stack, web=1) as far:
        far.thread = near.thread
        run_id = await near.ask()
        await near.hears(run_id, 3)
        await far.attach(run_id, after=0)
        await asyncio.sleep(chance.uniform(0, 0.8))
        stack.kill_server(server)
        end = await near.hears_the_end(run_id)
        assert end is not None and end["type"] == "RUN_FINISHED"
        await far.hears_the_end(run_id)
        await stack.check_thread(near.thread)
        await near.next_message_works()
        await stack.check_thread(near.thread)


async def is_named(stack: Stack, person: Person) -> bool:
    return bool(await stack.rows("SELECT 1 FROM agents_session WHERE thread_id = %s AND title <> ''", person.thread))


async def gets_a_name(stack: Stack, person: Person) -> None:
    async with asyncio.timeout(JOB_AGAIN_S):
        while not await is_named(stack, person):  # noqa: ASYNC110  # the worker tells nobody but the page
            await asyncio.sleep(0.2)


async def no_job_waits(stack: Stack) -> None:
    async with asyncio.timeout(JOB_AGAIN_S):
        while await stack.rows("SELECT FROM agents_job WHERE status IN ('queued', 'running') LIMIT 1"):  # noqa: ASYNC110  # as above
            await asyncio.sleep(0.2)


@rounds
async def test_kill_9_of_the_worker_in_the_middle_of_a_job(stack: Stack, chance: random.Random, round_: int) -> None:
    async with Person(stack) as ann:
        run_id = await ann.ask("Name this conversation.")
        await ann.hears_the_end(run_id)
        await asyncio.sleep(chance.uniform(0, 0.2))
        stack.worker.kill()
        stack.worker.start()
        await gets_a_name(stack, ann)
        await ann.next_message_works()


@rounds
async def test_broker_and_log_away_at_the_end_of_a_run(stack: Stack, chance: random.Random, round_: int) -> None:
    """It answers nothing, which is worse than being gone: every write to it has to time out."""
    async with Person(stack) as ann:
        run_id = await ann.ask()
        await ann.hears(run_id, 3)
        await asyncio.sleep(chance.uniform(0, 0.5))
        valkey = stack.servers["valkey"].process
        assert valkey is not None
        valkey.send_signal(signal.SIGSTOP)
        try:
            end = await ann.hears_the_end(run_id)
        finally:
            valkey.send_signal(signal.SIGCONT)
        assert end is not None and end["type"] == "RUN_FINISHED"
        await gets_a_name(stack, ann)
        await ann.next_message_works()
        await stack.check_thread(ann.thread)


@rounds
async def test_a_client_that_reads_nothing(stack: Stack, chance: random.Random, round_: int) -> None:
    """The run ends all the same; the client reads on later and misses and doubles nothing."""
    async with Person(stack) as ann, Person(stack) as deaf:
        deaf.thread = ann.thread
        assert deaf.socket is not None
        deaf.socket.transport.pause_reading()
        await no_job_waits(stack)  # it would take the answer
        stack.model.script(model_reply("word " * 60_000))
        run_id = await ann.ask()
        await ann.hears(run_id, 3)
        await deaf.attach(run_id, after=0)
        end = await ann.hears_the_end(run_id)
        assert end is not None and end["type"] == "RUN_FINISHED"
        assert len(deaf.frames.get(run_id, ())) < len(ann.frames[run_id])
        deaf.socket.transport.resume_reading()
        deaf.following = run_id
        await deaf.hears_the_end(run_id)
        assert not deaf.over(run_id) or deaf.frames[run_id] == ann.frames[run_id]
        await stack.check_thread(ann.thread)
        await ann.next_message_works()


@rounds
async def test_sigterm_under_load(stack: Stack, chance: random.Random, round_: int) -> None:
    people = [Person(stack) for _ in range(10)]
    for person in people:
        await person.__aenter__()
    try:
        runs = [await person.ask() for person in people]
        for person, run_id in zip(people, runs, strict=True):
            await person.hears(run_id, 3)
        await asyncio.sleep(chance.uniform(0, 0.5))
        stack.webs[0].send(signal.SIGTERM)
        assert stack.webs[0].running is not None
        code = await asyncio.to_thread(stack.webs[0].running.wait, 30)
        assert code == 0
        stack.webs[0].start()
        for person, run_id in zip(people, runs, strict=True):
            await person.hears_the_end(run_id)
            await stack.check_thread(person.thread)
            await person.next_message_works()
    finally:
        for person in people:
            await person.__aexit__()


@rounds
async def test_two_processes_racing_for_one_conversation(stack: Stack, chance: random.Random, round_: int) -> None:
    async with Person(stack) as one, Person(stack, web=1) as two:
        two.thread = one.thread
        runs = await asyncio.gather(one.ask("First?"), two.ask("Second?"))
        await asyncio.gather(
            one.until(lambda: one.rejected or one.over(runs[0]), "an answer"),
            two.until(lambda: two.rejected or two.over(runs[1]), "an answer"),
        )
        refused = [frame["code"] for frame in (*one.rejected, *two.rejected)]
        assert refused in ([], ["run_conflict"])
        winner = two if one.rejected else one
        await winner.hears_the_end(winner.following)
        await stack.check_thread(one.thread)
        await winner.next_message_works()


@rounds
async def test_a_message_of_one_megabyte(stack: Stack, chance: random.Random, round_: int) -> None:
    async with Person(stack) as ann:
        run_id = await ann.ask("x" * chance.randrange(1_000_000, 1_100_000))
        end = await ann.hears_the_end(run_id)
        assert end is not None and end["type"] == "RUN_FINISHED"
        await ann.next_message_works()
        await stack.check_thread(ann.thread)


@rounds
async def test_ten_thousand_frames_of_garbage(stack: Stack, chance: random.Random, round_: int) -> None:
    async with Person(stack) as good, Person(stack) as bad:
        run_id = await good.ask()
        await good.hears(run_id, 3)
        for _ in range(10_000):
            assert bad.socket is not None
            try:
                await bad.socket.send(chance.randbytes(chance.randrange(1, 200)))
            except Exception:  # whatever way the server gets rid of it
                await asyncio.sleep(0.001)
        end = await good.hears_the_end(run_id)
        assert end is not None and end["type"] == "RUN_FINISHED"
        await good.next_message_works()
        await stack.check_thread(good.thread)
