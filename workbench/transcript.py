"""Stored records -> what the conversation page shows. Pure; the scripts build the same things from live events."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from agents.protocols.agui import blocks
from agents.runtime.artifacts import ArtifactRef
from agents.runtime.events import (
    AssistantMessage,
    Outcome,
    RunFailed,
    RunFinished,
    RunStarted,
    Stored,
    ToolReturned,
    ToolStatus,
    UserMessage,
    UserMessageKind,
)
from agents.runtime.model import FilePart, FinishReason, TextPart
from workbench import wording

BRIEF_MS = 50  # a shorter time is not worth a number
STATES = {
    ToolStatus.OK: "done",
    ToolStatus.CANCELLED: "cancelled",
}


@dataclass(slots=True, kw_only=True)
class Step:
    """A thought or a tool call. state: running, done, failed, cancelled. ms: None if not known."""

    kind: str
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    text: str = ""
    result: str = ""
    note: str = ""
    state: str = "running"
    ms: int | None = None

    @property
    def sentence(self) -> tuple[str, str, str]:
        return wording.tool_sentence(self.name, self.arguments, done=self.state != "running")

    @property
    def time(self) -> str:
        return wording.seconds(self.ms) if self.ms and self.ms >= BRIEF_MS else ""

    @property
    def thought_title(self) -> str:
        return wording.thought(self.ms or 0)


@dataclass(slots=True, kw_only=True)
class Phase:
    """Steps with no text between them, then the files they made."""

    steps: list[Step] = field(default_factory=list)
    cards: list[ArtifactRef] = field(default_factory=list)
    kind: str = "phase"

    @property
    def failed(self) -> int:
        return sum(step.state == "failed" for step in self.steps)

    @property
    def name(self) -> str:
        tools = [step.name for step in self.steps if step.kind == "tool"]
        return wording.phase_name(tools) or wording.thought(sum(step.ms or 0 for step in self.steps))

    @property
    def counted(self) -> str:
        """How many steps; "" if it only thought: then the name says it all."""
        return wording.step_count(len(self.steps)) if any(step.kind == "tool" for step in self.steps) else ""

    @property
    def failed_words(self) -> str:
        return wording.run_words()["failedCount"].format(n=self.failed)

    @property
    def time(self) -> str:
        total = sum(step.ms or 0 for step in self.steps)
        return wording.seconds(total) if total >= BRIEF_MS else ""


@dataclass(slots=True, kw_only=True)
class Prose:
    """Text of an answer, as sanitised HTML."""

    message_id: str
    html: str
    kind: str = "prose"


@dataclass(slots=True, kw_only=True)
class Said:
    """A message of a person."""

    message_id: str
    text: str
    files: list[FilePart]
    at: datetime
    position: int
    run_id: str
    editable: bool
    kind: str = "said"


@dataclass(slots=True, kw_only=True)
class Answer:
    """What a run did. state: running, done, stopped, failed, lost. ended: this article is the last of its run.

    message_id: the last assistant message, "" if there is none; asked_id: the user message it answers.
    """

    run_id: str
    at: datetime
    position: int
    asked_id: str = ""
    message_id: str = ""
    first: bool = True
    ended: bool = False
    state: str = "running"
    code: str = ""
    message: str = ""
    reference: str = ""
    cut: bool = False
    started_at: datetime | None = None
    ended_at: datetime | None = None
    step_total: int = 0
    parts: list[Phase | Prose] = field(default_factory=list)
    kind: str = "answer"

    @property
    def head(self) -> str:
        """The line over a run that is over."""
        words = wording.run_words()
        ms = (self.ended_at - self.started_at).total_seconds() * 1000 if self.ended_at and self.started_at else 0.0
        time = wording.seconds(ms)
        if self.state == "done" and self.step_total:
            return str(words["doneSteps"]).format(time=time, steps=wording.step_count(self.step_total))
        key = {"done": "done", "stopped": "stopped", "lost": "interrupted"}.get(self.state, "failed")
        return str(words[key]).format(time=time)

    @property
    def failure(self) -> tuple[str, str]:
        return wording.failure(self.code)

    @property
    def has_text(self) -> bool:
        return any(isinstance(part, Prose) for part in self.parts)


class _Builder:
    """Walks the records once, oldest first."""

    def __init__(self) -> None:
        self.entries: list[Said | Answer] = []
        self._answers: dict[str, Answer] = {}  # run id -> its newest article
        self._started: dict[str, datetime] = {}
        self._steps: dict[str, Step] = {}  # call id -> row
        self._phases: dict[str, Phase] = {}  # call id -> its phase
        self._asked_id = ""

    def add(self, stored: Stored) -> None:
        record = stored.record
        if isinstance(record, RunStarted):
            self._started[stored.origin.run_id] = stored.at
        elif isinstance(record, UserMessage):
            self._said(stored, record)
        elif isinstance(record, AssistantMessage):
            self._answered(stored, record)
        elif isinstance(record, ToolReturned):
            self._returned(stored, record)
        elif isinstance(record, (RunFinished, RunFailed)):
            self._ended(stored, record)

    def _said(self, stored: Stored, record: UserMessage) -> None:
        run_id = stored.origin.run_id
        previous = self._answers.pop(run_id, None)
        self.entries.append(
            Said(
                message_id=record.id,
                text="".join(p.text for p in record.parts if isinstance(p, TextPart)),
                files=[p for p in record.parts if isinstance(p, FilePart)],
                at=stored.at,
                position=stored.position,
                run_id=run_id,
                editable=record.kind is UserMessageKind.TURN,
            )
        )
        self._asked_id = record.id
        if record.kind is UserMessageKind.STEER:
            answer = self._answer(stored, first=previous is None)
            answer.step_total = previous.step_total if previous else 0

    def _answer(self, stored: Stored, *, first: bool = True) -> Answer:
        run_id = stored.origin.run_id
        if run_id not in self._answers:
            answer = Answer(
                run_id=run_id,
                at=stored.at,
                position=stored.position,
                asked_id=self._asked_id,
                first=first,
                started_at=self._started.get(run_id),
            )
            self._answers[run_id] = answer
            self.entries.append(answer)
        return self._answers[run_id]

    def _answered(self, stored: Stored, record: AssistantMessage) -> None:
        answer = self._answer(stored)
        answer.message_id = record.id
        if record.seeded:
            answer.first = False
        if record.reasoning.strip():
            done = Step(kind="thought", text=record.reasoning.strip(), state="done", ms=record.reasoning_ms or None)
            self._phase(answer).steps.append(done)
            answer.step_total += 1
        if record.text.strip():
            answer.parts.append(Prose(message_id=record.id, html=blocks.render(record.text)))
        answer.cut = record.finish_reason in (FinishReason.LENGTH, FinishReason.CONTENT_FILTER)
        for call in record.tool_calls:
            step = Step(kind="tool", call_id=call.id, name=call.name, arguments=call.arguments)
            phase = self._phase(answer)
            phase.steps.append(step)
            self._steps[call.id], self._phases[call.id] = step, phase
            answer.step_total += 1

    def _phase(self, answer: Answer) -> Phase:
        last = answer.parts[-1] if answer.parts else None
        if isinstance(last, Phase):
            return last
        phase = Phase()
        answer.parts.append(phase)
        return phase

    def _returned(self, stored: Stored, record: ToolReturned) -> None:
        step = self._steps.get(record.call_id)
        if step is None:  # the call lies on an older page
            return
        words = wording.run_words()
        step.state = STATES.get(record.status, "failed")
        step.ms = record.elapsed_ms or None
        step.result = record.content
        step.note = wording.tool_note(record.name, record.summary, record.data)
        if step.state == "failed":
            reason = {ToolStatus.LOST: words["lostStep"], ToolStatus.TIMEOUT: words["timedOut"]}.get(record.status, "")
            reason = reason or record.summary or wording.first_line(record.content)
            step.note = reason if record.status is ToolStatus.LOST else f"{reason} {words['wentOn']}"
        elif step.state == "cancelled":
            step.note = words["cancelled"]
        self._phases[record.call_id].cards.extend(record.artifacts)

    def _ended(self, stored: Stored, record: RunFinished | RunFailed) -> None:
        answer = self._answer(stored)
        answer.ended, answer.ended_at = True, stored.at
        if isinstance(record, RunFinished):
            answer.state = "stopped" if record.outcome is Outcome.CANCELLED else "done"
            return
        answer.state = "lost" if record.code == "lost" else "failed"
        answer.code, answer.message, answer.reference = record.code, record.message, record.reference


def build(stored: Iterable[Stored]) -> list[Said | Answer]:
    """Return messages and answers in order. A run's answer is split where the person steered it.

    stored: oldest first, one visible chain. Calls without a result show as running only while their run is open.
    """
    builder = _Builder()
    for one in stored:
        builder.add(one)
    for entry in builder.entries:
        if isinstance(entry, Answer) and entry.ended:
            for part in entry.parts:
                for step in part.steps if isinstance(part, Phase) else ():
                    if step.state == "running":
                        step.state = "cancelled"
    return builder.entries


def page(entries: list[Said | Answer], limit: int) -> list[Said | Answer]:
    """Return the newest entries, at most about `limit`, beginning with a person's message so that no turn is cut."""
    if len(entries) <= limit:
        return entries
    for start in range(len(entries) - limit, len(entries)):
        if isinstance(entries[start], Said):
            return entries[start:]
    return entries[-limit:]
