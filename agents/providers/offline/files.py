"""Answers from files that were read whole: those of a message, or of the conversation where nothing can be searched."""

from collections.abc import Sequence

from agents.providers.offline import quoting
from agents.providers.offline.asking import comparison, is_list
from agents.providers.offline.intent import Intent, page_asked
from agents.providers.offline.judging import judge
from agents.providers.offline.moves import NONE
from agents.providers.offline.request import Document
from agents.providers.offline.units import Unit, units_of, units_of_excerpts
from agents.providers.offline.words import Words


def answer(documents: Sequence[Document], question: str, intent: Intent, words: Words) -> str:
    """Return the answer as Markdown. documents: read as far as they were going to be."""
    parts = [_complaint(d, words) for d in documents if d.failure]
    page = page_asked(question)
    readable: list[tuple[Document, list[Unit]]] = []
    for document in documents:
        if document.failure:
            continue
        units = units_of_document(document, start=f"page:{page}" if page else "")
        on_page = [u for u in units if u.page == page] if page else units
        if page and not on_page:
            parts.append(words.no_page.format(name=document.name, n=page))
        elif not units:
            parts.append(words.empty_file.format(name=document.name))
        else:
            readable.append((document, on_page))
    if intent is Intent.SUMMARY or (page and not judge([u for _, us in readable for u in us], question).passages):
        parts += [quoting.summary(document.name, units, words) for document, units in readable]
    elif readable:
        parts.append(_found(readable, question, words))
    parts += [_stopped(document, words) for document, _ in readable if not page and document.next_cursor()]
    return "\n\n".join(parts)


def units_of_document(document: Document, *, start: str = "") -> list[Unit]:
    """Return the units of all pages that were read, or of those from a cursor on if that is where reading began."""
    pages = document.from_cursor(start) or document.from_cursor()
    if excerpts := [excerpt for page in pages for excerpt in page.excerpts]:
        return units_of_excerpts(excerpts)
    if pages and document.name.lower().endswith((".csv", ".tsv")):  # the header stands on the first page only
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


def _found(readable: Sequence[tuple[Document, list[Unit]]], question: str, words: Words) -> str:
    """Return the best passages, of one file or of several; which one is better is decided over all of them together."""
    units = [u for _, us in readable for u in us]
    names = words.comma.join(document.name for document, _ in readable)
    if asked := comparison(question):
        return quoting.compared(asked, units, units, words)
    if is_list(question):
        text, answered = quoting.listed(units, question, words)
        if answered:
            return text
    judged = judge(units, question)
    if not judged.passages or judged.coverage < quoting.CLOSE:
        return f"{words.nothing.format(name=names)} {NONE}"
    several = len(readable) > 1
    if judged.answers:
        return quoting.found(
            judged, words, several=several, lead=words.found_in if several else words.found.format(name=names)
        )
    return quoting.found(judged, words, several=several, lead=f"{words.weak.format(name=names)} {NONE}")


def _complaint(document: Document, words: Words) -> str:
    return words.unreadable.format(name=document.name, complaint=words.complaint(document.failure))


def _stopped(document: Document, words: Words) -> str:
    last = document.from_cursor()[-1]
    kind = {"page": words.page, "line": words.line}.get(last.kind, words.character)
    place = kind.format(n=last.last)
    if last.pages:
        place = words.of_pages.format(place=place, pages=last.pages)
    return words.read_up_to.format(name=document.name, place=place)
