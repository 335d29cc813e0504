"""What the inspector says, in the language of the request."""

from collections.abc import Mapping
from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from agents.models.model_call import ModelCall
from agents.runtime.context.placeholders import EARLIER, FORCED, OVERSIZED, RESUMED, SKILL
from agents.runtime.session import RunStatus
from workbench import wording
from workbench.contextwords import number


def tags() -> dict[str, str]:
    """Return the short name of each kind of part, in the order of a request."""
    return {
        "system": pgettext("part of a request", "system"),
        "tools": pgettext("part of a request", "tools"),
        "skills": pgettext("part of a request", "skills"),
        "memory": pgettext("part of a request", "memory"),
        "summary": pgettext("part of a request", "summary"),
        "recall": pgettext("part of a request", "recall"),
        "history": pgettext("part of a request", "history"),
        "results": pgettext("part of a request", "results"),
        "restored": pgettext("part of a request", "restored"),
        "placeholder": pgettext("part of a request", "placeholder"),
        "open": pgettext("part of a request", "open"),
        "dropped": pgettext("part of a request", "dropped"),
        "reserve": pgettext("part of a request", "kept for the answer"),
        "free": pgettext("part of a request", "free"),
    }


def roles() -> dict[str, str]:
    """Return what the roles of messages are called, as a request says them."""
    return {
        "system": _("in the system message"),
        "tools": _("declared beside the messages"),
        "user": _("as a message of the person"),
        "assistant": _("as a message of the assistant"),
        "tool": _("as a result of a tool"),
    }


def instructions() -> dict[str, str]:
    """Return the name of an instruction of the application, by its part's tag."""
    return {
        "continue": _("Instruction to go on where the answer stopped"),
        "tail": _("Instruction for the last step"),
        "fork": _("Instruction to write a summary"),
        "prompt": _("Instruction to write a summary"),
    }


def restored() -> dict[str, str]:
    """Return why something is shown although a summary covers it, by the part's params."""
    return {
        "call": _("From before the boundary of the summary: a result behind it needs its call."),
        "anchor": _("From before the boundary of the summary: it began a turn of which more is shown."),
        "tail": _("From before the boundary of the summary: the latest steps of this run stay whole."),
        "continued": _("From before the boundary of the summary: it is what is gone on with."),
    }


def shortened() -> dict[str, str]:
    """Return why a result is shown in short form, by the placeholder's params."""
    return {
        FORCED: _("Results of this tool are never shown again."),
        EARLIER: _("A large result of an earlier request."),
        OVERSIZED: _("Too large: only its beginning and end are shown."),
        RESUMED: _("Used in an earlier step that a summary covers."),
        SKILL: _("The skill was loaded for what was asked then, and is not in force any more."),
    }


def missing() -> dict[str, str]:
    """Return why a part cannot be shown any more, by what it refers to."""
    return {
        "event": _("The message is not stored any more."),
        "summary": _("The summary is not stored any more."),
        "system": _("The instruction was that of another version; its text is not kept."),
        "instruction": _("The instruction was that of another version; its text is not kept."),
        "tools": _("The tools were declared by another program or another version; their declarations are not kept."),
        "block": _("Its text is not stored any more."),
        "memory": _("Something of it was changed or deleted since. What is forgotten is kept nowhere."),
        "skill": _("The skill was changed or deleted since, or its revision is not kept."),
        "skills": _("The skills were changed since; the list of then is not kept."),
        "unreadable": _("It was written by another version and cannot be read."),
    }


def states() -> dict[str, tuple[str, str]]:
    """Return (colour, word) of a run's state, by RunStatus."""
    return {
        RunStatus.RUNNING: ("live", _("Working")),
        RunStatus.INTERRUPTED: ("warn", _("Waits for an answer")),
        RunStatus.FINISHED: ("ok", _("Done")),
        RunStatus.CANCELLED: ("warn", _("Stopped")),
        RunStatus.FAILED: ("err", _("Failed")),
        RunStatus.LOST: ("err", _("Interrupted")),
    }


def call_name(purpose: str, place: int) -> str:
    """Return the name of a model call. place: its number among the calls for answers of its run, from 1."""
    match purpose:
        case ModelCall.Purpose.CHAT:
            return _("Model call {n}").format(n=place)
        case ModelCall.Purpose.SUMMARY:
            return _("Summary, model call")
        case ModelCall.Purpose.TITLE:
            return _("Title, model call")
        case _:
            return _("Model call of a job")


def job_name(kind: str) -> str:
    """Return the name of a background job."""
    return {
        "title": _("Job: find a title"),
        "summary": _("Job: look whether to summarise"),
        "memory": _("Job: look for what to remember"),
        "review": _("Job: look for what can be learned"),
        "read": _("Job: read a document"),
        "embed": _("Job: make vectors"),
    }.get(kind, _("Job: {kind}").format(kind=kind))


def usage(prompt: int, cached: int, completion: int) -> str:
    """Return the tokens of a call as its provider reported them; "" if it did not."""
    if not prompt and not completion:
        return ""
    words = _("{prompt} in, {completion} out").format(prompt=number(prompt), completion=number(completion))
    return listed(words, _("{percent} cached").format(percent=percent(cached, prompt)) if cached else "")


def percent(part: int, whole: int) -> str:
    """Return the share as people read it; nothing of nothing is 0 %."""
    share = 100 * min(part, whole) / whole if whole else 0.0
    shown = f"{share:.1f}" if 0 < share < 1 else str(round(share))
    return _("{n} %").replace(" ", "\u00a0").format(n=shown)


def clock(at: datetime) -> str:
    """Return the time of day, with the date if that is another day than today."""
    local = timezone.localtime(at)
    return local.strftime("%H:%M:%S" if local.date() == timezone.localdate() else "%Y-%m-%d %H:%M:%S")


def tools_count(count: int) -> str:
    return ngettext("Declarations of {n} tool", "Declarations of {n} tools", count).format(n=number(count))


def unchanged(count: int) -> str:
    return ngettext("{n} part is the same", "{n} parts are the same", count).format(n=number(count))


def became(before: int, after: int) -> str:
    return _("{before} tokens became {after}.").format(before=number(before), after=number(after))


def signed(tokens: int) -> str:
    return f"+{number(tokens)}" if tokens > 0 else f"−{number(-tokens)}" if tokens < 0 else "0"


def waited(milliseconds: float | None) -> str:
    """Return how long the first token took, "" if none came."""
    return "" if milliseconds is None else _("first token after {time}").format(time=duration(milliseconds))


def duration(milliseconds: float) -> str:
    """Return how long something took; below a tenth of a second in milliseconds."""
    if milliseconds < 100:
        return _("{n} ms").replace(" ", "\u00a0").format(n=round(max(milliseconds, 0)))
    return wording.seconds(milliseconds)


def listed(*words: str) -> str:
    """Return those of the words that are not empty, one after the other."""
    return _(", ").join(word for word in words if word)


def checks() -> Mapping[str, str]:
    """Return the first sentence about whether a request could be made again."""
    return {
        "same": _("Made again from what is stored: the same as sent, byte for byte."),
        "differs": _("Made again from what is stored, this differs from what was sent."),
        "unknown": _("This request cannot be made again."),
    }


def reasons() -> Mapping[str, str]:
    """Return why a request could not be made again, or came out different."""
    return {
        "kept": _("Nothing was kept of what was sent."),
        "job": _("It is the request of a job that tells these parts as one text."),
        "changed": _("A hook may have changed it, or another version of the application made it."),
        "parts": _("Some of its parts are not there any more; they are marked below."),
    }


def call_facts() -> dict[str, str]:
    """Return the names of the figures of one call."""
    return {
        "model": _("Model"),
        "time": _("Time"),
        "tokens": _("Tokens, as the provider counted"),
        "estimate": _("Tokens, estimated"),
        "finish": _("Ended by"),
        "error": _("Error"),
    }


def run_facts() -> dict[str, str]:
    """Return the names of the figures of a run."""
    return {
        "state": _("State"),
        "time": _("Time"),
        "calls": _("Model calls"),
        "steps": _("Steps"),
        "prompt": _("Tokens in"),
        "completion": _("Tokens out"),
        "error": _("Error"),
    }


def cached(tokens: int, whole: int) -> str:
    return _("{percent} cached").format(percent=percent(tokens, whole))


def failed(count: int) -> str:
    return _("{n} failed").format(n=count)


def call_elsewhere() -> str:
    return _("the last call before this run")


def was(name: str, tag: str) -> str:
    """Return the name of a part that was of another kind before."""
    return _("{name} (before: {tag})").format(name=name, tag=tag)


def kinds() -> dict[str, str]:
    """Return the kinds of what takes time."""
    return {
        "run": _("Run"),
        "model": _("Model"),
        "tool": pgettext("kind of step", "Tool"),
        "job": pgettext("kind of step", "Job"),
    }


def job_state(status: str, error: str) -> str:
    """Return how far a job is; a job is counted from when it was owed, so its time holds the waiting too."""
    words = {
        "queued": _("waits"),
        "running": _("at work"),
        "done": _("done, with the time it waited"),
        "dead": _("given up"),
    }.get(status, status)
    return f"{words}: {error}" if error and status != "done" else words
