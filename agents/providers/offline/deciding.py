"""The next move, from what the request holds. Pure: the same request, the same move."""

from collections.abc import Sequence

from agents.providers.offline import files, following, knowledge, past, person, quoting
from agents.providers.offline.asking import Replacement, replacement, report_topic
from agents.providers.offline.intent import (
    Intent,
    Note,
    file_name_for,
    intent_of,
    is_only_a_wish,
    note_asked,
    page_asked,
)
from agents.providers.offline.moves import Call, Move, delivered, said, with_notice, without_notice
from agents.providers.offline.request import EDIT, LIST, READ, SAVE, SEARCH, Situation, saved_name, sources_listed
from agents.providers.offline.results import name_of
from agents.providers.offline.terms import is_wide, subjects, terms
from agents.providers.offline.words import Words, words

MOST_READS = 24  # of one turn
MOST_FILES = 6  # looked into for one question


def decide(at: Situation) -> Move:
    """Return the next move: look for what is asked, read what has to be read, then answer, save what is to be saved."""
    say = words(wide=is_wide(at.question or at.answered))
    if at.saved:
        return _after_saving(at, say)
    if (change := replacement(at.question)) and EDIT in at.tools:
        return _edit(at, change, say)
    if of_person := person.move(at, say):
        return of_person
    chosen = _chosen(at)
    if followed := following.move(at, chosen, lambda: _reads(at, chosen), say):
        return followed
    note = note_asked(at.question, frozenset(map(name_of, (*at.attached, *at.earlier))))
    intent = intent_of(at.question)
    if note is not None and SAVE in at.tools and (ready := _ready_content(at, note, intent)):
        return _save(ready, note, say)
    if intent in (Intent.GREETING, Intent.THANKS, Intent.ABOUT_US) and not at.attached:
        line = {Intent.GREETING: say.greeting, Intent.THANKS: say.thanks, Intent.ABOUT_US: say.about_us}[intent]
        return said(at, line, say, reasoning=say.thinking_plain)
    if intent is Intent.LIST_FILES and not at.attached:
        return knowledge.list_documents(at, say) if LIST in at.tools or at.listed else _list_files(at, say)
    only_a_wish = note is not None and is_only_a_wish(at.question)
    looks_back = not only_a_wish and past.is_asked(at)
    if looks_back and (found := past.move(at, note, say)):
        return found
    found = None
    if not at.attached and not only_a_wish and (SEARCH in at.tools or at.searches):
        found = knowledge.move(at, note, say)
    if looks_back:
        return past.otherwise(at, found, note, say)
    if found:
        return found
    if not chosen or (only_a_wish and not at.attached):
        line = say.nothing_to_save if note is not None else say.no_files
        return said(at, line, say, reasoning=say.thinking_plain)
    if calls := _reads(at, chosen):
        return Move(reasoning=_why_reading(at, chosen, calls, say), calls=calls)
    return _answer(at, chosen, note, say)


def _list_files(at: Situation, say: Words) -> Move:
    if at.listing is None:
        return Move(calls=((READ, {}),)) if READ in at.tools else said(at, say.no_tool, say)
    listing, failure = at.listing
    lines = [line for line in listing.splitlines() if line.startswith("- ")]
    text = "\n".join((say.files_are, "", *lines)) if lines else say.no_files_here
    return said(at, say.not_listed.format(complaint=say.complaint(failure)) if failure else text, say)


def _chosen(at: Situation) -> tuple[str, ...]:
    """Return the files to look into: those of the message, else those it names, else all from before, newest first."""
    if at.attached:
        return at.attached[:MOST_FILES]
    asked = set(terms(at.question, keep_stop=True))
    named = tuple(r for r in at.earlier if _is_named(name_of(r), at.question, asked))
    return (named or at.earlier)[:MOST_FILES]


def _is_named(name: str, question: str, asked: set[str]) -> bool:
    stem = name.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    own = set(terms(stem, keep_stop=True))
    return name.lower() in question.lower() or (bool(own) and len(stem) > 2 and own <= asked)


def _reads(at: Situation, chosen: Sequence[str]) -> tuple[Call, ...]:
    """Return the next page of each file that has one, () when all is read, or nothing more may be."""
    if READ not in at.tools:
        return ()
    room = MOST_READS - len(at.asked)
    page = page_asked(at.question)
    start = f"page:{page}" if page else ""
    calls: list[Call] = []
    for reference in chosen:
        document = at.documents.get(reference)
        if page and document and document.from_cursor(start):
            continue  # that page is there; what follows was not asked for
        cursor = start if document is None else document.next_cursor(start)
        if document is not None and document.failure and start and (reference, "") not in at.asked:
            cursor = ""  # no such page: look at the file from its beginning
        if cursor is None or (reference, cursor) in at.asked:
            continue
        calls.append((READ, {"name": reference, "cursor": cursor} if cursor else {"name": reference}))
    return tuple(calls[: max(0, room)])


def _why_reading(at: Situation, chosen: Sequence[str], calls: tuple[Call, ...], say: Words) -> str:
    if not at.asked:
        return say.thinking_read.format(names=say.comma.join(map(name_of, chosen)))
    return say.thinking_on.format(name=say.comma.join(name_of(arguments["name"]) for _, arguments in calls))


def _answer(at: Situation, chosen: Sequence[str], note: Note | None, say: Words) -> Move:
    documents = [at.documents[r] for r in chosen if r in at.documents]
    if not documents:
        return said(at, say.no_tool, say)
    topic = report_topic(at.question)
    if topic is not None and SAVE in at.tools:
        units = [unit for document in documents for unit in files.units_of_document(document)]
        template = person.report_words(at, say)
        text, count = quoting.report(topic, units, template)
        if not count:
            text, count = quoting.report("", units, template)
        if count:
            name = (note.name if note else "") or template.report_name.format(stem=_stem(documents[0].name))
            calls: tuple[Call, ...] = ((SAVE, {"name": name, "content": f"{text}\n"}),)
            return Move(reasoning=say.thinking_report.format(count=count), calls=calls)
    intent = intent_of(at.question)
    if not terms(at.question):  # a file and no word about it
        intent = Intent.SUMMARY
    text = files.answer(documents, at.question, intent, say)
    looked_for = say.comma.join(subjects(at.question)[:8])
    reasoning = say.thinking_search.format(terms=looked_for) if looked_for and intent is Intent.QUESTION else ""
    return delivered(at, text, note, _stem(documents[0].name), say, reasoning=reasoning)


def _stem(name: str) -> str:
    return name.rsplit("/", 1)[-1].rsplit(".", 1)[0]


def _ready_content(at: Situation, note: Note, intent: Intent) -> str:
    """Return what is to be saved if it is known already; "" if it has to be read first."""
    if note.content is not None:
        return note.content
    if at.attached or intent is Intent.SUMMARY or not note.refers_back:
        return ""
    return without_notice(at.answered)


def _save(content: str, note: Note, say: Words) -> Move:
    name = note.name or file_name_for(content)
    return Move(
        reasoning=say.thinking_save.format(name=name), calls=((SAVE, {"name": name, "content": f"{content}\n"}),)
    )


def _edit(at: Situation, change: Replacement, say: Words) -> Move:
    """Return the edit of the file that is named, else of the one saved last; its version is looked up if need be."""
    kept = [reference for reference in at.kept if change.name in ("", reference.rpartition("@")[0])]
    if not kept and at.listing is None and READ in at.tools:
        return Move(calls=((READ, {}),))
    if not kept and at.listing:
        files_here = (line[2:].partition(" (")[0] for line in at.listing[0].splitlines() if line.startswith("- "))
        kept = [f for f in (saved_name(line) for line in files_here) if change.name in ("", f.rpartition("@")[0])]
    if not kept:
        return said(at, say.edit_what, say)
    name, _, version = kept[0].rpartition("@")
    edits = [{"old": change.old, "new": change.new, "all": True}]
    return Move(calls=((EDIT, {"name": name, "base_version": int(version), "edits": edits}),))


def _after_saving(at: Situation, say: Words) -> Move:
    lines = []
    for result, failure in at.saved:
        if failure:
            lines.append(say.not_saved.format(complaint=say.complaint(failure)))
            continue
        line = say.saved.format(name=saved_name(result))
        count = sources_listed(result)
        lines.append(f"{line}{say.sources_listed.format(count=count)}" if count else line)
    return Move(text=with_notice(at, "\n".join(lines), say))
