"""How alike two names or two texts are, in English and Chinese: by their words, and by vectors where there are any."""

import math
import re
import unicodedata
from collections.abc import Collection, Sequence
from typing import Final

from agents.runtime.memory.words import HAN, jaccard

SHORTEST: Final = 3  # letters of a word that counts; of Chinese each pair of neighbours is one
_WORD = re.compile(rf"[{HAN}]+|[^\W_{HAN}]+")
_COUNTS: Final = frozenset(
    "one two three four five six seven eight nine ten eleven twelve dozen several many multi multiple single double "
    "triple all every each both few some various".split()
)
_HAN_COUNT = re.compile(
    r"[零〇一二两三四五六七八九十百千万多几双数各\d]+(?:个|份|篇|条|张|家|座|次|位|项|种|页)?|单个|所有|全部"
)
_STOP: Final = frozenset(
    "the and for with from that this into when where which what who how use uses used using skill skills task tasks "
    "are was will can has have its their them then than one all any you your user person please make makes give gives "
    "about out get let show tell find".split()
)
_HAN_STOP = re.compile(
    r"[的了和与及或把被请给我你他她它们这那个是在有用来一下帮]|需要|使用|用户|什么|怎么|如何|技能|任务"
)


def words(text: str) -> tuple[str, ...]:
    """Return the words that carry meaning, in order, lower case, without the plural's s."""
    out: list[str] = []
    for token in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if re.match(f"[{HAN}]", token):
            for run in _HAN_STOP.sub(" ", token).split():
                out += [run[n : n + 2] for n in range(len(run) - 1)] or [run]
        elif len(token) >= SHORTEST and token not in _STOP and not token.isdigit():
            out.append(singular(token))
    return tuple(out)


def runs(text: str, breaks: Collection[str] = ()) -> tuple[tuple[str, ...], ...]:
    """Return the words that carry meaning and stand side by side, as they are said; Chinese left out. breaks: words
    that end a run too."""
    found: list[list[str]] = [[]]
    for token in re.findall(r"[^\W_]+|[^\w\s]", unicodedata.normalize("NFKC", text).casefold()):
        if words(token) and token not in breaks and not re.match(f"[{HAN}]", token):
            found[-1].append(token)
        elif found[-1]:
            found.append([])
    return tuple(tuple(run) for run in found if run)


def singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def canonical(name: str) -> str:
    """Return a name as letters and digits alone."""
    return "".join(_WORD.findall(unicodedata.normalize("NFKC", name).casefold()))


def uncounted(name: str) -> str:
    """Return a name without how many it speaks of: "3-cities", "multi-city" and "city" come to the same."""
    parts = []
    for token in _WORD.findall(unicodedata.normalize("NFKC", name).casefold()):
        if re.match(f"[{HAN}]", token):
            parts.append(_HAN_COUNT.sub("", token))
        elif not token.isdigit() and token not in _COUNTS:
            parts.append(singular(re.sub(r"^\d+", "", token)))
    return "-".join(filter(None, parts))


def counts(name: str) -> bool:
    """Return whether a name says how many of something it is for."""
    tokens = _WORD.findall(unicodedata.normalize("NFKC", name).casefold())
    if any(token in _COUNTS or re.match(r"\d+$", token) for token in tokens):
        return True
    return any(
        re.match(f"[{HAN}\\d]", t)
        and re.search(r"[零〇一二两三四五六七八九十百千万多几\d]+(?:个|份|篇|条|张|家|座|次|位|项|种|页)", t)
        for t in tokens
    )


def overlap(a: Collection[str], b: Collection[str]) -> tuple[float, int]:
    """Return the share of words that are in both, and how many these are."""
    return jaccard(a, b), len(set(a) & set(b))


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    """Return how near two vectors are, -1 to 1; 0 for vectors that cannot be compared."""
    if len(a) != len(b):
        return 0.0
    size = math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / size if size else 0.0
