"""Answers from the person's documents: which searches to make, where to read on, and what comes of it.

Everything is worked out anew from what the tools have said in this turn, so a move is a function of the request.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from agents.providers.offline import person, quoting
from agents.providers.offline.asking import (
    Comparison,
    comparison,
    files_named,
    follows_up,
    is_list,
    queries,
    report_topic,
    without_files,
    without_list,
)
from agents.providers.offline.files import units_of_document
from agents.providers.offline.intent import Intent, Note, file_name_for, intent_of, page_asked
from agents.providers.offline.judging import Judged, judge
from agents.providers.offline.moves import NONE, Call, Move, delivered, said
from agents.providers.offline.request import LIST, READ_DOCUMENT, SAVE, SEARCH, Document, Situation
from agents.providers.offline.results import Excerpt, Listed, Search
from agents.providers.offline.terms import is_wide, subjects, terms
from agents.providers.offline.units import Unit, units_of_excerpts
from agents.providers.offline.words import Words, words

MOST_NARROWED = 6  # documents that one search is narrowed to
MANY = 20  # passages for a list or a report; otherwise as many as the tool thinks right
MOST_READINGS = 4  # stretches of a document that is summed up
MOST_SUMMED_UP = 3  # documents
AROUND = 0.3  # of the question's weight; what holds so much and does not answer is read on
MOST_DOCUMENTS_LISTED = 50
_PART_END = re.compile(r"(?<=[?？])\s*")


def move(at: Situation, note: Note | None, say: Words) -> Move | None:
    """Return the next move; None if there are no documents to look into."""
    say = _fair(at, say)
    topic = report_topic(at.question)
    if topic is not None and SAVE in at.tools:
        return _report(at, topic, note, say)
    if intent_of(at.question) is Intent.SUMMARY and (summed_up := _summary(at, note, say)):
        return summed_up
    if asked := comparison(at.question):
        return _comparison(at, asked, note, say)
    return _question(at, note, say)


def list_documents(at: Situation, say: Words) -> Move:
    if at.listed is None:
        return Move(reasoning=say.thinking_list, calls=((LIST, {}),))
    documents, failure = at.listed
    if failure:
        return said(at, say.not_listed.format(complaint=say.complaint(failure)), say)
    if not documents:
        return said(at, say.no_documents, say)
    lines = [f"- {_listed(document, say)}" for document in documents[:MOST_DOCUMENTS_LISTED]]
    if len(documents) > MOST_DOCUMENTS_LISTED:
        lines.append("- …")
    return said(at, "\n".join((say.documents_are.format(count=len(documents)), "", *lines)), say)


def _listed(document: Listed, say: Words) -> str:
    pages = say.pages_long.format(n=document.pages) if document.pages else ""
    state = {"unread": say.being_read, "failed": say.not_readable}.get(document.state, "")
    return say.comma.join(filter(None, (document.name, pages, state)))


def _fair(at: Situation, say: Words) -> Words:
    """Return the words for what was looked at: that the documents do not say a thing can be told of passages in the
    language of the question only; what others say in theirs cannot be found by its words."""
    if any(words(wide=is_wide(excerpt.text)) is say for excerpt in _all_excerpts(at)):
        return say
    return replace(say, not_said=say.no_passage)


# A question


def _question(at: Situation, note: Note | None, say: Words) -> Move | None:
    own = without_files(at.question) or at.question
    question = f"{at.before} {own}" if follows_up(own) and at.before else own
    lists = is_list(question)
    read = [unit for document in _read_before(at) for unit in units_of_document(document)]
    if not lists and (known := _judged(read, question, own)).answers:
        return delivered(at, _found(known, say), note, file_name_for(question)[:-3], say)
    asked = queries(without_list(question) if lists else question) or (question,)
    if calls := searches(at, asked, many=lists):
        looked_for = say.comma.join(subjects(question)[:8])
        return Move(reasoning=say.thinking_search.format(terms=looked_for) if looked_for else "", calls=calls)
    if trouble := _trouble(at, say):
        return trouble
    if not _any_documents(at.searches):
        return None
    judged, units = _best(at, question, own)
    if calls := _around(at, units, judged, lists=lists):
        return Move(reasoning=say.thinking_around, calls=calls)
    if lists:
        text = _list(at, question, say)
    elif judged.answers:
        text = _found(judged, say)
    else:
        text = quoting.not_found(judged, say)
    return delivered(at, _with_unread(text, at, say), note, file_name_for(question)[:-3], say)


def _best(at: Situation, question: str, own: str) -> tuple[Judged, list[Unit]]:
    """Return what answers, and what it was chosen from; if nothing does, what comes closest of what people wrote."""
    judged = [(_judged(units, question, own), units) for units in tried(at)]
    answering = (found for found in judged if found[0].answers)
    return next(answering, next((found for found in judged if found[0].passages), judged[0]))


def _list(at: Situation, question: str, say: Words) -> str:
    lists = [quoting.listed(units, question, say) for units in tried(at)]
    return next((text for text, any_items in lists if any_items), lists[0][0])


def _judged(units: Sequence[Unit], question: str, own: str) -> Judged:
    """Return what answers the question, else what answers its own words without those of the question before it, or
    one of its parts: "How much is it? When is it due?"."""
    judged = judge(units, question)
    if judged.answers:
        return judged
    parts = [part for part in _PART_END.split(own) if terms(part)]
    others = (own, *parts) if len(parts) > 1 else (own,)
    alone = (judge(units, other) for other in others if other != question)
    return next((found for found in alone if found.answers), judged)


def _found(judged: Judged, say: Words) -> str:
    several = len({passage.document for passage in judged.passages if passage.answers}) > 1
    lead = say.documents_say if several else say.found.format(name=judged.passages[0].document)
    return quoting.found(judged, say, several=several, lead=lead)


def _read_before(at: Situation) -> list[Document]:
    """Return the conversation's files that were read to their end: what they answer needs no search."""
    known = (at.documents.get(reference) for reference in at.earlier)
    return [d for d in known if d is not None and not d.failure and d.next_cursor() is None]


def searches(at: Situation, asked: Iterable[str], *, many: bool = False) -> tuple[Call, ...]:
    """Return the searches that are still to be made: in the documents that are named, in those of the conversation
    before all others, and in all if those are not to be found."""
    if SEARCH not in at.tools:  # the last step: an answer from what was found
        return ()
    named = files_named(at.question)[:MOST_NARROWED]
    wanted = [(query, named) for query in asked]
    if not named and at.earlier:
        wanted.append((wanted[0][0], at.earlier[:MOST_NARROWED]))
    if named and at.searches and all(search.failure for search in at.searches):
        wanted += [(query, ()) for query in asked]
    made = {(search.query, search.documents) for search in at.searches}
    calls: list[Call] = []
    for query, documents in wanted:
        if (query, documents) not in made:
            narrowed = {"documents": list(documents)} if documents else {}
            calls.append((SEARCH, {"query": query, **narrowed, **({"limit": MANY} if many else {})}))
    return tuple(calls)


def _around(at: Situation, units: Sequence[Unit], judged: Judged, *, lists: bool) -> tuple[Call, ...]:
    """Return the reading around the best passage, if that may settle what the passages alone do not."""
    if at.readings or READ_DOCUMENT not in at.tools or not judged.passages:
        return ()
    if judged.coverage < AROUND or (judged.answers and not lists):
        return ()
    best = judged.passages[0]
    found = next((e for e in _excerpts(at) if e.id == best.cite), None)
    return () if found is None else ((READ_DOCUMENT, {"document": found.reference, "at": found.id}),)


# Two things against each other


def _comparison(at: Situation, asked: Comparison, note: Note | None, say: Words) -> Move | None:
    sides = [" ".join(subjects(f"{name} {asked.on}")) or name for name in (asked.first, asked.second)]
    if calls := searches(at, sides):
        return Move(reasoning=say.thinking_search.format(terms=say.comma.join(sides)), calls=calls)
    if trouble := _trouble(at, say):
        return trouble
    if not _any_documents(at.searches):
        return None
    ours = {e.id for e in _all_excerpts(at)} - {e.id for e in _excerpts(at)}
    found = [[e for s in at.searches if s.query == side for e in s.excerpts if e.id not in ours] for side in sides]
    first, second = (units_of_excerpts([e for e in side if not e.second_hand] or side) for side in found)
    text = quoting.compared(asked, first, second, say)
    return delivered(at, _with_unread(text, at, say), note, file_name_for(at.question)[:-3], say)


# A document as a whole


def _summary(at: Situation, note: Note | None, say: Words) -> Move | None:
    """Return the move towards a summary of the documents that are meant; None if that cannot be told."""
    if LIST not in at.tools or READ_DOCUMENT not in at.tools:
        return None
    if at.listed is None:
        return Move(reasoning=say.thinking_list, calls=((LIST, {}),))
    documents = meant(at.question, at.listed[0])
    if not documents:
        return None
    if calls := reading_on(at, documents):
        return Move(reasoning=say.thinking_read.format(names=say.comma.join(d.name for d in documents)), calls=calls)
    parts = []
    for document in documents:
        readings = [r for r in at.readings if r.document == document.reference]
        failure = next((r.failure for r in readings if r.failure), "")
        units = units_of_excerpts(e for r in readings for e in r.excerpts)
        if failure and not units:
            parts.append(say.unreadable.format(name=document.name, complaint=say.complaint(failure)))
        else:
            parts.append(quoting.summary(document.name, units, say))
    return delivered(at, "\n\n".join(parts), note, documents[0].name.rsplit(".", 1)[0], say)


def meant(question: str, documents: Sequence[Listed]) -> tuple[Listed, ...]:
    """Return the documents whose names a question holds, most of it; the only one if there is one."""
    asked = set(terms(question, keep_stop=True))
    shares = []
    for document in documents:
        own = set(terms(document.name.rsplit("/", 1)[-1].rsplit(".", 1)[0], keep_stop=True))
        shares.append(len(own & asked) / len(own) if own else 0.0)
    best = max(shares, default=0.0)
    if best < 0.5:
        return tuple(documents) if len(documents) == 1 else ()
    return tuple(d for d, share in zip(documents, shares, strict=True) if share == best)[:MOST_SUMMED_UP]


def reading_on(at: Situation, documents: Iterable[Listed]) -> tuple[Call, ...]:
    """Return the next stretch of each document that has one."""
    page = page_asked(at.question)
    calls: list[Call] = []
    for document in documents:
        readings = [r for r in at.readings if r.document == document.reference]
        if not readings:
            place = {"at": f"page:{page}"} if page else {}
            calls.append((READ_DOCUMENT, {"document": document.reference, **place}))
        elif readings[-1].next_at and len(readings) < MOST_READINGS and not page:
            calls.append((READ_DOCUMENT, {"document": document.reference, "at": readings[-1].next_at}))
    return tuple(calls)


# A report


def _report(at: Situation, topic: str, note: Note | None, say: Words) -> Move | None:
    if topic:
        if calls := searches(at, queries(topic) or (topic,), many=True):
            return Move(reasoning=say.thinking_search.format(terms=topic), calls=calls)
        if trouble := _trouble(at, say):
            return trouble
        if not _any_documents(at.searches):
            return None
    else:
        if at.listed is None and LIST in at.tools:
            return Move(reasoning=say.thinking_list, calls=((LIST, {}),))
        documents = at.listed[0][:MOST_SUMMED_UP] if at.listed else ()
        if not documents:
            return None
        if calls := reading_on(at, documents):
            return Move(calls=calls)
    template = person.report_words(at, say)
    reports = [quoting.report(topic, units, template) for units in tried(at)]
    text, count = next((made for made in reports if made[1]), reports[0])
    if not count:
        return said(at, _with_unread(f"{say.not_said} {NONE}", at, say), say)
    name = (note.name if note else "") or template.report_name.format(stem=file_name_for(topic or text)[:-3])
    return Move(
        reasoning=say.thinking_report.format(count=count), calls=((SAVE, {"name": name, "content": f"{text}\n"}),)
    )


# What the tools gave


def _excerpts(at: Situation) -> list[Excerpt]:
    """Return the passages found and read. What we wrote ourselves here is no source, unless it is named."""
    ours = {name for name in (kept.rpartition("@")[0] for kept in at.kept) if name not in at.question}
    return [excerpt for excerpt in _all_excerpts(at) if excerpt.name not in ours]


def _all_excerpts(at: Situation) -> list[Excerpt]:
    return [e for search in at.searches for e in search.excerpts] + [e for r in at.readings for e in r.excerpts]


def tried(at: Situation) -> list[list[Unit]]:
    """Return what is to be looked through: what people wrote first, all only after that. What was written in another
    conversation may say what a document said before it was changed."""
    every = _excerpts(at)
    second_hand = {e.reference for e in every if e.second_hand}
    of_people = [e for e in every if e.reference not in second_hand]
    return [units_of_excerpts(excerpts) for excerpts in ([of_people, every] if second_hand else [every])]


def _any_documents(searches: Iterable[Search]) -> bool:
    return any(search.searched or search.unread for search in searches)


def _trouble(at: Situation, say: Words) -> Move | None:
    """Return what is said when no search was done."""
    if not at.searches or any(not search.failure for search in at.searches):
        return None
    return said(at, say.not_searched.format(complaint=say.complaint(at.searches[-1].failure)), say)


def _with_unread(text: str, at: Situation, say: Words) -> str:
    names = dict.fromkeys(name for search in at.searches for name in search.unread)
    return f"{text}\n\n{say.unread.format(names=say.comma.join(names))}" if names else text
