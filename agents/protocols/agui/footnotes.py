"""Footnotes of a whole document: `[^1]` in its text and `[^1]: ...` in a paragraph of its own, as links to each other.

The text is rendered a block at a time, so what is known of all of it goes from block to block in the `env`. A footnote
of one paragraph is all that is read; a mark without its footnote stays as it is written.
"""

import re
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

_LABEL = r"\[\^([A-Za-z0-9_-]{1,40})\]"  # goes into an id as it is
_MARK = re.compile(_LABEL)
_NOTE = re.compile(_LABEL + r":[ \t]*")
_NOTES = re.compile(rf"^ {{0,3}}{_LABEL}:", re.MULTILINE)
_ENV: Final = "footnotes"


class Footnotes:
    """What is known of a document's footnotes while its blocks are rendered one after another."""

    def __init__(self, markdown: str) -> None:
        self.labels = frozenset(_NOTES.findall(markdown))
        self.marked: set[str] = set()  # an id stands once in a page: the first mark of a footnote has it
        self.noted: set[str] = set()

    @property
    def env(self) -> dict[str, object]:
        return {_ENV: self}


def add(md: MarkdownIt) -> None:
    """Teach a parser footnotes. It renders them where its env names a document's."""
    md.block.ruler.before("reference", "note", _note, {"alt": ["paragraph"]})
    md.inline.ruler.before("link", "note_mark", _mark)


def of(env: object) -> Footnotes | None:
    found = env.get(_ENV) if isinstance(env, dict) else None
    return found if isinstance(found, Footnotes) else None


def _note(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    notes = of(state.env)
    found = _NOTE.match(_line(state, start)) if notes and not state.is_code_block(start) else None
    if notes is None or found is None:
        return False
    if silent:
        return True
    after = start + 1
    while after < end and not state.isEmpty(after) and not _NOTE.match(_line(state, after)):
        after += 1
    state.line = after
    opening = state.push("paragraph_open", "p", 1)
    opening.attrSet("class", "note")
    inline = state.push("inline", "", 0)
    inline.content = state.getLines(start, after, state.blkIndent, False).strip()
    inline.map = [start, after]
    inline.children = []
    state.push("paragraph_close", "p", -1)
    return True


def _mark(state: StateInline, silent: bool) -> bool:
    notes = of(state.env)
    found = _MARK.match(state.src, state.pos) if notes and not state.linkLevel else None
    if notes is None or found is None or found[1] not in notes.labels:
        return False
    note = _NOTE.match(state.src) if state.pos == 0 else None
    if not silent:
        _link(state, notes, found[1], at_note=note is not None)
    state.pos = (note or found).end()
    return True


def _link(state: StateInline, notes: Footnotes, label: str, *, at_note: bool) -> None:
    """Write a footnote's label, as a link to its footnote or from there back to the first mark."""
    link = state.push("link_open", "a", 1)
    link.attrs = {"class": "note-mark", "href": f"#{'marked' if at_note else 'note'}-{label}"}
    seen = notes.noted if at_note else notes.marked
    if label not in seen:
        seen.add(label)
        link.attrSet("id", f"{'note' if at_note else 'marked'}-{label}")
    state.push("text", "", 0).content = label
    state.push("link_close", "a", -1)
    if at_note:
        state.push("text", "", 0).content = " "


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]
