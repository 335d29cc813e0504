"""Whether a statement is the person's own: covered by what they typed. Every doubt is a no."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from agents.runtime.memory.sources import QUOTE, Said, own_words
from agents.runtime.memory.words import names, numbers, stem, tokens

COVERED: Final = 0.6  # of a statement's words, that the person has to have used
# Words that say nothing by themselves, or that turn what somebody says into what is said of them.
_COMMON: Final = frozenset(
    "a about am an and any are as at be been being by can did do does for from had has have he her hers him his i i'm "
    "i've if in is it its me mine my not of on or our she so that the their them they this to us user user's person "
    "person's was we were will with would you your "
    "我 你 您 他 她 它 们 的 了 是 在 和 与 也 都 就 有 对 把 被 这 那 用 户".split()
)


def who_said(text: str, particulars: Collection[str], said: Sequence[Said], *, known: str = "") -> Said | None:
    """Return the message that most of the statement comes from, of equals the last; None if the person did not say it.

    particulars: people and places that go with it, which must have been said too. said: messages as typed, in order.
    known: what is remembered already and may be said again.
    """
    own = [own_words(message.text).replace(QUOTE, " ") for message in said]
    heard = " ".join((known, *own))
    words = _content(text)
    exact = {*names(text), *(word for one in particulars for word in tokens(one))}
    if not said or not _holds(heard, exact) or not numbers(f"{text} {' '.join(particulars)}") <= numbers(heard):
        return None
    if not words or _share(words, heard) < COVERED:
        return None
    share, number = max((_share(words, one), number) for number, one in enumerate(own))
    return said[number] if share else None


def _holds(heard: str, wanted: Iterable[str]) -> bool:
    """Return whether all these words were said, lower case, as they are or within what English makes of them."""
    there = {stem(word) for word in tokens(heard)}
    return all(stem(word) in there for one in wanted for word in tokens(one))


def _share(words: frozenset[str], heard: str) -> float:
    return len(words & _content(heard)) / len(words)


def _content(text: str) -> frozenset[str]:
    """Return the words that say something, without their endings; each Chinese character counts as a word."""
    return frozenset(stem(word) for word in tokens(text) if word not in _COMMON)
