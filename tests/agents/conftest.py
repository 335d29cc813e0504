"""What the tests of the stores and of live runs share."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from agents.providers import openai
from agents.stores import pool, writer


@pytest.fixture(autouse=True)
def new_servers() -> None:
    """A model server of one test may listen where that of another did."""
    openai.forget()


@pytest_asyncio.fixture
async def hot_stores(transactional_db: Any) -> AsyncIterator[None]:
    """The stores' own connections on a committed database; closed in the test's own loop."""
    yield
    await writer.close()
    await pool.close()
