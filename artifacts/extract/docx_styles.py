"""What the styles and numberings of a Word document make of a paragraph: a heading, an item with its number."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from lxml import etree

from artifacts.extract.office import child, children, value

MOST_LEVEL = 9
_HEADING_NAME = re.compile(r"(?:heading|标题|標題|überschrift|titre|見出し)\s*([1-9])", re.IGNORECASE)
_CHINESE = "零一二三四五六七八九"
_ROMAN = ((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))


@dataclass(frozen=True, slots=True)
class Style:
    """level: of a heading, 0 = is none. number: id of a numbering, "" = is no item. contents: a table of contents."""

    level: int = 0
    number: str = ""
    depth: int = 0
    contents: bool = False


class Styles:
    """The document's paragraph styles."""

    def __init__(self, root: etree._Element | None) -> None:
        self._styles = {value(style, "styleId"): style for style in children(root, "style")}
        self._made: dict[str, Style] = {}

    def of(self, paragraph: etree._Element) -> Style:
        rules = child(paragraph, "pPr")
        if rules is None:
            return self._of_id("")
        return self._with(self._of_id(value(child(rules, "pStyle"))), rules)

    def _of_id(self, name: str) -> Style:
        if name not in self._made:
            self._made[name] = Style()  # what it is as long as it is being made: a style based on itself ends here
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> Style:
        style = self._styles.get(name)
        if style is None:
            return Style()
        called = value(child(style, "name")).lower()
        if called.startswith(("toc ", "table of figures")):
            return Style(contents=True)
        made = self._with(self._of_id(value(child(style, "basedOn"))), child(style, "pPr"))
        if match := _HEADING_NAME.fullmatch(called):
            return Style(int(match[1]), made.number, made.depth)
        return Style(1, made.number, made.depth) if called == "title" else made

    def _with(self, style: Style, rules: etree._Element | None) -> Style:
        if rules is None:
            return style
        level = value(child(rules, "outlineLvl"))
        numbered = child(rules, "numPr")
        number, depth = value(child(numbered, "numId")), value(child(numbered, "ilvl"))
        return Style(
            (int(level) + 1) % (MOST_LEVEL + 1) if level.isdigit() else style.level,  # 9 = body text
            ("" if number == "0" else number) if number else style.number,
            min(int(depth), 8) if depth.isdigit() else style.depth,
            style.contents,
        )


class Numbering:
    """Counts items as Word does when it shows them."""

    def __init__(self, root: etree._Element | None) -> None:
        abstract = {value(entry, "abstractNumId"): entry for entry in children(root, "abstractNum")}
        self._levels: dict[str, dict[int, etree._Element]] = {}
        self._group: dict[str, str] = {}  # items of one abstract numbering are counted on
        for entry in children(root, "num"):
            number, of = value(entry, "numId"), value(child(entry, "abstractNumId"))
            self._group[number] = f"{of}/{number}" if children(entry, "lvlOverride") else of
            self._levels[number] = {int(value(level, "ilvl")): level for level in children(abstract.get(of), "lvl")}
        self._counts: dict[str, list[int]] = {}

    def next(self, number: str, depth: int) -> str:
        """Return the sign of the next item, such as "-", "3." or "2.1"; "" if it has none."""
        if not number:
            return ""
        levels = self._levels.get(number, {})
        if depth not in levels or value(child(levels[depth], "numFmt")) in ("bullet", "none"):
            return "" if depth in levels and value(child(levels[depth], "numFmt")) == "none" else "-"
        counts = self._counts.setdefault(self._group[number], [0] * MOST_LEVEL)
        counts[depth] = counts[depth] + 1 if counts[depth] else self._first(levels[depth])
        counts[depth + 1 :] = [0] * (MOST_LEVEL - depth - 1)

        def shown(match: re.Match[str]) -> str:
            at = min(int(match[1]) - 1, MOST_LEVEL - 1)
            level = levels.get(at)
            return _SIGNS.get(value(child(level, "numFmt")), str)(counts[at] or self._first(level))

        return re.sub(r"%([1-9])", shown, value(child(levels[depth], "lvlText")) or "%1.").strip()

    def _first(self, level: etree._Element | None) -> int:
        start = value(child(level, "start"))
        return int(start) if start.isdigit() and len(start) < 6 else 1


def _letter(number: int) -> str:
    return chr(ord("a") + (number - 1) % 26) * min((number - 1) // 26 + 1, 4)


def _roman(number: int) -> str:
    if number >= 50:
        return str(number)
    sign = ""
    for worth, letters in _ROMAN:
        while number >= worth:
            sign, number = sign + letters, number - worth
    return sign


def _chinese(number: int) -> str:
    if number >= 100:
        return str(number)
    tens, ones = divmod(number, 10)
    ten = ("" if tens == 1 else _CHINESE[tens]) + "十" if tens else ""
    return ten + (_CHINESE[ones] if ones or not tens else "")


_SIGNS: dict[str, Callable[[int], str]] = {
    "lowerLetter": _letter,
    "upperLetter": lambda number: _letter(number).upper(),
    "lowerRoman": _roman,
    "upperRoman": lambda number: _roman(number).upper(),
    "chineseCounting": _chinese,
    "chineseCountingThousand": _chinese,
    "japaneseCounting": _chinese,
}
