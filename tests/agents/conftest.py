"""What the tests of the stores and of live runs share."""

from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio

from agents.stores import pool, writer


@pytest_asyncio.fixture
async def hot_stores(transactional_db: Any) -> AsyncIterator[None]:
    """The stores' own connections on a committed database; closed in the test's own loop."""
    yield
    await writer.close()
    await pool.close()
