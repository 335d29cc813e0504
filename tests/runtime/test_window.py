import pytest

from agents.runtime.context.window import FORGET_S, GUESS, Tried, Window, budget, known, resolve
from agents.runtime.policy import ANALYST, ContextPolicy

PLAIN = ContextPolicy()


def window(tokens: int) -> Window:
    return Window(tokens=tokens, source="settings")


def test_half_of_what_was_refused_is_the_window_or_the_largest_that_was_answered() -> None:
    tried = Tried()
    tried.learn_answered(90_000)
    assert tried.within(window(64_000), 0.0) == window(64_000)
    tried = Tried()
    tried.learn_refused(50_000, 10.0)
    assert tried.within(window(64_000), 20.0) == Window(tokens=25_000, source="provider")
    assert tried.within(window(20_000), 20.0) == window(20_000)
    tried.learn_answered(31_000)
    assert tried.within(window(64_000), 20.0) == Window(tokens=31_000, source="provider")
    tried.learn_refused(60_000, 30.0)
    assert tried.within(window(64_000), 40.0).tokens == 31_000
    tried.learn_refused(31_000, 30.0)  # it was changed for a smaller one
    assert tried.within(window(64_000), 40.0).tokens == 15_500


def test_a_refusal_is_forgotten_after_an_hour() -> None:
    tried = Tried()
    tried.learn_refused(8_000, 0.0)
    assert tried.within(window(64_000), FORGET_S - 1).tokens == 4_000
    assert tried.within(window(64_000), FORGET_S) == window(64_000)
    tried.learn_refused(40_000, FORGET_S + 1)
    assert tried.within(window(64_000), FORGET_S + 2).tokens == 20_000


def test_the_first_who_says_something_of_a_window_is_believed() -> None:
    said = {"run": 1, "settings": 2, "model": 3, "provider": 4}
    for source in list(said):
        assert resolve("gpt-4o", **said) == Window(tokens=said.pop(source), source=source)
    assert resolve("gpt-4o") == Window(tokens=128_000, source="registry")
    assert resolve("somebody's own") == GUESS == Window(tokens=32_768, source="guess")


@pytest.mark.parametrize("nothing", [None, 0, -5])
def test_a_window_of_nothing_says_nothing(nothing: int | None) -> None:
    assert resolve("x", run=nothing, settings=nothing, provider=9_000) == Window(tokens=9_000, source="provider")


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("gpt-4", 8_192),
        ("GPT-4", 8_192),
        ("gpt-4-0613", 8_192),  # the longest known name before a mark
        ("gpt-4-32k-0613", 32_768),
        ("gpt-4-turbo-2024-04-09", 128_000),
        ("gpt-4o-mini", 128_000),
        ("gpt-4.1-nano", 1_047_576),
        ("claude-sonnet-4@20250514", 200_000),
        ("llama3.1:70b-instruct-q4_K_M", 131_072),
        ("gemma3:1b", 32_768),
        ("gemma3:27b", 131_072),
        ("openai/gpt-4o", 128_000),
        ("meta-llama/Llama-3.3-70B-Instruct", 131_072),
        ("gpt-4x", None),  # no mark between
        ("gpt", None),
        ("my-gpt-4", None),
        ("-gpt-4", None),
        ("", None),
        ("模型", None),
    ],
)
def test_a_name_is_known_exactly_or_by_its_longest_known_beginning(name: str, tokens: int | None) -> None:
    assert known(name) == tokens


def test_context_6_6_the_budget_of_a_window_and_of_a_longer_answer() -> None:
    assert budget(window(131_072), PLAIN) == 115_405
    assert budget(window(131_072), PLAIN, max_tokens=8_000) == 115_405 - 5_952
    assert budget(window(131_072), PLAIN, max_tokens=100) == 115_405


def test_context_6_7_tools_take_from_an_automatic_budget_and_not_from_an_explicit_one() -> None:
    assert budget(window(131_072), PLAIN, tools_tokens=3_000) == 112_405
    explicit = ContextPolicy(max_input_tokens=20_000)
    assert budget(window(131_072), explicit, tools_tokens=3_000) == 20_000
    assert budget(window(8_192), PLAIN, tools_tokens=9_000) == 0


def test_context_6_8_what_a_window_holds_beats_the_floor() -> None:
    assert budget(window(4_000), PLAIN) == 1_040
    assert budget(window(3_000), PLAIN) == 140
    assert budget(window(2_000), PLAIN) == 0


def test_a_ratio_lowers_the_budget_but_not_below_the_floor() -> None:
    assert budget(window(100_000), ContextPolicy(input_ratio=0.5)) == 50_000
    assert budget(window(10_000), ContextPolicy(input_ratio=0.05)) == 1_024
    assert budget(window(10_000), ContextPolicy(input_ratio=0.05, input_floor=100)) == 500
    assert budget(window(131_072), ANALYST) == 115_405
