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

`code` is the wire code. The docstring of a class is its default message. Errors do not log.
"""


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

    code = "tool_failed"


class ToolTimeout(ToolFailed):
    """The tool did not answer in time."""

    code = "timeout"


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
