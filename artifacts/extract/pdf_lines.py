"""Lines as a PDF breaks them, mended: words cut by a hyphen, Chinese broken anywhere, characters of print."""

import re
import unicodedata
from itertools import pairwise

FULL_LINE = 0.8  # of the longest line's width: a shorter one ended because its paragraph did
_CUT = re.compile(r"(?<=[a-zà-öø-ÿ])(-|\u00ad|\u2010)\n(?=[a-zà-öø-ÿ])")
_REST = re.compile(r"([a-zà-öø-ÿ]+)([.,;:!?)\]]*)[ ]?")
_WIDE = "\u3400-\u9fff\uf900-\ufaff\u3040-\u30ff"
_ENDS_WIDE = re.compile(f"[{_WIDE}，、；（《“]$")
_BEGINS_WIDE = re.compile(f"[{_WIDE}，、；：。）》”]")
# Ligatures, and the radicals that some fonts hold in place of the characters that look like them
_PRINTED = {
    code: unicodedata.normalize("NFKC", chr(code))
    for code in (*range(0xFB00, 0xFB07), *range(0x2F00, 0x2FD6), 0x2E9F, 0x2EF3, 0xA0)
}


def mended(page: str) -> str:
    """Return a page's text with broken words and broken Chinese lines joined; other lines stay as they are."""
    return _with_whole_lines(_with_whole_words(page.translate(_PRINTED)))


def _with_whole_words(page: str) -> str:
    pieces, at = [], 0
    for cut in _CUT.finditer(page):
        rest = _REST.match(page, cut.end())
        if rest is None or cut.start() < at:
            continue
        before = re.search(r"[^\W\d_]+$", page[max(0, cut.start() - 40) : cut.start()])
        compound = f"{before[0] if before else ''}-{rest[1]}"
        hyphen = "-" if cut[1] == "-" and page.count(compound) else ""  # written with one elsewhere on the page
        pieces += [page[at : cut.start()], hyphen, rest[1], rest[2], "\n"]
        at = rest.end() + (page[rest.end() : rest.end() + 1] == "\n")
    return "".join([*pieces, page[at:]])


def _with_whole_lines(page: str) -> str:
    lines = page.split("\n")
    full = FULL_LINE * max(map(_width, lines))
    joined = lines[:1]
    for before, line in pairwise(lines):
        if _ENDS_WIDE.search(before) and _BEGINS_WIDE.match(line) and _width(before) >= full:
            joined[-1] += line
        else:
            joined.append(line)
    return "\n".join(joined)


def _width(line: str) -> int:
    return len(line) if line.isascii() else sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)
