"""What a MemoryStore promises, of the one over the tables: the tests of the one in memory, on PostgreSQL."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from agents.stores.memories import PgMemories
from tests.runtime.memory.samples import Clock
from tests.runtime.memory.test_store import *  # noqa: F403 - all of them


@dataclass(slots=True)
class PgHouse:
    """Two people's memories, with a clock that goes."""

    people: tuple[int, int]
    most: int = 1_000
    clock: Clock = field(default_factory=Clock)

    @property
    def alice(self) -> PgMemories:
        return self._of(self.people[0])

    @property
    def bob(self) -> PgMemories:
        return self._of(self.people[1])

    def limit(self, most: int) -> None:
        self.most = most

    def _of(self, owner_id: int) -> PgMemories:
        return PgMemories(owner_id, now=self.clock, most=self.most)


@pytest.fixture
def house(transactional_db: None, alice: Any, bob: Any) -> PgHouse:
    return PgHouse((alice.pk, bob.pk))
