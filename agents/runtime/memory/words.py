"""Texts of memories compared word by word. A Chinese character counts as a word of its own."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Collection
from typing import Final

from agents.runtime.surrogates import mended

HAN: Final = r"\u3400-\u4dbf\u4e00-\u9fff"
_TOKEN = re.compile(rf"[{HAN}]|[^\W_{HAN}]+(?:['’.,:/-][^\W_{HAN}]+)*")
_END = re.compile(r"[\s.!?,;:。！？，；：…~～]+$")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*|[零〇一二两三四五六七八九十百千万亿]+")
_ENDING = re.compile(r"(?<=\w\w)(?:ing|e?d|e?s|e)$")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_NOT = re.compile(
    r"\b(?:not|never|no|nobody|nothing|none|neither|nor|without|cannot|\w+n['’]t)\b|[不没無无非别未勿]", re.IGNORECASE
)
CHANGED: Final = re.compile(
    r"\b(?:now|currently|nowadays|no longer|any ?more|instead|used to|formerly|changed?|moved|switched|since then)\b"
    r"|现在|目前|如今|不再|改[为成用]|换[成到了]|搬[到去]|以前|曾经|已经不",
    re.IGNORECASE,
)
"""Words by which a text says that something became different."""


def cleaned(text: str) -> str:
    """Return the text on one line, without control characters and halves of characters."""
    return " ".join(mended(_CONTROL.sub(" ", text)).split())


def normalised(text: str) -> str:
    """Return what two texts that say the same word for word have in common: no case, blanks, marks at the end."""
    plain = unicodedata.normalize("NFKC", cleaned(text)).casefold()
    return _END.sub("", plain)


def words_hash(text: str) -> str:
    """Return the SHA-256 of the normalised text, in hexadecimal: it says nothing of what the text was."""
    return hashlib.sha256(normalised(text).encode()).hexdigest()


def tokens(text: str) -> tuple[str, ...]:
    """Return the words in order, lower case."""
    return tuple(_TOKEN.findall(unicodedata.normalize("NFKC", text).casefold()))


def stem(word: str) -> str:
    """Return an English word without its ending, anything else as it is."""
    return _ENDING.sub("", unicodedata.normalize("NFKC", word).replace("’", "'").removesuffix("'s"))


def has_han(text: str) -> bool:
    return re.search(f"[{HAN}]", text) is not None


def jaccard(a: Collection[str], b: Collection[str]) -> float:
    """Return the share of words that are in both, 0 to 1; 0 if one has none."""
    one, other = set(a), set(b)
    return len(one & other) / len(one | other) if one and other else 0.0


def numbers(text: str) -> frozenset[str]:
    """Return the numbers, those in Chinese characters too."""
    return frozenset(_NUMBER.findall(unicodedata.normalize("NFKC", text)))


def names(text: str) -> frozenset[str]:
    """Return the words with a capital, lower case; the first word of the text only if it has another one."""
    words = re.findall(rf"[^\W_{HAN}]+", unicodedata.normalize("NFKC", text))
    found = [w for n, w in enumerate(words) if (w[1:] if n == 0 else w) != (w[1:] if n == 0 else w).lower()]
    return frozenset(w.casefold() for w in found if w != "I")


def negations(text: str) -> Counter[str]:
    """Return the words by which the text denies, and how often."""
    return Counter(word.casefold() for word in _NOT.findall(text))


def in_order(few: tuple[str, ...], many: tuple[str, ...]) -> bool:
    """Return whether all of the first stand in the second, in the same order."""
    rest = iter(many)
    return all(word in rest for word in few)
