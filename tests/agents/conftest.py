"""What the tests of the stores and of live runs share."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio

from agents.providers import openai
from agents.stores import policies, pool, writer
from tests.modelserver import ModelServer


@pytest.fixture(autouse=True)
def new_servers() -> None:
    """A model server of one test may listen where that of another did."""
    openai.forget()


@pytest.fixture(autouse=True)
def nothing_learnt() -> Iterator[None]:
    """What staff set for an agent in one test is forgotten before the next."""
    yield
    policies.learn({})


@pytest.fixture
def server(settings: Any) -> Iterator[ModelServer]:
    """The one model server that is configured; it answers as it is told to."""
    with ModelServer() as server:
        settings.OPENAI_BASE_URL = server.base_url
        settings.OPENAI_MODEL = "test"
        yield server


@pytest_asyncio.fixture
async def hot_stores(transactional_db: Any) -> AsyncIterator[None]:
    """The stores' own connections on a committed database; closed in the test's own loop."""
    yield
    await writer.close()
    await pool.close()
