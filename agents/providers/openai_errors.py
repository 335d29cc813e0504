"""What a failed request to an OpenAI-compatible server means: its answer in, our error out.

Messages are safe to show: they name the setting to look at, and no key, header or address.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from agents.runtime.errors import (
    ContextTooLong,
    ModelBusy,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    RunError,
)

RETRYABLE_STATUS = frozenset({408, 409, 425, 429})
MAX_DETAIL_CHARS = 300

# How each server says that a request is longer than the model's window: in code, type or message, in any case. Gathered
# from public reports, as is the sample of each in tests/agents/test_openai_errors.py.
TOO_LONG: dict[str, tuple[str, ...]] = {
    "OpenAI": (
        r"context_length_exceeded",
        r"maximum context length",
        r"exceeds the context window",
        r"input tokens exceed the configured limit",
    ),
    "Azure": (r"context_length_exceeded", r"maximum context length"),
    "vLLM": (
        r"maximum context length",
        r"longer than the maximum model length",
        r"max_model_len",
        r"too long to fit into the model",
    ),
    "llama.cpp": (
        r"exceed_context_size_error",
        r"exceeds the available context size",
        r"context size has been exceeded",
        r"exceed context window of",  # its Python server
    ),
    "Ollama": (r"exceeded max context length", r"input length exceeds (?:the |maximum )?context length"),
    "LM Studio": (
        r"greater than the context length",
        r"when context the overflows",
        r"cannot truncate prompt with n_keep",
        r"context (?:length|window|size) (?:was |is |has been )?exceeded",
    ),
    "Anthropic": (r"prompt is too long", r"exceed context limit"),
    "Gemini": (r"input token count .* exceeds the maximum",),
    "OpenRouter": (r"maximum context length",),
}
_TOO_LONG = re.compile("|".join(sorted({p for patterns in TOO_LONG.values() for p in patterns})), re.IGNORECASE)
_FILTERED = re.compile(r"content_filter|content_policy_violation|ResponsibleAIPolicyViolation", re.IGNORECASE)
_NO_QUOTA = re.compile(r"insufficient_quota|billing_hard_limit|credit balance", re.IGNORECASE)
_STATUS = re.compile(r"\b[45]\d\d\b")
_SECRET = re.compile(r"\b(?:sk|key|Bearer)[-_ ][\w*.-]{6,}")


def error_fields(body: Any) -> tuple[str, str]:
    """Return (message, code and type as one text) of an error body in any of the shapes servers use."""
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        if isinstance(inner, str):
            return inner, ""
        if isinstance(inner, Mapping):
            message = inner.get("message") or inner.get("detail") or body.get("detail") or ""
            codes = [inner.get("code"), inner.get("type")]
            if isinstance(nested := inner.get("innererror"), Mapping):
                codes.append(nested.get("code"))
            return str(message), " ".join(str(c) for c in codes if c)
    return (body, "") if isinstance(body, str) else ("", "")


def from_status(status: int, body: Any, headers: Mapping[str, str], *, model: str, now: datetime) -> RunError:
    """Return the error for an answer with a status of 400 or more."""
    message, codes = error_fields(body)
    said = f"{codes} {message}"
    if status == 413 or _TOO_LONG.search(said):  # with any status: llama.cpp and Ollama also answer 500
        return ContextTooLong()
    if _FILTERED.search(said) and status < 500:
        return ModelRefused()
    if status == 401:
        return ModelError("The model server did not accept the API key (401). Check OPENAI_API_KEY.")
    if status == 403:
        return ModelError(
            f"The model server does not give this key {model} (403). Check OPENAI_API_KEY, and OPENAI_MODEL or MODELS."
        )
    if status == 404:
        return ModelError(
            f"The model server does not know {model} (404). Check OPENAI_MODEL or MODELS, and OPENAI_BASE_URL."
        )
    if status == 402 or _NO_QUOTA.search(said):
        return ModelError(f"The account of this API key has no quota left ({status}). Check the account.")
    if status == 429:
        return ModelBusy("The model is busy (429).", retry_after_s=retry_after_s(headers, now=now))
    if status in RETRYABLE_STATUS or status >= 500:
        wait_s = retry_after_s(headers, now=now)
        return ModelUnavailable(f"The model server failed ({status}).{detail(message)}", retry_after_s=wait_s)
    return ModelError(f"The model server refused the request ({status}).{detail(message)}")


def from_stream(body: Any, *, model: str, now: datetime) -> RunError:
    """Return the error for an error object that came inside a stream, where no status tells what kind it is."""
    _, codes = error_fields(body)
    found = _STATUS.search(codes)
    status = int(found[0]) if found else 500
    if "rate_limit" in codes or "overloaded" in codes:
        status = 429
    return from_status(status, body, {}, model=model, now=now)


def detail(message: str) -> str:
    """Return what the server said, short, on one line and without anything that looks like a key."""
    said = _SECRET.sub("[key]", " ".join(message.split()))
    if not said:
        return ""
    return " " + (said if len(said) <= MAX_DETAIL_CHARS else said[: MAX_DETAIL_CHARS - 1] + "…")


def retry_after_s(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Return how long the server asks to wait, in seconds, or None. Both forms of Retry-After are understood.

    https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
    """
    try:
        if value := headers.get("retry-after-ms"):
            return max(0.0, float(value) / 1000)
        value = headers.get("retry-after", "").strip()
        if not value:
            return None
        if value.replace(".", "", 1).isdigit():
            return float(value)
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds())
