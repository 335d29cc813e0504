"""`make bench`: what the product costs and how fast it is, as a table.

The web process is pinned to one core; this harness and its model server to another; PostgreSQL, Valkey and the worker
run where they like. `--only NAME` runs one part (starts, stream, html, capacity, assembly, long, idle, memory, search,
indexing, tokens, answering; search_million, recall_million and memory_search run only so); `--quick` makes everything
smaller, for a look and not for figures. `--sets DIR` also measures what a long conversation costs (`manage.py bench
context`); with `--only context` nothing else, and without servers. `--only code` measures what running code costs,
also without servers.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.bench import assembly, code
from tests.bench.load import Client, Seen, arrivals, at, direct
from tests.bench.stack import HARNESS_CORE, ROOT, Stack, cpu_ms, model_server, rss_kb
from tests.bench.statements import Statements

Row = tuple[str, str, str]
STREAM, SHORT, INSTANT = "bench-200x40", "bench-20x0", "bench-3x0"
MODELS = [{"name": name} for name in (STREAM, SHORT, INSTANT)]


def show(figure: str, value: str, bar: str) -> None:
    print(f"{figure:<72} {value:<34} {bar}", flush=True)


class Bench:
    def __init__(self, stack: Stack, model_port: int, *, quick: bool) -> None:
        self.stack, self.model_port, self.quick = stack, model_port, quick
        self.token = stack.token()
        self.rows: list[Row] = []

    def say(self, figure: str, value: str, bar: str = "") -> None:
        self.rows.append((figure, value, bar))
        show(figure, value, bar)

    async def client(self) -> Client:
        return await Client(self.stack.url, self.token).open()

    async def settle(self) -> None:
        """Wait until the product has nothing left to do: titles of earlier runs are written by the worker."""
        quiet = 0
        while quiet < 4:
            before = cpu_ms(self.stack.pids)
            await asyncio.sleep(0.25)
            quiet = quiet + 1 if cpu_ms(self.stack.pids) - before <= 20 else 0

    async def clients(self, count: int) -> list[Client]:
        return [await self.client() for _ in range(count)]

    async def streams(self, clients: list[Client], model: str, *, html: bool = False) -> list[Seen]:
        """Run one stream on every socket at once, each in a new conversation."""
        names = [f"t{os.urandom(6).hex()}" for _ in clients]
        runs = (c.run(name, model, html=html) for c, name in zip(clients, names, strict=True))
        seen = await asyncio.gather(*runs)
        bad = {s.ended for s in seen} - {"RUN_FINISHED"}
        if bad:
            raise RuntimeError(f"runs ended as {bad}")
        return list(seen)

    async def stream(self, *, html: bool = False) -> None:
        """CPU and added latency of 50 streams x 40 tokens/s, 200 tokens each, warm."""
        count = 10 if self.quick else 50
        clients = await self.clients(count)
        await self.streams(clients, SHORT, html=html)
        if not self.quick:
            await self.streams(clients, STREAM, html=html)
        floor = await asyncio.gather(*(direct(self.model_port, STREAM) for _ in range(count)))
        ages = [a for run in floor for a in run]
        await self.settle()
        web, every = [self.stack.web], self.stack.pids
        before, before_all = cpu_ms(web), cpu_ms(every)
        seen = await self.streams(clients, STREAM, html=html)
        tokens = sum(len(s.ages) for s in seen)
        name = "render: html" if html else "bare"
        used, used_all = (cpu_ms(web) - before) / tokens * 1000, (cpu_ms(every) - before_all) / tokens * 1000
        self.say(f"CPU ms per 1,000 tokens, web process, {name}", f"{used:.0f}", "150" if html else "90")
        self.say(f"CPU ms per 1,000 tokens, all product processes, {name}", f"{used_all:.0f}", "" if html else "200")
        added = [a for s in seen for a in s.ages]
        self.say(
            f"Token age on arrival p50 / p99 ms, {name} (floor {at(ages, 0.5):.1f} / {at(ages, 0.99):.1f})",
            f"{at(added, 0.5):.1f} / {at(added, 0.99):.1f}",
            "2 / 20 above the floor",
        )
        await asyncio.gather(*(c.close() for c in clients))
        firsts = [s.first_ms for s in seen]
        self.say(f"Time to first token p50 / p99 ms, {name}", f"{at(firsts, 0.5):.0f} / {at(firsts, 0.99):.0f}")

    async def starts(self) -> None:
        """What one run costs apart from its tokens: accepted, opened, asked, stored, ended."""
        count = 40 if self.quick else 500
        clients = await self.clients(10)

        async def some(client: Client, runs: int) -> None:
            for _ in range(runs):
                await client.run(f"t{os.urandom(6).hex()}", INSTANT)

        await asyncio.gather(*(some(client, 2) for client in clients))
        await self.settle()
        web, every = [self.stack.web], self.stack.pids
        before, before_all = cpu_ms(web), cpu_ms(every)
        await asyncio.gather(*(some(client, count // 10) for client in clients))
        used, used_all = (cpu_ms(web) - before) / count, (cpu_ms(every) - before_all) / count
        self.say("CPU ms per run of 3 tokens: web process / all product processes", f"{used:.1f} / {used_all:.1f}")
        await asyncio.gather(*(c.close() for c in clients))

    async def html(self) -> None:
        await self.stream(html=True)

    async def capacity(self) -> None:
        """How many streams at 40/s one process carries before p99 passes 250 ms."""
        held = 0
        for count in (20, 40) if self.quick else (100, 150, 200, 250, 300):
            clients = await self.clients(count)
            seen = await self.streams(clients, STREAM)
            await asyncio.gather(*(c.close() for c in clients))
            p99 = at([a for s in seen for a in s.ages], 0.99)
            self.say(f"  {count} streams at 40/s: token age p99 ms", f"{p99:.0f}")
            if p99 > 250:
                break
            held = count
        self.say("Streams at 40/s on one process before p99 passes 250 ms", str(held), "150")

    async def assembly(self) -> None:
        """Run frame to provider request, and its statements, against the length of the history."""
        client = await self.client()
        for events in (0, 100) if self.quick else (0, 500, 2000):
            thread = f"t{os.urandom(6).hex()}"
            for _ in range(events // 4):
                await client.run(thread, INSTANT)
            await client.run(thread, INSTANT)
            times, counts = [], []
            for _ in range(20):
                seen = await client.run(thread, INSTANT)
                arrived, _shared = arrivals(self.model_port)[seen.marker]
                times.append((arrived - seen.sent) * 1000)
                await asyncio.sleep(0.2)  # a person asks into a quiet server
            for _ in range(10):  # apart from the times: a server that logs every statement is slower
                with Statements(self.stack) as statements:
                    seen = await client.run(thread, INSTANT)
                arrived, _shared = arrivals(self.model_port)[seen.marker]
                counts.append(statements.between(seen.sent, arrived))
            self.say(
                f"Run frame to provider request, {events} events: ms p50 / max",
                f"{at(times, 0.5):.1f} / {max(times):.1f}",
                "25" if events == 500 else "",
            )
            self.say(
                f"  statements of the web process, {events} events: median / max (with begin, commit)",
                f"{statistics.median(c.work for c in counts):.0f} / {max(c.work for c in counts)} "
                f"({statistics.median(c.all for c in counts):.0f})",
                "6" if events == 500 else "",
            )
            shares = [share for _, share in arrivals(self.model_port).values()]
            self.say(
                f"  share of the request before that the next begins with, {events} events", f"{min(shares[1:]):.3f}"
            )
        await client.close()
        for events, ms, tokens in assembly.measure((50, 500, 2000)):
            self.say(f"Context assembly alone, {events} events ({tokens} tokens estimated): ms", f"{ms:.2f}")

    async def long(self) -> None:
        """The beginning of a request against the length of the conversation, with a boundary near the end."""
        lengths = ("1000", "10000") if self.quick else ("1000", "10000", "100000")
        await self.apart("tests.bench.longsession", "--events", *lengths)

    async def search(self) -> None:
        """Milliseconds of a search among 20,000 passages of one owner."""
        await self.apart("tests.bench.search", "--passages", "2000" if self.quick else "20000")

    async def indexing(self) -> None:
        """What it adds to an append that its event is searchable from then on."""
        await self.apart("tests.bench.indexing", "--events", "300" if self.quick else "2000")

    async def search_million(self) -> None:
        """The same with 10,000 passages among 1,000,000 entries of 1,000 owners. Takes many minutes to write."""
        entries = "20000" if self.quick else "1000000"
        await self.apart("tests.bench.search", "--passages", "10000", "--entries", entries)

    async def recall_million(self) -> None:
        """CPU of a search in conversations, of owners of 10,000 and 100,000 events among 1,000,000. Takes as long."""
        entries, events = ("20000", ("1000", "4000")) if self.quick else ("1000000", ("10000", "100000"))
        await self.apart("tests.bench.search", "--entries", entries, "--events", *events)

    async def memory_search(self) -> None:
        """Wall time of a search in 1,000 memories of one owner among 1,000,000. Takes minutes to write."""
        await self.apart("tests.bench.memories", "--entries", "20000" if self.quick else "1000000")

    async def tokens(self) -> None:
        """How far estimates of tokens are off after ten calls, by real tokenizers."""
        await self.apart("tests.bench.tokens")

    async def answering(self) -> None:
        """Questions answered rightly without a key."""
        await self.apart("tests.bench.answering")

    async def apart(self, module: str, *arguments: str) -> None:
        """Run a part in a process of its own, on the stack's database."""
        database = json.loads((self.stack.data / "services.json").read_text())["DATABASE_URL"]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module, *arguments),
            cwd=ROOT,
            env={**self.stack.environ, "DATABASE_URL": database, "DJANGO_SETTINGS_MODULE": "workbench.settings"},
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout
        async for line in process.stdout:
            self.say(*line.decode().rstrip("\n").split("|"))
        if await process.wait():
            raise RuntimeError(f"{module} failed")

    async def idle(self) -> None:
        """Memory of sockets that are signed in and follow one conversation."""
        count = 200 if self.quick else 2000
        first = await self.client()
        await first.run("idle", INSTANT)
        before = rss_kb(self.stack.web)
        clients = [first]
        for _ in range(count // 50):
            clients += await asyncio.gather(*(self.client() for _ in range(50)))
        await asyncio.gather(*(c.attach("idle") for c in clients))
        for c in clients[1:]:
            async for frame in c.socket:
                if b'"attached"' in (frame.encode() if isinstance(frame, str) else frame)[:64]:
                    break
        await asyncio.sleep(1)
        self.say(f"Idle sockets, {count}: KB each", f"{(rss_kb(self.stack.web) - before) / count:.0f}", "45")
        await asyncio.gather(*(c.close() for c in clients))

    async def memory(self) -> None:
        """Memory of the web process after 100 and after 1,000 runs."""
        last = 200 if self.quick else 1000
        at_hundred = 0.0
        clients = await self.clients(20)
        for done in range(0, last, 20):
            if done == 100:
                at_hundred = rss_kb(self.stack.web)
            await self.streams(clients, SHORT)
        await asyncio.gather(*(c.close() for c in clients))
        after = rss_kb(self.stack.web)
        self.say(
            f"Web process memory after 100 / {last} runs, MB",
            f"{at_hundred / 1024:.1f} / {after / 1024:.1f} ({(after / at_hundred - 1) * 100:+.1f} %)",
            "within 10 %",
        )


def main() -> None:
    words = argparse.ArgumentParser(prog="make bench", description=__doc__)
    words.add_argument("--only", action="append", default=[])
    words.add_argument("--quick", action="store_true")
    words.add_argument("--sets", type=Path, help="folder with the public data sets")
    options = words.parse_args()
    if options.sets:
        subprocess.run([sys.executable, "manage.py", "bench", "context", "--sets", options.sets], cwd=ROOT, check=True)
    if options.only == ["context"]:
        return
    if options.only == ["code"]:
        asyncio.run(code.measure(show, quick=options.quick))
        return
    os.sched_setaffinity(0, {HARNESS_CORE})
    with tempfile.TemporaryDirectory(prefix="wb", dir="/tmp") as folder, model_server() as model_port:
        os.sched_setaffinity(0, set(range(os.cpu_count() or 1)))  # the stack inherits it
        stack = Stack(Path(folder) / "d", model_port, STREAM)
        stack.environ["MODELS"] = json.dumps(MODELS)
        stack.environ["EMBEDDER"] = "none"  # nothing in the background while others are measured
        stack.start()
        try:
            cold = stack.started_in
            stack.stop()
            stack.start()
            stack.pin()
            os.sched_setaffinity(0, {HARNESS_CORE})
            bench = Bench(stack, model_port, quick=options.quick)
            bench.say("Start to first page: warm / cold s", f"{stack.started_in:.1f} / {cold:.1f}", "3 / 6")
            parts: dict[str, Callable[[], Awaitable[None]]] = {
                part.__name__: part
                for part in (
                    bench.idle,  # these two first: they look at memory, and the others leave some that is used again
                    bench.memory,
                    bench.starts,
                    bench.assembly,
                    bench.long,
                    bench.stream,
                    bench.html,
                    bench.capacity,
                    bench.search,
                    bench.indexing,
                    bench.tokens,
                    bench.answering,
                )
            }
            for name, part in parts.items():
                if not options.only or name in options.only:
                    asyncio.run(part())  # type: ignore[arg-type]
            if "search_million" in options.only:
                asyncio.run(bench.search_million())
            if "recall_million" in options.only:
                asyncio.run(bench.recall_million())
            if "memory_search" in options.only:
                asyncio.run(bench.memory_search())
        finally:
            stack.stop()


if __name__ == "__main__":
    main()
