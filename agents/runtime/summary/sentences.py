"""Texts cut into sentences, and signs of what a sentence is: plain rules for English and Chinese."""

import re
from typing import Final

MARKER: Final = r"\[\[c:[A-Za-z0-9_-]{1,8}\]\]"
_END = re.compile(
    rf"(?<![\s(]\d)(?<![\s(]\d\d)[.!?]+[\"'”’)\]]*(?:\s*{MARKER})*(?=\s+[^a-z\s]|\s*$)|[。！？；]+[”」』）]*(?:\s*{MARKER})*|\n+"
)
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_BULLET = re.compile(r"^\s*(?:[-*+•>]|\d{1,3}[.)、]|#{1,6})\s+")
_RULE = re.compile(r"^[\s|:\-=_*]+$")
_MARKED = re.compile(MARKER)
_NUMBER = re.compile(r"\d|[一二三四五六七八九十百千万亿两]{1,}[个年月日天次元%％成倍分]")

DECIDED = re.compile(
    r"\b(?:decid\w*|agree\w*|choos\w*|chose\w*|we(?:'ll| will) (?:use|go)|let'?s (?:use|go|take|keep)|go with|"
    r"prefer\w*|must|never|always|should be|deadline|budget|approved?|confirm\w*|remember)\b"
    r"|决定|确定|就用|采用|选用|选择|同意|批准|确认|必须|不要|一定|以后都|截止|预算|偏好|记住",
    re.IGNORECASE,
)
SETTLED = re.compile(
    r"\b(?:decided|agreed|chosen|approved|confirmed|settled)\b|决定|确定|采用|选定|同意|批准|已确认", re.IGNORECASE
)
CORRECTED = re.compile(
    r"^\s*no\b|\b(?:wrong|incorrect|mistake\w*|actually|instead|correction|rather than|not what)\b"
    r"|不对|错了|有误|更正|纠正|应该是|应为|改为|改成|而不是",
    re.IGNORECASE,
)
FAILED = re.compile(
    r"\b(?:errors?|fail(?:s|ed|ure)?|exception|traceback|could not|cannot|unable to|denied|timed? out)\b"
    r"|错误|失败|异常|无法|超时|被拒绝",
    re.IGNORECASE,
)
DONE = re.compile(
    r"\b(?:done|fixed|solved|resolved|finished|completed|saved|created|written|wrote|updated|passed|works now)\b"
    r"|已完成|已解决|已修复|已保存|已创建|已更新|完成了|解决了|修好|通过了",
    re.IGNORECASE,
)
OPEN = re.compile(
    r"\b(?:todo|to do|still (?:need|open|missing|to)|remaining|pending|not yet|open question|unclear|unknown|left to|"
    r"next step|missing|to be (?:decided|done|confirmed))\b"
    r"|待办|待定|待确认|尚未|还没有?|还需|仍需|未决|不清楚|未知|缺少|下一步|接下来",
    re.IGNORECASE,
)
CONCLUDED = re.compile(
    r"\b(?:therefore|thus|because|so that|means that|result\w*|in total|total|found|shows?|conclu\w+|recommend\w*|best|"
    r"compared|increase\w*|decrease\w*|is|are|was|were)\b"
    r"|因此|所以|因为|结果|总计|共|发现|表明|结论|建议|最|相比|增长|下降|提高|降低|是|为",
    re.IGNORECASE,
)
_EMPTY_TALK = re.compile(
    r"^\s*(?:sure|of course|understood|noted|certainly|great|okay|ok|thanks?|thank you|you'?re welcome|happy to|glad|"
    r"hello|hi|yes|no problem|let me know|i hope|feel free|would you like|do you want|shall i|is there anything|"
    r"here (?:is|are)|i'?ll (?:look|check|search|start)|let me)\b[^\d]*$"
    r"|^\s*(?:好的|明白|收到|当然|没问题|谢谢|不客气|您好|你好|嗯|可以|继续|希望|如有|如果您|请告诉我|需要我|以下是|让我|"
    r"我来)[^\d]*$",
    re.IGNORECASE,
)
FILES = re.compile(
    r"artifact://[^\s)\]\"'，。；]+|https?://[^\s)\]\"'<>，。；]+|(?<![\w/@])[\w./~-]*[\w-]\.(?:pdf|docx?|xlsx?|pptx?|csv|tsv|md|"
    r"txt|py|js|ts|css|html?|json|ya?ml|toml|sql|sh|png|jpe?g|svg|ipynb|log)\b"
)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, Markdown's bullets and heading marks taken off, code blocks left out.

    A citation's marker stays with the sentence before it.
    """
    out: list[str] = []
    fenced = False
    kept: list[str] = []
    for line in text.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and line.strip() and not _RULE.match(line):
            kept.append(_BULLET.sub("", _BULLET.sub("", line)).strip())
    text = "\n".join(kept)
    at = 0
    for end in _END.finditer(text):
        out.append(text[at : end.end()].strip())
        at = end.end()
    out.append(text[at:].strip())
    return [sentence for sentence in out if len(re.sub(r"[\W_]", "", sentence)) >= 2]


def empty_talk(text: str) -> bool:
    """Return whether the text is courtesy, or an announcement of what follows."""
    return len(text) < 160 and bool(_EMPTY_TALK.match(text))


def weight(text: str) -> float:
    """Return how much a later reader would miss the sentence: more for numbers, sources, decisions, corrections."""
    return (
        2.0 * bool(_NUMBER.search(_MARKED.sub("", text)))
        + 2.0 * bool(_MARKED.search(text))
        + 2.5 * bool(DECIDED.search(text))
        + 2.5 * bool(CORRECTED.search(text))
        + 1.0 * bool(OPEN.search(text))
        + 0.5 * bool(CONCLUDED.search(text))
    )
