"""The openai provider against a real HTTP server (tests/modelserver.py): quirks, errors and cuts on a real socket."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from agents.providers import openai_errors
from agents.providers.openai import OpenAIModel, close_clients
from agents.runtime.errors import (
    ContextTooLong,
    ModelBusy,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    StreamCut,
)
from agents.runtime.model import (
    Chunk,
    FinishChunk,
    FinishReason,
    ReasoningChunk,
    RetryChunk,
    TextChunk,
    ToolCallChunk,
    Usage,
    UsageChunk,
)
from tests.agents.openai_house import KEY, answer, asking, build, reply, said
from tests.modelserver import (
    WAIT_S,
    Cut,
    Data,
    Gate,
    Hang,
    ModelServer,
    Pause,
    Raw,
    Reply,
    call,
    chunk,
    error,
    finish,
    plain,
    text,
    usage,
)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture(params=["aiohttp", "httpx"])
async def model(server: ModelServer, request: pytest.FixtureRequest) -> AsyncIterator[OpenAIModel]:
    yield build(server, transport=request.param)
    await close_clients()


@pytest.fixture
async def fast(server: ModelServer) -> AsyncIterator[OpenAIModel]:
    yield build(server)
    await close_clients()


# Text, reasoning, usage


async def test_text_comes_in_pieces_then_usage_then_finish(server: ModelServer, model: OpenAIModel) -> None:
    server.script(reply(*text("Hello big world"), *finish(counts=usage(12, 3, cached=8, reasoning=1))))
    chunks = await answer(model)
    assert chunks == [
        TextChunk("Hello"),
        TextChunk(" big"),
        TextChunk(" world"),
        UsageChunk(Usage(prompt=12, cached=8, completion=3, reasoning=1)),
        FinishChunk(FinishReason.STOP),
    ]


async def test_usage_is_asked_for_and_the_key_is_sent(server: ModelServer, fast: OpenAIModel) -> None:
    server.script(reply(*text("ok"), *finish()))
    await answer(fast, asking(max_tokens=50, temperature=0.2))
    sent = server.requests[0]
    assert sent.body["stream"] is True
    assert sent.body["stream_options"] == {"include_usage": True}
    assert (sent.body["model"], sent.body["max_tokens"], sent.body["temperature"]) == ("test", 50, 0.2)
    assert sent.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
async def test_reasoning_is_told_apart_from_text(server: ModelServer, fast: OpenAIModel, key: str) -> None:
    server.script(reply(chunk({key: "Let me "}), chunk({key: "see"}), *text("Yes"), *finish()))
    chunks = await answer(fast)
    assert chunks[:3] == [ReasoningChunk("Let me "), ReasoningChunk("see"), TextChunk("Yes")]


async def test_reasoning_under_both_keys_is_said_once(server: ModelServer, fast: OpenAIModel) -> None:
    server.script(reply(chunk({"reasoning_content": "hm", "reasoning": "hm"}), *text("Yes"), *finish()))
    assert [c for c in await answer(fast) if isinstance(c, ReasoningChunk)] == [ReasoningChunk("hm")]


async def test_reasoning_and_text_as_content_parts(server: ModelServer, fast: OpenAIModel) -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    server.script(reply(chunk({"content": [thinking, {"type": "text", "text": "Yes"}]}), *finish()))
    assert (await answer(fast))[:2] == [ReasoningChunk("hm"), TextChunk("Yes")]


async def test_no_usage_at_all_gives_no_usage_chunk(server: ModelServer, fast: OpenAIModel) -> None:
    server.script(reply(*text("ok"), *finish()))
    assert await answer(fast) == [TextChunk("ok"), FinishChunk(FinishReason.STOP)]


async def test_usage_told_with_every_event_counts_once(server: ModelServer, fast: OpenAIModel) -> None:
    counted = [
        chunk({"content": w}, usage={"prompt_tokens": 5, "completion_tokens": n}) for n, w in ((1, "a"), (2, "b"))
    ]
    server.script(reply(*counted, *finish()))
    usages = [c for c in await answer(fast) if isinstance(c, UsageChunk)]
    assert usages == [UsageChunk(Usage(prompt=5, completion=2))]


async def test_only_the_first_of_several_choices_is_read(server: ModelServer, fast: OpenAIModel) -> None:
    both = {
        "choices": [
            {"index": 1, "delta": {"content": "other"}, "finish_reason": "length"},
            {"index": 0, "delta": {"content": "mine"}, "finish_reason": None},
        ]
    }
    server.script(reply(chunk({"content": "other"}, index=1), Data(both), *finish()))
    assert await answer(fast) == [TextChunk("mine"), FinishChunk(FinishReason.STOP)]


async def test_keep_alive_comments_and_crlf_and_split_bytes_change_nothing(
    server: ModelServer, model: OpenAIModel
) -> None:
    whole = 'data: {"choices":[{"index":0,"delta":{"content":"你好"}}]}\r\n\r\n'.encode()
    cuts = [Raw(whole[i : i + 7]) for i in range(0, len(whole), 7)]
    server.script(reply(Raw(b": keep-alive\n\n"), *cuts, Raw(b": ping\r\n\r\nevent: x\r\nid: 1\r\n"), *finish()))
    assert await answer(model) == [TextChunk("你好"), FinishChunk(FinishReason.STOP)]


async def test_a_stream_that_ends_without_done_or_last_blank_line_is_whole(
    server: ModelServer, fast: OpenAIModel
) -> None:
    server.script(reply(*text("ok"), Raw(b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}')))
    assert await answer(fast) == [TextChunk("ok"), FinishChunk(FinishReason.STOP)]


async def test_done_without_a_finish_reason_is_a_stop(server: ModelServer, fast: OpenAIModel) -> None:
    server.script(reply(*text("ok"), Data("[DONE]")))
    assert await answer(fast) == [TextChunk("ok"), FinishChunk(FinishReason.STOP)]


async def test_a_server_that_ignores_stream_is_read_too(server: ModelServer, fast: OpenAIModel) -> None:
    message = {"role": "assistant", "content": "whole", "tool_calls": None, "refusal": None}
    server.script(
        plain({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}})
    )
    assert await answer(fast) == [TextChunk("whole"), UsageChunk(Usage(prompt=3)), FinishChunk(FinishReason.STOP)]


# Tool calls: fragments are handed on raw, agents/runtime/toolcalls.py joins them


async def test_tool_call_fragments_come_as_the_server_gave_them(server: ModelServer, fast: OpenAIModel) -> None:
    server.script(
        reply(
            call(id="c1", name="read"),
            call('{"a"'),
            call(":1}"),
            call("{}", index=1, id="c2", name="list"),
            *finish("tool_calls"),
        )
    )
    assert await answer(fast) == [
        ToolCallChunk(0, "c1", "read", ""),
        ToolCallChunk(0, "", "", '{"a"'),
        ToolCallChunk(0, "", "", ":1}"),
        ToolCallChunk(1, "c2", "list", "{}"),
        FinishChunk(FinishReason.TOOL_CALLS),
    ]


async def test_2_14_index_always_zero_id_late_repeated_or_missing(server: ModelServer, fast: OpenAIModel) -> None:
    server.script(
        reply(
            call("", name="read"),  # the name first, the id later
            call('{"a":1}', id="c1"),
            call("{}", id="c2", name="read"),  # another call on the same index
            call("", id="c2", name=""),  # the id again, an empty name
            call("{}", index=None, name="list"),  # neither index nor id
            *finish("stop"),
        )
    )
    assert await answer(fast) == [
        ToolCallChunk(0, "", "read", ""),
        ToolCallChunk(0, "c1", "", '{"a":1}'),
        ToolCallChunk(0, "c2", "read", "{}"),
        ToolCallChunk(0, "c2", "", ""),
        ToolCallChunk(0, "", "list", "{}"),
        FinishChunk(FinishReason.TOOL_CALLS),  # "stop" after calls means calls
    ]


async def test_arguments_as_an_object_become_json_text(server: ModelServer, fast: OpenAIModel) -> None:
    fragment = {"index": 0, "id": "c1", "function": {"name": "read", "arguments": {"name": "a"}}}
    server.script(reply(chunk({"tool_calls": [fragment]}), *finish("tool_calls")))
    assert (await answer(fast))[0] == ToolCallChunk(0, "c1", "read", '{"name":"a"}')


# How an answer ends


async def test_length_is_told(server: ModelServer, fast: OpenAIModel) -> None:
    server.script(reply(*text("half an"), *finish("length")))
    assert (await answer(fast))[-1] == FinishChunk(FinishReason.LENGTH)


async def test_a_filter_in_mid_answer_keeps_the_text(server: ModelServer, fast: OpenAIModel) -> None:
    server.script(reply(*text("half an"), *finish("content_filter")))
    chunks = await answer(fast)
    assert (said(chunks), chunks[-1]) == ("half an", FinishChunk(FinishReason.CONTENT_FILTER))


async def test_a_filter_that_lets_nothing_through_is_a_refusal(server: ModelServer, fast: OpenAIModel) -> None:
    server.script(reply(*finish("content_filter")))
    with pytest.raises(ModelRefused):
        await answer(fast)


async def test_a_refusal_is_the_models_own_text(server: ModelServer, fast: OpenAIModel) -> None:
    server.script(reply(chunk({"refusal": "I can't "}), chunk({"refusal": "do that."}), *finish("stop")))
    chunks = await answer(fast)
    assert (said(chunks), chunks[-1]) == ("I can't do that.", FinishChunk(FinishReason.CONTENT_FILTER))


@pytest.mark.parametrize("cut", [Cut(), Cut(reset=True)])
async def test_a_cut_stream_keeps_what_came_and_is_a_stream_cut(
    server: ModelServer, model: OpenAIModel, cut: Cut
) -> None:
    gate = threading.Event()
    server.script(reply(*text("half an"), Gate(gate), cut))
    chunks: list[Chunk] = []
    with pytest.raises(StreamCut):
        async for c in model.stream(asking()):
            chunks.append(c)
            if said(chunks) == "half an":
                gate.set()
    assert said(chunks) == "half an"
    assert len(server.requests) == 1


async def test_a_stream_that_ends_early_but_cleanly_is_cut_too(server: ModelServer, fast: OpenAIModel) -> None:
    server.script(reply(*text("half an")))
    with pytest.raises(StreamCut):
        await answer(fast)


async def test_a_cut_after_the_finish_reason_is_no_error(server: ModelServer, fast: OpenAIModel) -> None:
    server.script(reply(*text("ok"), chunk({}, finish="stop"), Cut()))
    assert await answer(fast) == [TextChunk("ok"), FinishChunk(FinishReason.STOP)]


async def test_an_error_inside_the_stream_after_text_is_a_stream_cut(server: ModelServer, fast: OpenAIModel) -> None:
    server.script(reply(*text("half"), Data({"error": {"message": "overloaded", "code": 503}})))
    with pytest.raises(StreamCut):
        await answer(fast)


@pytest.mark.parametrize(
    "event",
    [
        Data({"error": {"message": "Context size has been exceeded.", "type": "server_error", "code": 500}}),
        Raw(b'error: {"code":400,"message":"too big","type":"exceed_context_size_error"}\n\n'),
    ],
)
async def test_a_window_error_inside_the_stream_is_recognised(
    server: ModelServer, fast: OpenAIModel, event: Data | Raw
) -> None:
    server.script(reply(event))
    with pytest.raises(ContextTooLong):
        await answer(fast)


# Retries, only before the first token


async def test_busy_is_waited_for_as_long_as_the_server_says(server: ModelServer, model: OpenAIModel) -> None:
    server.script(error(429, "slow down", headers={"Retry-After": "0.05"}), reply(*text("ok"), *finish()))
    chunks = await answer(model)
    assert chunks[0] == RetryChunk(delay_s=0.05, reason="model_busy")
    assert said(chunks) == "ok"
    first, second = server.requests
    assert second.at - first.at >= 0.05


async def test_a_wait_that_is_too_long_is_not_waited(server: ModelServer, fast: OpenAIModel) -> None:
    server.script(error(429, "slow down", headers={"Retry-After": "3600"}))
    with pytest.raises(ModelBusy) as caught:
        await answer(fast)
    assert caught.value.retry_after_s == 3600
    assert len(server.requests) == 1


async def test_a_failing_server_is_tried_again_with_growing_waits_and_then_given_up(server: ModelServer) -> None:
    model = build(server, retries=2)
    server.script(*[error(status, "down") for status in (500, 502, 503)])
    delays: list[float] = []
    with pytest.raises(ModelUnavailable) as caught:
        async for c in model.stream(asking()):
            assert isinstance(c, RetryChunk)
            delays.append(c.delay_s)
    await close_clients()
    assert delays == [0.25, 0.5]  # jitter 0 halves them
    assert "(503)" in caught.value.message


async def test_a_server_that_cannot_be_reached_says_which_setting(server: ModelServer) -> None:
    model = build(server, base_url="http://127.0.0.1:9/v1", retries=0)
    with pytest.raises(ModelUnavailable, match="OPENAI_BASE_URL"):
        await answer(model)
    await close_clients()


@pytest.mark.parametrize("transport", ["aiohttp", "httpx"])
async def test_a_connection_cut_before_the_first_token_is_tried_again(server: ModelServer, transport: str) -> None:
    model = build(server, transport=transport)
    server.script(reply(Raw(b": hello\n\n"), Cut()), reply(*text("ok"), *finish()))
    chunks = await answer(model)
    await close_clients()
    assert [type(c) for c in chunks[:1]] == [RetryChunk]
    assert said(chunks) == "ok"


async def test_a_silent_model_is_given_up_after_the_read_timeout(server: ModelServer) -> None:
    model = build(server, read_s=0.5)
    server.script(reply(Hang()))
    with pytest.raises(ModelUnavailable, match="in time"):
        await answer(model)
    await close_clients()
    await asyncio.to_thread(server.wait_for, 1)
    assert len(server.chats) == 1  # not asked again: that would double the wait


async def test_a_model_that_falls_silent_in_mid_answer_is_a_stream_cut(server: ModelServer) -> None:
    model = build(server, read_s=1.0)  # enough for the half, whatever else the machine does
    server.script(reply(*text("half"), Hang()))
    with pytest.raises(StreamCut):
        await answer(model)
    await close_clients()


async def test_keep_alive_comments_do_not_outlive_the_total_time(server: ModelServer) -> None:
    model = build(server, total_s=1.0)
    server.script(reply(*[step for _ in range(200) for step in (Raw(b": alive\n\n"), Pause(0.02))]))
    with pytest.raises(ModelUnavailable, match="too long"):
        await answer(model)
    await close_clients()
    assert await asyncio.to_thread(server.requests[0].closed.wait, WAIT_S)
    assert server.requests[0].broken


# Refused requests


@pytest.mark.parametrize(
    ("status", "setting"), [(401, "OPENAI_API_KEY"), (403, "OPENAI_API_KEY"), (404, "OPENAI_BASE_URL")]
)
async def test_a_refused_key_or_model_names_the_setting_and_not_the_key(
    server: ModelServer, fast: OpenAIModel, status: int, setting: str
) -> None:
    server.script(error(status, f"Incorrect API key provided: {KEY}"))
    with pytest.raises(ModelError, match=setting) as caught:
        await answer(fast)
    assert KEY not in caught.value.message
    assert len(server.requests) == 1


async def test_a_bad_request_shows_what_the_server_said_but_no_key(server: ModelServer, fast: OpenAIModel) -> None:
    server.script(error(400, f"'messages' is wrong\nfor {KEY}"))
    with pytest.raises(ModelError) as caught:
        await answer(fast)
    assert "'messages' is wrong for [key]" in caught.value.message


async def test_an_empty_account_is_not_asked_again(server: ModelServer, fast: OpenAIModel) -> None:
    server.script(error(429, "You exceeded your current quota", code="insufficient_quota"))
    with pytest.raises(ModelError, match="quota"):
        await answer(fast)


async def test_a_web_page_instead_of_a_model_names_the_setting(server: ModelServer, fast: OpenAIModel) -> None:
    server.script(Reply(headers={"Content-Type": "text/html; charset=utf-8"}, steps=(Raw(b"<html>welcome</html>"),)))
    with pytest.raises(ModelError, match="OPENAI_BASE_URL"):
        await answer(fast)


async def test_azures_filter_on_the_prompt_is_a_refusal(server: ModelServer, fast: OpenAIModel) -> None:
    server.script(error(400, "filtered", code="content_filter", innererror={"code": "ResponsibleAIPolicyViolation"}))
    with pytest.raises(ModelRefused):
        await answer(fast)


@pytest.mark.parametrize("status", [400, 500])
async def test_a_request_that_does_not_fit_is_recognised_and_not_sent_again(
    server: ModelServer, fast: OpenAIModel, status: int
) -> None:
    server.script(error(status, "the request exceeds the available context size"))
    with pytest.raises(ContextTooLong):
        await answer(fast)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("refusal", "gone", "instead"),
    [
        ("Unrecognized request argument supplied: stream_options", "stream_options", None),
        (
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
            "max_tokens",
            "max_completion_tokens",
        ),
        ("Unsupported value: 'temperature' does not support 0.2", "temperature", None),
    ],
)
async def test_a_refused_option_is_left_out_once_and_for_all(
    server: ModelServer, fast: OpenAIModel, refusal: str, gone: str, instead: str | None
) -> None:
    ok = reply(*text("ok"), *finish())
    server.script(error(400, refusal), ok, ok)
    request = asking(max_tokens=9, temperature=0.2)
    assert said(await answer(fast, request)) == "ok"
    assert said(await answer(fast, request)) == "ok"
    first, second, third = (r.body for r in server.requests)
    assert gone in first
    assert gone not in second and gone not in third
    assert instead is None or second[instead] == 9


async def test_a_server_that_refuses_for_ever_is_not_asked_for_ever(server: ModelServer, fast: OpenAIModel) -> None:
    server.script(*[error(400, "stream_options is wrong")] * 3)
    with pytest.raises(ModelError):
        await answer(fast)
    assert len(server.requests) == 2


def test_retry_after_is_understood_as_seconds_and_as_a_date() -> None:
    now = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
    assert openai_errors.retry_after_s({"retry-after": "7"}, now=now) == 7
    assert openai_errors.retry_after_s({"retry-after-ms": "250", "retry-after": "7"}, now=now) == 0.25
    assert openai_errors.retry_after_s({"retry-after": "Thu, 01 Jan 2026 12:00:30 GMT"}, now=now) == 30
    assert openai_errors.retry_after_s({"retry-after": "Thu, 01 Jan 2026 11:00:00 GMT"}, now=now) == 0
    assert openai_errors.retry_after_s({"retry-after": "soon"}, now=now) is None


# Cancelling


async def test_closing_the_iterator_closes_the_stream_at_the_server(server: ModelServer, model: OpenAIModel) -> None:
    server.script(reply(*text("half"), Hang()))
    stream = model.stream(asking())
    assert await anext(stream) == TextChunk("half")
    await stream.aclose()
    assert await asyncio.to_thread(server.requests[0].closed.wait, WAIT_S)
    assert server.requests[0].broken


@pytest.mark.parametrize("steps", [(Hang(),), (*text("half"), Hang())])
async def test_cancelling_the_task_closes_the_stream_at_the_server(
    server: ModelServer, model: OpenAIModel, steps: tuple[Any, ...]
) -> None:
    server.script(reply(*steps))
    task = asyncio.create_task(answer(model))
    await asyncio.to_thread(server.wait_for, 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.requests[0].closed.wait, WAIT_S)
    assert server.requests[0].broken


async def test_many_streams_share_one_client(server: ModelServer, model: OpenAIModel) -> None:
    answers = await asyncio.gather(*(answer(model) for _ in range(20)))
    assert {said(a)[:15] for a in answers} == {"The answer come"}
    assert len(server.requests) == 20


async def test_a_connection_is_used_again_after_an_answer(server: ModelServer, model: OpenAIModel) -> None:
    for _ in range(3):
        await answer(model)
    assert len({r.connection for r in server.requests}) == 1


async def test_a_server_that_does_not_hang_up_after_done_delays_nobody(server: ModelServer, fast: OpenAIModel) -> None:
    server.script(reply(*text("ok"), *finish(), Hang()))
    async with asyncio.timeout(5):
        assert (await answer(fast))[-1] == FinishChunk(FinishReason.STOP)


@pytest.mark.parametrize(
    "garbage", ["not json", "[]", "null", '{"choices": "x"}', '{"choices": [null]}', '{"choices": [{"delta": "x"}]}']
)
async def test_what_is_no_chat_completion_is_an_error_of_the_model(server: ModelServer, garbage: str) -> None:
    model = build(server, retries=0)
    server.script(reply(Data(garbage)))
    with pytest.raises(ModelUnavailable, match="no chat completion"):
        await answer(model)
    await close_clients()
