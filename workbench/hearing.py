"""One ear per process for hints: the channel layer's messages, passed on to the open sockets of their owner.

A channel of its own for every socket would cost two waiting tasks each; here one channel joins the groups of all
owners who have a socket open.
"""

import asyncio
import logging
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from channels.layers import get_channel_layer

from agents import hints
from agents.protocols.agui import control

logger = logging.getLogger(__name__)

REJOIN_S = 6 * 3600.0  # channel layers forget members of a group after a day
RETRY_S = 5.0
LEAVE_S = 1.0
AGAIN_S = 0.5
# Hints come in crowds; what comes within this time is one write per socket.
GATHER_S = 0.05

_channel_layer: Callable[[], Any] = get_channel_layer  # Channels has no types


class Hearer(Protocol):
    def hint(self, *frames: bytes) -> None:
        """Take control frames that may get lost. Never waits."""
        ...

    def doubt(self) -> None:
        """Look again whether this socket's person is still signed in. Never waits."""
        ...


class Hearing:
    """Who wants to hear of whose threads. Belongs to one event loop; `current()` gives the loop's own."""

    def __init__(self, layer: Any) -> None:
        self._layer = layer
        self._hearers: dict[int, set[Hearer]] = {}
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._children: tuple[asyncio.Task[None], ...] = ()
        self._gathered: dict[int, list[bytes]] = {}

    def join(self, owner_id: int, hearer: Hearer) -> None:
        """Pass the owner's hints on to this socket from now on; the first of an owner may miss some at first."""
        self._hearers.setdefault(owner_id, set()).add(hearer)
        self._changed.set()
        if self._layer is not None and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._run(), name="hints")

    def leave(self, owner_id: int, hearer: Hearer) -> None:
        """Stop that. With the last socket the ear itself goes."""
        group = self._hearers.get(owner_id, set())
        group.discard(hearer)
        if not group:
            self._hearers.pop(owner_id, None)
            self._changed.set()
        if not self._hearers and self._task is not None:
            _stop((self._task, *self._children))
            self._task = None

    async def _run(self) -> None:
        while not _stopping():
            joined: set[int] = set()
            channel = ""
            try:
                channel = await self._layer.new_channel()
                async with asyncio.TaskGroup() as tasks:
                    keeping = tasks.create_task(self._keep_groups(channel, joined))
                    self._children = (keeping, tasks.create_task(self._listen(channel)))
            except Exception as error:  # the edge: hints may get lost, the sockets must not
                if not _stopping():
                    logger.info("hints are away: %s", type(error).__name__)
                    await asyncio.sleep(RETRY_S)
            finally:
                await self._leave_groups(channel, joined)

    async def _keep_groups(self, channel: str, joined: set[int]) -> None:
        """Be in the groups of those who listen. joined: kept up to date, for whoever tidies up."""
        while not _stopping():
            self._changed.clear()
            wanted = set(self._hearers)
            for owner_id in wanted - joined:
                joined.add(owner_id)
                await self._layer.group_add(hints.group(owner_id), channel)
            for owner_id in joined - wanted:
                await self._layer.group_discard(hints.group(owner_id), channel)
                joined.discard(owner_id)
            if _stopping():
                return
            try:
                async with asyncio.timeout(REJOIN_S):
                    await self._changed.wait()
            except TimeoutError:
                joined.clear()

    async def _leave_groups(self, channel: str, joined: set[int]) -> None:
        try:
            async with asyncio.timeout(LEAVE_S):
                for owner_id in joined:
                    await self._layer.group_discard(hints.group(owner_id), channel)
        except Exception as error:  # the edge: the groups forget us within a day
            logger.info("groups not left: %s", type(error).__name__)

    async def _listen(self, channel: str) -> None:
        while True:
            message = await self._layer.receive(channel)
            if _stopping():
                return
            for hint in message["hints"]:
                self._take(message["owner_id"], hint)

    def _take(self, owner_id: int, hint: Mapping[str, Any]) -> None:
        if hint.get("changed") == hints.SIGNED_OUT:
            for hearer in tuple(self._hearers.get(owner_id, ())):
                hearer.doubt()
            return
        if "documents" in hint:
            data = control.documents(ids=hint["documents"])
        else:
            data = control.thread(thread_id=hint["thread_id"], changed=hint["changed"])
        if not self._gathered:
            asyncio.get_running_loop().call_later(GATHER_S, self._pass_on)
        self._gathered.setdefault(owner_id, []).append(data)

    def _pass_on(self) -> None:
        gathered, self._gathered = self._gathered, {}
        for owner_id, frames in gathered.items():
            for hearer in tuple(self._hearers.get(owner_id, ())):
                hearer.hint(*frames)


def _stop(tasks: tuple[asyncio.Task[None], ...]) -> None:
    """Cancel until all are done: a cancel may get lost in the Redis client while it reads, and a task group passes on
    only the first."""
    going = tuple(task for task in tasks if not task.done())
    for task in going:
        task.cancel()
    if going:
        asyncio.get_running_loop().call_later(AGAIN_S, _stop, going)


def _stopping() -> bool:
    """Return whether this task was cancelled, even if that got lost on the way."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


_hearings: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Hearing]" = weakref.WeakKeyDictionary()


def current() -> Hearing:
    """Return this event loop's Hearing, made on first use."""
    loop = asyncio.get_running_loop()
    found = _hearings.get(loop)
    if found is None:
        found = _hearings[loop] = Hearing(_channel_layer())
    return found
