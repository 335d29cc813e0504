"""The provider that caches prefixes, and the summariser of fixed ratio."""

import pytest

from agents.runtime.model import Message, ModelRequest, Role, TextPart, ToolCall, ToolSpec, text_message
from workbench.bench.caching import CachingModel, PrefixCache, size
from workbench.bench.shortening import Shortening, shortened

TOOL = ToolSpec(name="look", description="Look it up.")


def request(*texts: str, tools: tuple[ToolSpec, ...] = ()) -> ModelRequest:
    roles = (Role.SYSTEM, *(Role.USER if n % 2 == 0 else Role.ASSISTANT for n in range(len(texts))))
    messages = tuple(text_message(role, text) for role, text in zip(roles, texts, strict=False))
    return ModelRequest(messages=messages, tools=tools)


def test_the_same_request_is_cached_whole_in_steps() -> None:
    cache = PrefixCache()
    asked = request("You help.", "The pump. " * 600, "好的。" * 400)
    first, again = cache.read(asked), cache.read(asked)
    assert first == (size(asked), 0)
    assert again == (size(asked), size(asked) // 128 * 128)


def test_below_1024_tokens_nothing_is_cached() -> None:
    cache = PrefixCache()
    short = request("You help.", "The pump. " * 300)
    assert size(short) < 1_024
    cache.read(short)
    assert cache.read(short)[1] == 0


def test_a_difference_ends_the_prefix_in_the_middle_of_a_message() -> None:
    cache = PrefixCache()
    same = "The pump is in the second hall. " * 500
    cache.read(request("You help.", same + "It is old."))
    prompt, cached = cache.read(request("You help.", same + "It is new and was never seen before. " * 300))
    assert prompt - size(request("You help.", same)) > 1_000
    assert 0 <= size(request("You help.", same)) - cached < 200


def test_another_order_of_tools_or_another_system_text_misses() -> None:
    cache = PrefixCache()
    other = ToolSpec(name="read", description="Read a page.")
    text = "A long text. " * 1_000
    cache.read(request("You help.", text, tools=(TOOL, other)))
    assert cache.read(request("You help.", text, tools=(other, TOOL)))[1] == 0
    assert cache.read(request("You do not help.", text, tools=(TOOL, other)))[1] == 0
    assert cache.read(request("You help.", text, tools=(TOOL, other)))[1] > 3_000


def test_calls_and_their_results_are_counted() -> None:
    call = ToolCall(id="c1", name="look", arguments='{"what": "' + "x" * 400 + '"}')
    asks = Message(role=Role.ASSISTANT, tool_calls=(call,))
    returned = Message(role=Role.TOOL, parts=(TextPart(text="y" * 400),), tool_call_id="c1", name="look")
    assert size(ModelRequest(messages=(asks,))) >= 100
    assert size(ModelRequest(messages=(asks, returned))) >= 200


async def test_a_model_counts_its_calls_and_shares_its_cache() -> None:
    cache = PrefixCache()
    one, two = CachingModel(lambda r: "Yes.", cache=cache), CachingModel(lambda r: "No.", cache=cache)
    asked = request("You help.", "The pump. " * 600)
    assert (await one.ask(asked))[0] == "Yes."
    text, usage = await two.ask(asked)
    assert (text, usage.cached > 0, usage.completion > 0) == ("No.", True, True)
    assert [called.usage for called in two.calls] == [usage]


@pytest.mark.parametrize("text", ["The pump is old. It stands in hall 2.\n", "水泵很旧。它在第二车间。\n"])
def test_a_summary_has_the_length_it_is_given(text: str) -> None:
    given = request("S" * 4_000, text * 200)
    whole = size(given) - size(request("S" * 4_000))
    made = Shortening(ratio=0.2)(given)
    assert made == Shortening(ratio=0.2)(given)
    assert 0.15 < size(request(made)) / whole < 0.25
    assert size(request(Shortening(ratio=0.2, most=100)(given))) <= 120
    assert set(made) <= {*text, " "}


def test_a_text_that_is_short_enough_stays_and_markers_go() -> None:
    assert shortened("One. Two [[c:ab12]].", 100) == "One. Two ."
