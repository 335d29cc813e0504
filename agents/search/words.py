"""A query as a person wrote it: what of it is asked, and what stands in quotation marks."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

QUERY_CHARS: Final = 4_000
MOST_NAMES: Final = 64
_PHRASE = re.compile(r'"([^"]+)"|“([^”]+)”|「([^」]+)」')
_CHINESE = r"\u3400-\u9fff"
# How Chinese asks and refers: it would be cut into pairs with the words around it.
_ASKING = re.compile(
    r"请问|请?告诉我|[你我]?还?记得|记不记得|帮我[找查](?:一下)?|我?想知道|能不能|可不可以|有没有|是不是"
    r"|(?:是|有|做|说了?|干)?什么(?:时候|时间|样的?)?|为什么|怎么(?:样|回事|办)?|怎样|如何"
    r"|是?多少|多久|多长时间|几[个次]|是?哪(?:一?个|些|里|儿|天|位)|是谁"
    r"|(?:我们|咱们|我|你)?(?:之前|以前|上次|刚才|曾经)(?:说过?|提到过?|提过|聊到|聊过|讨论过)?的?"
    r"|(?:说过|提到过|提过|聊到|聊过|讨论过)的?|关于|一下|来着|[的了是好]吗"
    rf"|(?<=[{_CHINESE}])[的吗呢吧啊](?![{_CHINESE}])"
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")


def clean(query: str) -> str:
    """Return what the database takes of the query: QUERY_CHARS, no control characters, no halves of characters."""
    return _CONTROLS.sub(" ", query[:QUERY_CHARS]).encode("utf-8", "ignore").decode()


def phrases(query: str) -> tuple[str, ...]:
    """Return what stands in quotation marks."""
    found = (next(filter(None, match.groups())) for match in _PHRASE.finditer(clean(query)))
    return tuple(" ".join(phrase.split()) for phrase in found if phrase.strip())


def holds(text: str, quoted: Sequence[str]) -> bool:
    """Return whether each phrase stands in the text, whatever the case and the blanks between words."""
    plain = " ".join(text.split()).casefold()
    return all(phrase.casefold() in plain for phrase in quoted)


def asked(query: str) -> str:
    """Return the query without the words by which Chinese asks; whole if nothing else is in it."""
    cleaned = clean(query)
    rest = _ASKING.sub(" ", cleaned)
    return rest if any(char.isalnum() for char in rest) else cleaned


def names_in(query: str) -> tuple[str, ...]:
    """Return the words of the query that may be names, as marks of speakers have them: lower case."""
    return tuple(dict.fromkeys(_WORD.findall(unicodedata.normalize("NFKC", clean(query)).lower())))[:MOST_NAMES]
