"""How memories stand in a request: as data, one line each, the same bytes as long as the same are shown.

    [id] I prefer reports in Chinese, tables first (fact)
    [id] I signed the lease (episode; 2026-03-03; with Ana; at Oslo)

Where the block stands, and what is said of it, is context/injection.py's.
"""

import logging
from collections.abc import Iterable
from datetime import tzinfo
from typing import Final

from agents.runtime.context.citing import MARKER_START
from agents.runtime.context.injection import Block
from agents.runtime.memory.memories import Memory, MemoryStore, MemoryUnavailable, Query
from agents.runtime.tokens import DEFAULT_RATES, measure

logger = logging.getLogger(__name__)

ALL: Final = -1
OFF: Final = 0
TOKENS: Final = 1_600
LEAD: Final = 'In the words of the person ("I" is the person) or noted about them:'


async def preload(store: MemoryStore, question: str, *, most: int, zone: tzinfo, tokens: int = TOKENS) -> Block | None:
    """Return what is put before the run that answers the question; None = nothing.

    most: ALL, OFF, or a number: if there are more memories, those that fit the question best, and if it is blank, finds
    nothing or the search fails, the latest. Never fails: what cannot be read is not preloaded, and a warning says so.
    """
    if most == OFF:
        return None
    try:
        return shown(await _chosen(store, question, most), zone=zone, tokens=tokens)
    except MemoryUnavailable:
        logger.warning("nothing is preloaded, the memories cannot be read")
        return None


def shown(memories: Iterable[Memory], *, zone: tzinfo, tokens: int = TOKENS) -> Block | None:
    """Return the memories, the most wanted first, as far as they fit into so many tokens, as a block; None = none fits.

    They stand in the order in which they came to be, so that another question with the same memories gives the same
    bytes. One that is too long is left out, and shorter ones behind it still come. zone: the person's, for dates.
    """
    mix = measure(LEAD)
    taken: list[tuple[Memory, str]] = []
    for memory in memories:
        text = line(memory, zone)
        more = mix + measure(f"\n{text}")
        if not memory.superseded_by and DEFAULT_RATES.tokens(more) <= tokens:
            mix = more
            taken.append((memory, text))
    if not taken:
        return None
    taken.sort(key=lambda one: (one[0].created_at, one[0].id))
    memories = [memory for memory, _ in taken]
    names = tuple((memory.id, memory.version) for memory in memories)
    return Block(kind="memory", text=block_of(memories, zone), memories=names)


def block_of(memories: Iterable[Memory], zone: tzinfo) -> str:
    """Return the text of a block with these memories, in this order."""
    return "\n".join((LEAD, *(line(memory, zone) for memory in memories)))


def line(memory: Memory, zone: tzinfo) -> str:
    """Return a memory on one line; it issues no markers of citations."""
    facts = [memory.kind.value]
    if memory.event_time is not None:
        facts.append(memory.event_time.words(zone))
    if memory.participants:
        facts.append(f"with {', '.join(memory.participants)}")
    if memory.location:
        facts.append(f"at {memory.location}")
    text = " ".join(f"{memory.text} ({'; '.join(facts)})".split())
    return f"[{memory.id}] {text.replace(MARKER_START, '[ [c:')}"


async def _chosen(store: MemoryStore, question: str, most: int) -> tuple[Memory, ...]:
    if most == ALL:
        return await store.read()
    latest = await store.read(most + 1)
    if len(latest) <= most:
        return latest
    try:
        found = await store.search(Query(text=question, limit=most))
    except MemoryUnavailable:
        logger.warning("the memories cannot be searched, the latest are preloaded")
        found = ()
    return tuple(hit.memory for hit in found) or latest[:most]
