"""What the page says about summaries, shortened results and the model's window, for templates and scripts."""

from datetime import datetime

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.runtime.summaries import Source
from agents.runtime.summary.report import Mode, Reason, Told


def script_words() -> dict[str, str | dict[str, str]]:
    """Return what the scripts need, in the language of the request."""
    return {
        "summarising": _("Summarising earlier messages…"),
        "summaryWaits": _("It waits for the background worker. You can go on meanwhile."),
        "summaryUnknown": _("Whether it worked is not known. Load the page again to see."),
        "summaryNotAsked": _("This could not be asked for. Try again."),
        "memoryFailed": _("This could not be done. Nothing was changed; try again."),
        "archivedNow": _("Conversation archived"),
        "unarchivedNow": _("Conversation is in the list again"),
        "compactedOne": _compacted(1),
        "compacted": _compacted(2),
        "windowUsed": _("{percent} of the context window used, show details"),
        "windowOf": _("{used} of {window} tokens"),
        "percent": _("{n} %").replace(" ", "\u00a0"),
        "windowParts": window_parts(),
        "windowSources": window_sources(),
    }


def compacted(results: int) -> str:
    """Return the line that says that results are shown to the model in short form."""
    return _compacted(results).format(n=number(results))


def _compacted(results: int) -> str:
    return ngettext(
        "{n} result of earlier requests is shown to the model in short form; nothing is deleted.",
        "{n} results of earlier requests are shown to the model in short form; nothing is deleted.",
        results,
    )


def window_parts() -> dict[str, str]:
    """Return what each part of a request is called, by its tag, in the order of the request."""
    return {
        "system": _("Instructions"),
        "tools": _("Tools"),
        "skills": _("Skills"),
        "memory": _("Memories"),
        "summary": _("Summary"),
        "recall": _("Found in earlier conversations"),
        "history": _("Messages"),
        "results": _("Results of tools"),
        "placeholder": _("Results in short form"),
        "open": _("What you have open"),
        "dropped": _("Left out, not sent"),
    }


def window_sources() -> dict[str, str]:
    """Return where the size of a window is known from, by the source of runtime.context.window."""
    return {
        "run": _("The size was set for this answer."),
        "settings": _("The size is from the settings."),
        "model": _("The size is what the model's description says."),
        "provider": _("The size is what the model's server says."),
        "registry": _("The size is known for this model."),
        "guess": _("The size is a guess: nobody said how much this model can read."),
    }


def outcome(code: str) -> str:
    """Return what came of a summary that a person asked for. code: a report's reason; any other is a failure."""
    match Reason(code).told if code in set(Reason) else Told.FAILED:
        case Told.DONE:
            return _("Earlier messages are summarised.")
        case Told.NOTHING:
            return _("There is nothing new to summarise.")
        case Told.NO_GAIN:
            return _("A summary would not be shorter than the messages, so none was made.")
        case Told.NO_TEXT:
            return _("There is no text that could be summarised.")
        case Told.OFF:
            return _("Summaries are switched off for this agent.")
        case Told.BUSY:
            return _("A summary is being made already.")
        case Told.FAILED:
            return _("The summary could not be made. Nothing has changed; try again later.")


def coverage(messages: int, first: datetime, last: datetime, *, more: bool) -> str:
    """Return what a summary covers. messages: how many; more: there are more, which were not counted."""
    count = ngettext("{n} message", "{n} messages", messages).format(n=number(messages))
    if more:
        count = _("More than {messages}").format(messages=count)
    return _("{messages}, {span}.").format(messages=count, span=_span(first, last))


def cost(*, prompt: int, cached: int, completion: int, mode: str) -> str:
    """Return what making a summary took, in tokens as the provider reported them; "" if it did not."""
    if mode == Mode.EXTRACTIVE:
        return _("Made without a model, at no cost.")
    if not prompt:
        return ""
    if cached:
        share = round(100 * min(cached, prompt) / prompt)
        return _("It took {prompt} tokens, {percent} % of them from the cache, and {completion} for the text.").format(
            prompt=number(prompt), percent=share, completion=number(completion)
        )
    return _("It took {prompt} tokens and {completion} for the text.").format(
        prompt=number(prompt), completion=number(completion)
    )


def became(covered: int, tokens: int) -> str:
    """Return how much shorter the text is than what it stands for, in estimated tokens."""
    return _("{covered} tokens became {tokens}.").format(covered=number(covered), tokens=number(tokens))


def made(at: datetime, *, source: Source, by: str) -> str:
    """Return when, why and by what a summary was made. by: a model's or a summarizer's name, "" = not known."""
    why = {
        Source.BACKGROUND: _("in the background"),
        Source.RUN: _("while it answered"),
        Source.CALL: _("while it answered"),
        Source.MANUAL: _("because you asked for it"),
        Source.ARCHIVE: _("when it was archived"),
    }[source]
    words = _("Made {when}, {why}, by {by}.") if by else _("Made {when}, {why}.")
    return words.format(when=_moment(at), why=why, by=by)


def number(n: int) -> str:
    return f"{n:,}"  # as the scripts write it, in both languages


def _moment(at: datetime) -> str:
    local = timezone.localtime(at)
    day = date_format(local, _("j M") if local.year == timezone.localdate().year else _("j M Y"))
    return _("{day}, {time}").format(day=day, time=local.strftime("%H:%M"))


def _span(first: datetime, last: datetime) -> str:
    """Return from when to when: a day is said once, a minute too."""
    begin, end = timezone.localtime(first), timezone.localtime(last)
    if begin.strftime("%F %H:%M") == end.strftime("%F %H:%M"):
        return _moment(first)
    if begin.date() == end.date():
        return _("{first} to {last}").format(first=_moment(first), last=end.strftime("%H:%M"))
    return _("{first} to {last}").format(first=_moment(first), last=_moment(last))
