"""Which run, session and request a log line belongs to. Set by those who start work, read by the log formatter."""

from contextvars import ContextVar

run_id: ContextVar[str] = ContextVar("run_id", default="")
session_id: ContextVar[str] = ContextVar("session_id", default="")
reference: ContextVar[str] = ContextVar("reference", default="")  # the short id that a person sees on an error
