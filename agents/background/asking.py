"""A model asked by a job, and the call booked: whatever comes of it, it was paid for."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from time import monotonic

from agents import wiring
from agents.runtime.context.digests import request_sha256
from agents.runtime.errors import RunError
from agents.runtime.model import (
    NO_USAGE,
    FinishChunk,
    FinishReason,
    Model,
    ModelRequest,
    TextChunk,
    ToolCall,
    ToolCallChunk,
    UsageChunk,
)
from agents.runtime.session import ModelCall, PartRef
from agents.runtime.toolcalls import CallAssembler
from agents.stores import modelcalls
from agents.stores.db import in_thread


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    """Whom a call is for. session_id: None = no conversation caused it. run_id: the client's name of the run that did.

    purpose: of models.ModelCall. parts: where the request comes from. timeout_s: of the whole call.
    """

    owner_id: int
    session_id: int | None
    run_id: str
    purpose: str
    parts: Sequence[PartRef]
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a model said. error_code: "" = it came to its end, whatever `finish` says of that."""

    text: str
    calls: tuple[ToolCall, ...]
    finish: FinishReason
    error_code: str


async def ask(model: Model, asked: ModelRequest, booking: Booking) -> Answer:
    """Return the model's answer, booked. Fails only if the booking does."""
    started, started_at = monotonic(), wiring.now()
    first: float | None = None
    text: list[str] = []
    calls = CallAssembler(wiring.new_id)
    usage, finish, error_code = NO_USAGE, FinishReason.ERROR, ""
    try:
        async with asyncio.timeout(booking.timeout_s), aclosing(model.stream(asked)) as chunks:  # type: ignore[type-var]  # every provider's stream is a generator
            async for chunk in chunks:
                match chunk:
                    case TextChunk() | ToolCallChunk():
                        first = first or monotonic()
                        if isinstance(chunk, ToolCallChunk):
                            calls.feed(chunk)
                        else:
                            text.append(chunk.text)
                    case UsageChunk(usage=reported):
                        usage = reported
                    case FinishChunk(reason=reason):
                        finish = reason
                    case _:
                        pass
    except RunError as error:
        error_code = error.code
    except TimeoutError:
        error_code = "timeout"
    calls.finish()
    call = ModelCall(
        id=wiring.new_id(),
        run_id=booking.run_id,
        invocation_id="",
        purpose=booking.purpose,
        provider=model.info.provider,
        model=model.info.name,
        usage=usage,
        ttft_ms=None if first is None else (first - started) * 1000,
        latency_ms=(monotonic() - started) * 1000,
        finish_reason=finish.value,
        error_code=error_code,
        parts=tuple(booking.parts),
        request_sha256=request_sha256(asked),
        started_at=started_at,
    )
    session_id = None if booking.session_id is None else str(booking.session_id)
    wiring.metrics().of_run(session_id or "", call.run_id).model_called(call)
    await in_thread(modelcalls.record)(owner_id=booking.owner_id, session_id=session_id, call=call)
    return Answer(text="".join(text), calls=calls.calls(), finish=finish, error_code=error_code)
