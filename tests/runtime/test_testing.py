"""The stand-ins keep the promises of the protocols they stand in for."""

import asyncio

import pytest

from agents.runtime.artifacts import ArtifactMissing, ArtifactUnreadable
from agents.runtime.memorystores import MemoryArtifactStore, MemorySessionStore
from agents.runtime.model import FinishChunk, FinishReason, ModelRequest, TextChunk, ToolCallChunk
from agents.runtime.testing import ScriptedModel, call, collect, memory_runner, said, text, turn
from tests.runtime.samples import request

ASKED = ModelRequest(messages=())


async def test_a_script_plays_its_turns_in_order_and_finishes_each_fittingly() -> None:
    model = ScriptedModel(text("a", "b"), turn(text("c"), call("c1", "f", '{"x":1}', pieces=2)))
    assert [c async for c in model.stream(ASKED)] == [TextChunk("a"), TextChunk("b"), FinishChunk(FinishReason.STOP)]
    second = [c async for c in model.stream(ASKED)]
    assert [c.arguments for c in second if isinstance(c, ToolCallChunk)] == ['{"x"', ":1}"]
    assert second[-1] == FinishChunk(FinishReason.TOOL_CALLS)
    with pytest.raises(AssertionError, match="2 turns"):
        [c async for c in model.stream(ASKED)]


async def test_a_script_counts_the_streams_that_were_closed_early() -> None:
    model = ScriptedModel(text("a", "b"))
    stream = model.stream(ASKED)
    await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]  # a generator, as the protocol allows
    assert model.closed == 1


async def test_versions_count_from_one_and_are_never_given_again() -> None:
    files = MemoryArtifactStore()
    refs = await asyncio.gather(*[files.save(name="a.txt", data=bytes([n])) for n in range(10)])
    assert [r.version for r in refs] == list(range(1, 11)) and len({r.artifact_id for r in refs}) == 1
    other = await files.save(name="b.txt", data=b"b")
    assert (await files.find("a.txt")).version == 10
    assert await files.load(await files.find(refs[0].artifact_id, 3)) == b"\x02"
    with pytest.raises(ArtifactMissing):
        await files.find("a.txt", 99)
    await files.delete("a.txt")
    await files.delete("a.txt")
    again = await files.save(name="a.txt", data=b"x")
    assert again.version == 11 and again.artifact_id not in (refs[0].artifact_id, other.artifact_id)
    with pytest.raises(ArtifactMissing):
        await files.load(refs[0])


async def test_names_of_the_owner_are_shared_between_sessions_and_others_are_not() -> None:
    here = MemoryArtifactStore()
    there = MemoryArtifactStore(beside=here)
    await here.save(name="user:profile.md", data=b"me")
    await here.save(name="notes.md", data=b"here")
    assert [r.name for r in await there.list()] == ["user:profile.md"]
    assert await there.load(await there.find("user:profile.md")) == b"me"
    assert [r.name for r in await here.list()] == ["notes.md", "user:profile.md"]


async def test_text_is_read_in_pages_that_split_no_character() -> None:
    files = MemoryArtifactStore()
    ref = await files.save(name="a.txt", data="数🙂字".encode())
    first = await files.read_text(ref, max_chars=2)
    rest = await files.read_text(ref, cursor=first.next_cursor, max_chars=2)
    assert (first.text, rest.text, rest.next_cursor) == ("数🙂", "字", "")
    with pytest.raises(ArtifactUnreadable):
        await files.read_text(ref, cursor="page:x")
    with pytest.raises(ArtifactUnreadable):
        await files.read_text(await files.save(name="b", data=b"\xff\xfe\xfa"))


async def test_a_steering_message_is_put_once_and_read_once() -> None:
    store = MemorySessionStore()
    opened = await memory_runner(ScriptedModel(), store=store).open(request())
    for _ in range(2):
        assert store.steer(owner_id=1, thread_id="t", run_id="r1", message=said("x", id="s"))
    assert [m.id for m in await opened.ledger.steered()] == ["s"]
    assert await opened.ledger.steered() == ()
    assert not store.steer(owner_id=2, thread_id="t", run_id="r1", message=said("x", id="s"))


async def test_runners_over_one_store_never_give_an_id_twice() -> None:
    store = MemorySessionStore()
    for number in range(3):
        await collect(memory_runner(ScriptedModel(text("a")), store=store), request(run_id=f"r{number}"))
    ids = [s.id for s in store.stored(owner_id=1, thread_id="t")]
    assert len(set(ids)) == len(ids) == 12
