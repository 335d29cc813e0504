"""Words of a text that carry meaning, for English-like scripts and for Chinese; nothing here knows a language well.

Latin words are lower-cased and cut to a rough stem; runs of Chinese, Japanese and Korean characters become pairs of
neighbouring characters, after words of grammar were taken out.
"""

import math
import re
from collections.abc import Mapping
from functools import lru_cache

_TOKEN = re.compile(
    r"[A-Za-z]{1,6}-?\d+[A-Za-z\d]*|\d+(?:[.,:/-]\d+)*|[^\W\d_\u2e80-\u9fff\uf900-\ufaff\uac00-\ud7af]+(?:['’][^\W\d_]+)?|[\u3400-\u9fff]+"
)
_WIDE = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_LATIN_WORD = re.compile(r"[A-Za-z]{2,}")

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
    "als",
    "al",
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
            found += [run for piece in _FRAMES.split(token) if (run := piece.strip(_PARTICLES))]
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
    while len(word) > 4 and word[-1] in "ey":  # employees, employee
        word = word[:-1]
    if len(word) > 4 and word[-1] == word[-2]:  # planned, plan
        word = word[:-1]
    return word


# Words that say little of what is meant: how a question is put rather than what it is about
_WEAK = frozenset(
    stem(word)
    for word in """
    allow allowed amount another available average be begin call called come comes cost costs current currently day
    days different enough exactly fee first general get gets go goes going happen happens have help high important
    include keep kind large last least left limit long main make makes maximum mean means minimum month name new number
    offer old open order paid part pay people permitted person per place point possible price rate reach receive
    required rule run set several size something sort start state stay still take takes thing things time times total
    type using value way week work year years one two ones anyone someone everybody somebody always ever never
    """.split()
)
_WEAK_WIDE = frozenset(
    """
    时间 日期 价格 费用 金额 数量 人数 地点 地方 位置 名字 名称 名单 情况 方面 问题 要求 规定 标准 方式
    方法 目前 现在 今年 一共 总共 需要 应该 必须 最多 最少 至少 最高 最低 最大 最小 具体 主要 进行 使用
    允许 可以 能够 开始 结束 一天 一年 每天 每年 多少 东西 事情 负责 属于 包括 关于 通常 一般 分别 已经
    """.split()
)
_WEAK_IN = re.compile("|".join(_WEAK_WIDE))
WEAK_TERMS = _WEAK | _WEAK_WIDE
_LIGHT = frozenset(
    "的了吗呢吧啊是在有和与及或我你您他她它请这那把被对从到为以就都也还很个里中上下不要会能可去来最么谁哪几多少些已"
)
_FRAMES = re.compile(
    "什么时候|什么时间|什么地方|什么样|多长时间|多少[钱天个人]?|多久|多长|多大|多高|多远|多重|为什么|怎么样|怎么|怎样|如何"
    "|是不是|有没有|能不能|可不可以|告诉我|根据|关于|请问|请你|什么|哪些|哪个|哪里|哪儿|哪[家位天年种]|几[个天年月次名位点号倍]"
    "|何时|何人|是否|列出|(?:文件|文档|资料)[中里]"
)
_PARTICLES = "的了吗呢吧啊和与及或我你您他她它"
_HOW = re.compile(
    r"\bhow (?:long|often|old|far|big|high|tall|large|heavy|deep|wide|fast|strong|hot|cold|frequently|expensive)\b",
    re.IGNORECASE,
)
ABSENT = 0.55  # weight of a word that stands nowhere, of the greatest there is
WEAK = 0.1  # weight of a word that says little, of the greatest there is


def bag(text: str) -> frozenset[str]:
    """Return what a text has of words: stems, parts of numbers, pairs of wide characters and single ones."""
    found: set[str] = set()
    for token in _TOKEN.findall(text):
        if "\u3400" <= token[0] <= "\u9fff":
            found.update(token)
            found.update(token[i : i + 2] for i in range(len(token) - 1))
        elif token[0].isdigit():
            found.add(token)
            found.update(re.split(r"[:/-]", token))
        elif token.lower() not in _STOP:
            found.add(stem(token.lower()))
    return frozenset(found)


def names(text: str) -> frozenset[str]:
    """Return the stems of what is named: words written large in a sentence, Latin words among wide ones, numbers."""
    wide = is_wide(text)
    found = set()
    for match in _TOKEN.finditer(text):
        token = match[0]
        first = not text[: match.start()].strip("\"'“‘( ") or text[: match.start()].rstrip()[-1:] in ".?!:"
        if token[0].isdigit() or (token[0].isascii() and (wide or (token[0].isupper() and not first))):
            if token.lower() not in _STOP and (len(token) > 1 or token[0].isdigit()):
                found.add(stem(token.lower()))
    return frozenset(found)


def weights(text: str, spread: Mapping[str, int], count: int) -> dict[str, float]:
    """Return what each term of a question weighs, the rarer the more. spread: in how many of `count` texts it stands.

    Wide characters are not cut into words: those that stand in no pair of the texts are taken two by two as absent.
    """
    most = math.log(1 + count)
    text = _HOW.sub(" ", text)
    found: dict[str, float] = {}
    for token in _TOKEN.findall(text):
        if "\u3400" <= token[0] <= "\u9fff":
            found.update((word, WEAK * most) for word in _WEAK_IN.findall(token) if spread.get(word))
            for run in filter(None, re.split(f"{_FRAMES.pattern}|{_WEAK_IN.pattern}", token)):
                found.update(_wide_weights(run, spread, count))
        elif token.lower() not in _STOP:
            term = stem(token.lower())
            weight = math.log(1 + count / spread[term]) if spread.get(term) else ABSENT * most
            found[term] = WEAK * most if term in _WEAK else weight
    return found


def _wide_weights(run: str, spread: Mapping[str, int], count: int) -> dict[str, float]:
    most = math.log(1 + count)
    found: dict[str, float] = {}
    covered = [False] * len(run)
    for i in range(len(run) - 1):
        pair, light = run[i : i + 2], (run[i] in _LIGHT) + (run[i + 1] in _LIGHT)
        if spread.get(pair) and light < 2:
            found[pair] = WEAK * most if light else math.log(1 + count / spread[pair])
            covered[i] = covered[i + 1] = True
    for stretch in re.finditer("0+", "".join("1" if c else "0" for c in covered)):
        word = run[stretch.start() : stretch.end()].strip("".join(_LIGHT))
        if word:
            found[word] = WEAK * most if len(word) == 1 else ABSENT * most * ((len(word) + 1) // 2)
    return found
