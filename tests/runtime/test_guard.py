from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.runtime.artifacts import ArtifactNotKept, ArtifactRef
from agents.runtime.context.guard import Family, cut, guard
from agents.runtime.events import ToolReturned
from agents.runtime.memorystores import MemoryArtifactStore

LIMIT = 2048


async def guarded(content: str, family: Family = Family.GENERAL) -> tuple[ToolReturned, MemoryArtifactStore]:
    files = MemoryArtifactStore()
    result = ToolReturned(id="r", call_id="call/1", name="look", content=content)
    return await guard(result, family=family, limit_bytes=LIMIT, artifacts=files, run_id="r1"), files


async def test_a_result_up_to_the_limit_stays_as_it_is() -> None:
    kept, files = await guarded("数" * (LIMIT // 3))
    assert kept.artifact is None and kept.content == "数" * (LIMIT // 3)
    assert await files.list() == ()


async def test_a_longer_one_is_stored_first_and_says_what_is_missing_and_how_to_read_it() -> None:
    whole = "\n".join(f"row {n}" for n in range(1000))
    kept, files = await guarded(whole)
    assert kept.artifact is not None
    assert await files.load(kept.artifact) == whole.encode()
    assert len(kept.content.encode()) <= LIMIT
    assert kept.content.startswith("row 0\n") and kept.content.endswith("row 999")
    assert f"{len(whole)} bytes" in kept.content and kept.artifact.uri in kept.content
    assert files.origins[kept.artifact.name, 1] == {"kind": "guard", "tool_call_id": "call/1", "run_id": "r1"}


class FullDisk(MemoryArtifactStore):
    """A store that takes nothing more."""

    async def save(
        self, *, name: str, data: bytes, mime: str = "", origin: Mapping[str, Any] | None = None
    ) -> ArtifactRef:
        raise ArtifactNotKept


async def test_a_store_that_takes_nothing_costs_the_rest_of_the_result_and_not_the_run() -> None:
    result = ToolReturned(id="r", call_id="c", name="look", content="\n".join(f"row {n}" for n in range(1000)))
    kept = await guard(result, family=Family.GENERAL, limit_bytes=LIMIT, artifacts=FullDisk(), run_id="r1")
    assert kept.artifact is None
    assert kept.content.startswith("row 0\n") and "could not be kept" in kept.content
    assert len(kept.content.encode()) <= LIMIT


def test_search_keeps_whole_hits_from_the_top() -> None:
    hits = "\n\n".join(f"Title {n}\nText {n}\nSource {n}" for n in range(100))
    kept = cut(hits, family=Family.SEARCH, room_bytes=500)
    assert kept.tail == ""
    assert kept.head.endswith(tuple(f"Source {n}" for n in range(100)))


def test_shell_keeps_the_command_and_the_exit_status() -> None:
    output = "$ make\n" + "\n".join(f"line {n}" for n in range(500)) + "\nexit status 2"
    kept = cut(output, family=Family.SHELL, room_bytes=500)
    assert kept.head.startswith("$ make\n") and kept.tail.endswith("exit status 2")
    assert len(kept.tail) > len(kept.head)


@pytest.mark.parametrize("family", list(Family))
@settings(deadline=None)
@given(text=st.text(min_size=1, max_size=400), room=st.integers(min_value=0, max_value=300))
def test_no_character_is_split_and_the_room_is_kept(family: Family, text: str, room: int) -> None:
    text = text.encode("utf-8", "replace").decode()
    kept = cut(text, family=family, room_bytes=room)
    assert len((kept.head + kept.tail).encode()) <= room
    assert text.startswith(kept.head) and text.endswith(kept.tail)
