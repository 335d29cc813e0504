"""What refusals of model servers mean, by samples of how each server words them."""

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from agents.providers.openai_errors import TOO_LONG, from_status, from_stream
from agents.runtime.errors import ContextTooLong, ModelBusy, ModelError, ModelUnavailable, RunError

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def error(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


# (status, body) per server; shapes and wordings as people reported them
SAMPLES: dict[str, tuple[tuple[int, Any], ...]] = {
    "OpenAI": (
        (400, error("This model's maximum context length is 8192 tokens.", code="context_length_exceeded")),
        (400, error("Your input exceeds the context window of this model.", code="invalid_request_error")),
        (400, error("Input tokens exceed the configured limit of 272000 tokens.", type="invalid_request_error")),
    ),
    "Azure": (
        (400, error("Too many tokens.", param="messages", code="context_length_exceeded")),
        (400, error("This model's maximum context length is 128000 tokens. However, you requested 1124171 tokens.")),
    ),
    "vLLM": (
        (400, {"object": "error", "message": "This model's maximum context length is 2048 tokens.", "code": 400}),
        (400, error("The decoder prompt (length 9) is longer than the maximum model length of 8.", code=400)),
        (400, error("The decoder prompt (length 5747) is longer than max_model_len of 4096.", code=400)),
        (400, {"message": "The prompt (total length 9) is too long to fit into the model (context length 8)."}),
    ),
    "llama.cpp": (
        (400, error("request (9 tokens) exceeds the available context size (8 tokens)", code=400)),
        (400, error("too big", type="exceed_context_size_error", n_prompt_tokens=1407, n_ctx=256)),
        (500, error("Context size has been exceeded.", type="server_error", code=500)),
        (500, {"detail": "Requested tokens (2285) exceed context window of 2048"}),
    ),
    "Ollama": (
        (400, error("prompt too long; exceeded max context length by 9 tokens")),
        (400, {"error": "the input length exceeds the context length"}),
        (500, {"error": "the input length exceeds the context length"}),
    ),
    "LM Studio": (
        (400, {"error": "Trying to keep the first 9 tokens when context the overflows. However, ..."}),
        (400, error("The number of tokens to keep from the initial prompt is greater than the context length.")),
        (400, {"error": "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)"}),
        (400, error("Context length exceeded")),
    ),
    "Anthropic": (
        (400, error("prompt is too long: 210000 tokens > 200000 maximum", type="invalid_request_error")),
        (400, error("input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000")),
    ),
    "Gemini": ((400, error("The input token count (1196265) exceeds the maximum number of tokens allowed", code=400)),),
    "OpenRouter": ((400, error("This endpoint's maximum context length is 8192 tokens.", code=400)),),
}


def meaning(status: int, body: Any) -> RunError:
    return from_status(status, body, {}, model="m", now=NOW)


@pytest.mark.parametrize("server", sorted(TOO_LONG))
def test_each_server_is_understood_when_a_request_does_not_fit(server: str) -> None:
    assert SAMPLES.keys() == TOO_LONG.keys()
    for status, body in SAMPLES[server]:
        assert isinstance(meaning(status, body), ContextTooLong), body
        # inside a stream no status tells what it is, LM Studio answers 200 before it knows
        assert isinstance(from_stream(body, model="m", now=NOW), ContextTooLong), body


def test_each_wording_of_a_server_has_its_sample() -> None:
    unused = [
        (server, pattern)
        for server, patterns in TOO_LONG.items()
        for pattern in patterns
        if not any(re.search(pattern, json.dumps(body), re.IGNORECASE) for _, body in SAMPLES[server])
    ]
    assert unused == []


def test_a_body_that_is_too_large_for_the_way_does_not_fit_either() -> None:
    assert isinstance(meaning(413, "<html>Request Entity Too Large</html>"), ContextTooLong)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, error("Request too large on tokens per min (TPM): Limit 30000, Requested 40000"), ModelBusy),
        (429, error("Rate limit reached: context deadline", code="rate_limit_exceeded"), ModelBusy),
        (400, error("max_tokens must be at least 1", code="invalid_request_error"), ModelError),
        (400, error("The context parameter is deprecated."), ModelError),
        (500, error("context canceled"), ModelUnavailable),
        (503, error("Loading model"), ModelUnavailable),
    ],
)
def test_other_refusals_are_not_taken_for_it(status: int, body: Any, kind: type[RunError]) -> None:
    assert type(meaning(status, body)) is kind
