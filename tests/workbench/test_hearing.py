"""The one ear of a process: it hears for every owner, and goes when nobody listens any more."""

import asyncio

import orjson

from agents import hints
from workbench import hearing
from workbench.hearing import Hearing

PATIENCE_S = 15.0


class Page:
    def __init__(self) -> None:
        self.heard: list[dict[str, str]] = []
        self.first = asyncio.Event()

    def hint(self, *frames: bytes) -> None:
        self.heard += map(orjson.loads, frames)
        self.first.set()


async def told(page: Page, owner_id: int) -> None:
    """Hint until the page hears: joining takes a moment, and what nobody hears is gone."""
    async with asyncio.timeout(PATIENCE_S):
        while not page.first.is_set():
            await hints.thread_changed(owner_id, "t", "title")
            await asyncio.wait({asyncio.ensure_future(page.first.wait())}, timeout=0.05)


async def gone(ear: Hearing, tasks: tuple[asyncio.Task[None], ...]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*tasks, return_exceptions=True)
    assert ear._task is None


async def test_each_page_hears_of_its_owner_only_and_the_ear_goes_with_the_last() -> None:
    ear = hearing.current()
    first, second = Page(), Page()
    ear.join(901, first)
    ear.join(902, second)
    await told(first, 901)
    await told(second, 902)
    assert {h["type"] for h in first.heard + second.heard} == {"thread"}
    second.heard.clear()
    first.first.clear()
    await told(first, 901)
    assert second.heard == []
    assert ear._task is not None
    tasks = (ear._task, *ear._children)
    ear.leave(901, first)
    assert ear._task is not None
    ear.leave(902, second)
    await gone(ear, tasks)


async def test_who_comes_back_hears_again() -> None:
    ear = hearing.current()
    for _ in range(3):
        page = Page()
        ear.join(903, page)
        await told(page, 903)
        assert ear._task is not None
        tasks = (ear._task, *ear._children)
        ear.leave(903, page)
        await gone(ear, tasks)
