"""What beats in a process with runs: leases are renewed, flags are read, and lost runs of dead processes are closed."""

import asyncio
import logging
import random
from collections.abc import Mapping
from typing import Protocol

import psycopg

from agents.background import sweep
from agents.jobs import SWEEP_EVERY_S
from agents.live.run import LocalRun
from agents.runlog import RunLog
from agents.runtime.errors import AgentError
from agents.runtime.session import CancelReason
from agents.stores import runs

logger = logging.getLogger(__name__)

BEAT_S = 5.0
# The lease lasts three beats; when the database does not answer, the next try comes sooner.
RETRY_S = 1.0


class Process(Protocol):
    """What beats: this process's runs and its log."""

    log: RunLog

    @property
    def runs(self) -> Mapping[int, LocalRun]: ...

    async def check_remote(self) -> None: ...


class Beat:
    """The two loops of one process. Each goes on until it is cancelled, whatever one round brings."""

    def __init__(self, live: Process) -> None:
        self._live = live
        self._missed: set[int] = set()
        self._random = random.Random()

    async def run(self) -> None:
        """Renew the leases of this process's runs every 5 s."""
        pause = BEAT_S
        while True:
            await asyncio.sleep(pause)
            try:
                pause = BEAT_S if await self.once() else RETRY_S
            except (AgentError, psycopg.Error, OSError) as error:
                logger.warning("heartbeat failed: %s", type(error).__name__)
                pause = RETRY_S

    async def once(self) -> bool:
        """Renew all leases in one statement, and act on what the rows say; False: look again soon."""
        held = dict(self._live.runs)
        if not held:
            return True
        beats = await runs.heartbeat([(key, run.opened.epoch) for key, run in held.items()])
        before, self._missed = self._missed, set()
        for beat in beats:
            run = held[beat.run_key]
            if beat.alive:
                if beat.cancel_requested:
                    run.token.cancel(CancelReason.USER)
            elif run.status is None and beat.run_key in self._live.runs:
                if beat.run_key in before:
                    run.fence()
                else:
                    # Its last record may be stored and only now on its way to us: look again before judging.
                    self._missed.add(beat.run_key)
        return not self._missed

    async def _hold(self) -> None:
        """Renew our own leases: they are out too after the database was away or the machine slept, and our runs live.

        What the rows say is left to the heartbeat.
        """
        if held := [(key, run.opened.epoch) for key, run in self._live.runs.items()]:
            await runs.heartbeat(held)

    async def sweep(self) -> None:
        """Close lost runs at start and about every 10 s, unless another process is at it."""
        while True:
            try:
                await self._live.check_remote()
                await self._hold()
                await sweep.close_lost_runs(self._live.log)
            except (AgentError, psycopg.Error, OSError) as error:
                logger.warning("sweep failed: %s", type(error).__name__)
            await asyncio.sleep(SWEEP_EVERY_S * self._random.uniform(0.7, 1.0))
