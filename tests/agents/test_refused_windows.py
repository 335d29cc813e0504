"""A server that refuses a request as too long often says how long one may be; the next requests go by that."""

from collections.abc import Iterator

import pytest

from agents.providers import openai_windows
from agents.providers.openai import Endpoint, OpenAIModel, close_clients
from agents.runtime.errors import ContextTooLong
from agents.runtime.model import ModelInfo, ModelRequest, Role, text_message
from tests.modelserver import ModelServer, error

BASE = "http://models.example/v1"


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_windows, "_refused", {})


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.mark.parametrize(
    ("refusal", "window"),
    [
        ("This model's maximum context length is 8192 tokens. However, you requested 11241 tokens.", 8_192),
        ("The decoder prompt (length 5747) is longer than the maximum model length of 4096.", 4_096),
        ("The decoder prompt (length 5747) is longer than max_model_len of 4096.", 4_096),
        ("request (9000 tokens) exceeds the available context size (8192 tokens)", 8_192),
        ("Requested tokens (2285) exceed context window of 2048", 2_048),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
        ("The input token count (1196265) exceeds the maximum number of tokens allowed", None),
        ("request (9 tokens) exceeds the available context size (8 tokens)", None),
        ("Context length exceeded", None),
    ],
)
def test_the_window_is_read_from_the_words_of_the_refusal(refusal: str, window: int | None) -> None:
    openai_windows.learn(BASE, "m", refusal)
    assert openai_windows.told(BASE, "m") == window
    assert openai_windows.told(BASE, "other") is None


def test_the_smaller_of_what_was_listed_and_what_was_refused_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(openai_windows._told, BASE, {"m": 32_768})
    assert openai_windows.told(BASE, "m") == 32_768
    openai_windows.learn(BASE, "m", "maximum context length is 8192 tokens")
    assert openai_windows.told(BASE, "m") == 8_192


async def test_a_model_whose_request_was_refused_knows_its_window(server: ModelServer) -> None:
    async def no_file(part: object) -> bytes:
        raise AssertionError("no file is asked for")

    server.script(error(400, "This model's maximum context length is 8192 tokens.", code="context_length_exceeded"))
    endpoint = Endpoint(base_url=server.base_url, api_key="k")
    model = OpenAIModel(info=ModelInfo(name="test", provider="openai"), endpoint=endpoint, files=no_file)
    assert model.info.window_tokens is None
    with pytest.raises(ContextTooLong):
        async for _ in model.stream(ModelRequest(messages=(text_message(Role.USER, "你好"),))):
            pass
    assert model.info.window_tokens == 8_192
    await close_clients()
