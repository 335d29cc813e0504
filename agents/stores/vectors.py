"""A question's vector, for stores that search."""

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor

from agents import search
from agents.runtime.embedding import Embedder, EmbedderFailed, model_id

_executor = ThreadPoolExecutor(max_workers=2, thread_name_prefix="embed")


async def of_question(embedder: Embedder | None, query: str) -> search.Vector | None:
    """Return the question's vector; None if there is none in time. What takes longer goes on and warms up."""
    if embedder is None or not query.strip():
        return None
    loop = asyncio.get_running_loop()
    with contextlib.suppress(TimeoutError, EmbedderFailed):
        async with asyncio.timeout(embedder.query_s):
            made = await loop.run_in_executor(_executor, embedder.embed, [search.clean(query)])
        values = made[0]
        return None if values is None else search.Vector(model=model_id(embedder), values=values)
    return None
