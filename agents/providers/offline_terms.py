"""Words of a text that carry meaning, for English-like scripts and for Chinese; nothing here knows a language well.

Latin words are lower-cased and cut to a rough stem; runs of Chinese, Japanese and Korean characters become pairs of
neighbouring characters, after words of grammar were taken out.
"""

import re
from functools import lru_cache

_TOKEN = re.compile(
    r"\d+(?:[.,:/-]\d+)*|[^\W\d_\u2e80-\u9fff\uf900-\ufaff\uac00-\ud7af]+(?:['’][^\W\d_]+)?|[\u3400-\u9fff]+"
)
_WIDE = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_LATIN_WORD = re.compile(r"[A-Za-z]{2,}")
_NUMBER = re.compile(r"\d")

# grammar, question words, and words that speak of the file or of us rather than of its subject
_STOP = frozenset(
    """
    a about above after again all also am an and any are as at attached attachment be been being below between
    both but by can could did do does doing document documents down during each every few file files find for
    from further get give had has have having he her here hers him his how i if in into is it its itself just
    kindly know let like look many may me mention mentioned mentions might more most much must my need no nor
    not now of off on once only or other our out over own page pages pdf please quote read said same say says
    shall she should show so some such tell text than thank thanks that the their them then there these they
    this those through to too under until up upon us use used very want was we were what whats when where which
    while who whom whose why will with would you your yours according answer question explain describe
    """.split()
)
_WIDE_STOP = re.compile(
    "什么时候|多长时间|多久|多长|多大|为什么|怎么样|是不是|有没有|能不能|可不可以|告诉我|根据|关于|请问|请你|什么|多少|怎么|怎样|如何|哪些|哪个|哪里|哪儿|哪|几个|几|谁"
    "|何时|是否|可以|能够|这个|那个|这份|那份|这篇|这些|那些|一下|一个|一份|里面|其中|文件|文档|附件|上面|下面|提到|说明|解释|介绍|内容"
    "|我们|你们|他们|我|你|您|他|她|它|请|的|了|吗|呢|吧|啊|是|在|有|和|与|及|或|把|被|对|从|到|为|以|就|都|也|还|很|个|这|那|里|中|上|下"
)
_ENDINGS = (
    "ations",
    "ation",
    "ingly",
    "ments",
    "ment",
    "ings",
    "ing",
    "edly",
    "ies",
    "ied",
    "ers",
    "ed",
    "es",
    "er",
    "ly",
    "s",
)


def is_wide(text: str) -> bool:
    """Return whether a person would call the text Chinese: its characters weigh at least as much as its Latin words."""
    wide = len(_WIDE.findall(text))
    return wide > 0 and wide >= len(_LATIN_WORD.findall(text))


def has_number(text: str) -> bool:
    return bool(_NUMBER.search(text))


def terms(text: str, *, keep_stop: bool = False) -> list[str]:
    """Return the terms of the text in order, with repetitions. keep_stop: for names, where each word counts."""
    found: list[str] = []
    for token in _TOKEN.findall(text):
        if "\u3400" <= token[0] <= "\u9fff":
            for run in [token] if keep_stop else _WIDE_STOP.split(token):
                found += [run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)]
        elif keep_stop or token.lower() not in _STOP:
            found.append(stem(token.lower()))
    return found


def subjects(text: str) -> list[str]:
    """Return the words of the text that carry meaning, as they are written, each once."""
    found: list[str] = []
    for token in _TOKEN.findall(text):
        if "\u3400" <= token[0] <= "\u9fff":
            found += [run for run in _WIDE_STOP.split(token) if run]
        elif token.lower() not in _STOP:
            found.append(token)
    return list(dict.fromkeys(found))


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return a rough stem: endings off as long as four letters stay, so that "refunds" and "refunded" meet."""
    word = word.split("'")[0].split("’")[0]
    if not word.isascii() or word[:1].isdigit():
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word[: -len(ending)]
            break
    else:
        if len(word) == 4 and word[-1] == "s" and word[-2] not in "sui":  # dogs
            word = word[:-1]
    if len(word) > 4 and word[-1] in "ey":
        word = word[:-1]
    if len(word) > 4 and word[-1] == word[-2]:  # planned, plan
        word = word[:-1]
    return word
