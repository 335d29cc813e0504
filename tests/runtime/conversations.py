"""Histories to make requests of, and what every request must keep to."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agents.runtime.context.assemble import Assembled, Frame, View, assemble
from agents.runtime.context.digests import sha256, tools_sha256
from agents.runtime.context.rendering import render
from agents.runtime.context.window import Window
from agents.runtime.context.words import CONTINUE
from agents.runtime.events import (
    AssistantMessage,
    ContextCompacted,
    Origin,
    Outcome,
    Record,
    RunFailed,
    RunFinished,
    RunStarted,
    Stored,
    ToolReturned,
    UserMessageKind,
)
from agents.runtime.model import Message, ModelRequest, Role, ToolCall
from agents.runtime.policy import ContextPolicy
from agents.runtime.summaries import Boundary, Summary
from agents.runtime.testing import said
from agents.runtime.tokens import estimate_record
from tests.runtime.samples import AT, tool

WIDE = Window(tokens=1_000_000, source="run")
POLICY = ContextPolicy(keep_rounds=0, keep_tokens=0, compact_step=0.0)
FRAME = Frame(instruction="You help.", tools=(tool("look").spec,))
LOADING = Frame(instruction="You help.", tools=(tool("look").spec, tool("session_load").spec))


@dataclass(slots=True)
class Chat:
    """A conversation that grows. Positions count from 1; a run's events carry its id and one invocation."""

    events: list[Stored] = field(default_factory=list)
    run: str = "r0"
    key: str = "a"
    after: int = 0

    def add(self, record: Record, *, author: str = "", key: str | None = None, invocation: str = "") -> Stored:
        position = self.after + len(self.events) + 1
        origin = Origin(
            run_id=self.run,
            invocation_id=invocation or f"i-{self.run}",
            author=author or "a",
            branch="a",
            filter_key=self.key if key is None else key,
        )
        tokens = estimate_record(record)
        stored = Stored(
            position=position, fork=0, id=f"e{position}", at=AT, origin=origin, record=record, tokens=tokens
        )
        self.events.append(stored)
        return stored

    def start(self, run: str, *, action: str = "") -> "Chat":
        self.run = run
        self.add(RunStarted(agent="a", model="m", action=action))
        return self

    def ask(self, text: str, *, run: str = "", kind: UserMessageKind = UserMessageKind.TURN, **more: Any) -> Stored:
        if run:
            self.start(run)
        return self.add(said(text, id=f"u{len(self.events)}", kind=kind), author="user", **more)

    def answer(self, text: str, *calls: str, arguments: str = "{}", name: str = "look", **more: Any) -> Stored:
        made = tuple(ToolCall(id=call, name=name, arguments=arguments) for call in calls)
        message_id = f"m{len(self.events)}"
        return self.add(AssistantMessage(id=message_id, response_id=message_id, text=text, tool_calls=made), **more)

    def result(self, call: str, content: str = "found", *, name: str = "look", **more: Any) -> Stored:
        returned = ToolReturned(id=f"t{len(self.events)}", call_id=call, name=name, content=content)
        return self.add(returned, **more)

    def tools(self, text: str, *calls: str, content: str = "found", name: str = "look", **more: Any) -> list[Stored]:
        """Add a round: an answer with calls, and a result for each."""
        asked = self.answer(text, *calls, name=name, **more)
        return [asked, *(self.result(call, content, name=name, **more) for call in calls)]

    def done(self, outcome: Outcome = Outcome.SUCCESS) -> Stored:
        return self.add(RunFinished(outcome=outcome))

    def failed(self) -> Stored:
        return self.add(RunFailed(code="model_error", message="It failed."))

    def stepped(self, step: ContextCompacted | None) -> "Chat":
        """Store a step of compaction, as a run does before the call."""
        assert step is not None
        self.add(step)
        return self


def view(run: str = "r9", **more: Any) -> View:
    policy = more.pop("policy", POLICY)
    given: dict[str, Any] = {"agent": "a", "filter_key": "a", "window": WIDE, "invocation_id": f"i-{run}"}
    return View(run_id=run, policy=policy, **{**given, **more})


def summary(at: Stored | int, text: str = "It was about paint.", *, key: str = "a", **more: Any) -> Summary:
    """Return a summary that covers everything of the scope up to this event or position."""
    position = at if isinstance(at, int) else at.position
    boundary = Boundary(position=position, fork=0, event_id=f"e{position}", at=AT)
    return Summary(
        id=more.pop("id", f"s-{key}-{position}"),
        text=text,
        filter_key=key,
        boundary=boundary,
        read_from=1,
        made_at=AT,
        **more,
    )


def by_key(*summaries: Summary) -> dict[str, Summary]:
    return {one.filter_key: one for one in summaries}


def lines(request: ModelRequest) -> list[tuple[str, str]]:
    """Return (role, text) of what follows the system message."""
    return [(m.role.value, m.text) for m in request.messages if m.role is not Role.SYSTEM]


def shown(chat: Chat, looking: View, frame: Frame = FRAME) -> list[tuple[str, str]]:
    return lines(assemble(chat.events, frame, looking).request)


def rebuilt(made: Assembled, history: Sequence[Stored], frame: Frame, looking: View) -> ModelRequest:
    """Return the request made again of its parts as they were stored, which is what the inspector does."""
    parts = [replace(part, params=json.loads(json.dumps(dict(part.params)))) for part in made.parts]
    texts = {sha256(t): t for t in (frame.instruction, frame.tail, CONTINUE, *(b.text for b in looking.blocks))}
    summaries = {one.id: one for one in looking.summaries.values()}
    events = {s.id: s for s in history}
    return render(parts, events, texts, {tools_sha256(frame.tools): frame.tools}, summaries)


def in_provider_order(messages: Sequence[Message]) -> bool:
    """Return whether system comes first, and every call is followed by exactly its results."""
    waiting: list[str] = []
    for at, message in enumerate(messages):
        if message.role is Role.SYSTEM and at > 0:
            return False
        if message.role is Role.TOOL:
            if message.tool_call_id not in waiting:
                return False
            waiting.remove(message.tool_call_id)
        elif waiting:
            return False
        else:
            waiting = [call.id for call in message.tool_calls]
    return not waiting


def with_policy(**values: Any) -> ContextPolicy:
    return replace(POLICY, **values)
