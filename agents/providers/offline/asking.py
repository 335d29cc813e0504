"""What a message asks of the documents, by its words, in English and Chinese: which searches, what form of answer."""

import re
from dataclasses import dataclass

from agents.providers.offline.terms import names, stem, subjects, terms

MOST_WORDS = 16  # of a query
# The patterns take for ever over long texts, and what is longer is a document.
MOST_CHARS = 600  # of a question that compares
MOST_CHARS_CHANGED = 4_000  # of a message that asks for an exact change


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two things to be held against each other. on: in what respect, "" = in any."""

    first: str
    second: str
    on: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """An exact change to a file. name: "" = the one that was saved last."""

    name: str
    old: str
    new: str


_COMPARISONS = tuple(
    re.compile(words, re.IGNORECASE)
    for words in (
        # "the fees of the marina and the hotel", but not "the fees of the marina and the rules of the hotel"
        r"\bcompare\s+(?:the\s+)?(?P<on>(?:(?!\s(?:and|with|to|against|vs\.?|versus)\s)[^.?!])+?)"
        r"\s+(?:of|in|at|for|between)\s+(?P<first>.+?)\s+(?:and|with|to|against|vs\.?|versus)"
        r"\s+(?P<second>(?:(?!\s(?:of|in|at|for|on|by|regarding|concerning|as to|with)\s).)+?)\s*[.?!]*$",
        r"\bcompare\s+(?P<first>.+?)\s+(?:and|with|to|against|vs\.?|versus)\s+(?P<second>.+?)"
        r"(?:\s+(?:in terms of|with (?:regard|respect) to|regarding|concerning|as to|by|on)\s+(?P<on>.+?))?\s*[.?!]*$",
        r"\b(?P<on>\w+ )??(?:difference|differences"
        r"|comparison)\s+(?:in (?P<on2>.+?) )?between\s+(?P<first>.+?)\s+and\s+(?P<second>.+?)\s*[.?!]*$",
        r"\bhow (?:do|does|did|is|are)\s+(?P<first>.+?)\s+(?:differ|different|compare)\s*(?:from|to"
        r"|with)?\s+(?P<second>.+?)\s*[.?!]*$",
        r"^(?P<first>[^.?!]+?)\s+(?:vs\.?|versus)\s+(?P<second>[^.?!]+?)\s*[.?!]*$",
        r"(?:比较|对比)(?:一下)?(?P<first>[^，。？！]+?)(?:和|与|跟|同"
        r"|、)(?P<second>[^，。？！的]+)(?:的(?P<on>[^，。？！]+))?",
        r"(?P<first>[^，。？！]+?)(?:和|与|跟|同)(?P<second>[^，。？！]+?)(?:在(?P<on>[^，。？！]+?)(?:方面|上"
        r"|中))?(?:之间)?(?:的(?P<on2>[^，。？！有什何哪]{1,8}?))?"
        r"(?:有什么|有何|有哪些|的|有)?(?:区别|不同|差别|差异)",
    )
)
_LIST = re.compile(
    r"^\W*(?:please )?(?:list|enumerate|name|show me|give me)\b(?: me)? (?:all|every|each|the|a list of)\b"
    r"|^\W*(?:which|what) (?:\w+ ){1,5}(?:are there|exist|are (?:listed|named|mentioned))\b"
    r"|\bwhat are (?:all )?the\b.{0,300}s\b"
    r"|有哪些|^\W*(?:请)?(?:列出|列举|罗列)|都有(?:什么|谁)|分别是(?:什么|哪些|谁)",
    re.IGNORECASE,
)
_LIST_FRAME = re.compile(
    r"^\W*(?:please )?(?:list|enumerate|name|show me|give me)\b(?: me)? (?:all|every|each|a list of)?\b|有哪些"
    r"|(?:请)?(?:列出|列举|罗列)(?:所有|全部)?的?|所有|全部|都有(?:什么|谁)|分别是",
    re.IGNORECASE,
)
_REPORT = re.compile(
    r"\b(?:write|create|make|prepare|draft|compile|put together|give me|produce|generate)\b[^.?!]{0,30}\b(?:report"
    r"|briefing|dossier)\b"
    r"(?:\s+(?:on|about|of|for|regarding|covering)\s+(?P<topic>[^.?!]+))?"
    r"|(?:写|做|出|生成|整理|准备|起草|撰写|给我)(?:成|出)?(?:一[份个篇])?(?:关于|有关"
    r"|针对)?(?P<topic2>[^，。？！]{0,200}?)的?(?:报告|简报)(?:书)?"
    r"(?:(?:[：:]|[，,]?(?:内容|主题)?是?(?:关于|有关))\s*(?P<topic4>[^，。？！]+))?"
    r"|(?:把|将|就|根据|围绕)(?P<topic3>[^，。？！]{1,200}?)(?:写成|整理成|做成|写|做)(?:一[份个篇])?(?:报告|简报)",
    re.IGNORECASE,
)
_TOPIC_END = re.compile(r"\s+(?:and|then)\s+(?:save|store|call|name)\b.*$|\s+as\s+\S+\.\w+$", re.IGNORECASE)
_QUOTED = r"[“\"'「『](?P<{0}>.+?)[”\"'」』]"
_FILE = r"(?P<{0}>[^\s“”\"'，。]+\.(?:md|txt|csv|json|html))"
_REPLACEMENTS = tuple(
    re.compile(words, re.IGNORECASE | re.DOTALL)
    for words in (
        rf"\b(?:replace|change)\s+{_QUOTED.format('old')}\s+(?:with|by|to|into)\s+{_QUOTED.format('new')}"
        rf"(?:\s+in\s+(?:the\s+)?(?:file\s+)?{_FILE.format('name')})?",
        rf"\bin\s+{_FILE.format('name')},?\s+(?:replace|change)\s+{_QUOTED.format('old')}\s+(?:with|by|to"
        rf"|into)\s+{_QUOTED.format('new')}",
        rf"(?:把|将)\s*(?:{_FILE.format('name')}\s*(?:里面?|中)?的?)?\s*{_QUOTED.format('old')}\s*(?:改成|改为"
        rf"|替换成|替换为|换成)\s*{_QUOTED.format('new')}",
    )
)
_PHRASE = re.compile(r"[“\"「『]([^”\"」』]{2,80})[”\"」』]")
_NAMED_FILE = re.compile(
    r"[\w\u3400-\u9fff][\w\u3400-\u9fff./()-]{0,80}?\.(?:pdf|docx|pptx|xlsx|html?|md|txt|csv|json|py)\b"
)
_FOLLOWS = re.compile(
    r"^\W*(?:and\b|what about|how about|same for|also\b)|^\W*(?:那么?|还有|另外)|呢\W*$|^\W*(?:when|where|who|why"
    r"|how much|how many)\W*$",
    re.IGNORECASE,
)


def comparison(text: str) -> Comparison | None:
    """Return what is to be held against what, or None."""
    for pattern in _COMPARISONS if len(text) <= MOST_CHARS else ():
        if found := pattern.search(text.strip()):
            part = found.groupdict()
            on = (part.get("on") or part.get("on2") or "").strip()
            return Comparison(first=_bare(part["first"]), second=_bare(part["second"]), on=on)
    return None


def is_list(text: str) -> bool:
    """Return whether the text asks for all of something."""
    return bool(_LIST.search(text))


def without_list(text: str) -> str:
    """Return what is to be listed."""
    return _LIST_FRAME.sub(" ", text).strip()


def report_topic(text: str) -> str | None:
    """Return what a report is wished about, "" if that is not said; None if none is wished."""
    found = _REPORT.search(text)
    if found is None:
        return None
    topic = found["topic"] or found["topic2"] or found["topic3"] or found["topic4"] or ""
    return _bare(_TOPIC_END.sub("", topic))


def replacement(text: str) -> Replacement | None:
    """Return the exact change to a file that is asked for, or None."""
    for pattern in _REPLACEMENTS if len(text) <= MOST_CHARS_CHANGED else ():
        if found := pattern.search(text):
            return Replacement(name=found["name"] or "", old=found["old"], new=found["new"])
    return None


def without_files(text: str) -> str:
    """Return the text without the names of files: where to look is not what to look for."""
    return _NAMED_FILE.sub(" ", text).strip()


def files_named(text: str) -> tuple[str, ...]:
    """Return the names of files that stand in the text."""
    return tuple(dict.fromkeys(_NAMED_FILE.findall(text)))


def follows_up(text: str) -> bool:
    """Return whether the text only makes sense after what was asked before."""
    return bool(_FOLLOWS.search(text)) and len(terms(text)) <= 6


def queries(text: str) -> tuple[str, ...]:
    """Return one to three queries: all words that carry meaning; quoted phrases; what is named, with numbers."""
    words = subjects(text)[:MOST_WORDS]
    phrases = [phrase.strip() for phrase in _PHRASE.findall(text)]
    named = [word for word in words if stem(word.lower()) in names(text)]
    found = [" ".join(words)]
    if phrases:
        found.append(" ".join(f'"{phrase}"' for phrase in phrases))
    if named and len(named) < len(words) and len(words) > 2:
        found.append(" ".join(named))
    return tuple(dict.fromkeys(filter(None, found)))


def _bare(text: str) -> str:
    return re.sub(r"^(?:the|a|an|my|our)\s+|^(?:请|帮我)", "", text.strip(" \t\"'“”「」"), flags=re.IGNORECASE)
