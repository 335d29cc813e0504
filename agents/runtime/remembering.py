"""What is remembered of a person, put before the model unasked."""

from agents.runtime.context.injection import Block
from agents.runtime.events import UserMessage, UserMessageKind
from agents.runtime.invocation import Invocation
from agents.runtime.memory.preloading import preload
from agents.runtime.model import TextPart
from agents.runtime.policy import ContextPolicy


async def remembered(invocation: Invocation, policy: ContextPolicy) -> Block | None:
    """Return what of the person's memories fits what is asked; None = nothing is. Never fails."""
    memories = invocation.services.memories
    if memories is None or not policy.preload_memory:
        return None
    return await preload(memories, question_of(invocation), most=policy.preload_memory, zone=invocation.services.zone)


def question_of(invocation: Invocation) -> str:
    """Return what the person asked this run, "" if nothing is to be answered anew."""
    for stored in reversed(invocation.history):
        record = stored.record
        if isinstance(record, UserMessage) and record.kind is UserMessageKind.TURN:
            return "\n".join(part.text for part in record.parts if isinstance(part, TextPart))
    return ""
