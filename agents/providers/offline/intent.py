"""What a message asks for, by its words, in English and Chinese."""

import re
from dataclasses import dataclass
from enum import StrEnum

from agents.providers.offline.terms import terms

MOST_GREETING_TERMS = 3


class Intent(StrEnum):
    GREETING = "greeting"
    THANKS = "thanks"
    ABOUT_US = "about_us"  # who are you, what can you do
    LIST_FILES = "list_files"
    SUMMARY = "summary"  # what a file is about, as a whole
    QUESTION = "question"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A wish to save something.

    content: None = an answer, the one before if refers_back, else the one to this message. name: "" = we choose one.
    """

    content: str | None
    name: str
    refers_back: bool


_GREETING = re.compile(
    r"^\W*(?:hi|hello|hey|hiya|howdy|greetings|good (?:morning|afternoon|evening|day)"
    r"|你好|您好|嗨|哈喽|早上好|早安|下午好|晚上好|大家好)",
    re.IGNORECASE,
)
_THANKS = re.compile(
    r"^\W*(?:many )?(?:thank|thanks|thx|cheers|(?:great|perfect)\W*$|谢谢|多谢|感谢|辛苦了|太好了)", re.IGNORECASE
)
_ABOUT_US = re.compile(
    r"\b(?:who|what) are you\b|\bwhat (?:can|do) you do\b"
    r"|\bhow (?:do|does|can) (?:you work|this work|i use (?:you|this))\b"
    r"|^\W*help\W*$|\byour (?:name|abilities|capabilities)\b"
    r"|\bare you (?:an? )?(?:ai|llm|bot|human|language model|real)\b"
    r"|你是谁|你是什么|你叫什么|你能做什么|你会做?什么|能帮我做什么|你可以做什么|怎么用你|如何使用你|^\W*帮助\W*$"
    r"|你是(?:人|机器人|ai|大?模型)",
    re.IGNORECASE,
)
_LIST = re.compile(
    r"\b(?:which|what|list|show)\b[^.?!]{0,30}\b(?:files|documents|attachments)\b"
    r"(?![^.?!]*\b(?:say|about|contain|mean|mention)\b)"
    r"|\bhow many (?:files|documents)\b(?![^.?!]*\b(?:say|about|contain|mention)\b)|(?:多少|几)[份个篇]?(?:文件|文档)"
    r"|(?:有哪些|列出|有什么)[^。？！]{0,8}(?:文件|文档|附件)",
    re.IGNORECASE,
)
_SUMMARY = re.compile(
    r"\bsummar(?:y|i[sz]e[sd]?|i[sz]ing)\b|\boverview\b|\bgist\b|\btl;?dr\b|\b(?:outline|digest)\b"
    r"|\b(?:main|key) (?:points?|ideas?|takeaways?|facts)\b"
    r"|\bwhat(?:'s|’s| is| are| does| do)\b[^.?!]{0,60}\b(?:about|say|contain|cover)\W*$"
    r"|^\W*(?:please )?(?:read|look at|go through)\b[^.?!]{0,30}\W*$"
    r"|总结|概括|概述|摘要|要点|大意|主要内容|主要讲|讲了?(?:些|的是)?什么|说了?(?:些|的是)?什么|写了?(?:些|的是)?什么|梳理"
    r"|关于什么|是什么内容",
    re.IGNORECASE,
)
_PAGE = re.compile(r"\bpage\s+(\d{1,5})\b|\bp\.\s?(\d{1,5})\b|第\s*(\d{1,5})\s*页", re.IGNORECASE)

_FILE = r"[^\s“”\"，。]+\.(?:md|txt|csv|json|html)\b"
_FILLER = (
    r"(?:\s+(?:down|me|us|a|an|the|this|that|it|these|all|your|answer|summary|reply|result|new|short|quick|some|as|to|in"
    r"|into|up))*"
)
_NOTE = re.compile(
    # make a note, save that as notes
    rf"\b(?:save|write|make|create|take|add|store|put|jot|keep)\b{_FILLER}\s+(?:notes?|memo)\b"
    # save the main points to a file, write it to plan.md
    rf"|\b(?:save|write|store|put|export|record)\b.{{0,120}}?\b(?:as|to|into)\s+(?:an?\s+|the\s+|my\s+)?(?:(?:new|text|markdown)\s+)*"
    rf"(?:notes?|memo|file|{_FILE})"
    rf"|\b(?:create|make|write|save)\s+(?:me\s+)?(?:an?\s+)?(?:(?:new|text|markdown)\s+)*(?:file\b|{_FILE})"
    r"|^\W*(?:please\s+)?note(?: down)?(?:\s+that\b|\s*[:：])|\b(?:jot|write) (?:this|that|it) down\b"
    # 保存笔记, 写成一份文件, 存为 plan.md, 记一下
    rf"|(?:保存|存成|存为|存到|写成|写入|写到|新建|创建|生成|做|记|写)(?:为|成|到|一)?[个份条篇]?(?:新的?)?\s*(?:笔记|备忘录?|便签|文件|{_FILE})"
    rf"|(?:保存|存成|存为|存到|写成|写到).{{0,30}}?(?:笔记|备忘录?|便签|{_FILE})|^\W*(?:请|帮我|麻烦)*(?:记下|记一下|记录一?下|保存(?:一下|下来|[：:]))",
    re.IGNORECASE | re.DOTALL,
)
# a question about saving is no wish to save: "Where do they keep notes?", "谁写的笔记？"
_ASKS = re.compile(
    r"^\W*(?:what|which|who|whom|whose|when|where|why|how|is|are|was|were|do|does|did|should|may|has|have|had"
    r"|can (?:i|we|they|he|she|it|one)|could (?:i|we|they|he|she|it|one))\b|^\W*(?:谁|什么|哪|为什么|怎么|何时|是否)",
    re.IGNORECASE,
)
_WISH = re.compile(
    r"\b(?:save|write|make|create|take|add|store|put|jot|keep|export|record|note|notes|memo|file|down|new|text|markdown)\b"
    r"|保存|存成|存为|存到|存|写成|写入|写到|写|新建|创建|生成|记录|记下|记|笔记|备忘录?|便签|麻烦|帮我",
    re.IGNORECASE,
)
_FILE_NAME = re.compile(
    r"(?<![\w/.-])[\w\u3400-\u9fff][\w\u3400-\u9fff./-]{0,80}?\.(?:md|txt|csv|json|html)(?![\w])", re.IGNORECASE
)
_QUOTED = re.compile(r"[“\"「『](.+?)[”\"」』]", re.DOTALL)
_AFTER = re.compile(
    r"[:：]\s*(?=\S)|\b(?:saying|that says|note that|note down that|with the text|containing)\b\s*", re.IGNORECASE
)
_BACK = re.compile(
    r"\b(?:this|that|it|above|your (?:last )?(?:answer|reply|summary)|the (?:answer|reply|summary|result|findings))\b"
    r"|这个|这些|上面|刚才|以上|你的回答|答案|结果",
    re.IGNORECASE,
)
_BEFORE_NAME = re.compile(r"^.*(?:保存|存成|存为|存到|写成|写入|写到|叫做?|名为|命名为|为|成|到)(?=.)")


def intent_of(text: str) -> Intent:
    """Return what the text asks for. A greeting that goes on with a question is a question."""
    short = len(terms(text)) <= MOST_GREETING_TERMS
    if _ABOUT_US.search(text):
        return Intent.ABOUT_US
    if _LIST.search(text):
        return Intent.LIST_FILES
    if _SUMMARY.search(text):
        return Intent.SUMMARY
    if short and "?" not in text and "？" not in text:
        if _GREETING.search(text):
            return Intent.GREETING
        if _THANKS.search(text):
            return Intent.THANKS
    return Intent.QUESTION


def page_asked(text: str) -> int | None:
    """Return the page the text names, or None."""
    match = _PAGE.search(text)
    number = int(next(g for g in match.groups() if g)) if match else 0
    return number or None


def note_asked(text: str, known_names: frozenset[str] = frozenset()) -> Note | None:
    """Return the wish to save something, or None. known_names: files that exist, which are read, not written."""
    wish = _NOTE.search(text)
    if wish is None or _ASKS.search(text):
        return None
    names = (_BEFORE_NAME.sub("", found) for found in _FILE_NAME.findall(text))
    name = next((found for found in names if found not in known_names), "")
    after = _AFTER.search(text, wish.start())
    quoted = _QUOTED.search(text)
    content = quoted[1].strip() if quoted else text[after.end() :].strip() if after else None
    return Note(content=content or None, name=name, refers_back=bool(_BACK.search(text)))


def is_only_a_wish(text: str) -> bool:
    """Return whether a wish to save names nothing that could be saved: "save a note", "记一下"."""
    rest = _BACK.sub(" ", _WISH.sub(" ", _FILE_NAME.sub(" ", text)))
    return not terms(rest)


def file_name_for(content: str) -> str:
    """Return a name for a note: its first words, as a Markdown file."""
    line = next((x.strip("#>*-• \t") for x in content.splitlines() if x.strip("#>*-• \t")), "")
    words = re.findall(r"[\w\u3400-\u9fff]+", line)
    stem = ""
    for word in words:
        if len(stem) + len(word) > 40 and stem:
            break
        stem = f"{stem}-{word}" if stem else word[:40]
    return f"{stem.lower() or 'note'}.md"
