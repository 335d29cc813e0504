"""Estimates of tokens against real tokenizers, and rates that calibrate on what is reported."""

import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.runtime.calibrating import Calibrator
from agents.runtime.events import AssistantMessage, RunStarted, ToolReturned, UserMessage
from agents.runtime.model import FilePart, TextPart, ToolCall, ToolSpec
from agents.runtime.tokens import (
    CALL,
    DEFAULT_RATES,
    ELEMENTS,
    IMAGE_TOKENS,
    MESSAGE,
    MESSAGE_TOKENS,
    NOTHING,
    REQUEST,
    Mix,
    Rates,
    Uncalibrated,
    estimate,
    estimate_parts,
    estimate_record,
    measure,
    measure_calls,
    measure_parts,
    measure_record,
    measure_tools,
    total,
)
from tests.bench.tokens import BAR, conversation, request, tokenizers
from tests.bench.tokentexts import CHINESE, CODE, ENGLISH, SCRIPTS, json_result

IMAGE = FilePart(artifact_id="a", version=1, name="x.png", mime="image/png", size_bytes=9, media="image")
PAPER = FilePart(artifact_id="b", version=1, name="x.pdf", mime="application/pdf", size_bytes=9)
TOKENIZERS = ("deepseek", "o200k_base", "cl100k_base")
TEXTS = st.text(alphabet=st.characters(), max_size=300)


def counts(mix: Mix) -> dict[str, int]:
    return {name: count for name, count in zip(ELEMENTS, mix.counts, strict=True) if count}


# What a text is made of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("a cat", {"words": 2}),
        ("understandings", {"words": 1, "long": 8, "very_long": 4}),
        ("x = 12345 + 6", {"words": 1, "digits": 6, "groups": 3, "marks": 2, "spaced_marks": 2, "spaced_digits": 2}),
        ("f(a);\n    g()", {"words": 3, "marks": 3, "more_marks": 2, "lines": 1, "indents": 1}),
        ("a   b  \n  c", {"words": 3, "lines": 1, "indents": 1, "gaps": 2}),
        ("-" * 10, {"marks": 1, "more_marks": 3, "many_marks": 6}),
        ("HTTP", {"words": 1, "capitals": 2}),
        ("的，冷罄", {"han_frequent": 1, "han": 1, "han_rare": 1, "wide_marks": 1}),
        ("日本のカナ", {"han_common": 1, "han_frequent": 1, "kana": 3}),
        ("한국", {"hangul": 2}),
        ("где", {"letters": 3}),
        ("看cat看", {"words": 1, "han_common": 0, "han": 0, "han_frequent": 2}),
        ("😀…", {"wide_marks": 1, "emoji": 1}),
        ("\ud800", {"letters": 1}),  # a lone surrogate is no reason to fail
    ],
)
def test_a_text_is_counted_by_what_it_is_made_of(text: str, expected: dict[str, int]) -> None:
    assert counts(measure(text)) == {name: count for name, count in expected.items() if count}


@given(TEXTS, TEXTS)
def test_mixes_add_up_and_the_sum_of_many_is_that_of_each(one: str, other: str) -> None:
    first, second = measure(one), measure(other)
    assert first + second == second + first == total([first, second])
    assert measure(one + "\n\n" + other).counts[ELEMENTS_AT["words"]] == (first + second).counts[ELEMENTS_AT["words"]]
    assert total([]) == NOTHING == total([NOTHING, NOTHING])


ELEMENTS_AT = {name: i for i, name in enumerate(ELEMENTS)}


@given(TEXTS)
def test_every_text_costs_something_and_no_more_than_its_bytes_twice(text: str) -> None:
    tokens = estimate(text)
    size = len(text.encode("utf-8", "surrogatepass"))
    assert (tokens == 0) == (text == "")
    assert 0 <= tokens <= max(1, 2 * size)


@pytest.mark.parametrize("pattern", ["a", "a ", "A0", "(", "\n", "中", "中a", "é", "a\n "])
def test_measuring_is_linear_in_the_text(pattern: str) -> None:
    def seconds(size: int) -> float:
        text = pattern * (size // len(pattern))
        best = math.inf
        for _ in range(5):
            begun = time.process_time()
            measure(text)
            best = min(best, time.process_time() - begun)
        return best

    assert seconds(800_000) < 24 * seconds(100_000) + 0.01  # eight times, with room; quadratic would be 64


# What it costs by default


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("script", ["English", "code", "JSON"])
def test_without_calibration_a_page_in_ascii_is_right_within_a_tenth(name: str, script: str) -> None:
    page = "\n\n".join(SCRIPTS[script])
    assert estimate(page) == pytest.approx(tokenizers()[name](page), rel=0.10)


@pytest.mark.parametrize(("name", "off"), [("o200k_base", 0.10), ("deepseek", 0.30), ("cl100k_base", 0.40)])
def test_without_calibration_chinese_is_right_for_todays_tokenizers(name: str, off: float) -> None:
    page = "\n\n".join(CHINESE)
    assert estimate(page) == pytest.approx(tokenizers()[name](page), rel=off)
    assert len(page) / 4 < tokenizers()[name](page) * 0.55  # what a quarter of the characters would say


def test_a_short_text_costs_at_least_one_token_and_none_nothing() -> None:
    assert (estimate(""), estimate("a"), estimate("的"), estimate(" ")) == (0, 1, 1, 1)
    assert Rates().tokens(NOTHING) == 0


def test_an_image_costs_what_images_cost_and_another_file_its_note() -> None:
    assert estimate_parts((IMAGE,)) == IMAGE_TOKENS
    assert 5 < estimate_parts((PAPER,)) < 60
    text = TextPart(text=ENGLISH[0])
    assert estimate_parts((text, IMAGE)) == estimate(ENGLISH[0]) + IMAGE_TOKENS
    assert measure_parts((text, IMAGE, PAPER)) == measure_parts((text,)) + measure_parts((IMAGE, PAPER))


def test_a_record_costs_its_frame_and_what_is_sent_of_it() -> None:
    call = ToolCall(id="call_1", name="read_artifact", arguments='{"name": "冷库报告.pdf"}')
    asked = UserMessage(id="u", parts=(TextPart(text=CHINESE[0]),))
    answer = AssistantMessage(id="a", response_id="a", text=ENGLISH[0], tool_calls=(call, call))
    result = ToolReturned(id="r", call_id="call_1", name="read_artifact", content=CODE[0])
    assert measure_record(asked) == MESSAGE + measure(CHINESE[0])
    assert measure_record(answer) == MESSAGE + measure(ENGLISH[0]) + measure_calls((call, call))
    assert measure_calls((call,)) == CALL + measure(call.name) + measure(call.arguments)
    assert measure_record(result) == MESSAGE + measure(CODE[0])
    assert measure_record(RunStarted(agent="a", model="m")) == NOTHING
    assert estimate_record(asked) == pytest.approx(MESSAGE_TOKENS + estimate(CHINESE[0]), abs=1)
    assert estimate_record(RunStarted(agent="a", model="m")) == 0


def test_tools_cost_a_frame_each_and_their_schema() -> None:
    schema = {"type": "object", "properties": {"query": {"type": "string", "description": "要找的内容"}}}
    tools = [ToolSpec(name=f"search_{n}", description="Look for it.", parameters=schema) for n in range(3)]
    found = counts(measure_tools(tools))
    assert found.keys() == {"tools", "schema"} and found["tools"] == 3
    assert found["schema"] > 3 * estimate(json.dumps(schema, ensure_ascii=False))
    assert measure_tools(()) == NOTHING
    assert 3 * 20 < DEFAULT_RATES.tokens(measure_tools(tools)) < 3 * 80


# What calibrates


@pytest.mark.parametrize("name", TOKENIZERS)
def test_after_ten_calls_of_mixed_text_the_eleventh_is_right_within_the_bar(name: str) -> None:
    found = [conversation(tokenizers()[name], seed) for seed in range(60)]
    for script in SCRIPTS:
        off = sorted(abs(one[script].calibrated) for one in found)
        assert sum(off) / len(off) <= BAR, script
        assert off[len(off) * 3 // 4] <= BAR * 1.2, script
    before = sum(abs(one["Chinese"].default) for one in found)
    assert sum(abs(one["Chinese"].calibrated) for one in found) < before


def learnt(name: str, calls: int, start: int = 0, calibrator: Calibrator | None = None) -> Calibrator:
    """Return what has learnt from so many mixed calls of this tokenizer."""
    calibrator = calibrator or Calibrator()
    for n in range(start, start + calls):
        pick = [*ENGLISH[n % 4 : n % 4 + n % 3], *CHINESE[n % 8 : n % 8 + n % 5], CODE[n % 8], json_result(n)]
        calibrator.learn(*request(pick, tokenizers()[name]))
    return calibrator


def off(calibrator: Calibrator, name: str) -> float:
    mix, tokens = request([*ENGLISH[4:], *CHINESE[8:], *CODE[3:6], json_result(91)], tokenizers()[name])
    return calibrator.rates.tokens(mix) / tokens - 1


def test_a_model_that_changes_is_followed() -> None:
    calibrator = learnt("deepseek", 200)
    assert abs(off(calibrator, "deepseek")) < 0.04
    assert off(calibrator, "cl100k_base") < -0.12
    learnt("cl100k_base", 15, 200, calibrator)
    assert abs(off(calibrator, "cl100k_base")) < 0.05


@pytest.mark.parametrize("wild", [0, -5, 1, 10**9, math.inf, -math.inf, math.nan])
def test_a_report_that_cannot_be_teaches_nothing(wild: float) -> None:
    calibrator = learnt("deepseek", 10)
    before, calls = calibrator.rates, calibrator.calls
    calibrator.learn(REQUEST + measure(ENGLISH[0] * 5), wild)
    calibrator.learn(NOTHING, 500)
    assert (calibrator.rates, calibrator.calls) == (before, calls)


@pytest.mark.parametrize("share", [0.25, 0.5, 2.0, 4.5])
def test_a_surprising_report_moves_little_and_is_made_good(share: float) -> None:
    """Such as only the part that was not cached."""
    calibrator = learnt("deepseek", 10)
    before = off(calibrator, "deepseek")
    mix, tokens = request([*ENGLISH[:3], *CHINESE[:6], CODE[0]], tokenizers()["deepseek"])
    calibrator.learn(mix, round(tokens * share))
    assert abs(off(calibrator, "deepseek") - before) < 0.15
    learnt("deepseek", 8, 10, calibrator)
    assert abs(off(calibrator, "deepseek")) < BAR


@given(
    st.lists(st.tuples(st.sampled_from([*ENGLISH, *CHINESE, *CODE]), st.integers(0, 5_000)), min_size=1, max_size=40)
)
def test_whatever_is_reported_rates_are_finite_and_never_negative(reports: list[tuple[str, int]]) -> None:
    calibrator = Calibrator()
    for text, tokens in reports:
        calibrator.learn(REQUEST + MESSAGE + measure(text), tokens)
    assert all(0 <= rate < math.inf for rate in calibrator.rates.values)
    assert Calibrator.load(json.loads(json.dumps(calibrator.dump()))).calls == calibrator.calls


NONSENSE = ("nothing", "one", "hundredfold", "half of half of half", "tenfold")


def nonsense(kind: str, tokens: int) -> int:
    return {"nothing": 0, "one": 1, "hundredfold": 100 * tokens, "tenfold": 10 * tokens}.get(kind, tokens // 8)


@given(
    st.lists(
        st.tuples(st.sampled_from([*ENGLISH, *CHINESE, *CODE, "7", "好"]), st.sampled_from(NONSENSE)), max_size=60
    ),
    st.sampled_from([*ENGLISH, *CHINESE, *CODE, "0123456789", "\U0001f600", "Ы" * 40]),
)
def test_whatever_is_reported_estimates_stay_sane(reports: list[tuple[str, str]], probe: str) -> None:
    calibrator = Calibrator()
    for text, kind in reports:
        mix = REQUEST + MESSAGE + measure(text)
        calibrator.learn(mix, nonsense(kind, calibrator.rates.tokens(mix)))
    for mix in (measure(probe), measure(probe * 50), REQUEST + MESSAGE + measure(probe), measure_parts((IMAGE,))):
        default = DEFAULT_RATES.tokens(mix)
        assert default * 0.25 - 1 <= calibrator.rates.tokens(mix) <= default * 4 + 2


@pytest.mark.parametrize("kind", NONSENSE)
def test_a_provider_that_always_reports_nonsense_teaches_nothing(kind: str) -> None:
    calibrator = Calibrator()
    for n in range(300):
        mix, tokens = request([ENGLISH[n % 8], CHINESE[n % 8], CODE[n % 8]], estimate)
        calibrator.learn(mix, nonsense(kind, tokens))
    assert calibrator.rates == DEFAULT_RATES and calibrator.calls == 0


@pytest.mark.parametrize("kind", NONSENSE)
def test_nonsense_between_true_reports_changes_nothing(kind: str) -> None:
    calibrator = learnt("deepseek", 10)
    for n in range(10, 40):
        learnt("deepseek", 1, n, calibrator)
        mix, tokens = request([ENGLISH[n % 8], CHINESE[n % 8], CODE[n % 8]], tokenizers()["deepseek"])
        calibrator.learn(mix, nonsense(kind, tokens))
    assert abs(off(calibrator, "deepseek")) < BAR


@pytest.mark.parametrize("rate", [0.0, 1e9])
def test_nonsense_that_was_learnt_before_is_kept_within_bounds_and_made_good(rate: float) -> None:
    dump = learnt("o200k_base", 10).dump()
    dump["rates"] = [rate] * len(dump["rates"])
    calibrator = Calibrator.load(dump)
    mix = MESSAGE + measure(ENGLISH[0])
    share = calibrator.rates.tokens(mix) / DEFAULT_RATES.tokens(mix)
    assert 0.24 <= share <= 4.02
    before = abs(off(calibrator, "o200k_base"))
    learnt("o200k_base", 40, calibrator=calibrator)
    assert abs(off(calibrator, "o200k_base")) < min(0.25, before)


def test_images_come_to_cost_what_they_cost_this_model() -> None:
    calibrator = Calibrator()
    count = tokenizers()["o200k_base"]
    for n in range(10):
        mix, tokens = request([ENGLISH[n % 8], CODE[n % 8]], count)
        images = n % 3
        calibrator.learn(mix + measure_parts((IMAGE,) * images), tokens + 1_100 * images)
    assert calibrator.rates.values[ELEMENTS_AT["images"]] == pytest.approx(1_100, rel=0.05)


def test_a_dump_is_learnt_on_as_if_nothing_had_happened() -> None:
    calibrator = learnt("o200k_base", 10)
    again = Calibrator.load(json.loads(json.dumps(calibrator.dump())))
    assert again.calls == calibrator.calls == 10
    for _ in range(2):
        assert again.rates.values == pytest.approx(calibrator.rates.values, rel=1e-3, abs=1e-4)
        learnt("o200k_base", 5, 10, again)
        learnt("o200k_base", 5, 10, calibrator)


@pytest.mark.parametrize("broken", ["form", "rates", "spread", "calls", "short", "nan", "text"])
def test_a_broken_dump_counts_as_nothing_learnt(broken: str) -> None:
    dump = learnt("o200k_base", 10).dump()
    if broken in dump:
        dump[broken] = None
    elif broken == "short":
        dump["spread"] = dump["spread"][:-1]
    elif broken == "nan":
        dump["spread"][3][3] = math.nan
    else:
        dump["rates"][0] = "much"
    assert Calibrator.load(dump).rates == DEFAULT_RATES
    assert Calibrator.load(dump).calls == 0


def test_who_does_not_calibrate_stays_at_the_defaults() -> None:
    calibration = Uncalibrated()
    calibration.learn(measure(ENGLISH[0]), 5_000)
    assert calibration.rates == DEFAULT_RATES
