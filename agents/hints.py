"""Hints to an owner's open pages: "something about this conversation or these documents changed, look again".

A hint travels through the channel layer, which drops under load; nothing that must arrive is sent this way.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from channels.exceptions import ChannelFull
from channels.layers import get_channel_layer
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)

TIMEOUT_S = 1.0
SIGNED_OUT = "signed_out"
MOST_DOCUMENTS = 200  # in one hint


def group(owner_id: int) -> str:
    """Return the channel layer group that all sockets of an owner join."""
    return f"owner-{owner_id}"


async def signed_out(owner_id: int) -> None:
    """Make the owner's open sockets look again whether they are welcome; never fails, waits at most a second."""
    await thread_changed(owner_id, "", SIGNED_OUT)


async def thread_changed(owner_id: int, thread_id: str, changed: str) -> None:
    """Tell the owner's open pages that a conversation changed; never fails, waits at most a second.

    changed: run_started, run_ended, title, inbox, seen, line, summary (there is a new one), summary_unchanged (a person
    asked, and nothing came of it), memory (what is remembered of it changed), skill (skills came, went or
    changed), archived, unarchived, deleted, restored.
    """
    await _hint(owner_id, {"thread_id": thread_id, "changed": changed})


async def threads_changed(owner_id: int, changes: Sequence[tuple[str, str]]) -> None:
    """Tell the same of several: (thread id, what changed), in this order and in one message."""
    await _hint(owner_id, *({"thread_id": thread_id, "changed": changed} for thread_id, changed in changes))


async def documents_changed(owner_id: int, artifact_ids: Sequence[str]) -> None:
    """Tell the owner's open pages that documents came, went or changed; never fails, waits at most a second.

    artifact_ids: public ids; those past MOST_DOCUMENTS are left out, and a page that shows them asks for its list.
    """
    if artifact_ids:
        await _hint(owner_id, {"documents": list(artifact_ids[:MOST_DOCUMENTS])})


async def _hint(owner_id: int, *hints: dict[str, Any]) -> None:
    layer = get_channel_layer()
    if layer is None:
        return
    message = {"type": "workbench.hint", "owner_id": owner_id, "hints": list(hints)}
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await layer.group_send(group(owner_id), message)
    except (OSError, TimeoutError, RedisError, ChannelFull) as error:
        logger.info("hint not sent: %s", type(error).__name__)
