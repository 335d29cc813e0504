"""A summary request put behind one that was sent before, so that the provider's cache holds all but the last message.

Everything before the last message must stay as it was, byte for byte: system text, tools and their order, tool choice,
settings. What a fork shows is what the run's own model saw, preloaded memory included.

policy.fork "on": a fork is shrunk until it fits (tools, then large arguments and results), though that loses cache.
"auto": only if the summary is written by the model that answers, the provider did not say that it cached nothing, the
fork fits as it is, is long enough to be cached at all, and is at most twice as large as the standalone request: cached
tokens cost half or less. "off": never.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from agents.runtime.context import words
from agents.runtime.context.digests import tool_json
from agents.runtime.context.placeholders import short_arguments
from agents.runtime.context.window import Window, budget
from agents.runtime.events import AssistantMessage, Stored, UserMessage
from agents.runtime.model import FilePart, Message, ModelRequest, Role, TextPart, ToolSpec, text_message
from agents.runtime.policy import ContextPolicy
from agents.runtime.summaries import Summary
from agents.runtime.summary.asking import Ask
from agents.runtime.tokens import IMAGE_TOKENS, MESSAGE_TOKENS, Rates, measure

WINDOW_SHARE: Final = 0.85  # more than the share at which any agent we ship summarises, or it could never fork
RETRY_SHARE: Final = 0.5
LEAST_CACHED: Final = 1_024  # what providers begin to cache at
CACHED_COST: Final = 0.5
_PROBE_CHARS: Final = 120
_TOO_LONG: Final = (
    "context_length_exceeded",
    "context_window_exceeded",
    "context length exceeded",
    "context window exceeded",
    "maximum context length",
    "prompt is too long",
    "input is too long",
    "too many tokens",
)


def first_budget(window: Window, policy: ContextPolicy) -> int:
    """Return how many tokens a summary request may have; at least 1. Tools are part of what is counted, not of this."""
    return max(1, min(int(WINDOW_SHARE * window.tokens), budget(window, policy)))


def too_long(message: str) -> bool:
    """Return whether a provider's words say that the request was too long for its model."""
    lowered = message.lower()
    return any(sign in lowered for sign in _TOO_LONG)


def request_tokens(request: ModelRequest, rates: Rates) -> int:
    """Return about how many tokens the request has: messages, and the JSON of each tool in sorted order."""
    declared = sorted(_declared(tool) for tool in request.tools)
    return sum(_message_tokens(m, rates) for m in request.messages) + sum(rates.tokens(measure(d)) for d in declared)


def forked(parent: ModelRequest, prompt: str) -> ModelRequest:
    """Return the parent with one more message. Raises ValueError if it says nothing but its system text."""
    if all(message.role is Role.SYSTEM for message in parent.messages):
        raise ValueError("The request holds no conversation.")
    return replace(parent, messages=(*parent.messages, text_message(Role.USER, prompt)))


def build(ask: Ask, prompt: str, most: int, standalone_tokens: int) -> tuple[ModelRequest, tuple[str, ...]] | None:
    """Return the fork and what was taken out of it, None if the summary is to be asked for standalone."""
    parent = ask.parent
    if parent is None or ask.policy.fork == "off" or not shows(parent.request, ask.base, ask.events):
        return None
    try:
        request = forked(parent.request, prompt)
    except ValueError:
        return None
    if ask.policy.fork == "auto":
        tokens = request_tokens(request, ask.rates)
        cheap = LEAST_CACHED <= tokens and tokens * CACHED_COST <= standalone_tokens
        usable = not ask.policy.summary_model and parent.cached != 0
        return (request, ()) if cheap and usable and tokens <= most else None
    return shrunk(request, most, lambda r: request_tokens(r, ask.rates))


def shows(request: ModelRequest, base: Summary | None, events: Sequence[Stored]) -> bool:
    """Return whether the request holds what the summary is to stand for: the summary before, or none, and every word
    of people and models in the events. One that was tailored does not."""
    every = "\n".join(message.text for message in request.messages)
    if base is None and (words.SUMMARY_IN_SYSTEM in every or words.SUMMARY_IN_USER in every):
        return False
    probes = [_probe(base.text)] if base else []
    for stored in events:
        record = stored.record
        if isinstance(record, UserMessage):
            probes += [_probe(part.text) for part in record.parts if isinstance(part, TextPart)]
        elif isinstance(record, AssistantMessage) and not record.citations:
            probes.append(_probe(record.text))
    return all(probe in every for probe in probes)


def shrunk(
    request: ModelRequest, most: int, tokens: Callable[[ModelRequest], int]
) -> tuple[ModelRequest, tuple[str, ...]] | None:
    """Return the request made to fit and what was done, None if it cannot.

    Tools go first; then arguments and results one at a time, the biggest saving first, only where it saves.
    """
    if tokens(request) <= most:
        return request, ()
    done: list[str] = []
    if request.tools:
        request, done = replace(request, tools=()), ["tools"]
    size = tokens(request)
    savings = [
        (tokens(replace(request, messages=(message,))) - tokens(replace(request, messages=(smaller,))), i, smaller)
        for i, message in enumerate(request.messages)
        if (smaller := _omitted(message)) is not None
    ]
    for saving, i, smaller in sorted(savings, key=lambda s: (-s[0], s[1])):
        if size <= most or saving <= 0:
            break
        request = replace(request, messages=(*request.messages[:i], smaller, *request.messages[i + 1 :]))
        size -= saving
        done.append("result" if smaller.role is Role.TOOL else "arguments")
    return (request, tuple(done)) if tokens(request) <= most else None


def _omitted(message: Message) -> Message | None:
    """Return the message with its result or its arguments replaced by a marker, None if it has neither."""
    if message.role is Role.TOOL:
        note = f"[A result of {len(message.text)} characters is left out here.]"
        return replace(message, parts=(TextPart(text=note),))
    if not message.tool_calls:
        return None
    calls = tuple(
        replace(call, arguments=min(call.arguments, short_arguments(call.arguments), key=len))
        for call in message.tool_calls
    )
    return replace(message, tool_calls=calls)


def _message_tokens(message: Message, rates: Rates) -> int:
    total = MESSAGE_TOKENS + rates.tokens(measure(message.text)) + rates.tokens(measure(message.reasoning))
    for call in message.tool_calls:
        total += MESSAGE_TOKENS + rates.tokens(measure(call.name)) + rates.tokens(measure(call.arguments))
    return total + sum(IMAGE_TOKENS for part in message.parts if isinstance(part, FilePart) and part.media == "image")


def _declared(tool: ToolSpec) -> str:
    return json.dumps(tool_json(tool), ensure_ascii=False, sort_keys=True)


def _probe(text: str) -> str:
    # closing tags are escaped where a text stands inside a request
    return text.strip().partition("</")[0][:_PROBE_CHARS].strip()
