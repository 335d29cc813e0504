"""What is said of passages, as Markdown: quotations with their sources, never a word of our own about the subject.

A passage that has a citation is followed by its marker, others by their place. Nothing here depends on anything but its
arguments, so that an answer that was stopped can be gone on with.
"""

import re
from collections.abc import Sequence

from agents.providers.offline.asking import Comparison, without_list
from agents.providers.offline.judging import Judged, Passage, gist, judge
from agents.providers.offline.moves import NONE
from agents.providers.offline.terms import bag
from agents.providers.offline.units import Unit, outline
from agents.providers.offline.words import Words
from agents.runtime.context.citing import marker

GIST_SENTENCES = 5
LEAST_SECTIONS, MOST_SECTIONS = 3, 12  # of a summary by heading
CLOSE = 0.3  # of the question's weight; what holds less is no closest passage
MOST_LISTED, LISTED_CUT_OFF = 12, 0.5
LISTED_ENOUGH = 0.6  # of the question's weight: what a list is of is named in few words
MOST_COMPARED = 3
REPORT_PASSAGES, REPORT_CUT_OFF = 24, 0.45
REPORT_OVERVIEW = 3


def found(judged: Judged, words: Words, *, several: bool, lead: str) -> str:
    """Return what answers a question, else what was found. several: whether that is of several documents."""
    shown = [passage for passage in judged.passages if passage.answers] or judged.passages
    return "\n\n".join((lead, *(quote(passage, words, several=several) for passage in shown)))


def not_found(judged: Judged, words: Words) -> str:
    """Return that the documents do not answer, with the closest passage if there is one."""
    said = f"{words.not_said} {NONE}"
    if not judged.passages or (judged.coverage < CLOSE and not judged.named):
        return said
    closest = judged.passages[0]
    return "\n\n".join((said, words.closest.format(name=closest.document), quote(closest, words, several=False)))


def quote(passage: Passage, words: Words, *, several: bool) -> str:
    text = "\n".join(f"> {line}" for line in _plain(passage.text).splitlines() or [""])
    if passage.cite:
        return f"{text} {marker(passage.cite)}"
    place = place_of(passage, words)
    if several or not place:
        place = words.file_line.format(name=passage.document, place=place) if place else passage.document
    return f"{text}\n>\n> — {place}"


def place_of(passage: Passage, words: Words) -> str:
    places = []
    if passage.page or passage.line:
        places.append(words.page.format(n=passage.page) if passage.page else words.line.format(n=passage.line))
    if passage.heading:
        places.append(words.under.format(heading=passage.heading))
    return words.comma.join(places)


def compared(asked: Comparison, first: Sequence[Unit], second: Sequence[Unit], words: Words) -> str:
    """Return a table of what the passages say of each, or that they say nothing of either."""
    sides = [
        {
            (p.cite, units[p.place].text): p.score
            for p in judge(units, f"{name} {asked.on}", count=4 * MOST_COMPARED, whole=False).passages
            if p.score > CLOSE
        }
        for name, units in ((asked.first, first), (asked.second, second))
    ]
    columns = []  # what speaks more of the other is said there, and nothing twice
    for side, other in (sides, sides[::-1]):
        own = {said: cite for (cite, said), score in side.items() if score >= other.get((cite, said), 0.0)}
        columns.append([_mark(_cell(said), cite) for said, cite in own.items()][:MOST_COMPARED])
    if not any(columns):
        return f"{words.not_said} {NONE}"
    lines = [words.compared.format(first=asked.first, second=asked.second), ""]
    lines += [f"| {_cell(asked.first)} | {_cell(asked.second)} |", "|---|---|"]
    for row in range(max(map(len, columns))):
        cells = [c[row] if row < len(c) else "" if row else words.nothing_found for c in columns]
        lines.append(f"| {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def listed(units: Sequence[Unit], question: str, words: Words) -> tuple[str, bool]:
    """Return the items, rows or sentences that name what is asked for, and whether there are any."""
    asked = without_list(question)
    judged = judge(units, asked, count=MOST_LISTED, cut_off=LISTED_CUT_OFF, whole=False)
    if not judged.answers and judged.coverage < LISTED_ENOUGH:
        return not_found(judged, words), False
    best = units[judged.passages[0].place]
    same = [u for u in units if u.document == best.document and u.path == best.path]
    items = [u for u in same if u.item]
    if len(items) > 1 and not best.row:
        shown = [(u.text, u.cite) for u in items[:MOST_LISTED]]
    else:
        shown = [(p.text, p.cite) for p in sorted(judged.passages, key=lambda p: p.place)]
    lines = [f"- {_mark(_line(text), cite)}" for text, cite in shown]
    return "\n".join((words.named_in, "", *lines)), True


def summary(name: str, units: Sequence[Unit], words: Words) -> str:
    """Return the sentences of a document that say most about it and its headings; of one with passages, by heading."""
    lines = [words.summary.format(name=name), ""]
    sections = _sections(units)
    if len(sections) >= LEAST_SECTIONS and all(unit.cite for unit in units):
        for heading, below in sections.items():
            for passage in gist(below, count=1):
                lines.append(f"- **{_line(heading)}**: {_mark(_line(passage.text), passage.cite)}")
        return "\n".join(lines)
    for passage in gist(units, count=GIST_SENTENCES) or judge(units, name, count=GIST_SENTENCES).passages:
        text, place = _line(passage.text), place_of(passage, words)
        if passage.cite:
            lines.append(f"- {_mark(text, passage.cite)}")
        else:
            lines.append(words.summary_line.format(text=text, place=place) if place else f"- {text}")
    headings = outline(units)
    if len(headings) > 1:
        lines += ["", words.outline.format(headings=words.comma.join(headings))]
    return "\n".join(lines)


def _sections(units: Sequence[Unit]) -> dict[str, list[Unit]]:
    """Return what stands under each of the first headings."""
    sections: dict[str, list[Unit]] = {}
    for unit in units:
        if unit.heading and not unit.is_heading and (unit.heading in sections or len(sections) < MOST_SECTIONS):
            sections.setdefault(unit.heading, []).append(unit)
    return sections


def report(topic: str, units: Sequence[Unit], words: Words) -> tuple[str, int]:
    """Return a report in Markdown, by document and heading, and of how many passages it is made; ("", 0) = of none."""
    chosen: Sequence[Passage]
    if topic:
        judged = judge(units, topic, count=REPORT_PASSAGES, cut_off=REPORT_CUT_OFF)
        chosen = judged.passages if judged.coverage >= CLOSE else ()
    else:
        chosen = gist(units, count=REPORT_PASSAGES)
    chosen = [passage for passage in chosen if not bag(passage.text) <= bag(passage.document)]  # a title is no point
    if not chosen:
        return "", 0
    names = list(dict.fromkeys(passage.document for passage in chosen))
    title = words.report_title.format(topic=topic or words.comma.join(names))
    lines = [f"# {title}", "", words.report_intro.format(count=len(names)), "", f"## {words.report_overview}", ""]
    lines += [f"- {_mark(_line(p.text), p.cite)}" for p in chosen[:REPORT_OVERVIEW]]
    rest = sorted(chosen[REPORT_OVERVIEW:], key=lambda p: (names.index(p.document), p.place))
    document = heading = ""
    for passage in rest:
        if passage.document != document:
            document, heading = passage.document, ""
            lines += ["", f"## {document}"]
        under = passage.heading or words.report_rest
        if under != heading:
            heading = under
            lines += ["", f"### {heading}", ""]
        lines.append(f"- {_mark(_line(passage.text), passage.cite)}")
    return "\n".join(lines), len(chosen)


def item(unit: Unit, words: Words, *, several: bool) -> str:
    """Return the unit as an item of a list, with its source."""
    text = _line(unit.text)
    if unit.cite:
        return f"- {_mark(text, unit.cite)}"
    place = words.page.format(n=unit.page) if unit.page else words.line.format(n=unit.line) if unit.line else ""
    if several or not place:
        place = words.file_line.format(name=unit.document, place=place) if place else unit.document
    return words.summary_line.format(text=text, place=place)


def _mark(text: str, cite: str) -> str:
    return f"{text} {marker(cite)}" if cite else text


def _cell(text: str) -> str:
    return _line(text).replace("|", "\\|")


def _line(text: str) -> str:
    return " ".join(_plain(re.sub(r"^(?:[-*•]\s+|\(?\d+[.)、]\s*)", "", text)).split())


def _plain(text: str) -> str:
    """Return the text without the marks of code, in which no citation could stand."""
    return text.replace("`", "")
