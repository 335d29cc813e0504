"""What of memory belongs to a run: what is put before the model unasked, and what the person said in its turn."""

from agents.runtime.context.injection import Block
from agents.runtime.events import Stored, UserMessage, UserMessageKind
from agents.runtime.invocation import Invocation
from agents.runtime.memory.preloading import preload
from agents.runtime.memory.sources import Said, sources
from agents.runtime.model import TextPart
from agents.runtime.policy import ContextPolicy


async def remembered(invocation: Invocation, policy: ContextPolicy) -> Block | None:
    """Return what of the person's memories fits what is asked; None = nothing is. Never fails."""
    services = invocation.services
    memories = services.memories if services.remembers else None
    if memories is None or not policy.preload_memory:
        return None
    return await preload(memories, question_of(invocation), most=policy.preload_memory, zone=services.zone)


def question_of(invocation: Invocation) -> str:
    """Return what the person asked this run, "" if nothing is to be answered anew."""
    for stored in reversed(invocation.history):
        if (asked := _turn(stored)) is not None:
            return "\n".join(part.text for part in asked.parts if isinstance(part, TextPart))
    return ""


def said_in_turn(invocation: Invocation) -> tuple[Said, ...]:
    """Return what the person typed since the turn that is answered began, in order."""
    history = invocation.history
    begun = next((n for n in range(len(history) - 1, -1, -1) if _turn(history[n])), len(history))
    return sources(history[begun:], invocation.session.thread_id)


def _turn(stored: Stored) -> UserMessage | None:
    record = stored.record
    return record if isinstance(record, UserMessage) and record.kind is UserMessageKind.TURN else None
