"""Calls to models, for the books and the inspector."""

from typing import Any

import orjson
from django.utils import timezone

from agents.models import model_call
from agents.models.run import Run
from agents.models.session import Session
from agents.runtime.session import ModelCall, PartRef
from agents.stores import events

LAST_RUNS = 5


def row(call: ModelCall, *, run_key: int) -> bytes:
    """Return the call as the writer's statement reads it."""
    text, _, _ = events.dump_json(
        {
            "run": run_key,
            "id": call.id,
            "invocation_id": call.invocation_id,
            "purpose": call.purpose,
            "provider": call.provider,
            "model": call.model,
            "prompt": call.usage.prompt,
            "cached": call.usage.cached,
            "completion": call.usage.completion,
            "reasoning": call.usage.reasoning,
            "ttft_ms": call.ttft_ms,
            "latency_ms": call.latency_ms,
            "finish_reason": call.finish_reason,
            "error_code": call.error_code,
            "parts": [dump_part(part) for part in call.parts],
            "request_sha256": call.request_sha256,
            "started_at": call.started_at,
        }
    )
    return text


def dump_part(part: PartRef) -> dict[str, Any]:
    """Return a part as JSON values, defaults left out."""
    out: dict[str, Any] = {"kind": part.kind, "ref": part.ref, "tokens": part.tokens}
    if part.tag:
        out["tag"] = part.tag
    if part.position:
        out["position"] = part.position
    if part.params:
        out["params"] = dict(part.params)
    return out


def load_part(values: dict[str, Any]) -> PartRef:
    """Return what `dump_part` wrote down."""
    return PartRef(**values)


def record(*, owner_id: int, session_id: str | None, call: ModelCall) -> None:
    """Store a call that no running run made, such as a job's. A call met again is stored once.

    Nothing is stored for a session that is not the owner's. Sync, inside the caller's transaction.
    """
    if session_id is not None and not Session.objects.of(owner_id).filter(pk=session_id).exists():
        return
    run = None
    if session_id is not None and call.run_id:
        run = Run.objects.of(owner_id).filter(session_id=session_id, client_id=call.run_id).first()
    parts: list[dict[str, Any]] = orjson.loads(events.dump_json({"parts": [dump_part(p) for p in call.parts]})[0])[
        "parts"
    ]
    model_call.ModelCall.objects.of(owner_id).get_or_create(
        call_id=call.id,
        defaults={
            "owner_id": owner_id,
            "session_id": session_id,
            "run": run,
            "invocation_id": call.invocation_id,
            "purpose": call.purpose,
            "provider": call.provider,
            "model": call.model,
            "prompt_tokens": call.usage.prompt,
            "cached_tokens": call.usage.cached,
            "completion_tokens": call.usage.completion,
            "reasoning_tokens": call.usage.reasoning,
            "ttft_ms": call.ttft_ms,
            "latency_ms": call.latency_ms,
            "finish_reason": call.finish_reason,
            "error_code": call.error_code,
            "parts": parts,
            "request_sha256": call.request_sha256,
            "started_at": call.started_at or timezone.now(),
        },
    )


def of_run(*, owner_id: int, run_key: int) -> list[model_call.ModelCall]:
    """Return the calls of one run in the order they were stored; [] if the run is not the owner's."""
    return list(model_call.ModelCall.objects.of(owner_id).filter(run_id=run_key).order_by("id"))


def last_chat(*, owner_id: int, session_id: int) -> model_call.ModelCall | None:
    """Return the last call that was made for an answer of this session, with its parts; None if there is none.

    Of the last runs only: one that failed before it called leaves it to those before.
    """
    runs = Run.objects.of(owner_id).filter(session_id=session_id).order_by("-id").values("pk")[:LAST_RUNS]
    calls = model_call.ModelCall.objects.of(owner_id).filter(run__in=runs, purpose=model_call.ModelCall.Purpose.CHAT)
    return calls.order_by("-id").first()
