"""What must not stand in a skill: credentials, instructions against the house, commands that destroy, ways out.

Looked for in all that a model would read of it, with what cannot be seen made visible first. It goes by words, so it
stops what is said plainly and promises no more: other words get past it, and then a person has to see it. Each finding
says what kind of thing it is and in which line, never what stood there.
"""

import unicodedata
from typing import Final

from agents.runtime.evolution.dangers import PATTERNS
from agents.runtime.evolution.redacting import MARKS, Redactor

_CODES: Final[dict[str, str]] = {
    "secret": "it holds what looks like a credential",
    "personal": "it holds an address, a number or a name of somebody",
    "user_fact": "it says something about a person, which is for memory",
    "injection": "it tells the assistant to pass over its instructions",
    "invisible": "it holds characters that cannot be seen",
    "destructive": "it holds a command that destroys",
    "escape": "it names a place outside the workspace",
    "host": "it names another host",
    "permission": "it widens what the assistant may do",
}


def findings(text: str, redactor: Redactor) -> tuple[tuple[str, str], ...]:
    """Return (code, words) of each kind of thing that was found, with the first line it stands in, from 1."""
    found: dict[str, int] = {}
    plain = unicodedata.normalize("NFKC", "".join(char for char in text if not _invisible(char)))
    lines, shown = plain.split("\n"), text.split("\n")
    for number, line in enumerate(shown, 1):
        if any(map(_invisible, line)):
            found.setdefault("invisible", number)
    clean = redactor.text(plain)
    if clean != plain:
        for number, line in enumerate(lines, 1):
            kept = redactor.text(line)
            if kept != line:
                found.setdefault("secret" if kept.count(MARKS[0]) > line.count(MARKS[0]) else "personal", number)
        if not {"secret", "personal"} & found.keys():
            found["secret"] = 1  # one that takes several lines
    if any(mark in plain for mark in MARKS):  # what was taken out on the way to the reviewer came back as a hole
        found.setdefault("personal", _line(plain, plain.index(next(mark for mark in MARKS if mark in plain))))
    for code, pattern in PATTERNS:
        if code not in found and (match := pattern.search(plain)):
            found[code] = _line(plain, match.start())
    return tuple((code, f"{words} (line {found[code]})") for code, words in _CODES.items() if code in found)


def _invisible(char: str) -> bool:
    """Return whether nobody sees the character: no procedure needs one, and it hides words from this very search."""
    return (unicodedata.category(char) in ("Cf", "Cc", "Co", "Cn") and char not in "\n\t") or (
        char in "\u115f\u1160\u3164"
    )


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
