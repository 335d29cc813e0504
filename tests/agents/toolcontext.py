"""What a tool is called with, in tests that call tools by themselves."""

from datetime import UTC, datetime
from typing import Any

from agents.runtime.artifacts import ArtifactStore
from agents.runtime.session import CancelToken
from agents.runtime.tools import ToolContext


def tool_context(artifacts: ArtifactStore, **more: Any) -> ToolContext:
    """Return the context of a call of owner 1. more: other fields of ToolContext."""
    return ToolContext(
        owner_id=1,
        session_id="1",
        run_id="run-1",
        invocation_id="i",
        call_id="call-1",
        cancel=CancelToken(),
        artifacts=artifacts,
        state={},
        now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
        **more,
    )
