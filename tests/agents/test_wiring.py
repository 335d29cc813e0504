"""What a request is made complete with before its run opens: model, uploads, files by reference."""

from typing import Any

import pytest

from agents import wiring
from agents.runtime.errors import Rejected
from agents.runtime.events import UserMessage
from agents.runtime.model import FilePart, TextPart
from agents.runtime.session import RunRequest, Upload
from artifacts.store import DjangoArtifactStore

pytestmark = pytest.mark.django_db(transaction=True)


def with_file(owner_id: int, part: FilePart | None = None, **more: Any) -> RunRequest:
    parts = (TextPart(text="What is in it?"), *((part,) if part else ()))
    return RunRequest(owner_id=owner_id, thread_id="t", run_id="r", message=UserMessage(id="u", parts=parts), **more)


def reference(artifact_id: str, version: int = 0) -> FilePart:
    return FilePart(artifact_id=artifact_id, version=version, name="", mime="", size_bytes=0)


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
    assert made.message is not None
    part = made.message.parts[1]
    assert isinstance(part, FilePart)
    again = await wiring.prepare(with_file(alice.id, reference(part.artifact_id)))
    assert again.message is not None and again.message.parts[1] == part
    for owner_id, version in ((bob.id, 1), (alice.id, 7)):
        with pytest.raises(Rejected) as refused:
            await wiring.prepare(with_file(owner_id, reference(part.artifact_id, version)))
        assert refused.value.code == "invalid_input"


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
