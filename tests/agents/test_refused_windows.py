"""A server that refuses a request as too long often says how long one may be; the next requests go by that."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from agents import wiring
from agents.models.agent_policy import AgentPolicy
from agents.providers import openai_windows
from agents.providers.openai import Endpoint, OpenAIModel, close_clients
from agents.runtime.context.window import Window
from agents.runtime.errors import ContextTooLong
from agents.runtime.events import WindowUsed
from agents.runtime.model import ModelInfo, ModelRequest, Role, text_message
from agents.runtime.session import CancelToken, RunRequest
from agents.stores import db, policies
from tests.agents.records import user
from tests.modelserver import ModelServer, Reply, error, finish, text

BASE = "http://models.example/v1"


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(openai_windows, "_refused", {})
    yield
    policies.learn({})


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


LONG = "We decided to keep the second chamber at four degrees. 第二冷库保持在四度，预算为三万元。 " * 60


async def windows(owner_id: int, run_id: str, words: str) -> list[WindowUsed]:
    """Run the assistant as the site does and return what it told of the window."""
    runner = wiring.build().runner
    asked = RunRequest(owner_id=owner_id, thread_id="t", run_id=run_id, message=user(words, id=f"m-{run_id}"))
    opened = await runner.open(asked)
    return [e.event async for e in runner.run(opened, CancelToken()) if isinstance(e.event, WindowUsed)]


@pytest.mark.usefixtures("hot_stores")
@pytest.mark.parametrize(
    ("refusal", "window"), [("The prompt is too long.", None), ("maximum context length is 9000 tokens", 9_000)]
)
async def test_a_configured_window_that_is_too_large_costs_one_refused_call_and_not_one_per_run(
    server: ModelServer, settings: Any, refusal: str, window: int | None
) -> None:
    settings.MODELS = [{"name": "test", "window": 64_000, "base_url": server.base_url, "api_key": "k"}]
    settings.OPENAI_MODEL = ""
    alice = int((await db.in_thread(get_user_model().objects.create_user)("alice")).pk)
    await db.in_thread(AgentPolicy.objects.create)(agent="assistant", values={"summarise": False})
    answer = Reply(steps=(*text(LONG), *finish()))
    server.script(*[answer] * 4)
    for n in range(4):
        await windows(alice, f"r{n}", LONG)
    assert wiring.window_of("test") == Window(tokens=64_000, source="settings")
    answered = server.chats[-1].body
    server.script(error(400, refusal, code="context_length_exceeded"), answer)
    before, after = await windows(alice, "r4", LONG)
    assert (before.window, after.source, after.tokens < before.tokens) == (64_000, "provider", True)
    learnt = wiring.window_of("test")
    assert learnt.source == "provider" and learnt.tokens == (window or learnt.tokens) < before.tokens
    calls = len(server.chats)
    server.script(answer)
    (later,) = await windows(alice, "r5", LONG)
    assert len(server.chats) == calls + 1  # it was not refused again: it was short enough before it was sent
    assert (later.window, later.source) == (learnt.tokens, "provider")
    assert later.tokens <= learnt.tokens and dict(later.parts)["dropped"] > 0
    assert len(str(server.chats[-1].body["messages"])) <= len(str(answered["messages"])) * 1.1
    await wiring.close_clients()


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
