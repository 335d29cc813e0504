"""How near an answer comes to the expected one. All scores run from 0 to 1.

Words are compared in lower case without punctuation; Chinese, Japanese and Korean count character by character.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_TOKEN = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]|[^\W_]+(?:['’][^\W_]+)*")
BLEU_ORDERS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """contained: the expected text stands in the answer (what LongMemEval's users call EM). exact: they are equal."""

    exact: float
    contained: float
    f1: float
    rouge_l: float
    bleu: float


def score(answer: str, expected: str) -> Scores:
    return Scores(
        exact=exact(answer, expected),
        contained=contained(answer, expected),
        f1=f1(answer, expected),
        rouge_l=rouge_l(answer, expected),
        bleu=bleu(answer, expected),
    )


def tokens(text: str) -> list[str]:
    """Return the words of a text, lower case; of Chinese its characters."""
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).lower())


def exact(answer: str, expected: str) -> float:
    return float(tokens(answer) == tokens(expected))


def contained(answer: str, expected: str) -> float:
    """Return 1 if the expected text stands in the answer, whatever the case; an empty one stands in nothing."""
    wanted = " ".join(unicodedata.normalize("NFKC", expected).lower().split())
    return float(bool(wanted) and wanted in " ".join(unicodedata.normalize("NFKC", answer).lower().split()))


def f1(answer: str, expected: str) -> float:
    """Return the harmonic mean of precision and recall over words, each counted as often as it occurs in both."""
    got, wanted = tokens(answer), tokens(expected)
    return _f1(sum((Counter(got) & Counter(wanted)).values()), len(got), len(wanted))


def rouge_l(answer: str, expected: str) -> float:
    """Return ROUGE-L: the F measure of the longest common subsequence of words, beta 1."""
    got, wanted = tokens(answer), tokens(expected)
    return _f1(_lcs(got, wanted), len(got), len(wanted))


def bleu(answer: str, expected: str) -> float:
    """Return sentence BLEU up to 4-grams with the brevity penalty.

    Orders above 1 are smoothed by adding one to count and total (Lin and Och 2004); texts shorter than four words use
    as many orders as they have words.
    """
    got, wanted = tokens(answer), tokens(expected)
    if not got or not wanted:
        return 0.0
    logs = 0.0
    orders = min(BLEU_ORDERS, len(got), len(wanted))
    for order in range(1, orders + 1):
        mine, theirs = _grams(got, order), _grams(wanted, order)
        matched, total = sum((mine & theirs).values()), sum(mine.values())
        if order == 1:
            if not matched:
                return 0.0
            logs += math.log(matched / total)
        else:
            logs += math.log((matched + 1) / (total + 1))
    penalty = min(0.0, 1 - len(wanted) / len(got))
    return math.exp(penalty + logs / orders)


def _grams(words: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[n : n + order]) for n in range(len(words) - order + 1))


def _f1(common: int, got: int, wanted: int) -> float:
    return 2 * common / (got + wanted) if common else 0.0


def _lcs(a: Sequence[str], b: Sequence[str]) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        before = 0
        for n, y in enumerate(b, 1):
            here = row[n]
            row[n] = before + 1 if x == y else max(here, row[n - 1])
            before = here
    return row[-1]
