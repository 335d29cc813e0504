"""Who follows which thread, and where the frames come from: this process's runs, or the logs of others.

One instance per Live. A thread's attachments stay from run to run; a feed stays while a run goes on or its frames may
be asked for soon.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

from agents.live.feed import Attachment, Feed, Sink
from agents.live.remote import RemoteReader
from agents.runlog import RunLog, stream
from agents.runtime.errors import Rejected, StorageUnavailable
from agents.runtime.session import RunStatus
from agents.stores import runs

logger = logging.getLogger(__name__)

# How long the frames of a run that is over stay in memory; the log keeps them longer.
LINGER_S = 30.0

Name = tuple[int, str, str]  # owner, thread, run
Thread = tuple[int, str]  # owner, thread
Opening = Callable[[Attachment], Awaitable[None]]
Spawn = Callable[[Coroutine[Any, Any, None]], object]


class Following:
    """All feeds and attachments of one process. spawn: runs a coroutine as a task that is held and ended with Live.

    on_told: gets what other processes tell, but for the start of runs, which is this class's own.
    """

    def __init__(self, log: RunLog, *, spawn: Spawn, on_told: Callable[[Mapping[str, str]], None]) -> None:
        self.remote = RemoteReader(log, self._told, self._look_again)
        self.feeds: dict[Name, Feed] = {}
        self.attachments: dict[Thread, set[Attachment]] = {}
        self._log = log
        self._spawn = spawn
        self._on_told = on_told

    # This process's runs

    def add(self, feed: Feed) -> None:
        """Take in the feed of a run of this process."""
        self.feeds[feed.name] = feed

    def began(self, feed: Feed) -> None:
        """Let a run of this process be followed, here and elsewhere."""
        self._offer(feed)
        message = {
            "kind": "start",
            "owner": str(feed.owner_id),
            "thread": feed.thread_id,
            "run": feed.run_id,
            "key": str(feed.run_key),
        }
        self._log.announce(message)  # goes out with the run's first frames

    def ended(self, feed: Feed) -> None:
        """Keep the frames of a run of this process for a while, then forget them."""
        asyncio.get_running_loop().call_later(LINGER_S, self.forget, feed)

    def forget(self, feed: Feed) -> None:
        """Drop a feed that is over, or that nobody follows any more; the log has its frames."""
        if self.feeds.get(feed.name) is feed and (feed.ended or not feed.followed):
            del self.feeds[feed.name]
            self.remote.drop(feed)

    def going_on(self, owner_id: int, thread_id: str) -> Feed | None:
        """Return the feed of this process's run in a thread, if one goes on."""
        for feed in self.feeds.values():
            if feed.local and not feed.ended and feed.owner_id == owner_id and feed.thread_id == thread_id:
                return feed
        return None

    def detach_all(self) -> None:
        for attachment in [a for group in self.attachments.values() for a in group]:
            attachment.detach()

    # Attaching

    async def attach(
        self,
        *,
        owner_id: int,
        thread_id: str,
        sink: Sink,
        run_id: str | None = None,
        after: int | None = None,
        opening: Opening | None = None,
    ) -> Attachment:
        """Make a sink follow a thread: a run that goes on, then every next one, whichever process runs it.

        after None: the client has nothing. Mode "snapshot" if a run goes on (its frames follow from 1), else "idle".
        after given: mode "replay" of the named run (None: the one that goes on) from there; the run may be over. If
        the log does not have what follows `after`, the sink is told to resync and gets no frames of that run.
        opening: awaited once mode, run_id and `coming` of the attachment are known and before the first frame: the
        place to send what must come first (the answer, and the history without the runs in `coming`).
        A sink that follows the thread already is detached first. Raises Rejected(thread_not_found).
        """
        thread = (owner_id, thread_id)
        group = self.attachments.setdefault(thread, set())
        for old in [a for a in group if a.sink is sink]:
            old.detach()
        attachment = Attachment(owner_id=owner_id, thread_id=thread_id, sink=sink, on_detach=self._detached)
        # In the list before anything is looked up: a run that starts meanwhile is not missed.
        self.attachments.setdefault(thread, set()).add(attachment)
        try:
            await self._find(attachment, run_id, after)
            if opening is not None:
                await opening(attachment)
        except BaseException:
            attachment.detach()
            raise
        attachment.release()
        return attachment

    async def _find(self, attachment: Attachment, run_id: str | None, after: int | None) -> None:
        owner_id, thread_id = attachment.owner_id, attachment.thread_id
        active = await self._active(owner_id, thread_id)
        if after is None:
            if active is None:
                return
            attachment.mode, attachment.run_id = "snapshot", active.run_id
            if not await self._has_from(active, 0):
                # Too long for its log. The history shows what is stored; the end brings a resync.
                attachment.mode = "idle"
                attachment.wait_for_end(active)
                return
            attachment.follow(active, announce=False)
            return
        named = active if run_id is None or (active and active.run_id == run_id) else None
        if named is None and run_id is not None:
            named = await self._over(owner_id, thread_id, run_id)
        if named is None and run_id is None:
            return
        attachment.mode, attachment.run_id = "replay", run_id or (named.run_id if named else None)
        if named is None or not await self._has_from(named, after):
            attachment.sink.resync(thread_id, attachment.run_id or "")
        else:
            attachment.follow(named, after=after, announce=False)
        if active is not None and active is not named:
            attachment.follow(active)

    async def _active(self, owner_id: int, thread_id: str) -> Feed | None:
        """Return the feed of the run that goes on in a thread. Raises Rejected(thread_not_found)."""
        if (local := self.going_on(owner_id, thread_id)) is not None:
            return local
        found = await runs.active_run(owner_id=owner_id, thread_id=thread_id)
        if found is None:
            return None
        return await self._remote_feed((owner_id, thread_id, found.run_id), found.run_key)

    async def _over(self, owner_id: int, thread_id: str, run_id: str) -> Feed | None:
        """Return the feed of a run that is over, if its frames are still somewhere."""
        name = (owner_id, thread_id, run_id)
        if (known := self.feeds.get(name)) is not None:
            return known
        found = await runs.find_run(owner_id=owner_id, thread_id=thread_id, run_id=run_id)
        if found is None:
            return None
        feed = await self._remote_feed(name, found.run_key)
        if found.status is not RunStatus.RUNNING and not feed.ended:
            # Its process died before the log had the end.
            self.forget(feed)
            return None
        return feed

    async def _remote_feed(self, name: Name, run_key: int) -> Feed:
        if (known := self.feeds.get(name)) is not None:
            return known
        end = await self._log.end(stream(run_key, name[2]))
        if (known := self.feeds.get(name)) is not None:
            return known
        feed = Feed(name=name, run_key=run_key, read=self._log.read, seq=end.seq if end else 0)
        feed.closed_from = end.closed_from if end else None
        feed.ended = bool(end and end.ended)
        if not feed.ended:
            self._follow_remote(feed)
        return feed

    def _follow_remote(self, feed: Feed) -> None:
        self.feeds[feed.name] = feed
        self.remote.add(feed)
        self._spawn(self.remote.wake())

    async def _has_from(self, feed: Feed, after: int) -> bool:
        """Return whether everything that follows `after` can be sent."""
        if after > feed.seq or feed.broken:
            return False
        if feed.closed_from is not None and after >= feed.closed_from:
            # Numbers from here on were given twice, by the owner that died and by the sweep that closed its run.
            return False
        if after == feed.seq or feed.since(after, 1) is not None:
            return True
        return not (await feed.read_log(after)).gap

    def _detached(self, attachment: Attachment) -> None:
        thread = (attachment.owner_id, attachment.thread_id)
        group = self.attachments.get(thread)
        if group is not None:
            group.discard(attachment)
            if not group:
                del self.attachments[thread]

    def _offer(self, feed: Feed) -> None:
        for attachment in tuple(self.attachments.get((feed.owner_id, feed.thread_id), ())):
            attachment.follow(feed)

    # What other processes say

    def _told(self, message: Mapping[str, str]) -> None:
        """Follow a run that another process started, if somebody here follows its thread; pass anything else on."""
        if message.get("kind") != "start":
            self._on_told(message)
            return
        name = (int(message["owner"]), message["thread"], message["run"])
        if name in self.feeds or (name[0], name[1]) not in self.attachments:
            return
        feed = Feed(name=name, run_key=int(message["key"]), read=self._log.read)
        self._follow_remote(feed)
        self._offer(feed)

    async def _look_again(self) -> None:
        """Look for runs whose start we may not have heard of."""
        for owner_id, thread_id in tuple(self.attachments):
            try:
                feed = await self._active(owner_id, thread_id)
            except (Rejected, StorageUnavailable):
                continue
            if feed is not None and await self._has_from(feed, 0):
                self._offer(feed)

    async def check_remote(self) -> None:
        """Give up feeds whose run is over although their log does not say so: it was lost."""
        for feed in self.remote.feeds():
            if not feed.followed:
                self.forget(feed)
                continue
            found = await runs.find_run(owner_id=feed.owner_id, thread_id=feed.thread_id, run_id=feed.run_id)
            if found is not None and found.status is RunStatus.RUNNING:
                continue
            await self.remote.refresh(feed)
            if not feed.ended:
                self.remote.drop(feed)
                feed.break_off()
