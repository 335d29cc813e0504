"""What a request is made complete with before its run opens: model, uploads, files by reference."""

from dataclasses import replace
from typing import Any

import pytest

from agents import wiring
from agents.live.registry import Live
from agents.models.session import Session
from agents.runtime.errors import Rejected
from agents.runtime.events import RunStarted, ToolReturned, UserMessage
from agents.runtime.model import FilePart, TextPart, file_note
from agents.runtime.planning import EXTERNAL_RESULT_BYTES
from agents.runtime.session import CancelToken, RunRequest, Upload
from agents.runtime.testing import ScriptedModel, text, turn
from agents.runtime.tools import ToolContext, ToolResult
from agents.stores import db, sessions
from agents.tools import artifacts as artifact_tools
from artifacts.rows import session_of_thread
from artifacts.store import DjangoArtifactStore
from tests.agents import house

pytestmark = pytest.mark.django_db(transaction=True)


def with_file(owner_id: int, part: FilePart | None = None, **more: Any) -> RunRequest:
    parts = (TextPart(text="What is in it?"), *((part,) if part else ()))
    return RunRequest(owner_id=owner_id, thread_id="t", run_id="r", message=UserMessage(id="u", parts=parts), **more)


def reference(artifact_id: str, version: int = 0) -> FilePart:
    return FilePart(artifact_id=artifact_id, version=version, name="", mime="", size_bytes=0)


def file_of(request: RunRequest) -> FilePart:
    assert request.message is not None
    part = request.message.parts[1]
    assert isinstance(part, FilePart)
    return part


async def read_as_the_run_does(owner_id: int, thread_id: str, part: FilePart) -> ToolResult:
    """Read a file by the reference that the model is told, as a run of this thread."""
    session_id = await db.in_thread(session_of_thread)(owner_id, thread_id)
    read, *_ = artifact_tools.tools()
    context = ToolContext(
        owner_id=owner_id,
        session_id=str(session_id),
        run_id="r",
        invocation_id="i",
        call_id="c",
        cancel=CancelToken(),
        artifacts=DjangoArtifactStore(owner_id=owner_id, session_id=str(session_id)),
        state={},
        now=wiring.now,
    )
    name = file_note(part).rpartition(" ")[2].removesuffix("]")
    return await read.call({"name": name}, context)


async def test_an_upload_becomes_a_file_of_the_conversation(alice: Any) -> None:
    upload = Upload(name="notes.md", mime="text/markdown", data=b"# Notes\n")
    request = await wiring.prepare(with_file(alice.id, uploads=(upload,)))
    assert request.message is not None and request.uploads == ()
    text, part = request.message.parts
    assert isinstance(text, TextPart) and isinstance(part, FilePart)
    assert (part.name, part.version, part.size_bytes, part.media) == ("notes.md", 1, 8, "document")
    files = DjangoArtifactStore(owner_id=alice.id, session_id=None)
    assert await files.load(await files.find(part.artifact_id, 1)) == b"# Notes\n"


async def test_a_reference_is_looked_up_for_its_owner_only(alice: Any, bob: Any) -> None:
    upload = Upload(name="notes.md", mime="text/markdown", data=b"# Notes\n")
    made = await wiring.prepare(with_file(alice.id, uploads=(upload,)))
    part = file_of(made)
    again = await wiring.prepare(with_file(alice.id, reference(part.artifact_id)))
    assert again.message is not None and again.message.parts[1] == part
    for owner_id, version in ((bob.id, 1), (alice.id, 7)):
        with pytest.raises(Rejected) as refused:
            await wiring.prepare(with_file(owner_id, reference(part.artifact_id, version)))
        assert refused.value.code == "invalid_input"


async def test_a_file_of_another_conversation_is_brought_into_this_one_where_its_name_finds_it(alice: Any) -> None:
    upload = Upload(name="notes.md", mime="text/markdown", data=b"# Notes\n")
    made = await wiring.prepare(with_file(alice.id, uploads=(upload,)))
    part = file_of(made)
    for _ in range(2):  # sent twice, it is still one file
        elsewhere = await wiring.prepare(replace(with_file(alice.id, reference(part.artifact_id)), thread_id="t2"))
        here = file_of(elsewhere)
        assert (here.name, here.version) == ("notes.md", 1) and here.artifact_id != part.artifact_id
    result = await read_as_the_run_does(alice.id, "t2", here)
    assert "# Notes" in result.content
    # the first conversation may go, this one keeps its file
    await db.in_thread(Session.objects.of(alice.id).filter(thread_id="t").update)(deleted_at=wiring.now())
    assert "# Notes" in (await read_as_the_run_does(alice.id, "t2", here)).content


async def test_a_brought_file_does_not_take_the_place_of_one_of_its_name(alice: Any) -> None:
    other = await wiring.prepare(with_file(alice.id, uploads=(Upload(name="a.md", mime="", data=b"other"),)))
    part = file_of(other)
    own = replace(with_file(alice.id, uploads=(Upload(name="a.md", mime="", data=b"own"),)), thread_id="t2")
    await wiring.prepare(own)
    both = await wiring.prepare(replace(with_file(alice.id, reference(part.artifact_id)), thread_id="t2"))
    here = file_of(both)
    assert (here.name, here.version) == ("a.md", 2)
    assert "other" in (await read_as_the_run_does(alice.id, "t2", here)).content
    assert "own" in (await read_as_the_run_does(alice.id, "t2", replace(here, version=1))).content


async def test_crossing_owners_fails_at_the_door_and_leaves_nothing(alice: Any, bob: Any) -> None:
    made = await wiring.prepare(with_file(alice.id, uploads=(Upload(name="a.md", mime="", data=b"secret"),)))
    part = file_of(made)
    for artifact_id in (part.artifact_id, part.name):
        with pytest.raises(Rejected) as refused:
            await wiring.prepare(with_file(bob.id, reference(artifact_id)))
        assert (refused.value.code, "not there" in refused.value.message) == ("invalid_input", True)
    assert await db.in_thread(Session.objects.of(bob.id).count)() == 0
    assert await DjangoArtifactStore(owner_id=bob.id, session_id=None).list() == ()


async def test_a_long_answer_to_an_external_call_is_kept_whole_as_a_file_and_short_in_the_record(alice: Any) -> None:
    await wiring.prepare(with_file(alice.id, uploads=(Upload(name="a.md", mime="", data=b"x"),)))
    whole = "\n".join(f"row {n}" for n in range(20_000))
    answers = tuple(
        ToolReturned(id=f"m-{call_id}", call_id=call_id, name="", content=content, external=True)
        for call_id, content in (("c1", whole), ("c2", "short"))
    )
    request = RunRequest(owner_id=alice.id, thread_id="t", run_id="r", message=None, tool_results=answers)
    long, short = (await wiring.prepare(request)).tool_results
    assert short == answers[1]
    assert len(long.content.encode()) <= wiring.LIMITS.tool_result_bytes
    assert long.content.startswith("row 0\n") and long.content.endswith("row 19999") and "read_artifact" in long.content
    assert long.artifact is not None and (long.id, long.size_bytes) == ("m-c1", len(whole))
    files = DjangoArtifactStore(owner_id=alice.id, session_id=None)
    assert await files.load(long.artifact) == whole.encode()


async def test_an_answer_that_no_thread_or_no_limit_takes_is_refused_before_it_is_kept(alice: Any) -> None:
    def request(size: int) -> RunRequest:
        answer = ToolReturned(id="m", call_id="c1", name="", content="x" * size, external=True)
        return RunRequest(owner_id=alice.id, thread_id="t", run_id="r", message=None, tool_results=(answer,))

    for size, code in ((EXTERNAL_RESULT_BYTES + 1, "payload_too_large"), (20_000, "thread_not_found")):
        with pytest.raises(Rejected) as refused:
            await wiring.prepare(request(size))
        assert refused.value.code == code
    assert await db.in_thread(Session.objects.of(alice.id).count)() == 0


async def test_too_many_files_are_refused_before_any_is_stored(alice: Any, settings: Any) -> None:
    settings.MAX_FILES_PER_MESSAGE = 1
    uploads = tuple(Upload(name=f"{n}.txt", mime="text/plain", data=b"x") for n in range(2))
    with pytest.raises(Rejected) as refused:
        await wiring.prepare(with_file(alice.id, uploads=uploads))
    assert refused.value.code == "payload_too_large"
    assert await DjangoArtifactStore(owner_id=alice.id, session_id=None).list() == ()


async def test_the_model_is_named_or_refused(alice: Any, settings: Any) -> None:
    assert (await wiring.prepare(with_file(alice.id))).model == "offline"
    with pytest.raises(Rejected) as refused:
        await wiring.prepare(with_file(alice.id, model="gpt-9"))
    assert refused.value.code == "model_unavailable"
    settings.MODELS = [{"name": "small", "window": 8_000}, {"name": "large"}]
    settings.OPENAI_MODEL = "large"
    assert [model.info.name for model in wiring.models()] == ["large", "small"]
    assert (await wiring.prepare(with_file(alice.id))).model == "large"
    assert wiring.model_of("small", alice.id).info.window_tokens == 8_000


async def test_a_run_answers_from_the_owners_own_documents_only(alice: Any, bob: Any) -> None:
    upload = Upload(name="notes.md", mime="text/markdown", data=b"# Notes\n")
    own = file_of(await wiring.prepare(with_file(alice.id, uploads=(upload,)))).artifact_id
    unknown = "5f0c6b1e-6c5b-4f8e-9f0a-2b6d8f3c1a77"

    async def refused(owner_id: int, *sources: str) -> str:
        with pytest.raises(Rejected) as error:
            await wiring.prepare(with_file(owner_id, sources=sources, sources_given=True))
        assert error.value.code == "invalid_input"
        return error.value.message

    assert (await wiring.prepare(with_file(alice.id, sources=(own,), sources_given=True))).sources == (own,)
    assert await refused(alice.id, own, unknown) == f'There is no document "{unknown}".'
    assert await refused(bob.id, own) == f'There is no document "{own}".'
    await DjangoArtifactStore(owner_id=alice.id, session_id=None).delete(own)
    assert await refused(alice.id, own) == f'There is no document "{own}".'


async def test_a_queued_message_brings_sources_that_are_its_owners(alice: Any, bob: Any) -> None:
    upload = Upload(name="notes.md", mime="text/markdown", data=b"# Notes\n")
    own = file_of(await wiring.prepare(with_file(alice.id, uploads=(upload,)))).artifact_id
    model = ScriptedModel(turn(text("one")), turn(text("two")))
    live = Live(replace(house.wiring(model), prepare=wiring.prepare))
    live.begin()
    try:
        for owner_id in (alice.id, bob.id):
            started = await live.start(house.ask(owner_id, thread="q"))
            queued = UserMessage(id=f"queued-{owner_id}", parts=(TextPart(text="And?"),), sources=(own,))
            steer = live.steer(owner_id=owner_id, thread_id="q", run_id=started.run_id, message=queued, kind="queue")
            if owner_id == bob.id:
                with pytest.raises(Rejected, match=f'There is no document "{own}"'):
                    await steer
            else:
                await steer
                ear = house.Ear()
                await live.attach(owner_id=owner_id, thread_id="q", sink=ear)
                await ear.end(f"queued-{queued.id}")
    finally:
        await live.close()
    visible = (await sessions.visible(owner_id=alice.id, thread_id="q")).stored
    assert [s.record.sources for s in visible if isinstance(s.record, RunStarted)] == [None, (own,)]
