"""Who speaks in a text that says so itself: a line of a transcript, "Ann: ..." or "王小明：...".

A label gives the marks by which a search finds out that a person whom the question names has said a text.
"""

import re
from typing import Final

_HAN: Final = r"\u4e00-\u9fff"
_LABEL: Final = re.compile(
    r"\s*(?:\[[^\]\n]{1,60}\]\s*)?"  # a time in brackets may stand before it
    rf"([A-Z][^\W\d_]+(?:[ -][A-Z][^\W\d_]*){{0,2}}|[{_HAN}]{{2,4}}) ?[:：]\s*\S"
)
_WORD: Final = re.compile(r"[^\W\d_]{2,}")


def marks(text: str) -> tuple[str, ...]:
    """Return "@" and each name of the label that the text begins with, as search has them: words in lower case, of
    Chinese every pair; () without a label."""
    label = _LABEL.match(text)
    if label is None:
        return ()
    name = label[1]
    if name[0] >= "\u4e00":
        return tuple(f"@{name[i : i + 2]}" for i in range(len(name) - 1))
    return tuple(f"@{word.lower()}" for word in _WORD.findall(name))
