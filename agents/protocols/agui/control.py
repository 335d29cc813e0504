"""Our control frames, server to client. Their `type` is lower case; AG-UI's are upper case.

`requestId` is the client's own, echoed so that it can tell its answers apart; absent if it gave none.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import orjson

SUBPROTOCOL = "agui.v1"


class Closing(StrEnum):
    """Why a socket closes. After `shutdown` and `overload` coming back is worth while."""

    AUTH = "auth"  # not signed in, signed out meanwhile, or a token that is not valid
    PROTOCOL = "protocol"  # too many frames that could not be read
    OVERLOAD = "overload"  # too many sockets, or a client that does not read
    SHUTDOWN = "shutdown"  # the server goes; another takes over, or it comes back


CLOSE_CODES = {Closing.AUTH: 4401, Closing.PROTOCOL: 4400, Closing.OVERLOAD: 4429, Closing.SHUTDOWN: 1012}
RETRYABLE = frozenset({Closing.OVERLOAD, Closing.SHUTDOWN})


def hello(*, version: str, limits: Mapping[str, int]) -> bytes:
    """First frame on every socket. version: the server's. limits: see docs/protocol.md."""
    return _frame("hello", protocol=SUBPROTOCOL, protocolVersion="1.0", version=version, limits=dict(limits))


def accepted(*, what: str, thread_id: str, run_id: str = "", request_id: str = "", duplicate: bool = False) -> bytes:
    """The frame `what` (run, cancel, steer, detach) was taken. duplicate: this run was started by an earlier frame."""
    return _frame(
        "accepted",
        what=what,
        threadId=thread_id,
        runId=run_id,
        requestId=request_id,
        **({"duplicate": True} if duplicate else {}),
    )


def cancel_asked(*, thread_id: str, run_id: str) -> bytes:
    """The answer to a cancel over HTTP: the run was asked to stop."""
    return orjson.dumps({"threadId": thread_id, "runId": run_id})


def rejected(*, code: str, message: str, what: str = "", request_id: str = "", thread_id: str = "") -> bytes:
    """A frame was not taken and nothing changed. code: agents.runtime.errors.Rejected; message is safe to show."""
    return _frame("rejected", code=code, message=message, what=what, requestId=request_id, threadId=thread_id)


def attached(*, thread_id: str, run_id: str | None, mode: str, request_id: str = "") -> bytes:
    """From now on this thread's frames come. mode: replay, snapshot or idle; runId null = nothing runs."""
    frame: dict[str, Any] = {"type": "attached", "threadId": thread_id, "runId": run_id, "mode": mode}
    if request_id:
        frame["requestId"] = request_id
    return orjson.dumps(frame)


def resync(*, thread_id: str, run_id: str) -> bytes:
    """Frames are missing that cannot be had any more: attach again without `after`."""
    return _frame("resync", threadId=thread_id, runId=run_id)


def thread(*, thread_id: str, changed: str) -> bytes:
    """Something about one of the owner's conversations changed: look again. Only a hint, it may get lost.

    changed: run_started, run_ended, title, inbox, seen, line, deleted, restored.
    """
    return _frame("thread", threadId=thread_id, changed=changed)


def documents(*, ids: Sequence[str]) -> bytes:
    """Documents of the owner came, went or changed: look again. Only a hint, it may get lost. ids: at most 200."""
    return _frame("documents", ids=list(ids))


def pong(*, request_id: str = "") -> bytes:
    return _frame("pong", requestId=request_id)


def closing(reason: Closing, *, retry_after_ms: int = 0) -> bytes:
    """The server closes this socket next. Runs go on."""
    return _frame(
        "closing", reason=reason.value, code=CLOSE_CODES[reason], retry=reason in RETRYABLE, retryAfterMs=retry_after_ms
    )


def _frame(kind: str, **members: Any) -> bytes:
    return orjson.dumps({"type": kind, **{name: value for name, value in members.items() if value != ""}})
