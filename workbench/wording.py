"""What the page says about a run, in one place for the server's templates and the browser's scripts.

The browser gets `words()` as JSON. Placeholders stand in braces; a sentence about a tool has one {what}, shown bold.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

Lazy = str | Promise


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolWords:
    """How a tool is told to a person. argument: the call's argument that fills {what}; bare: when it is missing."""

    running: Lazy
    done: Lazy
    bare_running: Lazy
    bare_done: Lazy
    phase: Lazy
    argument: str


TOOLS: dict[str, ToolWords] = {
    "read_artifact": ToolWords(
        running=gettext_lazy("Reading {what}"),
        done=gettext_lazy("Read {what}"),
        bare_running=gettext_lazy("Looking at the files"),
        bare_done=gettext_lazy("Looked at the files"),
        phase=gettext_lazy("Read the files"),
        argument="name",
    ),
    "save_artifact": ToolWords(
        running=gettext_lazy("Saving {what}"),
        done=gettext_lazy("Saved {what}"),
        bare_running=gettext_lazy("Saving a file"),
        bare_done=gettext_lazy("Saved a file"),
        phase=gettext_lazy("Saved files"),
        argument="name",
    ),
}
OTHER = ToolWords(
    running=gettext_lazy("Using {what}"),
    done=gettext_lazy("Used {what}"),
    bare_running=gettext_lazy("Using a tool"),
    bare_done=gettext_lazy("Used a tool"),
    phase=gettext_lazy("Worked on it"),
    argument="",
)


def tool_sentence(name: str, arguments: str, *, done: bool) -> tuple[str, str, str]:
    """Return (before, what, after): the intent of a call in a person's words. arguments: JSON as the model wrote it."""
    words = TOOLS.get(name, OTHER)
    what = name if words is OTHER else _argument(arguments, words.argument)
    if not what:
        return (str(words.bare_done if done else words.bare_running), "", "")
    before, _brace, after = str(words.done if done else words.running).partition("{what}")
    return (before, what, after)


def _argument(arguments: str, name: str) -> str:
    try:
        found: Any = json.loads(arguments or "{}")
    except ValueError:
        return ""
    value = found.get(name, "") if isinstance(found, dict) else ""
    if not isinstance(value, str):
        return ""
    if value.startswith("artifact://"):
        value = value.removeprefix("artifact://").rpartition("@")[0] or value
    return value[:120]


def first_line(text: str) -> str:
    """Return the first line with something in it, cut at 160 characters: why a call failed, if nobody summed it up."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "").removeprefix("Error: ")
    return line if len(line) <= 160 else line[:159] + "…"


_PLACE = re.compile(r'(page|line)s? (\d+)(?:-(\d+))?(?:, under "(.*)")?', re.DOTALL)  # artifacts.reading writes it


def tool_note(name: str, summary: str, data: Mapping[str, Any]) -> str:
    """Return what a call brought, in a person's words: for a file that was read the place, else the tool's summary."""
    found = _PLACE.fullmatch(str(data.get("anchor", ""))) if name == "read_artifact" else None
    if found is None:
        return summary
    kind, first, last, heading = found.groups()
    words = run_words()
    place = words[f"{kind}s"].format(n=first, m=last) if last else words[kind].format(n=first)
    return words["under"].format(place=place, heading=heading) if heading else place


def phase_name(tools: list[str]) -> str:
    """Return the summary's first words for a phase that is over: by its tools, "" if it only thought."""
    if not tools:
        return ""
    kinds = {TOOLS.get(t, OTHER).phase for t in tools}
    return str(kinds.pop()) if len(kinds) == 1 else str(OTHER.phase)


def seconds(milliseconds: float) -> str:
    """Return a duration as people read it: "0.4 s", "42 s", "3 min 5 s"."""
    whole = round(milliseconds / 1000)
    if milliseconds < 9_950:
        return _spaced(_("{n} s")).format(n=f"{max(milliseconds, 0) / 1000:.1f}")
    if whole < 60:
        return _spaced(_("{n} s")).format(n=whole)
    return _spaced(_("{m} min {s} s")).format(m=whole // 60, s=whole % 60)


def _spaced(text: str) -> str:
    """Number and unit stay on one line."""
    return text.replace(" ", "\u00a0")


def thought(milliseconds: float) -> str:
    words = run_words()
    return words["thought"].format(time=seconds(milliseconds)) if milliseconds >= 1000 else words["thoughtBriefly"]


def step_count(count: int) -> str:
    return ngettext("{n} step", "{n} steps", count).format(n=count)


def failure(code: str) -> tuple[str, str]:
    """Return (what happened, what is kept and what to do) for an error code of a run; a general pair if unknown."""
    table: dict[str, tuple[str, str]] = {
        "lost": (
            _("This answer stopped early because the server restarted."),
            _("What was written is kept."),
        ),
        "model_busy": (_("The model is busy."), _("Your message is kept. Try again in a moment.")),
        "model_unavailable": (
            _("The model could not be reached."),
            _("Your message is kept. Try again, or ask the administrator to check the connection."),
        ),
        "stream_cut": (
            _("The connection to the model broke in the middle of the answer."),
            _("What was written is kept."),
        ),
        "storage_unavailable": (
            _("The answer could not be stored, so it was stopped."),
            _("Everything up to here is kept. Try again in a moment."),
        ),
        "context_too_long": (
            _("This conversation is longer than the model can read."),
            _("Everything is kept. Start a new conversation, or attach less."),
        ),
        "model_refused": (
            _("The model's provider withheld the answer."),
            _("Your message is kept. Say it in other words and try again."),
        ),
        "model_error": (
            _("The model's provider refused the request."),
            _("Your message is kept. The administrator can see why under the reference."),
        ),
        "empty_answer": (_("The model gave an empty answer."), _("Your message is kept. Try again.")),
        "shutting_down": (
            _("This answer stopped early because the server is restarting."),
            _("What was written is kept."),
        ),
        "run_limit": (_("The answer used up its limit of steps."), _("What was written is kept.")),
        "run_timeout": (_("The answer took longer than allowed."), _("What was written is kept.")),
    }
    return table.get(code, (_("This answer stopped early."), _("What was written is kept.")))


FAILURES = (
    "lost", "model_busy", "model_unavailable", "stream_cut", "storage_unavailable", "context_too_long",
    "model_refused", "model_error", "empty_answer", "shutting_down", "run_limit", "run_timeout", "other",
)  # fmt: skip


def rejections() -> dict[str, str]:
    """Return why a message was not taken, by the code of the `rejected` frame."""
    return {
        "invalid_input": _("The server could not read this message."),
        "run_conflict": _("An answer is already being written here."),
        "run_id_reused": _("This message was already sent."),
        "thread_not_found": _("This conversation does not exist any more."),
        "message_not_found": _("The message it answers does not exist any more."),
        "payload_too_large": _("The message is too large. Attach long text as a file."),
        "rate_limited": _("Too much at once. Wait a moment and retry."),
        "agent_unavailable": _("The assistant is not available."),
        "model_unavailable": _("No model is available."),
        "shutting_down": _("The server is restarting. Retry in a moment."),
        "other": _("The server did not take this message."),
    }


def words() -> dict[str, Any]:
    """Return every string the scripts need, in the language of the request."""
    return {
        "tools": {
            name: {
                "running": str(w.running),
                "done": str(w.done),
                "bareRunning": str(w.bare_running),
                "bareDone": str(w.bare_done),
                "phase": str(w.phase),
                "argument": w.argument,
            }
            for name, w in [*TOOLS.items(), ("*", OTHER)]
        },
        "failures": {code: list(failure(code)) for code in FAILURES},
        "rejections": rejections(),
        **run_words(),
        **_page_words(),
    }


def run_words() -> dict[str, str]:
    """Return the sentences about runs and steps."""
    return {
        "seconds": _spaced(_("{n} s")),
        "minutes": _spaced(_("{m} min {s} s")),
        "step": ngettext("{n} step", "{n} steps", 1),
        "steps": ngettext("{n} step", "{n} steps", 2),
        "working": _("Working"),
        "thinking": _("Thinking"),
        "writing": _("Writing the answer"),
        "starting": _("Starting"),
        "stopping": _("Stopping…"),
        "done": _("Done in {time}"),
        "doneSteps": _("Done in {time}, {steps}"),
        "stopped": _("Stopped by you after {time}"),
        "interrupted": _("Interrupted after {time}"),
        "failed": _("Failed after {time}"),
        "thought": _("Thought for {time}"),
        "thoughtBriefly": _("Thought briefly"),
        "failedCount": _("{n} failed"),
        "preparing": _("{size} of arguments so far"),
        "stillWorking": _("Still working"),
        "wentOn": _("The agent went on without it."),
        "cancelled": _("Cancelled"),
        "lostStep": _("The server restarted before it was done."),
        "timedOut": _("Timed out."),
        "waiting": _("The model is busy. Asking again in {time}."),
        "outOf": _("{done} of {total}"),
        "version": _("version {n}"),
        "page": _("page {n}"),
        "pages": _("pages {n}–{m}"),
        "line": _("line {n}"),
        "lines": _("lines {n}–{m}"),
        "under": _("{place}, under “{heading}”"),
    }


def _page_words() -> dict[str, str]:
    return {
        "you": _("You, {time}"),
        "assistant": _("Assistant, {time}"),
        "sayStarted": _("Answer started"),
        "sayWorking": _("Still working, {steps} done"),
        "sayDone": _("Answer complete, {n} words"),
        "sayStopped": _("Answer stopped"),
        "sayLost": _("Connection lost"),
        "sayBack": _("Connected again"),
        "sayNotSent": _("Message not sent"),
        "reconnecting": _("Reconnecting, your text is kept"),
        "offline": _("Offline for {time}, retrying"),
        "connected": _("Connected again"),
        "signedOut": _("You are signed out. Load the page again to sign in."),
        "notSent": _("Not sent: {reason}"),
        "notYetSent": _("Not sent – you're offline. Your message is saved."),
        "newText": _("New text"),
        "toEnd": _("To the end"),
        "newBlocks": _("New text, {n} blocks"),
        "attachBusy": _("{name}, {n} %"),
        "attachFailed": _("{name}: {reason}"),
        "attachLost": _("upload failed"),
        "remove": _("Remove {name}"),
        "cancelUpload": _("Cancel {name}"),
        "tooManyFiles": _("At most {n} files with one message."),
        "pasted": _("Pasted text.txt"),
        "copied": _("Copied"),
        "copyCode": _("Copy code"),
        "placeholder": _("Ask anything, or attach a file and ask about it"),
        "placeholderRunning": _("Add to this run, or ask the next question"),
        "untitled": _("New conversation"),
        "loadFailed": _("This could not be loaded. Try again."),
    }
