"""Answers from what is remembered of the person, and replies to what they say of themselves.

Nothing is written here: a job reads what was said after the answer, so no reply claims that something was saved or
forgotten.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from agents.providers.offline.asking import report_topic
from agents.providers.offline.intent import note_asked
from agents.providers.offline.moves import Move, said
from agents.providers.offline.request import LOAD_MEMORIES, SEARCH_MEMORIES, Situation
from agents.providers.offline.results import Remembered
from agents.providers.offline.terms import bag, is_wide, terms
from agents.providers.offline.words import Words, words
from agents.runtime.memory import chinese, english
from agents.runtime.memory.forgetting import Forgetting, forgetting
from agents.runtime.memory.memories import Origin
from agents.runtime.memory.sources import QUOTE, Said, own_words
from agents.runtime.memory.statements import Statement
from agents.runtime.memory.words import has_han, negations
from agents.runtime.reminder import refers_back

MOST = 100  # memories that are read for "What do you know about me?"
FITS = 0.75  # of a question's words, that a memory must have
PREFERENCE_FITS = 0.3  # of those of a question about a preference, which a memory answers by being one
SAID = 0.5  # of a message, that must be statements for it to ask nothing

_QUESTION = re.compile(
    r"[?？]\s*$|^\W*(?:what|which|where|when|who|whose|how|(?:tell|remind) me)\b|[吗呢]\W*$|什么|哪|谁|几岁|多大|怎么",
    re.IGNORECASE,
)
_EVERYTHING = re.compile(
    r"\b(?:what|everything|anything|all|how much)\b[^.?!]{0,30}\byou(?:['’]ve)? (?:\w+ )?(?:know|remember(?:ed)?|"
    r"stored|saved|learn(?:ed|t)) (?:about|of|on) (?:me|us)\b"
    r"|\bwhat (?:do|have) you (?:still )?(?:remember|remembered|stored|saved)\W*$|\bwho am I\b"
    r"|(?:你|您)(?:还|都)*(?:记得|记住|记着|知道|了解)了?(?:关于|有关)?我(?!们)的?(?:[一些]*什么|哪些|多少|情况|一切)"
    r"|(?:关于|有关|对)我(?!们)的?[，,]?(?:你|您)?(?:还|都)*(?:记得|记住|知道|了解)了?些?(?:什么|哪些|多少)"
    r"|(?:你|您)(?:还|都)*(?:记得|记住)了?些?(?:什么|哪些)\W*$|我是谁",
    re.IGNORECASE,
)
_PERSONAL = re.compile(
    r"\b(?:do|did) I (?:\w+ly )?(?:prefer|like|love|hate|dislike|enjoy|live|work|drink|eat|speak|play|own|have|study|"
    r"teach|use|want|do|keep|come from)\b|\bam I\b|\bmy\b|\bI (?:prefer|like|love|hate|dislike|live|work)\b|我(?!们)",
    re.IGNORECASE,
)
_REMEMBERING = re.compile(
    r"\b(?:do |can )?(?:you|I)(?: still)? remember\b|\bremind me\b|(?:你|您)?还?记得", re.IGNORECASE
)
_LIKES = r"prefer\w*|preferences?|likes?|loves?|favou?rites?|wants?|enjoys?|喜欢|喜爱|偏好|偏爱|习惯|爱(?=[吃喝看听])"
_DISLIKES = r"hates?|dislikes?|can['’]?t stand|(?:do not|don['’]t) (?:like|want|eat|drink)|不喜欢|不爱|讨厌|不吃|不喝"
_ASKS_LIKES = re.compile(rf"(?:\b|(?=[^\x00-\x7f]))(?:{_LIKES})", re.IGNORECASE)
_ASKS_DISLIKES = re.compile(rf"(?:\b|(?=[^\x00-\x7f]))(?:{_DISLIKES})", re.IGNORECASE)
_STANDS = re.compile(r"\b(?:always|never|from now on|in future|by default)\b|以后|今后|总是|一律|默认", re.IGNORECASE)
_SLOTS = (
    (re.compile(r"\bwhere\b.*\b(?:live|home|based)\b|住在?(?:哪|什么)|我家在哪", re.IGNORECASE), {"home"}),
    (
        re.compile(
            r"\b(?:where|who)\b.*\bwork\b|\bmy (?:employer|company)\b|在哪.*(?:工作|上班)|什么公司", re.IGNORECASE
        ),
        {"employer", "my employer", "my company", "我的公司", "我的单位"},
    ),
    (
        re.compile(r"\bmy (?:\w+ )?name\b|\bam I called\b|我叫什么|我的?(?:名字|姓名)|怎么称呼我", re.IGNORECASE),
        {"name", "form of address", "surname", "my name", "my first name", "my last name", "my full name"},
    ),
    (re.compile(r"\bhow old am I\b|我(?:今年)?(?:几岁|多大)", re.IGNORECASE), {"age", "my age", "我的年龄"}),
)
# What a message asks to be done now, beside what it says of the person; a standing wish has such words too.
_REQUEST = re.compile(
    r"(?:^|[,.;:]\s*|\b(?:and|so|then)\s+)(?:(?:please|can you|could you|now)\s+)*(?:find|search|look|show|tell|give|"
    r"list|summari[sz]e|write|compare|explain|help|make|create|draft|recommend|suggest|send|translate|check|read)\b"
    r"|(?:^|[，,。；;]\s*)(?:请|麻烦|帮我|帮忙|给我|替我|你|现在)*(?:查|找|搜|写|总结|列出|列举|比较|翻译|告诉|推荐|"
    r"解释|生成|做一|看一?看|读)",
    re.IGNORECASE,
)
_STANDING = re.compile(
    r"\b(?:always|never|from now on|going forward|in future|by default|every time|whenever|remember)\b"
    r"|以后|今后|总是|一律|默认|记住|每次|都[用要]",
    re.IGNORECASE,
)
_LANGUAGE = re.compile(
    r"\b(?:reports?|answers?|repl(?:y|ies)|respond|everything)\b[^.?!]*\bin (?P<before>English|Chinese|Mandarin)\b"
    r"|\b(?:use|in|prefer) (?P<after>English|Chinese|Mandarin)\b[^.?!]*\b(?:reports?|answers?|replies)\b"
    r"|(?:报告|回答|回复)[^。！？]*?(?P<zh>中文|汉语|英文|英语)|(?P<zh2>中文|汉语|英文|英语)[^。！？]{0,6}(?:报告|回答|回复)",
    re.IGNORECASE,
)


def move(at: Situation, say: Words) -> Move | None:
    """Return the answer to a question about the person, or the reply to what they say of themselves; None: neither."""
    if at.attached or note_asked(at.question) is not None or report_topic(at.question) is not None:
        return None
    return _told(at, say) or _everything(at, say) or _known(at, say)


def report_words(at: Situation, say: Words) -> Words:
    """Return the words that a report is made of: in the language that the person wants reports in, if they said so."""
    for memory in reversed(at.memories):
        found = _LANGUAGE.search(memory.text)
        if found is not None and not negations(memory.text):
            language = next(filter(None, found.groups()))
            return words(wide=language.lower() in ("chinese", "mandarin", "中文", "汉语"))
    return say


def _everything(at: Situation, say: Words) -> Move | None:
    """Return what is remembered, all of it, if that is asked; it is read first, for a request may show a part only."""
    there = LOAD_MEMORIES in at.tools or SEARCH_MEMORIES in at.tools or at.memories or at.memory_failure is not None
    if not there or not _EVERYTHING.search(at.question):
        return None
    if LOAD_MEMORIES in at.tools and at.memory_failure is None:
        return Move(reasoning=say.thinking_memory, calls=((LOAD_MEMORIES, {"limit": MOST}),))
    if at.memories:
        return said(at, _quoted(say.remembered_all, at.memories), say)
    if at.memory_failure:
        return said(at, say.memory_not_read.format(complaint=say.complaint(at.memory_failure)), say)
    return said(at, say.remembered_nothing, say)


def _known(at: Situation, say: Words) -> Move | None:
    """Return the memories that answer a question about the person."""
    question = at.question
    if not at.memories or not _QUESTION.search(question) or not _PERSONAL.search(question):
        return None
    if refers_back(_REMEMBERING.sub(" ", question)):
        return None  # asked is what was said, and where
    fitting = fits(_REMEMBERING.sub(" ", question), at.memories)
    return said(at, _quoted(say.remembered, fitting), say, reasoning=say.thinking_memory) if fitting else None


def fits(question: str, memories: Sequence[Remembered]) -> list[Remembered]:
    """Return the memories that answer a question about the person, in their order."""
    for pattern, slots in _SLOTS:
        if pattern.search(question):
            found = [m for m in memories if any(s.slot in slots for s in _statements(m.text))]
            if found:
                return found
    liked = next((p for p in (_ASKS_DISLIKES, _ASKS_LIKES) if p.search(question)), None)
    if liked is None:
        return _best(terms(question), memories, FITS)
    pool = [m for m in memories if _answers_liking(m.text, liked)]
    asked = terms(liked.sub(" ", question))
    if not asked:
        return pool
    # words of another language cannot be compared
    return _best(asked, pool, PREFERENCE_FITS) or [m for m in pool if is_wide(m.text) != is_wide(question)]


def _answers_liking(text: str, asked: re.Pattern[str]) -> bool:
    """Return whether a memory says what the person likes, or does not like, as it is asked."""
    if asked is _ASKS_DISLIKES or _ASKS_DISLIKES.search(text):
        return asked is _ASKS_DISLIKES and bool(_ASKS_DISLIKES.search(text))
    return bool(_ASKS_LIKES.search(text) or _STANDS.search(text))


def _best(asked: Sequence[str], memories: Sequence[Remembered], least: float) -> list[Remembered]:
    """Return the memories with most of the words that are asked for, and at least this share."""
    wanted = set(asked)
    shares = [len(wanted & bag(f"{m.text} {m.about}")) / len(wanted) if wanted else 0.0 for m in memories]
    best = max(shares, default=0.0)
    return [m for m, share in zip(memories, shares, strict=True) if share == best] if best >= least else []


def _told(at: Situation, say: Words) -> Move | None:
    """Return the reply to a message that only says something of the person, or only asks to forget."""
    if "?" in at.question or "？" in at.question:
        return None
    if _REQUEST.search(at.question) and not _STANDING.search(at.question):
        return None
    kept = SEARCH_MEMORIES in at.tools
    origin = Origin(thread_id="", event_id="", position=0)
    if (
        forgetting([Said(origin=origin, at=datetime.min.replace(tzinfo=UTC), text=at.question)])
        is not Forgetting.NOTHING
    ):
        return said(at, say.understood_forget if kept else say.understood, say)
    stated = sum(len(statement.text) for statement in _statements(at.question))
    if stated < SAID * len(at.question):
        return None
    return said(at, say.understood_remembered if kept else say.understood, say)


def _statements(text: str) -> list[Statement]:
    own = own_words(text)
    found = chinese.statements(own) if has_han(own) else english.statements(own)
    return [statement for statement in found if QUOTE not in statement.text]


def _quoted(lead: str, memories: Sequence[Remembered]) -> str:
    lines = [f"- {m.text} ({m.about})" if m.about else f"- {m.text}" for m in memories]
    return "\n".join((lead, "", *lines))
