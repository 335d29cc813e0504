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

from workbench import contextwords, documentwords, failurewords

Lazy = str | Promise
RUN_BRIEF_MS = 100  # of a run's time, which is not worth a number below


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolWords:
    """How a tool is told to a person. argument: the call's argument that fills {what}; bare: when it is missing."""

    running: Lazy
    done: Lazy
    failed: Lazy
    bare_running: Lazy
    bare_done: Lazy
    bare_failed: Lazy
    phase: Lazy
    argument: str


TOOLS: dict[str, ToolWords] = {
    "read_artifact": ToolWords(
        running=gettext_lazy("Reading {what}"),
        done=gettext_lazy("Read {what}"),
        failed=gettext_lazy("Could not read {what}"),
        bare_running=gettext_lazy("Looking at the files"),
        bare_done=gettext_lazy("Looked at the files"),
        bare_failed=gettext_lazy("Could not look at the files"),
        phase=gettext_lazy("Read the files"),
        argument="name",
    ),
    "save_artifact": ToolWords(
        running=gettext_lazy("Saving {what}"),
        done=gettext_lazy("Saved {what}"),
        failed=gettext_lazy("Could not save {what}"),
        bare_running=gettext_lazy("Saving a file"),
        bare_done=gettext_lazy("Saved a file"),
        bare_failed=gettext_lazy("Could not save a file"),
        phase=gettext_lazy("Saved files"),
        argument="name",
    ),
    "edit_artifact": ToolWords(
        running=gettext_lazy("Changing {what}"),
        done=gettext_lazy("Changed {what}"),
        failed=gettext_lazy("Could not change {what}"),
        bare_running=gettext_lazy("Changing a file"),
        bare_done=gettext_lazy("Changed a file"),
        bare_failed=gettext_lazy("Could not change a file"),
        phase=gettext_lazy("Changed files"),
        argument="name",
    ),
    "search_knowledge": ToolWords(
        running=gettext_lazy("Searching for {what}"),
        done=gettext_lazy("Searched for {what}"),
        failed=gettext_lazy("Could not search for {what}"),
        bare_running=gettext_lazy("Searching the documents"),
        bare_done=gettext_lazy("Searched the documents"),
        bare_failed=gettext_lazy("Could not search the documents"),
        phase=gettext_lazy("Searched the documents"),
        argument="query",
    ),
    "read_document": ToolWords(
        running=gettext_lazy("Reading {what}"),
        done=gettext_lazy("Read {what}"),
        failed=gettext_lazy("Could not read {what}"),
        bare_running=gettext_lazy("Reading a document"),
        bare_done=gettext_lazy("Read a document"),
        bare_failed=gettext_lazy("Could not read a document"),
        phase=gettext_lazy("Read the documents"),
        argument="document",
    ),
    "list_documents": ToolWords(
        running=gettext_lazy("Looking for documents named {what}"),
        done=gettext_lazy("Looked for documents named {what}"),
        failed=gettext_lazy("Could not look for documents named {what}"),
        bare_running=gettext_lazy("Looking at the list of documents"),
        bare_done=gettext_lazy("Looked at the list of documents"),
        bare_failed=gettext_lazy("Could not look at the list of documents"),
        phase=gettext_lazy("Looked at the list of documents"),
        argument="query",
    ),
    "session_search": ToolWords(
        running=gettext_lazy("Looking for {what} in earlier messages"),
        done=gettext_lazy("Looked for {what} in earlier messages"),
        failed=gettext_lazy("Could not look for {what} in earlier messages"),
        bare_running=gettext_lazy("Looking through earlier messages"),
        bare_done=gettext_lazy("Looked through earlier messages"),
        bare_failed=gettext_lazy("Could not look through earlier messages"),
        phase=gettext_lazy("Looked through earlier messages"),
        argument="query",
    ),
    "session_load": ToolWords(
        running=gettext_lazy("Reading {what}"),
        done=gettext_lazy("Read {what}"),
        failed=gettext_lazy("Could not read {what}"),
        bare_running=gettext_lazy("Reading an earlier message"),
        bare_done=gettext_lazy("Read an earlier message"),
        bare_failed=gettext_lazy("Could not read an earlier message"),
        phase=gettext_lazy("Looked through earlier messages"),
        argument="",  # its ids say nothing to a person
    ),
    "memory_search": ToolWords(
        running=gettext_lazy("Looking for {what} in your memories"),
        done=gettext_lazy("Looked for {what} in your memories"),
        failed=gettext_lazy("Could not look for {what} in your memories"),
        bare_running=gettext_lazy("Looking through your memories"),
        bare_done=gettext_lazy("Looked through your memories"),
        bare_failed=gettext_lazy("Could not look through your memories"),
        phase=gettext_lazy("Looked through your memories"),
        argument="query",
    ),
    "memory_load": ToolWords(
        running=gettext_lazy("Looking through your memories"),
        done=gettext_lazy("Looked through your memories"),
        failed=gettext_lazy("Could not look through your memories"),
        bare_running=gettext_lazy("Looking through your memories"),
        bare_done=gettext_lazy("Looked through your memories"),
        bare_failed=gettext_lazy("Could not look through your memories"),
        phase=gettext_lazy("Looked through your memories"),
        argument="",
    ),
    "memory_add": ToolWords(
        running=gettext_lazy("Remembering {what}"),
        done=gettext_lazy("Remembered {what}"),
        failed=gettext_lazy("Could not remember {what}"),
        bare_running=gettext_lazy("Remembering something"),
        bare_done=gettext_lazy("Remembered something"),
        bare_failed=gettext_lazy("Could not remember something"),
        phase=gettext_lazy("Changed your memories"),
        argument="memory",
    ),
    "memory_update": ToolWords(
        running=gettext_lazy("Changing a memory to {what}"),
        done=gettext_lazy("Changed a memory to {what}"),
        failed=gettext_lazy("Could not change a memory to {what}"),
        bare_running=gettext_lazy("Changing a memory"),
        bare_done=gettext_lazy("Changed a memory"),
        bare_failed=gettext_lazy("Could not change a memory"),
        phase=gettext_lazy("Changed your memories"),
        argument="memory",
    ),
    "memory_delete": ToolWords(
        running=gettext_lazy("Deleting a memory"),
        done=gettext_lazy("Deleted a memory"),
        failed=gettext_lazy("Could not delete a memory"),
        bare_running=gettext_lazy("Deleting a memory"),
        bare_done=gettext_lazy("Deleted a memory"),
        bare_failed=gettext_lazy("Could not delete a memory"),
        phase=gettext_lazy("Changed your memories"),
        argument="",  # its id says nothing to a person
    ),
    "memory_clear": ToolWords(
        running=gettext_lazy("Deleting all memories"),
        done=gettext_lazy("Deleted all memories"),
        failed=gettext_lazy("Could not delete the memories"),
        bare_running=gettext_lazy("Deleting all memories"),
        bare_done=gettext_lazy("Deleted all memories"),
        bare_failed=gettext_lazy("Could not delete the memories"),
        phase=gettext_lazy("Changed your memories"),
        argument="",
    ),
    "skill_load": ToolWords(
        running=gettext_lazy("Reading the skill {what}"),
        done=gettext_lazy("Read the skill {what}"),
        failed=gettext_lazy("Could not read the skill {what}"),
        bare_running=gettext_lazy("Reading a skill"),
        bare_done=gettext_lazy("Read a skill"),
        bare_failed=gettext_lazy("Could not read a skill"),
        phase=gettext_lazy("Read the skills"),
        argument="skill",
    ),
    "skill_list_docs": ToolWords(
        running=gettext_lazy("Looking at the documents of the skill {what}"),
        done=gettext_lazy("Looked at the documents of the skill {what}"),
        failed=gettext_lazy("Could not look at the documents of the skill {what}"),
        bare_running=gettext_lazy("Looking at the documents of a skill"),
        bare_done=gettext_lazy("Looked at the documents of a skill"),
        bare_failed=gettext_lazy("Could not look at the documents of a skill"),
        phase=gettext_lazy("Read the skills"),
        argument="skill",
    ),
    "skill_select_docs": ToolWords(
        running=gettext_lazy("Reading documents of the skill {what}"),
        done=gettext_lazy("Read documents of the skill {what}"),
        failed=gettext_lazy("Could not read documents of the skill {what}"),
        bare_running=gettext_lazy("Reading documents of a skill"),
        bare_done=gettext_lazy("Read documents of a skill"),
        bare_failed=gettext_lazy("Could not read documents of a skill"),
        phase=gettext_lazy("Read the skills"),
        argument="skill",
    ),
    "workspace_exec": ToolWords(
        running=gettext_lazy("Running code"),
        done=gettext_lazy("Ran code"),
        failed=gettext_lazy("Could not run code"),
        bare_running=gettext_lazy("Running code"),
        bare_done=gettext_lazy("Ran code"),
        bare_failed=gettext_lazy("Could not run code"),
        phase=gettext_lazy("Worked with code"),
        argument="",
    ),
    "workspace_write_stdin": ToolWords(
        running=gettext_lazy("Looking at a running command"),
        done=gettext_lazy("Looked at a running command"),
        failed=gettext_lazy("Could not look at a running command"),
        bare_running=gettext_lazy("Looking at a running command"),
        bare_done=gettext_lazy("Looked at a running command"),
        bare_failed=gettext_lazy("Could not look at a running command"),
        phase=gettext_lazy("Worked with code"),
        argument="",
    ),
    "workspace_kill_session": ToolWords(
        running=gettext_lazy("Ending a running command"),
        done=gettext_lazy("Ended a running command"),
        failed=gettext_lazy("Could not end a running command"),
        bare_running=gettext_lazy("Ending a running command"),
        bare_done=gettext_lazy("Ended a running command"),
        bare_failed=gettext_lazy("Could not end a running command"),
        phase=gettext_lazy("Worked with code"),
        argument="",
    ),
    "workspace_save_artifact": ToolWords(
        running=gettext_lazy("Saving {what}"),
        done=gettext_lazy("Saved {what}"),
        failed=gettext_lazy("Could not save {what}"),
        bare_running=gettext_lazy("Saving a file"),
        bare_done=gettext_lazy("Saved a file"),
        bare_failed=gettext_lazy("Could not save a file"),
        phase=gettext_lazy("Saved files"),
        argument="path",
    ),
    "skill_run": ToolWords(
        running=gettext_lazy("Running code of the skill {what}"),
        done=gettext_lazy("Ran code of the skill {what}"),
        failed=gettext_lazy("Could not run code of the skill {what}"),
        bare_running=gettext_lazy("Running code of a skill"),
        bare_done=gettext_lazy("Ran code of a skill"),
        bare_failed=gettext_lazy("Could not run code of a skill"),
        phase=gettext_lazy("Worked with code"),
        argument="skill",
    ),
}
CODE_TOOLS = ("workspace_exec", "workspace_write_stdin", "skill_run")
OTHER = ToolWords(
    running=gettext_lazy("Using {what}"),
    done=gettext_lazy("Used {what}"),
    failed=gettext_lazy("{what} did not work"),
    bare_running=gettext_lazy("Using a tool"),
    bare_done=gettext_lazy("Used a tool"),
    bare_failed=gettext_lazy("A tool did not work"),
    phase=gettext_lazy("Worked on it"),
    argument="",
)


def tool_sentence(name: str, arguments: str, state: str) -> tuple[str, str, str]:
    """Return (before, what, after): the intent of a call in a person's words. arguments: JSON as the model wrote it.

    state: running, done, failed, cancelled; what was cancelled was only begun.
    """
    words = TOOLS.get(name, OTHER)
    what = name if words is OTHER else _argument(arguments, words.argument)
    whole = {"done": words.done, "failed": words.failed}.get(state, words.running)
    bare = {"done": words.bare_done, "failed": words.bare_failed}.get(state, words.bare_running)
    if not what:
        return (str(bare), "", "")
    before, _brace, after = str(whole).partition("{what}")
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


_CODE = re.compile(r"```.*?(?:```|$)|`[^`\n]*`", re.DOTALL)
_HAN = re.compile("[\u3400-\u9fff]")
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]+")
_KANA_HANGUL = re.compile("[\u3040-\u30ff\uac00-\ud7af]")


def language(text: str) -> str:
    """Return what a text is mostly written in, by its script: "zh-CN", "en", or "" if it is neither. As in words.js.

    A Chinese character weighs as much as a Latin word; code does not count.
    """
    said = _CODE.sub(" ", text)
    han, words = len(_HAN.findall(said)), len(_LATIN.findall(said))
    if not han + words or _KANA_HANGUL.search(said):
        return ""
    return "zh-CN" if han >= words else "en"


_PLACE = re.compile(  # artifacts.reading and runtime.knowledge.stretch_words write it
    r'(?:sheet (.*), )?(page|line|row)s? (\d+)(?:-(\d+))?(?:, under "(.*)")?', re.DOTALL
)


def tool_note(name: str, summary: str, data: Mapping[str, Any]) -> str:
    """Return what a call brought, in a person's words: a place, what a search counted, else the tool's summary."""
    if name == "search_knowledge" and "hits" in data:
        documents = data.get("documents", 0)
        return _found_note(
            len(data["hits"]),
            ngettext("{n} passage", "{n} passages", len(data["hits"])),
            ngettext("{n} document", "{n} documents", documents).format(n=documents),
        )
    if name == "session_search" and "hits" in data:
        conversations = data.get("conversations", 0)
        return _found_note(
            len(data["hits"]),
            ngettext("{n} message", "{n} messages", len(data["hits"])),
            ngettext("{n} conversation", "{n} conversations", conversations).format(n=conversations),
        )
    if name == "session_load" and "count" in data:
        return ngettext("{n} message", "{n} messages", data["count"]).format(n=data["count"])
    if name in ("memory_search", "memory_load") and "count" in data:
        count = data["count"]
        return ngettext("{n} memory", "{n} memories", count).format(n=count) if count else _("nothing found")
    if name in CODE_TOOLS and "status" in data:
        return _code_note(data)
    if name == "list_documents" and "documents" in data:
        return ngettext("{n} document", "{n} documents", data["documents"]).format(n=data["documents"])
    found = _PLACE.fullmatch(str(data.get("anchor", ""))) if name in ("read_artifact", "read_document") else None
    if found is None:
        return summary
    sheet, kind, first, last, heading = found.groups()
    words = run_words()
    place = words[f"{kind}s"].format(n=first, m=last) if last else words[kind].format(n=first)
    if sheet:
        place = words["inSheet"].format(sheet=sheet, place=place)
    return words["under"].format(place=place, heading=heading) if heading else place


def _code_note(data: Mapping[str, Any]) -> str:
    """Return how code ended, if not well, and how many files it wrote."""
    words, code, files = run_words(), data.get("exit_code"), len(data.get("files", ()))
    if data["status"] != "exited":
        return words["goesOn"] if data["status"] == "running" else ""
    ended = words.get(f"stopped_{data.get('stopped')}", "") or (words["exitStatus"].format(n=code) if code else "")
    wrote = ngettext("{n} file written", "{n} files written", files).format(n=files) if files else ""
    return " · ".join(part for part in (ended, wrote) if part)


def _found_note(hits: int, found: str, places: str) -> str:
    if not hits:
        return _("nothing found")
    return _("{passages} from {documents}").format(passages=found.format(n=hits), documents=places)


def phase_name(tools: list[tuple[str, str]]) -> str:
    """Return the summary's first words for a phase that is over, "" if it only thought.

    tools: (name, state) of its calls. By what they did; if nothing was done, no more is said than that it was tried.
    """
    if not tools:
        return ""
    kinds = {TOOLS.get(name, OTHER).phase for name, state in tools if state == "done"}
    return str(kinds.pop()) if len(kinds) == 1 else str(OTHER.phase)


def run_over(state: str, milliseconds: float, steps: int) -> str:
    """Return the line over a run that is over. state: done, stopped, lost, failed. A tenth of a second is no time."""
    key = {"done": "doneSteps" if steps else "done", "stopped": "stopped", "lost": "interrupted"}.get(state, "failed")
    words = run_words()[key if milliseconds >= RUN_BRIEF_MS else f"{key}AtOnce"]
    return words.format(time=seconds(milliseconds), steps=step_count(steps))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Starter:
    """A beginning for an empty conversation. text: what it puts into the field; file: it wants one attached."""

    title: str
    hint: str
    text: str
    file: bool = False


def starters() -> tuple[Starter, ...]:
    """Return beginnings for an empty conversation; each is something that also works without a language model."""
    return (
        Starter(
            title=_("Summarise a file"),
            hint=_("Attach a document"),
            text=_("Summarise the attached file in a few points."),
            file=True,
        ),
        Starter(
            title=_("Find something in a file"),
            hint=_("The answer names the page or line"),
            text=_("What does the attached file say about "),
            file=True,
        ),
        Starter(
            title=_("Write a report"),
            hint=_("From your documents, with its sources"),
            text=_("Write a report about "),
        ),
        Starter(
            title=_("Write a note"),
            hint=_("Saved as a file, with versions"),
            text=_("Save as a note: "),
        ),
    )


def words() -> dict[str, Any]:
    """Return every string the scripts need, in the language of the request."""
    return {
        "tools": {
            name: {
                "running": str(w.running),
                "done": str(w.done),
                "failed": str(w.failed),
                "bareRunning": str(w.bare_running),
                "bareDone": str(w.bare_done),
                "bareFailed": str(w.bare_failed),
                "phase": str(w.phase),
                "argument": w.argument,
            }
            for name, w in [*TOOLS.items(), ("*", OTHER)]
        },
        "failures": failurewords.failures(),
        "rejections": failurewords.rejections(),
        "toolFailures": failurewords.tool_failures(),
        **run_words(),
        **_page_words(),
        **documentwords.script_words(),
        **contextwords.script_words(),
    }


def run_words() -> dict[str, str]:
    """Return the sentences about runs and steps."""
    return {
        "seconds": _spaced(_("{n} s")),
        "minutes": _spaced(_("{m} min {s} s")),
        "step": ngettext("{n} step", "{n} steps", 1),
        "steps": ngettext("{n} step", "{n} steps", 2),
        "goesOn": _("it goes on"),
        "exitStatus": _("exit status {n}"),
        "stopped_time": _("stopped: its time was over"),
        "stopped_memory": _("stopped: it used too much memory"),
        "stopped_disk": _("stopped: it wrote too much"),
        "fileWritten": ngettext("{n} file written", "{n} files written", 1),
        "filesWritten": ngettext("{n} file written", "{n} files written", 2),
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
        "doneAtOnce": _("Done"),
        "doneStepsAtOnce": _("Done, {steps}"),
        "stoppedAtOnce": _("Stopped by you"),
        "interruptedAtOnce": _("Interrupted"),
        "failedAtOnce": _("Failed"),
        "thought": _("Thought for {time}"),
        "thoughtBriefly": _("Thought briefly"),
        "failedCount": _("{n} failed"),
        "preparing": _("{size} of arguments so far"),
        "stillWorking": _("Still working"),
        "wentOn": _("{reason} The agent went on without it."),
        "cancelled": _("Cancelled"),
        "waiting": _("The model is busy. Asking again in {time}."),
        "outOf": _("{done} of {total}"),
        "version": _("version {n}"),
        "page": _("page {n}"),
        "pages": _("pages {n}–{m}"),
        "line": _("line {n}"),
        "lines": _("lines {n}–{m}"),
        "row": _("row {n}"),
        "rows": _("rows {n}–{m}"),
        "inSheet": _("sheet “{sheet}”, {place}"),
        "under": _("{place}, under “{heading}”"),
        "nothingFound": _("nothing found"),
        "found": _("{passages} from {documents}"),
        "passage": ngettext("{n} passage", "{n} passages", 1),
        "passages": ngettext("{n} passage", "{n} passages", 2),
        "document": ngettext("{n} document", "{n} documents", 1),
        "documents": ngettext("{n} document", "{n} documents", 2),
        "message": ngettext("{n} message", "{n} messages", 1),
        "messages": ngettext("{n} message", "{n} messages", 2),
        "memory": ngettext("{n} memory", "{n} memories", 1),
        "memories": ngettext("{n} memory", "{n} memories", 2),
        "conversation": ngettext("{n} conversation", "{n} conversations", 1),
        "conversations": ngettext("{n} conversation", "{n} conversations", 2),
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
