"""What a person asks to have forgotten. Nothing is deleted without it, so every doubt is a no.

Only an order counts, addressed to the reader: no question ("How do I delete ...?"), no condition, nothing quoted, and
nothing that is about a file, a table or a program.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from agents.runtime.memory.sources import Said, own_words


class Forgetting(StrEnum):
    """How much the person asked to have forgotten."""

    NOTHING = "nothing"
    SOME = "some"
    EVERYTHING = "everything"


_SENTENCE = re.compile(r"[^.!?。！？;；\n]+[.!?。！？]?")
_NO_ORDER = re.compile(
    r"\b(?:everything you know about (?!me\b|my\b|our\b|us\b)|how|if|when|what if|should|would|why|whether|can i|"
    r"may i|could i|do i)\b|如何|怎么|怎样|如果|要是|假如|"
    r"能否|是否|"
    r"会不会|要不要|为什么|我(?:能|可以|该|要)",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"^\s*(?:(?:please|hi|hello|hey|ok|okay),? )*(?:can|could|will|would) you\b|能不能|可不可以|可以.*吗", re.IGNORECASE
)
_START: Final = (
    r"^\s*(?:(?:please|ok|okay|now|also|and|so|hi|hello|hey|just|kindly|actually|(?:can|could|will|would|should|"
    r"may) you|"
    r"you (?:can|should|may|must)|i want you to|i['’]d like you to)\b[,:!]?\s*)*"
)
_START_HAN: Final = r"(?:^|(?<=[，,：:]))\s*(?:请|麻烦|帮我|你|您|可以|可不可以|能不能|就|现在|全部|统统|都)*"
_MINE: Final = (
    r"(?:about me\b|(?:of|in|from) your memory\b|your memor(?:y|ies)\b|(?:memories|memory|facts) (?:of|about|on) me\b)"
)
_ALL = re.compile(
    rf"{_START}(?:forget|delete|erase|clear|wipe|remove)\s+(?:absolutely\s+)?(?:everything|all|your (?:entire|"
    rf"whole) memory)"
    r"(?:\s+(?:of|the|your|you|know|have|stored|saved|remember(?:ed)?|learned|learnt|that|ever|i|told|information|data|"
    r"facts|notes|things|(?:have|you|i)['’]ve))*"
    rf"\s+(?:{_MINE}|you (?:remember|(?:have )?(?:stored|saved|remembered))\s*[.!]?$)"
    rf"|{_START}(?:clear|wipe|erase|delete) (?:all (?:of )?)?your (?:entire |whole )?memor(?:y|ies)\s*[.!]?$",
    re.IGNORECASE,
)
_ALL_HAN = re.compile(
    rf"{_START_HAN}(?:忘[掉记了]|删除|删掉|清[空除])(?:你)?(?:对我的|关于我的|有关我的)?(?:所有|全部|一切)(?:的)?"
    r"(?:关于我|有关我|对我|记忆[。！!]?$)"
    rf"|{_START_HAN}(?:忘[掉记了]|删除|删掉|清[空除])(?:你)?(?:对我|关于我|有关我)的?(?:所有|全部|一切)"
    rf"|{_START_HAN}清[空除]你的?(?:全部|所有)?记忆[。！!]?$"
    rf"|{_START_HAN}把(?:你)?(?:关于我|有关我|对我)的?(?:所有|全部|一切)[^，,]{{0,8}}(?:忘|删|清)"
    rf"|{_START_HAN}把(?:所有|全部|一切)(?:关于我|有关我)的[^，,]{{0,8}}(?:忘|删|清)"
)
# "Forget the report" speaks of what is being done here; "forget the report I told you about" of what is known.
_AT_HAND: Final = (
    r"(?!(?:about\s+)?(?:the|this|these|those)\s+(?!(?:thing|things|fact|part|bit|memory|note)\b)"
    r"(?!.*\b(?:I|we|my|our|you (?:know|remember|stored|saved))\b))"
)
_SOME = (
    re.compile(
        rf"{_START}(?:forget|(?:don['’]t|do not|stop|never) (?:remember(?:ing)?|keep(?:ing)? in mind|stor(?:e|ing)))\s+"
        rf"{_AT_HAND}"
        r"(?:(?:about|that|what(?:ever)?|the (?:thing|things|fact|part|bit|memory|note)|everything|anything)\s+)*"
        r"(?:(?:I|we) (?:just )?(?:said|told you|wrote|mentioned)\s+)?(?:(?:about|on|of|that)\s+)*(?P<what>[^,]+)",
        re.IGNORECASE,
    ),
    re.compile(
        rf"{_START}(?:delete|remove|erase)\s+(?:(?:the|what|everything|your|memory|memories|note|you|know|remember|"
        rf"have|about|of|on|that)\s+)*"
        r"(?P<what>[^,]+?)\s+from (?:your )?memory\b",
        re.IGNORECASE,
    ),
    re.compile(
        rf"{_START}(?:delete|remove|erase)\s+(?:the|your|all|any) (?:memory|memories) (?:of|about|on|"
        rf"that)\s+(?P<what>[^,]+)",
        re.IGNORECASE,
    ),
    re.compile(
        rf"{_START_HAN}(?:忘掉|忘记|忘了|不要(?:再)?记(?:住|得|着)|别(?:再)?记(?:住|得|着))(?:你)?(?:记住的)?(?:关于|"
        rf"有关)?"
        r"(?:我(?:们)?)?(?:之前|以前|上次|刚才)?(?:告诉你的?|说过?的?|"
        r"提到?过?的?)?的?(?P<what>[^，,。！!]+?)(?:这件事|的事|的记忆)?(?:吧|了)?[。！!]?$"
    ),
    re.compile(
        rf"{_START_HAN}把(?P<what>[^，,]+?)(?:这件事|的事|的记忆)?(?:都|全部)?(?:忘掉|忘记|忘了|"
        rf"从(?:你的)?记忆[里中](?:删掉|删除|清除|去掉))"
    ),
    re.compile(rf"{_START_HAN}(?:删除|删掉|清除)(?:你)?(?:关于|有关)(?P<what>[^，,]+?)的记忆"),
)
_FILLER = re.compile(
    r"\b(?:please|my|our|the|me|i|again|any ?more|now|it|that|this|s|all|everything|anything|of|about)\b"
    r"|^我(?:们)?的?|^它$|^这个?$|^那个?$",
    re.IGNORECASE,
)


def forgetting(said: Iterable[Said]) -> Forgetting:
    """Return how much the person asked, in their own words, to have forgotten."""
    asked = Forgetting.NOTHING
    for one in said:
        for order in _orders(one.text):
            if _ALL.search(order) or _ALL_HAN.search(order):
                return Forgetting.EVERYTHING
            if _named(order):
                asked = Forgetting.SOME
    return asked


def named(text: str) -> list[str]:
    """Return the words by which the person names what is to be forgotten, without those that name nothing."""
    return [what for order in _orders(text) for what in _named(order)]


def _named(order: str) -> list[str]:
    found = (match["what"] for pattern in _SOME if (match := pattern.search(order)))
    return [bare for what in found if len(bare := " ".join(_FILLER.sub(" ", what).split()).strip(" .!。！")) > 1]


def _orders(text: str) -> list[str]:
    """Return the sentences that may be orders, whole."""
    sentences = (found[0].strip() for found in _SENTENCE.finditer(own_words(text)))
    return [s for s in sentences if _POLITE.search(s) or not (s.endswith(("?", "？")) or _NO_ORDER.search(s))]
