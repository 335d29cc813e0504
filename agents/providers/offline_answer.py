"""Answers made of what stands in the files: quotations with their places, never a word of our own about the subject."""

import re
from collections.abc import Sequence

from agents.providers.offline_intent import Intent, page_asked, wants_number
from agents.providers.offline_passages import ENOUGH, Passage, Unit, best, gist, outline, units_of
from agents.providers.offline_request import Document
from agents.providers.offline_words import Words

MOST_PASSAGES = 3
GIST_SENTENCES = 5
_TABLE = re.compile(r"\.(?:csv|tsv)$", re.IGNORECASE)


def answer(documents: Sequence[Document], question: str, intent: Intent, words: Words) -> str:
    """Return the answer as Markdown. documents: read as far as they were going to be.

    It never depends on anything but its arguments, so that an answer that was stopped can be gone on with.
    """
    parts = [_complaint(d, words) for d in documents if d.complaint]
    page = page_asked(question)
    readable: list[tuple[Document, list[Unit]]] = []
    for document in documents:
        if document.complaint:
            continue
        units = units_of_document(document, start=f"page:{page}" if page else "")
        on_page = [u for u in units if u.page == page] if page else units
        if page and not on_page:
            parts.append(words.no_page.format(name=document.name, n=page))
        elif not units:
            parts.append(words.empty_file.format(name=document.name))
        else:
            readable.append((document, on_page))
    if intent is Intent.SUMMARY or (page and not best([u for _, us in readable for u in us], question)):
        parts += [_summary(document, units, words) for document, units in readable]
    elif readable:
        parts.append(_found(readable, question, words))
    parts += [_stopped(document, words) for document, _ in readable if not page and document.next_cursor()]
    return "\n\n".join(parts)


def units_of_document(document: Document, *, start: str = "") -> list[Unit]:
    """Return the units of all pages that were read, or of those from a cursor on if that is where reading began."""
    pages = document.from_cursor(start) or document.from_cursor()
    if not pages:
        return []
    if _TABLE.search(document.name):  # the header stands on the first page only
        return units_of(document.name, "\n".join(p.text for p in pages))
    units: list[Unit] = []
    for page in pages:
        units += units_of(
            document.name,
            page.text,
            first_line=page.first if page.kind == "line" else 0,
            first_page=page.first if page.kind == "page" else 0,
            first_paragraph=units[-1].paragraph if units else 0,
        )
    return units


def place_of(passage: Passage, words: Words) -> str:
    places = []
    if passage.page or passage.line:
        places.append(words.page.format(n=passage.page) if passage.page else words.line.format(n=passage.line))
    if passage.heading:
        places.append(words.under.format(heading=passage.heading))
    return words.comma.join(places)


def _found(readable: Sequence[tuple[Document, list[Unit]]], question: str, words: Words) -> str:
    """Return the best passages, of one file or of several; which one is better is decided over all of them together."""
    units = [u for _, us in readable for u in us]
    passages = best(units, question, count=MOST_PASSAGES, wants_number=wants_number(question))
    names = words.comma.join(document.name for document, _ in readable)
    if not passages:
        return words.nothing.format(name=names)
    several = len(readable) > 1
    blocks = [words.found_in if several else words.found.format(name=names)]
    if passages[0].score < ENOUGH:
        blocks = [words.weak.format(name=names)]
    for passage in passages:
        place = place_of(passage, words)
        if several or not place:
            place = words.file_line.format(name=passage.document, place=place) if place else passage.document
        blocks.append(f"{_quote(passage.text)}\n>\n> — {place}")
    return "\n\n".join(blocks)


def _summary(document: Document, units: Sequence[Unit], words: Words) -> str:
    lines = [words.summary.format(name=document.name), ""]
    chosen = gist(units, count=GIST_SENTENCES) or [_whole(u) for u in units[:GIST_SENTENCES]]
    for passage in chosen:
        place = place_of(passage, words)
        text = passage.text.lstrip("-*• ")
        lines.append(words.summary_line.format(text=text, place=place) if place else f"- {text}")
    headings = outline(units)
    if len(headings) > 1:
        lines += ["", words.outline.format(headings=words.comma.join(headings))]
    return "\n".join(lines)


def _whole(unit: Unit) -> Passage:
    return Passage(document=unit.document, text=unit.text, page=unit.page, line=unit.line, score=1.0)


def _complaint(document: Document, words: Words) -> str:
    return words.unreadable.format(name=document.name, complaint=document.complaint)


def _stopped(document: Document, words: Words) -> str:
    last = document.from_cursor()[-1]
    place = {"page": words.page, "line": words.line}.get(last.kind, words.character).format(n=last.last)
    if last.pages:
        place = words.of_pages.format(place=place, pages=last.pages)
    return words.read_up_to.format(name=document.name, place=place)


def _quote(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines() or [""])
