"""Stored records -> what the conversation page shows. Pure; the scripts build the same things from live events."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from agents.protocols.agui import blocks
from agents.runtime.artifacts import ArtifactRef
from agents.runtime.errors import ToolFailure
from agents.runtime.events import (
    AssistantMessage,
    ContextCompacted,
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
from agents.runtime.knowledge import Citation
from agents.runtime.model import FilePart, FinishReason, TextPart
from agents.stores.lines import Branching
from workbench import citations, contextwords, documentwords, failurewords, wording
from workbench.memorywords import Foot

ENDED_WITH_RUN = frozenset({ToolFailure.LOST, ToolFailure.RUN_ENDED})  # nobody went on without it
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
        return wording.tool_sentence(self.name, self.arguments, self.state)

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
        tools = [(step.name, step.state) for step in self.steps if step.kind == "tool"]
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
    """Text of an answer, as sanitised HTML. citations: those it links to, as citations.as_json writes them."""

    message_id: str
    html: str
    citations: str = "[]"
    lang: str = ""
    kind: str = "prose"


@dataclass(slots=True, kw_only=True)
class Note:
    """A line about what the model is shown from here on."""

    text: str
    kind: str = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Shown is number `now` of `total`. before, after: the forks that show its neighbours, None at either end.

    place: position of the last record that all of them share.
    """

    place: int
    now: int
    total: int
    before: int | None
    after: int | None


@dataclass(slots=True, kw_only=True)
class Said:
    """A message of a person. versions: None if it was never edited."""

    message_id: str
    text: str
    files: list[FilePart]
    at: datetime
    position: int
    run_id: str
    editable: bool
    versions: Versions | None = None
    kind: str = "said"

    @property
    def until(self) -> int:
        """Position of its last record."""
        return self.position

    @property
    def lang(self) -> str:
        return wording.language(self.text)


@dataclass(slots=True, kw_only=True)
class Answer:
    """What a run did. state: running, done, stopped, failed, lost. ended: this article is the last of its run.

    position, until: of the first record that it shows, and of the last that says or does something.
    message_id: the last assistant message, "" if there is none; asked_id: the user message it answers. versions: None
    if nobody asked for another answer. sources: document ids it could use, None = all. not_in_documents: it says that
    they do not answer. thumb: what the person said of the run, "" = nothing. Of the last article of a run: memory: what
    it had to do with the run (memoryfoot.py); suggested: how many skills it led to (skillfoot.py), in words; unused:
    what its run found and does not cite, as citations.unused_json writes it.
    """

    run_id: str
    at: datetime
    position: int
    until: int = 0
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
    model: str = ""
    sources: tuple[str, ...] | None = None
    not_in_documents: bool = False
    unused: str = ""
    parts: list[Phase | Prose | Note] = field(default_factory=list)
    versions: Versions | None = None
    memory: Foot | None = None
    thumb: str = ""
    suggested: str = ""
    kind: str = "answer"

    @property
    def head(self) -> str:
        """The line over a run that is over."""
        ms = (self.ended_at - self.started_at).total_seconds() * 1000 if self.ended_at and self.started_at else 0.0
        return wording.run_over(self.state, ms, self.step_total)

    @property
    def failure(self) -> tuple[str, str]:
        return failurewords.failure(self.code)

    @property
    def scope(self) -> str:
        return documentwords.scope(self.sources)

    @property
    def not_in_documents_words(self) -> str:
        return documentwords.not_in_documents(self.sources)

    @property
    def has_text(self) -> bool:
        return any(isinstance(part, Prose) for part in self.parts)


class _Builder:
    """Walks the records once, oldest first."""

    def __init__(self, gone: Collection[str]) -> None:
        self.entries: list[Said | Answer] = []
        self._gone = gone
        self._answers: dict[str, Answer] = {}  # run id -> its newest article
        self._started: dict[str, datetime] = {}
        self._models: dict[str, str] = {}
        self._sources: dict[str, tuple[str, ...] | None] = {}
        self._steps: dict[str, Step] = {}  # call id -> row
        self._phases: dict[str, Phase] = {}  # call id -> its phase
        self._found: defaultdict[str, dict[str, Citation]] = defaultdict(dict)  # run id -> what it found, by source
        self._cited: defaultdict[str, set[str]] = defaultdict(set)  # run id -> sources
        self._asked_id = ""

    def add(self, stored: Stored) -> None:
        record = stored.record
        if isinstance(record, RunStarted):
            self._started[stored.origin.run_id] = stored.at
            self._models[stored.origin.run_id] = record.model
            self._sources[stored.origin.run_id] = record.sources
        elif isinstance(record, UserMessage):
            self._said(stored, record)
        elif isinstance(record, AssistantMessage):
            self._answered(stored, record)
        elif isinstance(record, ToolReturned):
            self._returned(stored, record)
        elif isinstance(record, ContextCompacted):
            self._answer(stored).parts.append(Note(text=contextwords.compacted(record.results)))
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
                until=stored.position,
                asked_id=self._asked_id,
                first=first,
                started_at=self._started.get(run_id),
                model=self._models.get(run_id, ""),
                sources=self._sources.get(run_id),
            )
            self._answers[run_id] = answer
            self.entries.append(answer)
        return self._answers[run_id]

    def _answered(self, stored: Stored, record: AssistantMessage) -> None:
        answer = self._answer(stored)
        answer.message_id, answer.until = record.id, stored.position
        if record.seeded:
            answer.first = False
        if record.reasoning.strip():
            done = Step(kind="thought", text=record.reasoning.strip(), state="done", ms=record.reasoning_ms or None)
            self._phase(answer).steps.append(done)
            answer.step_total += 1
        self._cited[answer.run_id].update(cited.citation.source for cited in record.citations)
        if record.text.strip():
            cited = citations.as_json(record.citations, self._gone)
            lang = wording.language(record.text)
            html = blocks.render(record.text)
            answer.parts.append(Prose(message_id=record.id, html=html, citations=cited, lang=lang))
        answer.not_in_documents = answer.not_in_documents or record.not_in_documents
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
        self._answer(stored).until = stored.position
        words = wording.run_words()
        step.state = STATES.get(record.status, "failed")
        step.ms = record.elapsed_ms or None
        step.result = record.content
        self._found[stored.origin.run_id] |= citations.found(step.name, record.data)
        step.note = wording.tool_note(record.name, record.summary, record.data)
        if step.state == "failed":
            reason = failurewords.tool_failure(record.failure, record.summary or record.content)
            step.note = reason if record.failure in ENDED_WITH_RUN else words["wentOn"].format(reason=reason)
        elif step.state == "cancelled":
            step.note = words["cancelled"]
        self._phases[record.call_id].cards.extend(record.artifacts)

    def _ended(self, stored: Stored, record: RunFinished | RunFailed) -> None:
        answer = self._answer(stored)
        answer.ended, answer.ended_at = True, stored.at
        answer.unused = citations.unused_json(self._found[answer.run_id], self._cited[answer.run_id])
        if isinstance(record, RunFinished):
            answer.state = "stopped" if record.outcome is Outcome.CANCELLED else "done"
            return
        answer.state = "lost" if record.code == "lost" else "failed"
        answer.code, answer.message, answer.reference = record.code, record.message, record.reference


def build(stored: Iterable[Stored], gone: Collection[str] = ()) -> list[Said | Answer]:
    """Return messages and answers in order. A run's answer is split where the person steered it.

    stored: oldest first, one visible chain. gone: threads whose messages cannot be opened any more. Calls without a
    result show as running only while their run is open.
    """
    builder = _Builder(gone)
    for one in stored:
        builder.add(one)
    for entry in builder.entries:
        if isinstance(entry, Answer) and entry.ended:
            for part in entry.parts:
                for step in part.steps if isinstance(part, Phase) else ():
                    if step.state == "running":
                        step.state = "cancelled"
    return builder.entries


def mark_versions(
    entries: list[Said | Answer], branchings: Iterable[Branching], positions: Collection[int]
) -> list[Said | Answer]:
    """Say of the message or answer behind each branching how many there are; return the entries.

    positions: of the records the entries were built from, and 0 if they are all there are. A run's answer is marked in
    its last part, where its actions stand.
    """
    for place in branchings:
        entry = next((e for e in entries if e.position > place.after), None) if place.after in positions else None
        if isinstance(entry, Answer):
            entry = next(e for e in reversed(entries) if isinstance(e, Answer) and e.run_id == entry.run_id)
        if entry is not None:
            now, last = place.shown, len(place.heads) - 1
            entry.versions = Versions(
                place=place.after,
                now=now + 1,
                total=last + 1,
                before=place.heads[now - 1] if now else None,
                after=place.heads[now + 1] if now < last else None,
            )
    return entries


def page(entries: list[Said | Answer], limit: int) -> list[Said | Answer]:
    """Return the newest entries, at most about `limit`, beginning with a person's message so that no turn is cut."""
    if len(entries) <= limit:
        return entries
    for start in range(len(entries) - limit, len(entries)):
        if isinstance(entries[start], Said):
            return entries[start:]
    return entries[-limit:]
