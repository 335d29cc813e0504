"""What the last request of a conversation took of its model's window, as the meter in the composer shows it."""

from typing import Any

from agents import wiring
from agents.models.session import Session
from agents.protocols.agui import contexts
from agents.runtime.context.assemble import window_used
from agents.stores import modelcalls


def of_session(session: Session) -> dict[str, Any] | None:
    """Return what CUSTOM `workbench.context` told of the last call for an answer; None if there was none."""
    call = modelcalls.last_chat(owner_id=session.owner_id, session_id=session.pk)
    if call is None or not call.parts:
        return None
    return contexts.value(
        window_used([modelcalls.load_part(part) for part in call.parts], wiring.window_of(call.model))
    )
