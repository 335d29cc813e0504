"""Models behind an OpenAI-compatible chat completions endpoint: OpenAI, Azure, vLLM, llama.cpp, Ollama and the like.

The SDK makes the request; its body is read as raw bytes, since typed chunks cost three times the rest of a run's path
(docs/architecture.md). One client, and so one connection pool, serves all models of an endpoint in one event loop.

What a refusal becomes: text under `refusal` is the model speaking, so it is kept as the answer's text, and the finish
reason is CONTENT_FILTER. A filter that cuts a running answer gives the text so far and CONTENT_FILTER. A filter that
lets nothing through raises ModelRefused.
"""

import asyncio
import contextlib
import random
import ssl
import weakref
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

import aiohttp
import httpx2
import openai
import orjson

from agents.providers import openai_errors, openai_windows
from agents.providers.openai_chunks import AnswerReader, window_of
from agents.providers.openai_request import Dialect, Files, body_of
from agents.providers.sse import EventParser, EventTooLarge
from agents.runtime.errors import ContextTooLong, ModelBusy, ModelError, ModelUnavailable, RunError, StreamCut
from agents.runtime.model import Chunk, ModelInfo, ModelRequest, RetryChunk

UNREACHABLE = "The model server could not be reached. Check OPENAI_BASE_URL and that the server runs."
NOT_A_MODEL_SERVER = "What answered is no OpenAI-compatible model server. Check OPENAI_BASE_URL."
GOODBYE_S = 0.1
FIRST_BACKOFF_S = 0.5
MAX_BACKOFF_S = 8.0

_HEADERS = {"Accept": "text/event-stream", "Accept-Encoding": "identity"}  # small pieces: packing only delays them

# What breaks while a body is read; the aiohttp transport lets some of its own errors through.
_BROKEN = (httpx2.RequestError, httpx2.StreamError, aiohttp.ClientError, ssl.SSLError, ConnectionError, EventTooLarge)
_FAILURES = (openai.APIStatusError, openai.APIConnectionError, *_BROKEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A model server and how patient we are with it. Times in seconds.

    api_key: "" for a server that wants none. connect_s: until the connection stands. read_s: until the first piece of
    the body and between two, keep-alive comments included. total_s: of one answer; looked at with each piece, so that
    an answer ends at most read_s later. retries: after the first try. retry_after_cap_s: a server that asks for more is
    not waited for. transport: httpx where a proxy or certificate set-up is out of aiohttp's reach.
    """

    base_url: str
    api_key: str = ""
    connect_s: float = 10.0
    read_s: float = 120.0
    total_s: float = 900.0
    retries: int = 3
    retry_after_cap_s: float = 30.0
    transport: Literal["aiohttp", "httpx"] = "aiohttp"


_clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Endpoint, openai.AsyncOpenAI]] = (
    weakref.WeakKeyDictionary()
)


def client_of(endpoint: Endpoint) -> openai.AsyncOpenAI:
    """Return the client of the endpoint in the running loop; a connection pool cannot leave its loop."""
    clients = _clients.setdefault(asyncio.get_running_loop(), {})
    if endpoint not in clients:
        timeout = httpx2.Timeout(endpoint.read_s, connect=endpoint.connect_s, pool=endpoint.connect_s)
        http = openai.DefaultAioHttpClient if endpoint.transport == "aiohttp" else openai.DefaultAsyncHttpxClient
        clients[endpoint] = openai.AsyncOpenAI(
            base_url=endpoint.base_url,
            api_key=endpoint.api_key or "none",
            max_retries=0,
            timeout=timeout,
            http_client=http(timeout=timeout),
        )
    return clients[endpoint]


def forget() -> None:
    """Know nothing of any server: for tests, where another may listen at the address of one that is gone."""
    _dialects.clear()
    openai_windows.forget()


async def close_clients() -> None:
    """Close the connections of the running loop: at the end of a process, a job's loop or a test."""
    await openai_windows.close()
    for client in _clients.pop(asyncio.get_running_loop(), {}).values():
        await client.close()


class OpenAIModel:
    """A `Model` (agents.runtime.model) at an endpoint. Safe for many calls at once.

    files: the bytes of a FilePart, asked for images only. Raises ArtifactMissing. now and jitter (0 to 1): for waiting.
    """

    def __init__(
        self,
        *,
        info: ModelInfo,
        endpoint: Endpoint,
        files: Files,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._info = info
        self._endpoint = endpoint
        self._files = files
        self._now = now
        self._jitter = jitter
        self._dialect = _dialects.setdefault((endpoint.base_url, info.name), Dialect())

    @property
    def info(self) -> ModelInfo:
        """Return what is known; a window that no setting names comes from the server's list, once it was asked."""
        if self._info.window_tokens is None:
            window = openai_windows.told(self._endpoint.base_url, self._info.name)
            return replace(self._info, window_tokens=window)
        return self._info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Yield the answer's chunks; see the protocol. No UsageChunk comes if the server tells no usage."""
        failed = 0
        while True:
            reader = AnswerReader(self._dialect)
            try:
                async with contextlib.aclosing(self._answer(request, reader)) as chunks:
                    async for chunk in chunks:
                        yield chunk
                if self._info.window_tokens is None:
                    openai_windows.ask_once(self._endpoint.base_url, self.list_models)
                return
            except _AskAgain:
                continue
            except (ModelBusy, ModelUnavailable) as e:
                if reader.began:
                    raise StreamCut() from e
                failed += 1
                delay_s = self._delay_s(failed, e)
                if delay_s is None:
                    raise
                reason = e.code
            yield RetryChunk(delay_s=delay_s, reason=reason)
            await asyncio.sleep(delay_s)

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """Return what the server offers, with the window where it tells one. Raises ModelError, ModelUnavailable."""
        try:
            response = await client_of(self._endpoint).models.with_raw_response.list()
            found = orjson.loads(response.content)
        except openai.APIStatusError as e:
            raise self._from_status(e) from None
        except (openai.APIConnectionError, *_BROKEN) as e:
            raise ModelUnavailable(UNREACHABLE) from e
        except orjson.JSONDecodeError as e:
            raise ModelError(NOT_A_MODEL_SERVER) from e
        entries = found.get("data") if isinstance(found, dict) else found
        if not isinstance(entries, list):
            raise ModelError(NOT_A_MODEL_SERVER)
        return tuple(
            ModelInfo(name=entry["id"], provider=self._info.provider, window_tokens=window_of(entry))
            for entry in entries
            if isinstance(entry, dict) and isinstance(entry.get("id"), str)
        )

    async def _answer(self, request: ModelRequest, reader: AnswerReader) -> AsyncGenerator[Chunk, None]:
        """Ask once and yield what comes. Raises _AskAgain; ModelBusy and ModelUnavailable also in mid-answer."""
        body = await body_of(request, info=self._info, dialect=self._dialect, files=self._files)
        clock = asyncio.get_running_loop().time
        ends_at = clock() + self._endpoint.total_s
        completions = client_of(self._endpoint).chat.completions.with_streaming_response
        try:
            # extra_body: the SDK would otherwise walk through every message to transform it
            async with completions.create(
                model=self._info.name, messages=[], stream=True, extra_body=body, extra_headers=_HEADERS
            ) as response:
                parser = EventParser()
                pieces = aiter(_pieces(response.http_response))
                async for piece in pieces:
                    for event in parser.feed(piece):
                        for chunk in self._read(event, reader):
                            yield chunk
                    if reader.done:
                        await _read_out(pieces)
                        break
                    if clock() > ends_at:
                        raise _TooSlow("The model took too long.")
                for event in parser.close():
                    for chunk in self._read(event, reader):
                        yield chunk
        except _FAILURES as e:
            if (failure := self._failure(e, reader)) is not None:
                # a refused request may repeat the key; its text goes no further, not into a log either
                raise failure from None if isinstance(e, openai.APIStatusError) else e
        for chunk in reader.end():
            yield chunk

    def _failure(self, e: Exception, reader: AnswerReader) -> Exception | None:
        """Return what a failed exchange means, or None if all was said and only the goodbye is missing."""
        if isinstance(e, openai.APIStatusError):
            message, codes = openai_errors.error_fields(e.body)
            if e.status_code in (400, 422) and self._dialect.learn(f"{codes} {message}"):
                return _AskAgain()
            return self._from_status(e)
        if reader.finished:
            return None
        if isinstance(e, openai.APITimeoutError | httpx2.ReadTimeout):
            return _slow(e)
        if isinstance(e, openai.APIConnectionError):
            return ModelUnavailable(UNREACHABLE)
        return ModelUnavailable("The connection to the model server broke.")

    def _read(self, event: bytes, reader: AnswerReader) -> Sequence[Chunk]:
        if event == b"[DONE]":
            reader.done = True
            return ()
        try:
            value = orjson.loads(event)
            if value.get("error") or "choices" not in value:
                self._check(value)
            return reader.read(value)
        except (AttributeError, KeyError, TypeError, ValueError) as e:  # no JSON, or JSON of another shape
            raise ModelUnavailable("The model server sent something that is no chat completion.") from e

    def _check(self, value: dict[str, Any]) -> None:
        """Raise the error that came in place of an answer, if it is one. `error: {...}` lines carry it bare."""
        if value.get("error") or ("message" in value and "code" in value):
            raise openai_errors.from_stream(value, model=self._info.name, now=self._now())

    def _from_status(self, e: openai.APIStatusError) -> RunError:
        headers = {k.lower(): v for k, v in e.response.headers.items()}
        error = openai_errors.from_status(e.status_code, e.body, headers, model=self._info.name, now=self._now())
        if isinstance(error, ContextTooLong):
            said, _ = openai_errors.error_fields(e.body)
            openai_windows.learn(self._endpoint.base_url, self._info.name, said)
        return error

    def _delay_s(self, failed: int, error: ModelBusy | ModelUnavailable) -> float | None:
        """Return how long to wait before the next try, or None for: no more."""
        if failed > self._endpoint.retries or isinstance(error, _TooSlow):
            return None
        asked = error.retry_after_s
        if asked is not None:
            return asked if asked <= self._endpoint.retry_after_cap_s else None
        most: float = min(FIRST_BACKOFF_S * 2 ** (failed - 1), MAX_BACKOFF_S)
        return most * (0.5 + self._jitter() / 2)


_dialects: dict[tuple[str, str], Dialect] = {}


class _AskAgain(Exception):
    """The server refused an option; the dialect has learned it."""


class _TooSlow(ModelUnavailable):
    """The model did not answer in time."""  # not tried again: the person has waited long enough


def _slow(e: Exception) -> ModelUnavailable:
    """Return the error of a time-out: a connection that never stood may be tried again, a silent model not."""
    cause = e.__cause__ if isinstance(e, openai.APITimeoutError) else e
    return (
        ModelUnavailable(UNREACHABLE) if isinstance(cause, httpx2.ConnectTimeout | httpx2.PoolTimeout) else _TooSlow()
    )


def _pieces(response: httpx2.Response) -> AsyncIterable[bytes]:
    """Return the body as it arrives; an answer without streaming comes as one event. Raises ModelError."""
    kind = response.headers.get("content-type", "")
    if kind.startswith("text/html"):
        raise ModelError(NOT_A_MODEL_SERVER)
    if kind.startswith("application/json"):
        return _as_event(response)
    if response.headers.get("content-encoding", "identity") != "identity":
        return response.aiter_bytes()
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    return response.stream  # what aiter_raw() gives, without its two generators around each piece


async def _read_out(pieces: AsyncIterator[bytes]) -> None:
    """Read the end of a body that has told all: only then is its connection used again."""
    with contextlib.suppress(TimeoutError, *_BROKEN):
        async with asyncio.timeout(GOODBYE_S):
            async for _ in pieces:
                pass


async def _as_event(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    body = await response.aread()
    yield b"data: " + b" ".join(body.splitlines()) + b"\n\ndata: [DONE]\n\n"
