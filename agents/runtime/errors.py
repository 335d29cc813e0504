"""Every way a request or a run can fail, as one tree.

    AgentError
    + Rejected                a request that cannot become a run: answered at the door, no event stream
    + ToolFailed              goes to the model as a tool result; the run goes on
      x ToolTimeout
    + RunError                ends the run; `code` and message reach the person
      x LimitExceeded         a budget of calls, turns or time is used up (deliberate stop)
      x RunTimeout            the run's time is over
      x RecordInvalid         something the run made cannot be stored
      x ModelError            the provider refused, and asking again will not help
        - ContextTooLong      the request is larger than the model's window
        - ModelRefused        the provider's filter withheld the answer
      x Retryable             asking again may help
        - ModelUnavailable    no connection, 5xx or time-out before the first token
        - ModelBusy           429: too many requests
        - StreamCut           the connection broke after the first token; partial text is kept
        - StorageUnavailable  the database stayed away
        - EmptyAnswer         the model ended its answer without a word
        - ServerStopping      this process was told to stop; partial text is kept
    + RunFenced               another process closed this run; the owner stops without a word

`code` is the wire code; a failed tool's is one of ToolFailure. The docstring of a class is its default message. Errors
do not log.
"""

from enum import StrEnum


class ToolFailure(StrEnum):
    """Why a call failed. The model reads the tool's own English; people read a sentence made of this code."""

    TOOL_FAILED = "tool_failed"  # the tool's own words say more
    TOOL_NOT_FOUND = "tool_not_found"
    ARGUMENTS_INVALID = "arguments_invalid"
    ARGUMENTS_CUT = "arguments_cut"
    UNEXPECTED = "unexpected"
    TIMEOUT = "timeout"
    DENIED = "denied"
    APPROVAL_REQUIRED = "approval_required"
    CANCELLED = "cancelled"
    LOST = "lost"  # the server stopped
    RUN_ENDED = "run_ended"  # the run failed before it was done
    FILE_NOT_FOUND = "file_not_found"
    VERSION_NOT_FOUND = "version_not_found"
    FILE_UNAVAILABLE = "file_unavailable"  # the row is there, the bytes are gone or changed
    FILE_NOT_READ = "file_not_read"  # not the file's fault; another try may do
    FILE_ENCRYPTED = "file_encrypted"
    FILE_BROKEN = "file_broken"
    FILE_SCANNED = "file_scanned"  # its pages are pictures
    FILE_PICTURE = "file_picture"  # nothing is wrong with it
    FILE_EMPTY = "file_empty"
    FILE_TOO_LARGE = "file_too_large"  # unpacks to too much
    FILE_TOO_SLOW = "file_too_slow"
    FILE_UNSUPPORTED = "file_unsupported"
    PLACE_INVALID = "place_invalid"
    PLACE_NOT_FOUND = "place_not_found"
    NAME_INVALID = "name_invalid"
    NAME_NOT_TEXT = "name_not_text"
    CONTENT_TOO_LARGE = "content_too_large"
    FILE_NOT_KEPT = "file_not_kept"
    CONVERSATION_GONE = "conversation_gone"
    VERSION_CONFLICT = "version_conflict"  # somebody saved a newer version meanwhile
    EDIT_NOT_FOUND = "edit_not_found"  # what is to be replaced is not there, or stands there more than once
    DOCUMENT_NOT_FOUND = "document_not_found"  # not in what the person chose to answer from
    DOCUMENT_UNREAD = "document_unread"  # has no text, or not yet
    EVENT_NOT_FOUND = "event_not_found"  # no such message or result in the person's conversations
    PAST_NOT_READ = "past_not_read"  # not the request's fault; another try may do
    MEMORY_OFF = "memory_off"  # nothing is remembered for this person
    MEMORY_NOT_FOUND = "memory_not_found"
    MEMORY_NOT_READ = "memory_not_read"  # not the request's fault; another try may do
    MEMORY_NOT_SAID = "memory_not_said"  # only what the person says themselves is remembered
    MEMORY_NOT_ASKED = "memory_not_asked"  # nothing is forgotten unless the person asks for it
    MEMORY_CHANGED = "memory_changed"  # meanwhile, or another one says this
    SKILL_NOT_FOUND = "skill_not_found"  # no such skill, or none that this person may see
    SKILL_NOT_LOADED = "skill_not_loaded"  # it has to be read first
    SKILL_NOT_READ = "skill_not_read"  # not the request's fault; another try may do
    CODE_UNAVAILABLE = "code_unavailable"  # no executor is set up
    CODE_NOT_RUN = "code_not_run"  # the executor's fault, not the code's; another try may do
    COMMAND_REFUSED = "command_refused"  # by the installation's list, or there is no shell
    PROCESS_NOT_FOUND = "process_not_found"  # a command that goes on: none of this conversation


class AgentError(Exception):
    """Something went wrong."""

    code = "error"

    def __init__(self, message: str = "") -> None:
        self.message = message or (self.__class__.__doc__ or "").strip()
        super().__init__(self.message)


class Rejected(AgentError):
    """The request cannot become a run.

    code: one of invalid_input, unsupported_role, unknown_tool_call, tool_results_incomplete,
    tool_result_duplicate, run_conflict, run_id_reused, thread_not_found, message_not_found,
    payload_too_large, rate_limited, agent_unavailable, model_unavailable, shutting_down.
    """

    def __init__(self, code: str, message: str = "") -> None:
        self.code = code
        super().__init__(message or code.replace("_", " ").capitalize() + ".")


class ToolFailed(AgentError):
    """The tool failed."""

    code: ToolFailure = ToolFailure.TOOL_FAILED

    def __init__(self, message: str = "", code: ToolFailure | None = None) -> None:
        self.code = code or type(self).code
        super().__init__(message)


class ToolTimeout(ToolFailed):
    """The tool did not answer in time."""

    code = ToolFailure.TIMEOUT


class RunError(AgentError):
    """The run ended with an error."""

    code = "run_failed"


class LimitExceeded(RunError):
    """The run used up its limit."""

    code = "run_limit"


class RunTimeout(RunError):
    """The run took longer than allowed."""

    code = "run_timeout"


class RecordInvalid(RunError):
    """Something the run made could not be stored."""

    code = "record_invalid"


class ModelError(RunError):
    """The model's provider refused the request."""

    code = "model_error"


class ContextTooLong(ModelError):
    """The conversation is longer than the model can read."""

    code = "context_too_long"


class ModelRefused(ModelError):
    """The model's provider withheld the answer."""

    code = "model_refused"


class Retryable(RunError):
    """The run ended with an error that may pass."""

    code = "temporary"

    def __init__(self, message: str = "", *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ModelUnavailable(Retryable):
    """The model could not be reached."""

    code = "model_unavailable"


class ModelBusy(Retryable):
    """The model is busy."""

    code = "model_busy"


class StreamCut(Retryable):
    """The connection to the model broke in the middle of the answer."""

    code = "stream_cut"


class StorageUnavailable(Retryable):
    """The database could not be reached."""

    code = "storage_unavailable"


class EmptyAnswer(Retryable):
    """The model gave an empty answer."""

    code = "empty_answer"


class ServerStopping(Retryable):
    """The server is restarting. What was written is kept."""

    code = "shutting_down"


class RunFenced(AgentError):
    """Another process closed this run."""

    code = "lost"
