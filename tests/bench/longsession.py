"""How the beginning of a request grows with the length of a conversation: `make bench ARGS="--only long"`.

Conversations of 1,000, 10,000 and 100,000 events, with a boundary BEHIND events before the end. Times are of what
happens from a request to a model's request: the run opened (what is there, its history, its first records stored) and
the context assembled, in a process that knows the conversation and in one that does not. Statements are counted at
psycopg, on every connection of the process.
"""

import argparse
import asyncio
import time
from datetime import UTC, datetime
from statistics import median
from typing import Any

import django
import orjson

BEHIND = 120
TIMES = 40
PER_RUN = 6
BARS = {"ms": "p95 15", "statements": "5"}

SESSION = """
insert into agents_session (owner_id, thread_id, agent, title, title_by_person, head_fork, last_position, state,
                            seen_position, created_at, active_at)
values (%s, %s, 'assistant', 'long', true, 0, %s, '{}', 0, now(), now()) returning id
"""
FORK = "insert into agents_fork (session_id, number, shared_position, created_at) values (%s, 0, 0, now())"
RUNS = """
insert into agents_run (owner_id, session_id, client_id, parent_client_id, fork, agent, model, status, epoch,
                        lease_expires_at, render_html, origin, started_at, ended_at, prompt_tokens, cached_tokens,
                        completion_tokens, reasoning_tokens, model_calls, error_code, error_message)
select %(owner)s, %(session)s, 'run' || n, '', 0, 'assistant', 'm', 'finished', 1, now(), false, 'api', now(), now(),
       0, 0, 0, 0, 1, '', ''
from generate_series(0, %(runs)s - 1) n
"""
EVENTS = """
insert into agents_event (owner_id, session_id, position, fork, run_id, event_id, type, invocation_id, author, branch,
                          filter_key, origin, payload, tokens, at)
select r.owner_id, r.session_id, n * %(per)s + k.ord, 0, r.id, 'e' || n || '-' || k.ord, k.type, 'i' || n,
       case when k.ord < 3 then 'user' else 'assistant' end, 'assistant', 'assistant', '{}',
       replace(k.payload, '#', n::text)::jsonb, k.tokens, %(at)s
from generate_series(0, %(runs)s - 1) n
join agents_run r on r.session_id = %(session)s and r.client_id = 'run' || n
cross join json_to_recordset(%(kinds)s) k(ord int, type text, payload text, tokens int)
order by 3
"""


def main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("--events", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    options = words.parse_args()
    django.setup()
    asyncio.run(_measure(options.events))


async def _measure(lengths: list[int]) -> None:
    from agents.stores import db, pool, writer

    try:
        for length in lengths:
            for known in (False, True):
                owner, runs = await db.in_thread(_seed)(length)
                await _summarise(owner, runs)
                times, used, counts, tokens = await _begin(owner, length, known=known)
                label = "known to the process" if known else "not known"
                name = f"Run opened and context assembled, {length} events ({tokens} tokens), {label}: ms p50 / p95"
                print(f"{name}|{median(times):.1f} / {_p95(times):.1f}|{BARS['ms']}", flush=True)
                print(f"  CPU ms of the process p50 / p95|{median(used):.1f} / {_p95(used):.1f}|", flush=True)
                print(f"  statements|{max(counts)}|{BARS['statements']}", flush=True)
    finally:
        await writer.close()
        await pool.close()


def _p95(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]


def _seed(length: int) -> tuple[int, int]:
    """Write a conversation of this many events of a new person and return the person and how many runs it has."""
    from django.contrib.auth import get_user_model
    from django.db import connection

    from agents.runtime import codec
    from tests.bench.assembly import records

    runs = length // PER_RUN
    owner = get_user_model().objects.create_user(f"long{length}-{time.time_ns()}").pk
    kinds = [
        {
            "ord": n,
            "type": record.type,
            "payload": orjson.dumps(codec.dump(record)).decode().replace('0"', '#"'),
            "tokens": 200,
        }
        for n, record in enumerate(records(0), 1)
    ]
    with connection.cursor() as cursor:
        cursor.execute(SESSION, [owner, "long", runs * PER_RUN])
        found: Any = cursor.fetchone()
        params = {
            "owner": owner,
            "session": found[0],
            "runs": runs,
            "per": PER_RUN,
            "at": datetime(2026, 1, 1, tzinfo=UTC),
            "kinds": orjson.dumps(kinds).decode(),
        }
        cursor.execute(FORK, [found[0]])
        cursor.execute(RUNS, params)
        cursor.execute(EVENTS, params)
        cursor.execute("analyze agents_event, agents_run, agents_session")
    return owner, runs


async def _summarise(owner: int, runs: int) -> None:
    """Write a summary every 600 events, and the last with its boundary BEHIND events from the end."""
    from agents.runtime.summaries import Boundary, Summary
    from agents.stores import chains
    from agents.stores.summaries import PgSummaries

    found = await chains.find(owner, "long", "assistant")
    assert found.id is not None
    store = PgSummaries(owner_id=owner, session_id=found.id, fork=0)
    base = ""
    last = (runs - BEHIND // PER_RUN) * PER_RUN
    for position in (*range(PER_RUN * 100, last, PER_RUN * 100), last):
        summary = Summary(
            id=f"s{owner}-{position}",
            text="What was asked and what was found, in some words. 问了什么，找到了什么。" * 40,
            filter_key="assistant",
            boundary=Boundary(
                position=position, fork=0, event_id=f"e{position // PER_RUN - 1}-6", at=datetime(2026, 1, 1, tzinfo=UTC)
            ),
            read_from=position - PER_RUN + 1,
            made_at=datetime(2026, 1, 1, tzinfo=UTC),
            base=base,
            tokens=800,
            covered_events=position,
        )
        if not await store.advance(summary):
            raise RuntimeError("a summary was refused")
        base = summary.id


async def _begin(owner: int, length: int, *, known: bool) -> tuple[list[float], list[float], list[int], int]:
    """Begin TIMES runs and return milliseconds, those of the processor, and statements of each, and the last request's
    tokens."""
    from agents.runtime.context.assemble import Frame, View, assemble
    from agents.stores import histories, sessions
    from tests.agents.counting import counted
    from tests.agents.records import FINISHED, finished, planner, request, stamp, user

    times: list[float] = []
    used: list[float] = []
    counts: list[int] = []
    tokens = 0
    for n in range(TIMES + 5):
        run_id = f"{'k' if known else 'u'}{n}"
        if not known:
            histories.current().forget()
        message = user("And the third chamber? 那第三冷库呢？", id=f"question-{run_id}")
        with counted() as statements:
            begun, cpu = time.perf_counter(), time.process_time()
            opened = await sessions.PgSessionStore().open_run(
                request(owner, "long", run_id, message=message), planner(message, run_id=run_id)
            )
            view = View(agent="assistant", run_id=run_id, filter_key="assistant", summaries=opened.summaries)
            made = assemble((*opened.history, *opened.records), Frame(instruction="You help."), view)
            took, spent = (time.perf_counter() - begun) * 1000, (time.process_time() - cpu) * 1000
        assert opened.summaries and len(opened.history) < BEHIND * 3
        tokens = made.tokens
        await opened.ledger.append([stamp(finished(), run_id=run_id)], end=FINISHED)
        if n >= 5:  # warm
            times.append(took)
            used.append(spent)
            counts.append(statements.total)
    return times, used, counts, tokens


if __name__ == "__main__":
    main()
