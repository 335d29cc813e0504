"""Exact replacements in a text, and what differs between two texts: pure."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from agents.runtime.errors import ToolFailed, ToolFailure

CHANGED_LINES = 60
LINE_CHARS = 200
MOST_NAMED = 10


def edited(text: str, edits: Sequence[Mapping[str, Any]]) -> str:
    """Return the text with the edits made in order, each in what the ones before it left.

    edits: {"old", "new", "all"?}. Raises ToolFailed if an `old` is not there, or more than once without `all`, and if
    nothing would change.
    """
    before = text
    for number, edit in enumerate(edits, 1):
        old, new = edit["old"], edit["new"]
        count = text.count(old)
        if not count:
            raise _refused(f'Edit {number}: "old" does not occur in the file.{_nearest(text, old)}')
        if count > 1 and not edit.get("all"):
            lines = ", ".join(str(line) for line in _lines_of(text, old))
            said = (
                f'Edit {number}: "old" occurs {count} times (lines {lines}). Give more text around it, or "all": true.'
            )
            raise _refused(said)
        text = text.replace(old, new)
    if text == before:
        raise _refused("The edits change nothing.")
    return text


def changes(before: str, after: str) -> str:
    """Return the lines that differ, as a short unified diff without its head."""
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0))[2:]
    shown = [line if len(line) <= LINE_CHARS else line[: LINE_CHARS - 1] + "…" for line in lines[:CHANGED_LINES]]
    if len(lines) > CHANGED_LINES:
        shown.append(f"... and {len(lines) - CHANGED_LINES} more lines")
    return "\n".join(shown) or "(only the ends of lines)"


def _refused(said: str) -> ToolFailed:
    return ToolFailed(f"{said} Nothing was changed.", ToolFailure.EDIT_NOT_FOUND)


def _lines_of(text: str, old: str) -> list[int]:
    lines: list[int] = []
    at = text.find(old)
    while at >= 0 and len(lines) < MOST_NAMED:
        lines.append(text.count("\n", 0, at) + 1)
        at = text.find(old, at + len(old))
    return lines


def _nearest(text: str, old: str) -> str:
    """Return the line that is most like the first line of what was looked for, as a hint."""
    wanted = next((line for line in old.splitlines() if line.strip()), "")
    near = difflib.get_close_matches(wanted, text.splitlines()[:5_000], n=1, cutoff=0.6)
    return f' The nearest line is: "{near[0][:LINE_CHARS]}".' if near else " Read the file and copy the text exactly."
