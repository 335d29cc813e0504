"""Conversations and makings that the tests of this room need."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from agents.runtime.context.window import Window
from agents.runtime.events import (
    AssistantMessage,
    Origin,
    Outcome,
    Record,
    RunFailed,
    RunFinished,
    RunStarted,
    Stored,
    ToolReturned,
    UserMessage,
    UserMessageKind,
)
from agents.runtime.memorystores import Clock, Ids
from agents.runtime.memorysummaries import MemorySummaries
from agents.runtime.model import Message, ModelRequest, Role, TextPart, ToolCall, ToolSpec, text_message
from agents.runtime.policy import ContextPolicy
from agents.runtime.session import ModelCall
from agents.runtime.summaries import Source
from agents.runtime.summary.making import Made, Making, Sent
from agents.runtime.summary.report import Report
from agents.runtime.summary.rolling import update
from agents.runtime.summary.summarizer import ModelSummarizer
from agents.runtime.testing import ScriptedModel, text, turn
from agents.runtime.tokens import estimate_record

START = datetime(2026, 1, 1, tzinfo=UTC)
SENT = {"": "request", "_tokens": "tokens", "_cached": "cached"}
KEY = "assistant"
# Every new event is enough, everything may be covered: what a test wants otherwise it says.
POLICY = ContextPolicy(
    summary_ratio=None,
    summary_least=0,
    keep_rounds=0,
    keep_tokens=100_000,
    fork="off",
    template="brief",
    summary_words=60,
)
LONG = "The harvest report lists wheat, barley and oats for each of the four valleys, field by field. "
LONG_ZH = "收成报告逐块列出了四个山谷的小麦、大麦和燕麦产量，并附有历年对照。"


class Talk:
    """A conversation that grows. minutes: since START, set by the test; an event takes none."""

    def __init__(self, key: str = KEY) -> None:
        self.history: list[Stored] = []
        self.key = key
        self.minutes = 0.0
        self.run_id = ""
        self._runs = 0

    def add(self, record: Record, *, author: str = "", key: str | None = None, run_id: str = "") -> Stored:
        position = len(self.history) + 1
        who = author or ("user" if isinstance(record, UserMessage) else "assistant")
        origin = Origin(
            run_id=run_id or self.run_id, invocation_id="i", author=who, filter_key=self.key if key is None else key
        )
        at = START + timedelta(minutes=self.minutes)
        stored = Stored(
            position=position,
            fork=0,
            id=f"e{position}",
            at=at,
            origin=origin,
            record=record,
            tokens=estimate_record(record),
        )
        self.history.append(stored)
        return stored

    def begin(self, said: str) -> None:
        self._runs += 1
        self.run_id = f"r{self._runs}"
        self.add(RunStarted(agent=KEY, model="m"))
        self.say(said)

    def say(self, words: str, *, kind: UserMessageKind = UserMessageKind.TURN, key: str | None = None) -> Stored:
        id = f"u{len(self.history)}"
        return self.add(UserMessage(id=id, parts=(TextPart(text=words),), kind=kind), key=key)

    def answer(self, words: str, *calls: ToolCall, key: str | None = None, **more: Any) -> Stored:
        id = f"a{len(self.history)}"
        return self.add(AssistantMessage(id=id, response_id=id, text=words, tool_calls=calls, **more), key=key)

    def result(self, call_id: str, content: str, name: str = "lookup", **more: Any) -> Stored:
        return self.add(
            ToolReturned(id=f"t{len(self.history)}", call_id=call_id, name=name, content=content, **more),
            author="assistant",
        )

    def end(self, **more: Any) -> None:
        self.add(RunFinished(outcome=Outcome.SUCCESS, **more))

    def fail(self) -> None:
        self.add(RunFailed(code="x", message="x"))

    def exchange(self, said: str, answered: str) -> None:
        """A whole run: one question, one answer."""
        self.begin(said)
        self.answer(answered)
        self.end()

    def bare(self, said: str, answered: str) -> None:
        """Two events without the records of a run."""
        self._runs += 1
        self.run_id = f"r{self._runs}"
        self.say(said)
        self.answer(answered)


def long_talk(rounds: int, *, zh: bool = False, times: int = 4) -> Talk:
    talk = Talk()
    for i in range(1, rounds + 1):
        if zh:
            talk.exchange(f"问题{i}：" + LONG_ZH * times, f"答复{i}：" + LONG_ZH * times)
        else:
            talk.exchange(f"Question {i}. " + LONG * times, f"Answer {i}. " + LONG * times)
    return talk


def call(id: str, name: str = "lookup", arguments: str = '{"q": "x"}') -> ToolCall:
    return ToolCall(id=id, name=name, arguments=arguments)


def writer(*answers: str) -> ScriptedModel:
    return ScriptedModel(*(turn(text(answer)) for answer in answers))


class Desk:
    """Where summaries are made in a test: a store, a model, the books and the reports."""

    def __init__(self, *turns: Any, policy: ContextPolicy = POLICY, **more: Any) -> None:
        self.model = ScriptedModel(*(turn(text(t)) if isinstance(t, str) else t for t in turns))
        self.policy = policy
        self.store = MemorySummaries()
        self.clock = Clock(START)
        self.ids = Ids("s")
        self.calls: list[ModelCall] = []
        self.reports: list[Report] = []
        self.more = more

    def making(self, talk: Talk | Sequence[Stored], **more: Any) -> Making:
        """Return an order. more: its fields, and request, request_tokens, request_cached of what was sent."""
        sent = {name: more.pop(f"request{n}") for n, name in SENT.items() if f"request{n}" in more}
        values: dict[str, Any] = {
            "history": talk.history if isinstance(talk, Talk) else talk,
            "filter_key": KEY,
            "agent": KEY,
            "policy": self.policy,
            "store": self.store,
            "summarizer": ModelSummarizer(self.model, "tested"),
            "source": Source.BACKGROUND,
            "now": self.clock.now,
            "new_id": self.ids,
            "monotonic": self.clock.monotonic,
            "book": self.book,
            "report": self.reports.append,
            "window": Window(tokens=128_000, source="test"),
            "sent": Sent(**sent),
        }
        return Making(**{**values, **self.more, **more})

    async def update(self, talk: Talk | Sequence[Stored], **more: Any) -> Made:
        return await update(self.making(talk, **more))

    async def book(self, call: ModelCall) -> None:
        self.calls.append(call)

    def asked(self, number: int = -1) -> str:
        """Return the last message of a request."""
        return self.model.requests[number].messages[-1].text


def said(role: Role, words: str) -> Message:
    return text_message(role, words)


def parent(talk: Talk, *, tools: tuple[ToolSpec, ...] = (), system: str = "You help.") -> ModelRequest:
    """Return the request that a run over the conversation would send, without a summary."""
    messages = [text_message(Role.SYSTEM, system)]
    for stored in talk.history:
        record = stored.record
        if isinstance(record, UserMessage):
            messages.append(Message(role=Role.USER, parts=record.parts))
        elif isinstance(record, AssistantMessage):
            parts = (TextPart(text=record.text),) if record.text else ()
            messages.append(Message(role=Role.ASSISTANT, parts=parts, tool_calls=record.tool_calls))
        elif isinstance(record, ToolReturned):
            content = (TextPart(text=record.content),)
            messages.append(Message(role=Role.TOOL, parts=content, tool_call_id=record.call_id, name=record.name))
    return ModelRequest(messages=tuple(messages), tools=tools)


async def soon(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), 5)
