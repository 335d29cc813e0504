"""Which stretches of a text speak of a question, and which say what the text is about. Pure functions.

Words in common, rare ones counting more; headings count for what stands below them, and neighbours help a little. No
meaning is understood: a passage that says the same in other words is not found.
"""

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agents.providers.offline_terms import has_number, terms

UNIT_CHARS = 320  # a sentence, a line or a table row; longer ones are cut
QUOTE_CHARS = 420
HEADING_SHARE = 0.6
NEIGHBOUR_SHARE = 0.3
NUMBER_BONUS = 1.25
ABSENT_SHARE = 0.5
CUT_OFF = 0.6  # of the best passage's score
ENOUGH = 0.45  # of the question's weight: below, the answer is called a guess

_PAGE_IN_LINE = re.compile(r"(?<=[^\n])(?=\[page \d+\]\n)")
_PAGE_LINE = re.compile(r"^\[page (\d+)\]$")
_HEADING = re.compile(
    r"^#{1,6}\s+\S|^第[一二三四五六七八九十百\d]+[章节条]|^\d+(?:\.\d+)*\.?\s+[A-Z\u3400-\u9fff][^.。!?！？]{0,60}$"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"“'(\[]?[A-Z0-9\u00c0-\u024f])|(?<=[。！？；])")
_TABLE_NAME = re.compile(r"\.(csv|tsv)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """The smallest thing that is scored. page, line: 0 = unknown. Units of one paragraph are quoted together."""

    document: str
    text: str
    place: int
    paragraph: int
    page: int = 0
    line: int = 0
    heading: str = ""
    is_heading: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A quotation. score: share of the question's weight that it carries, 0 to 1 and a little."""

    document: str
    text: str
    page: int
    line: int
    score: float
    heading: str = ""


@dataclass(slots=True)
class _Cutter:
    """Walks through the lines of one document and remembers where it is."""

    document: str
    units: list[Unit] = field(default_factory=list)
    page: int = 0
    line: int = 0
    paragraph: int = 0
    heading: str = ""

    def add(self, text: str, *, line: int, is_heading: bool = False) -> None:
        for piece in _pieces(text):
            self.units.append(
                Unit(
                    document=self.document,
                    text=piece,
                    place=len(self.units),
                    paragraph=self.paragraph,
                    page=self.page,
                    line=line,
                    heading=self.heading,
                    is_heading=is_heading,
                )
            )


def units_of(
    document: str, text: str, *, first_line: int = 1, first_page: int = 0, first_paragraph: int = 0
) -> list[Unit]:
    """Return the units of a document's text; lines "[page 3]" set the page and are no text."""
    if _TABLE_NAME.search(document):
        return _rows(document, text, first_line)
    cutter = _Cutter(document, page=first_page, paragraph=first_paragraph)
    held: list[str] = []
    held_line = 0

    def let_go() -> None:
        if held:
            cutter.paragraph += 1
            cutter.add(_joined(held), line=held_line)
            held.clear()

    for count, raw in enumerate(_PAGE_IN_LINE.sub("\n", text).split("\n")):
        number = first_line + count if first_line else 0
        line = raw.strip()
        if page := _PAGE_LINE.match(line):
            let_go()
            cutter.page = int(page[1])
        elif not line:
            let_go()
        elif _HEADING.match(line):
            let_go()
            cutter.paragraph += 1
            cutter.heading = line.lstrip("# ")
            cutter.add(cutter.heading, line=number, is_heading=True)
        elif line[0] in "-*•|>" or re.match(r"\(?\d+[.)、]\s?", line):  # lists and tables: each line for itself
            let_go()
            cutter.paragraph += 1
            cutter.add(line, line=number)
        else:
            if not held:
                held_line = number
            held.append(line)
            if sum(map(len, held)) > 4 * UNIT_CHARS:
                let_go()
    let_go()
    return cutter.units


def best(units: Sequence[Unit], question: str, *, count: int = 3, wants_number: bool = False) -> list[Passage]:
    """Return the passages that share most with the question, best first; [] if none shares anything."""
    asked = Counter(terms(question))
    if not asked or not units:
        return []
    bags = [set(terms(u.text)) for u in units]
    weights = _weights(asked, bags)
    total = sum(weights.values()) or 1.0
    own = [sum(weights[t] for t in bag & asked.keys()) for bag in bags]
    scores = []
    for i, unit in enumerate(units):
        rest = asked.keys() - bags[i]
        score = own[i] + HEADING_SHARE * sum(weights[t] for t in rest & set(terms(unit.heading)))
        near = [bags[j] for j in (i - 1, i + 1) if 0 <= j < len(units) and _near(unit, units[j])]
        score += NEIGHBOUR_SHARE * max((sum(weights[t] for t in rest & bag) for bag in near), default=0.0)
        if own[i] and wants_number and has_number(unit.text):
            score *= NUMBER_BONUS
        if unit.is_heading:
            score *= 0.5  # says where, not what
        scores.append(score / total if own[i] or score > HEADING_SHARE * total * 0.5 else 0.0)
    return _pick(units, scores, count)


def gist(units: Sequence[Unit], *, count: int = 5) -> list[Passage]:
    """Return the units that speak of what the text speaks of most, in the text's order; never two that say the same."""
    sentences = [u for u in units if not u.is_heading and len(u.text) > 12]
    bags = [set(terms(u.text)) for u in sentences]
    spread = Counter(t for bag in bags for t in bag)
    most = len(sentences)

    def weight(place: int) -> float:
        known = [spread[t] for t in bags[place] if spread[t] > 1]
        central = sum(math.log(1 + n) for n in known) / (4 + len(bags[place])) ** 0.6
        early = 1.0 + 0.6 * math.exp(-8.0 * place / most)  # texts say what they are about at their beginning
        return central * early if known else 0.01 * early

    chosen: list[int] = []
    for place in sorted(range(most), key=lambda p: (-weight(p), p)):
        if all(_overlap(bags[place], bags[other]) < 0.5 for other in chosen):
            chosen.append(place)
        if len(chosen) == count:
            break
    return [_passage(sentences[p], 1.0) for p in sorted(chosen)]


def outline(units: Iterable[Unit], *, count: int = 8) -> list[str]:
    """Return the first headings."""
    return [u.text for u in units if u.is_heading][:count]


def _near(unit: Unit, other: Unit) -> bool:
    """Return whether what the other says may be part of what the unit says; rows of a table stand for themselves."""
    return unit.document == other.document and not _TABLE_NAME.search(unit.document)


def _weights(asked: Counter[str], bags: Sequence[set[str]]) -> dict[str, float]:
    """Return what each term of the question weighs: the rarer in the text, the more; an absent one may not matter."""
    seen = Counter(t for bag in bags for t in bag & asked.keys())
    most = math.log(1 + len(bags))
    return {t: math.log(1 + len(bags) / seen[t]) if seen[t] else ABSENT_SHARE * most for t in asked}


def _pick(units: Sequence[Unit], scores: Sequence[float], count: int) -> list[Passage]:
    """Return the best passages that do not overlap; those far behind the best are left out."""
    order = sorted((i for i, s in enumerate(scores) if s > 0), key=lambda i: (-scores[i], i))
    taken: set[int] = set()
    passages: list[Passage] = []
    for i in order:
        if len(passages) == count or scores[i] < CUT_OFF * scores[order[0]]:
            break
        around = _around(units, i)
        if taken.isdisjoint(around):
            taken.update(around)
            passages.append(_passage(units[around[0]], scores[i], _joined([units[j].text for j in around])))
    return passages


def _around(units: Sequence[Unit], i: int) -> list[int]:
    """Return i and what stands around it in its paragraph, as much as a quotation may hold; for a heading, the next."""
    start, end = i, i + 1
    size = len(units[i].text)

    def fits(j: int, same: bool) -> bool:
        return (
            0 <= j < len(units)
            and units[j].document == units[i].document
            and same
            and size + len(units[j].text) <= QUOTE_CHARS
        )

    if units[i].is_heading and fits(i + 1, True):
        return [i, i + 1]
    while True:
        if fits(end, end < len(units) and units[end].paragraph == units[i].paragraph):
            size += len(units[end].text)
            end += 1
        elif fits(start - 1, start > 0 and units[start - 1].paragraph == units[i].paragraph):
            start -= 1
            size += len(units[start].text)
        else:
            return list(range(start, end))


def _passage(unit: Unit, score: float, text: str = "") -> Passage:
    return Passage(
        document=unit.document,
        text=text or unit.text,
        page=unit.page,
        line=unit.line,
        score=score,
        heading="" if unit.is_heading else unit.heading,
    )


def _overlap(a: set[str], b: set[str]) -> float:
    return len(a & b) / (min(len(a), len(b)) or 1)


def _joined(lines: Sequence[str]) -> str:
    """Return the lines of a paragraph as one text: no blank between wide characters, no hyphens at line ends."""
    text = ""
    for line in lines:
        if not text:
            text = line
        elif text[-1] == "-" and len(text) > 1 and text[-2].islower() and line[0].islower():
            text = text[:-1] + line
        else:
            text += ("" if ord(text[-1]) >= 0x2E80 and ord(line[0]) >= 0x2E80 else " ") + line
    return text


def _pieces(text: str) -> list[str]:
    """Return the sentences of the text; one that is too long is cut at a blank."""
    out: list[str] = []
    for sentence in _SENTENCE_END.split(text):
        rest = sentence.strip()
        while len(rest) > UNIT_CHARS:
            at = rest.rfind(" ", UNIT_CHARS // 2, UNIT_CHARS)
            at = at if at > 0 else UNIT_CHARS
            out.append(rest[:at].strip())
            rest = rest[at:].strip()
        if rest:
            out.append(rest)
    return out


def _rows(document: str, text: str, first_line: int) -> list[Unit]:
    """Return a table's rows as "column: value" pairs, so that a row is found by its column's name too."""
    separator = "\t" if document.lower().endswith("tsv") else ","
    reader = csv.reader(io.StringIO(text), delimiter=separator)
    units: list[Unit] = []
    header: list[str] = []
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if not any(cells):
                continue
            if not header:
                header = cells
                continue
            pairs = [f"{h}: {c}" if h else c for h, c in zip(header, cells, strict=False) if c]
            pairs += cells[len(header) :]
            line = first_line + reader.line_num - 1
            units.append(
                Unit(document=document, text="; ".join(pairs)[:UNIT_CHARS], place=len(units), paragraph=line, line=line)
            )
    except csv.Error:
        pass  # what was read until here is sound
    return units
