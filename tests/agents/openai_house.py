"""What the tests of the openai provider share: a model on a test server, and short words for asking it."""

from dataclasses import replace
from typing import Any

from agents.providers.openai import Endpoint, OpenAIModel
from agents.runtime.artifacts import ArtifactMissing
from agents.runtime.model import (
    Chunk,
    FilePart,
    Message,
    ModelInfo,
    ModelRequest,
    Role,
    TextChunk,
    text_message,
)
from tests.modelserver import (
    WAIT_S,
    ModelServer,
    Reply,
)

IMAGE = FilePart(artifact_id="a1", version=1, name="p.png", mime="image/png", size_bytes=4, media="image")
KEY = "sk-abcdef123456"
INFO = ModelInfo(name="test", provider="openai", window_tokens=32_768)


def build(server: ModelServer, *, info: ModelInfo = INFO, images: bool = False, **settings: Any) -> OpenAIModel:
    endpoint = replace(Endpoint(base_url=server.base_url, api_key=KEY, read_s=WAIT_S), **settings)
    return OpenAIModel(info=replace(info, images=images), endpoint=endpoint, files=read, jitter=lambda: 0.0)


async def read(part: FilePart) -> bytes:
    if part.artifact_id != "a1":
        raise ArtifactMissing(part.artifact_id)
    return b"\x89PNG"


def asking(*messages: Message, **fields: Any) -> ModelRequest:
    return ModelRequest(messages=messages or (text_message(Role.USER, "Hi"),), **fields)


async def answer(model: OpenAIModel, request: ModelRequest | None = None) -> list[Chunk]:
    return [c async for c in model.stream(request or asking())]


def said(chunks: list[Chunk]) -> str:
    return "".join(c.text for c in chunks if isinstance(c, TextChunk))


def reply(*steps: Any) -> Reply:
    return Reply(steps=steps)
