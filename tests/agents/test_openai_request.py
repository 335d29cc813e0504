"""What the openai provider sends, and the server's list of models."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

from agents.providers import openai_windows
from agents.providers.openai import OpenAIModel, close_clients
from agents.runtime.model import (
    Message,
    ModelRequest,
    Role,
    TextPart,
    ToolCall,
    ToolSpec,
    text_message,
)
from tests.agents.house import until
from tests.agents.openai_house import IMAGE, INFO, answer, asking, build, reply, said
from tests.modelserver import (
    Cut,
    Hang,
    ModelServer,
    Raw,
    Reply,
    chunk,
    error,
    finish,
    plain,
    text,
)

UNKNOWN = replace(INFO, window_tokens=None)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
async def fast(server: ModelServer) -> AsyncIterator[OpenAIModel]:
    yield build(server)
    await close_clients()


# What is sent


async def test_a_conversation_with_tools_is_sent_whole(server: ModelServer, fast: OpenAIModel) -> None:
    server.script(reply(*text("ok"), *finish()))
    tool = ToolSpec(name="read", description="Read it", parameters={"type": "object", "properties": {}})
    messages = (
        text_message(Role.SYSTEM, "Be brief."),
        text_message(Role.USER, "Read a"),
        Message(
            role=Role.ASSISTANT,
            tool_calls=(
                ToolCall(id="c1", name="read", arguments='{"a":1}'),
                ToolCall(id="c2", name="read", arguments='{"a'),
            ),
            reasoning="hm",
        ),
        Message(role=Role.TOOL, parts=(TextPart(text="A"),), tool_call_id="c1"),
        Message(role=Role.TOOL, parts=(TextPart(text="B"),), tool_call_id="c2"),
        Message(role=Role.ASSISTANT, parts=(TextPart(text="done"),), reasoning="no calls, so never told again"),
        Message(role=Role.ASSISTANT, reasoning="nothing said"),
    )
    await answer(fast, ModelRequest(messages=messages, tools=(tool,), tool_choice="none"))
    sent = server.requests[0].body
    assert sent["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Read a"},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "hm",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"a":1}'}},
                {"id": "c2", "type": "function", "function": {"name": "read", "arguments": '{"invalid_json":"{\\"a"}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "A"},
        {"role": "tool", "tool_call_id": "c2", "content": "B"},
        {"role": "assistant", "content": "done"},
    ]
    assert sent["tools"][0]["function"]["name"] == "read"
    assert sent["tool_choice"] == "none"


async def test_reasoning_is_told_again_under_the_key_it_came_by(server: ModelServer, fast: OpenAIModel) -> None:
    done = finish()
    server.script(reply(chunk({"reasoning": "hm"}), *text("ok"), *done), reply(*text("ok"), *done))
    await answer(fast)
    thought = Message(role=Role.ASSISTANT, tool_calls=(ToolCall(id="c", name="r", arguments="{}"),), reasoning="hm")
    await answer(fast, asking(thought, Message(role=Role.TOOL, tool_call_id="c")))
    assert server.requests[1].body["messages"][0]["reasoning"] == "hm"


async def test_images_are_sent_as_data_urls_to_a_model_that_sees(server: ModelServer) -> None:
    model = build(server, images=True)
    gone = replace(IMAGE, artifact_id="gone", name="old.png")
    pdf = replace(IMAGE, name="r.pdf", mime="application/pdf", media="document")
    server.script(reply(*text("ok"), *finish()))
    await answer(model, asking(Message(role=Role.USER, parts=(TextPart(text="What is it?"), IMAGE, gone, pdf))))
    await close_clients()
    parts = server.requests[0].body["messages"][0]["content"]
    assert parts[0] == {"type": "text", "text": "What is it?"}
    assert parts[1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}
    assert "artifact://old.png@1" in parts[2]["text"]
    assert "artifact://r.pdf@1" in parts[3]["text"]


async def test_files_are_only_named_to_a_model_that_does_not_see(server: ModelServer, fast: OpenAIModel) -> None:
    server.script(reply(*text("ok"), *finish()))
    await answer(fast, asking(Message(role=Role.USER, parts=(TextPart(text="What is it?"), IMAGE))))
    content = server.requests[0].body["messages"][0]["content"]
    assert content.startswith("What is it?\n\n[Attached file")
    assert "artifact://p.png@1" in content


# The server's list


async def test_the_models_list_tells_windows_where_servers_do(server: ModelServer, fast: OpenAIModel) -> None:
    server.models = [
        {"id": "a", "max_model_len": 4096},
        {"id": "b", "meta": {"n_ctx_train": 8192}},
        {"id": "c", "context_length": 32768},
        {"id": "d"},
        {"object": "nameless"},
    ]
    found = {m.name: m.window_tokens for m in await fast.list_models()}
    assert found == {"a": 4096, "b": 8192, "c": 32768, "d": None}


async def test_an_unknown_window_is_asked_once_after_an_answer(server: ModelServer) -> None:
    model = build(server, info=UNKNOWN)
    server.models = [{"id": "test", "max_model_len": 4096}, {"id": "other", "max_model_len": 8192}]
    server.script(*(reply(*text("ok"), *finish()) for _ in range(3)))
    assert model.info.window_tokens is None
    await answer(model)
    await until(lambda: model.info.window_tokens == 4096)
    assert model.info == replace(UNKNOWN, window_tokens=4096)
    await asyncio.gather(answer(model), answer(build(server, info=UNKNOWN)))
    assert [r.path.rpartition("/")[2] for r in server.requests].count("models") == 1
    await close_clients()


async def test_a_window_that_is_set_is_not_asked(server: ModelServer) -> None:
    model = build(server, info=replace(INFO, window_tokens=1000))
    server.script(reply(*text("ok"), *finish()), reply(*text("ok"), *finish()))
    await answer(model)
    await answer(model)
    await close_clients()
    assert server.requests == server.chats and model.info.window_tokens == 1000


@pytest.mark.parametrize("transport", ["aiohttp", "httpx"])
@pytest.mark.parametrize(
    "list_reply",
    [
        error(404, "no such path"),
        plain({"data": 7}),
        plain("surprise"),
        Reply(steps=(Raw(b"<html>"),)),
        Reply(steps=(Cut(),)),
        Reply(steps=(Hang(),)),
    ],
)
async def test_a_list_that_fails_leaves_the_window_unknown_and_harms_nothing(
    server: ModelServer, transport: str, list_reply: Reply, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        openai_windows, "ASK_S", 1.0
    )  # enough to ask on any machine, too little for an answer that hangs
    server.list_reply = list_reply
    model = build(server, info=UNKNOWN, transport=transport)
    server.script(reply(*text("one"), *finish()), reply(*text("two"), *finish()))
    assert said(await answer(model)) == "one"
    await asyncio.to_thread(server.wait_for, 2)  # the list was asked
    assert said(await answer(model)) == "two"
    await close_clients()
    assert model.info.window_tokens is None
