"""What the page says when something failed: a run, a request, a tool. By code, never by the failure's own text."""

from django.utils.translation import gettext as _


def failures() -> dict[str, tuple[str, str]]:
    """Return (what happened, what is kept and what to do) by the error code of a run; "other" for any not listed."""
    return {
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
        "other": (_("This answer stopped early."), _("What was written is kept.")),
    }


def failure(code: str) -> tuple[str, str]:
    """Return the pair of `failures` for an error code of a run."""
    table = failures()
    return table.get(code, table["other"])


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


def tool_failures() -> dict[str, str]:
    """Return why a call failed, by errors.ToolFailure. {reason}: the first line of what the tool said itself."""
    scanned = _("It has no text: its pages are pictures (a scan). Use a version with text (OCR).")
    return {
        "tool_failed": _("The tool says: {reason}"),
        "tool_not_found": _("There is no such tool."),
        "arguments_invalid": _("The agent called it wrongly."),
        "arguments_cut": _("The call was cut off before its end, so nothing was done."),
        "unexpected": _("The tool failed with an unexpected error."),
        "timeout": _("Timed out."),
        "denied": _("This is not allowed."),
        "approval_required": _("This needs a person's approval, and it can't be asked for here. It was not done."),
        "cancelled": _("Cancelled"),
        "lost": _("The server restarted before it was done."),
        "run_ended": _("The answer stopped before it was done."),
        "file_not_found": _("There is no such file in this conversation."),
        "version_not_found": _("The file has no such version."),
        "file_unavailable": _("The file's content is gone."),
        "file_not_read": _("The file could not be read just now."),
        "file_encrypted": _("It is protected by a password. Save it without one and attach it again."),
        "file_broken": _("It is broken: it does not hold what its type says. Save or export it again."),
        "file_scanned": scanned,
        "file_picture": _("It is a picture: it has no text to read or search."),
        "file_empty": _("It holds no text."),
        "file_too_large": _("It unpacks to more than can be read. Split it and attach the parts."),
        "file_too_slow": _("It took too long to read. Split it and attach the parts."),
        "file_unsupported": _("No text can be read from files of this type."),
        "place_invalid": _("The agent asked for a place that can't be in a file."),
        "place_not_found": _("The file has no such page, line or place."),
        "name_invalid": _("The file name is not allowed."),
        "name_not_text": _("Only text can be saved, and this name is for another kind of file."),
        "content_too_large": _("The content is too large to save."),
        "file_not_kept": _("The file could not be stored. Nothing was saved."),
        "conversation_gone": _("This conversation does not exist any more."),
        "version_conflict": _("The file was changed meanwhile. Look at the newer version first."),
        "edit_not_found": _("The text to replace is not in the file, or stands there more than once."),
        "document_not_found": _("There is no such document among those to answer from."),
        "document_unread": _("Its text can't be read, or not yet."),
        "event_not_found": _("There is no such message in your conversations."),
        "past_not_read": _("Earlier messages could not be read just now."),
        "memory_off": _("Memory is switched off."),
        "memory_not_found": _("There is no such memory."),
        "memory_not_read": _("What is remembered could not be read just now."),
        "memory_not_said": _("Only what you say yourself is remembered. Nothing was saved."),
        "memory_not_asked": _("You did not ask to have this forgotten. Nothing was removed."),
        "memory_changed": _("The memory was changed meanwhile, or another one says the same."),
        "skill_not_found": _("There is no such skill."),
        "skill_not_loaded": _("The agent had not read the skill yet."),
        "skill_not_read": _("The skills could not be read just now."),
        "code_unavailable": _("No code can be run here."),
        "code_not_run": _("The code could not be run: {reason}"),
        "command_refused": _("This command is not allowed here."),
        "process_not_found": _("This command does not run any more."),
    }


def tool_failure(code: str, said: str) -> str:
    """Return why a call failed, in a person's words. said: the tool's own, for what only it knows."""
    table = tool_failures()
    return table.get(code, table["tool_failed"]).format(reason=first_line(said))


def first_line(text: str) -> str:
    """Return the first line with something in it, cut at 160 characters: why a call failed, if nobody summed it up."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "").removeprefix("Error: ")
    return line if len(line) <= 160 else line[:159] + "…"
