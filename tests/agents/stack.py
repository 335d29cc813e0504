"""A whole installation for the fault tests: own PostgreSQL and Valkey, web processes and a worker that may be killed.

Everything is a real process. `Person` is a client that behaves as a good one should: it reconnects, attaches with the
last number it has, and takes a snapshot when it is told to resync.
"""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from tests.modelserver import ModelServer, Steady
from workbench.embedded import Postgres, Valkey
from workbench.parts import child_env
from workbench.supervisor import Part, Supervisor

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0
GONE = (OSError, ConnectionClosed, InvalidHandshake, TimeoutError)
OVER = ("RUN_FINISHED", "RUN_ERROR")


class Process:
    """One of our processes, on a listening socket that outlives it."""

    def __init__(self, words: list[str], env: dict[str, str], fds: tuple[int, ...] = ()) -> None:
        self._words, self._env, self._fds = words, env, fds
        self.running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        # A group of its own: killing a worker kills its children too, as losing a machine would.
        self.running = subprocess.Popen(
            [sys.executable, *self._words], cwd=ROOT, env=self._env, pass_fds=self._fds, start_new_session=True
        )

    def send(self, number: signal.Signals) -> None:
        assert self.running is not None
        with suppress(ProcessLookupError):
            os.killpg(self.running.pid, number)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        assert self.running is not None
        self.running.wait(PATIENCE_S)


class Web(Process):
    def __init__(self, env: dict[str, str]) -> None:
        self.listening = socket.socket()
        self.listening.bind(("127.0.0.1", 0))
        self.listening.listen(128)
        self.port = self.listening.getsockname()[1]
        fd = self.listening.fileno()
        super().__init__(["-m", "workbench.serve", "--fd", str(fd)], env, (fd,))


class Stack:
    """The installation. `tokens_per_s` is how fast its model answers."""

    def __init__(self, data: Path, model: ModelServer) -> None:
        self.model = model
        servers = (Postgres(data=data), Valkey(data=data))
        self.dsn = servers[0].url
        urls = {
            "DATABASE_URL": servers[0].url,
            "REDIS_URL": servers[1].url,
            "CELERY_BROKER_URL": servers[1].broker_url,
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_MODEL": "test",
            "SHUTDOWN_GRACE_S": "3",
            "FRAMES_PER_SECOND": "100",
            "RUNS_PER_OWNER": "50",
        }
        self.env = child_env(data, urls)
        self.supervisor = Supervisor(report=lambda part, words: None)
        self.servers = {
            s.name: Part(name=s.name, prepare=s.prepare, command=s.command, ready=s.ready, says=s.says) for s in servers
        }
        self.webs = [Web(self.env), Web(self.env)]
        self.worker = Process(["-m", "celery", "-A", "workbench.celery", "-q", "worker", "-B", "-l", "ERROR"], self.env)
        self.token = ""

    def start(self) -> None:
        for part in self.servers.values():
            self.supervisor.start(part)
        self.supervisor.wait(*self.servers.values())
        with psycopg.connect(self.dsn.removesuffix("workbench") + "postgres", autocommit=True) as connection:
            connection.execute("CREATE DATABASE workbench")
        self.manage("migrate", "-v0")
        script = "from django.contrib.auth import get_user_model as u; u().objects.create_user('ann')"
        self.manage("shell", "-v0", "-c", script)
        self.token = self.manage("token", "--user", "ann").split()[-1]
        for process in (*self.webs, self.worker):
            process.start()

    def manage(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *words], cwd=ROOT, env=self.env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def stop(self) -> None:
        for process in (*self.webs, self.worker):
            if process.running is not None:
                process.send(signal.SIGCONT)
                process.kill()
        for web in self.webs:
            web.listening.close()
        self.supervisor.shut_all()

    async def tend(self) -> None:
        """Restart what died among the servers, as the launcher does."""
        while True:
            self.supervisor.tick()
            if self.worker.running is not None and self.worker.running.poll() is not None:
                self.worker.start()
            await asyncio.sleep(0.05)

    def kill_server(self, name: str) -> None:
        process = self.servers[name].process
        assert process is not None
        process.kill()

    async def rows(self, statement: str, *params: Any) -> list[tuple[Any, ...]]:
        async with await psycopg.AsyncConnection.connect(self.dsn, autocommit=True) as connection:
            return await (await connection.execute(statement, params)).fetchall()  # type: ignore[arg-type]  # ours

    async def check_thread(self, thread_id: str) -> None:
        """Positions without gaps, one end for each run that ended, one result for each call, one message per id."""
        events = await self.rows(
            """SELECT e.position, e.type, r.client_id, e.payload
               FROM agents_event e JOIN agents_run r ON r.id = e.run_id
               JOIN agents_session s ON s.id = e.session_id WHERE s.thread_id = %s ORDER BY e.position""",
            thread_id,
        )
        assert [row[0] for row in events] == list(range(1, len(events) + 1))
        ends = [row[2] for row in events if row[1] in ("run_finished", "run_failed")]
        started = [row[2] for row in events if row[1] == "run_started"]
        assert sorted(ends) == sorted(started) == sorted(set(started))
        said = [row[3]["id"] for row in events if row[1] == "assistant_message"]
        assert len(said) == len(set(said))
        calls = [c["id"] for row in events if row[1] == "assistant_message" for c in row[3].get("tool_calls", ())]
        assert sorted(calls) == sorted(row[3]["call_id"] for row in events if row[1] == "tool_returned")
        running = await self.rows("SELECT count(*) FROM agents_run WHERE status = 'running'")
        assert running == [(0,)]


@asynccontextmanager
async def installation(*, tokens: int = 60, per_s: float = 60.0) -> AsyncIterator[Stack]:
    data = Path(tempfile.mkdtemp(prefix="wbf-"))
    os.chmod(data, 0o711)
    with ModelServer(steady=Steady(tokens=tokens, per_s=per_s)) as model:
        stack = Stack(data, model)
        tending: asyncio.Task[None] | None = None
        try:
            stack.start()
            tending = asyncio.create_task(stack.tend())
            yield stack
        finally:
            if tending is not None:
                tending.cancel()
            stack.stop()
            shutil.rmtree(data, ignore_errors=True)


class Person:
    """One client with one thread. `frames` by run; `seen` is what a screen would show of each run's end."""

    def __init__(self, stack: Stack, web: int = 0) -> None:
        self.stack = stack
        self.web = web
        self.thread = uuid4().hex
        self.frames: dict[str, list[dict[str, Any]]] = {}
        self.snapshots: list[dict[str, Any]] = []
        self.rejected: list[dict[str, Any]] = []
        self.socket: ClientConnection | None = None
        self.following = ""
        self.pending: dict[str, Any] | None = None  # a run frame that was not answered yet
        self._reader: asyncio.Task[None] | None = None
        self._fresh = asyncio.Event()

    async def __aenter__(self) -> "Person":
        await self._open()
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._reader is not None
        self._reader.cancel()
        with suppress(asyncio.CancelledError):
            await self._reader
        if self.socket is not None:
            await self.socket.close()

    async def _open(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                url = f"ws://127.0.0.1:{self.stack.webs[self.web].port}/ws/agui/"
                headers = {"Authorization": f"Bearer {self.stack.token}"}
                try:
                    self.socket = await connect(url, additional_headers=headers, max_size=None, open_timeout=10)
                    return
                except GONE:
                    await asyncio.sleep(0.2)

    async def _read(self) -> None:
        while True:
            assert self.socket is not None
            try:
                async for data in self.socket:
                    await self._take(json.loads(data))
            except GONE:
                pass
            await self._open()
            if self.pending is not None:
                await self.send(**self.pending)  # the same run id: started once, however often it is sent
            elif self.following and not self.over(self.following):
                await self.attach(self.following, after=len(self.frames.get(self.following, ())))

    async def _take(self, frame: dict[str, Any]) -> None:
        kind = frame["type"]
        if kind == "resync":
            self.frames[frame["runId"]] = []
            await self.attach("", after=None)
        elif kind == "rejected":
            self.rejected.append(frame)
            self.pending = None
        elif kind == "accepted" and frame["what"] == "run":
            self.pending = None
        elif kind.isupper():
            ours = frame["metadata"]["workbench"]
            if ours.get("history"):
                if kind == "MESSAGES_SNAPSHOT":
                    self.snapshots.append(frame)
            else:
                known = self.frames.setdefault(ours["runId"], [])
                assert ours["seq"] == len(known) + 1, f"frame {ours['seq']} after {len(known)}"
                known.append(frame)
        self._fresh.set()

    async def send(self, **frame: Any) -> None:
        with suppress(*GONE):
            assert self.socket is not None
            await self.socket.send(json.dumps(frame))

    async def attach(self, run_id: str, after: int | None) -> None:
        more = {"runId": run_id, "after": after} if after is not None else {}
        await self.send(type="attach", threadId=self.thread, **more)

    async def ask(self, words: str = "Tell me.") -> str:
        """Send a message and return the run's id."""
        run_id = uuid4().hex
        self.following = run_id
        self.rejected.clear()
        message = {"id": uuid4().hex, "role": "user", "content": words}
        given = {"state": {}, "tools": [], "context": [], "forwardedProps": {}, "messages": [message]}
        given |= {"threadId": self.thread, "runId": run_id}
        self.pending = {"type": "run", "requestId": run_id, "input": given}
        await self.send(**self.pending)
        return run_id

    def over(self, run_id: str) -> bool:
        return any(frame["type"] in OVER for frame in self.frames.get(run_id, ()))

    async def until(self, true: Any, what: str) -> None:
        """Wait for something that a frame brings about."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not true():
                    self._fresh.clear()
                    await self._fresh.wait()
        except TimeoutError:
            raise AssertionError(f"{what} did not come; {self.last_words()}") from None

    async def hears(self, run_id: str, frames: int) -> None:
        await self.until(lambda: len(self.frames.get(run_id, ())) >= frames, f"frame {frames}")

    async def hears_the_end(self, run_id: str) -> dict[str, Any] | None:
        """Wait until the screen shows clearly how the run ended: by its last frame, or by a snapshot after it."""
        before = len(self.snapshots)
        await self.until(lambda: self.over(run_id) or len(self.snapshots) > before, f"the end of {run_id}")
        if not self.over(run_id):
            return None
        ends = [frame for frame in self.frames[run_id] if frame["type"] in OVER]
        assert len(ends) == 1 and self.frames[run_id][-1] is ends[0]
        return ends[0]

    async def next_message_works(self) -> None:
        run_id = await self.ask("And now?")
        await self.until(lambda: self.over(run_id) or self.rejected, "the next answer")
        assert self.over(run_id) and self.frames[run_id][-1]["type"] == "RUN_FINISHED", self.last_words()

    def last_words(self) -> str:
        counts = {run: len(frames) for run, frames in self.frames.items()}
        return f"frames {counts}, snapshots {len(self.snapshots)}, rejected {self.rejected[-3:]}"
