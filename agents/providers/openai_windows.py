"""Context windows that a server tells: in its list of models, asked once per process, after an answer, never before
one; and with its refusal of a request that was too long.

What a server does not tell stays unknown; a failure is no more than that.
"""

import asyncio
import logging
import re
import weakref
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from agents.runtime.errors import ModelError, ModelUnavailable
from agents.runtime.model import ModelInfo

ASK_S = 2.0

ListModels = Callable[[], Awaitable[Sequence[ModelInfo]]]

logger = logging.getLogger(__name__)

_LEAST: Final = 512  # a smaller number in a refusal is no window
_IN_REFUSAL: Final = re.compile(
    r"(?:maximum (?:context|model) length (?:is|of)|max_model_len of|available context size|context window of)"
    r" \(?(\d{3,9})\b"
    r"|> (\d{3,9}) maximum",
    re.IGNORECASE,
)
_refused: dict[tuple[str, str], int] = {}  # by the server's address and the model
_told: dict[str, dict[str, int]] = {}  # by the server's address; there as soon as it is being asked
_tasks: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, set[asyncio.Task[None]]] = weakref.WeakKeyDictionary()


def told(base_url: str, name: str) -> int | None:
    """Return the window of a model in tokens, if its server has told it; the smaller of two."""
    known = (_told.get(base_url, {}).get(name), _refused.get((base_url, name)))
    return min((tokens for tokens in known if tokens), default=None)


def refused(base_url: str, name: str) -> int | None:
    """Return the window of a model in tokens, if its server has named it with a refusal: that is so, whatever else is
    said."""
    return _refused.get((base_url, name))


def learn(base_url: str, name: str, refusal: str) -> None:
    """Take in what a server said of a request that was too long; words without a window teach nothing."""
    if (found := _IN_REFUSAL.search(refusal)) and (tokens := int(found[1] or found[2])) >= _LEAST:
        _refused[base_url, name] = tokens


def ask_once(base_url: str, list_models: ListModels) -> None:
    """Ask the server for its windows in a task beside the caller, unless this process did before. Returns at once."""
    if base_url in _told:
        return
    _told[base_url] = {}
    tasks = _tasks.setdefault(asyncio.get_running_loop(), set())
    task = asyncio.create_task(_ask(base_url, list_models), name="windows of models")
    tasks.add(task)
    task.add_done_callback(tasks.discard)


def forget() -> None:
    """Know nothing of any server."""
    _told.clear()
    _refused.clear()


async def close() -> None:
    """Stop what still asks in the running loop."""
    tasks = _tasks.pop(asyncio.get_running_loop(), set())
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _ask(base_url: str, list_models: ListModels) -> None:
    try:
        async with asyncio.timeout(ASK_S):
            found = await list_models()
    except (TimeoutError, ModelError, ModelUnavailable) as e:
        logger.info("a model server told no windows: %s", type(e).__name__)
        return
    except asyncio.CancelledError:  # the loop ends; the next one asks anew
        _told.pop(base_url, None)
        raise
    _told[base_url] = {model.name: model.window_tokens for model in found if model.window_tokens}
