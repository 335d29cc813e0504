"""Which events of a history a request shows, and how: scope, timeline, and what a summary stands for.

A summary hides what it covers (summaries.covers), by position, with these exceptions: the person's message that is
being answered; the calls of a result that is shown; the message that began a turn the boundary lies in; the latest
complete round of tools of the current invocation; the answer that a continue goes on with. A history may begin anywhere
before the boundary.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from agents.runtime.context.digests import sha256
from agents.runtime.context.injection import NOTHING_COVERED, Covering, is_turn
from agents.runtime.context.pairing import Answer, pair
from agents.runtime.context.rendering import context_text, told_text
from agents.runtime.context.sizes import Sizes
from agents.runtime.context.words import CONTINUE
from agents.runtime.events import AssistantMessage, RunStarted, Stored, ToolReturned, UserMessage, UserMessageKind
from agents.runtime.policy import ContextPolicy
from agents.runtime.scopes import in_subtree, sees
from agents.runtime.session import PartRef
from agents.runtime.tokens import Mix, measure, measure_record

DEFAULT_POLICY: Final = ContextPolicy()
_BRANCHES: Final[dict[str, Callable[[str, str], bool]]] = {
    "prefix": sees,
    "subtree": in_subtree,
    "exact": lambda scope, key: scope == key,
    "all": lambda scope, key: True,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewpoint:
    """Who looks: events outside the filter key are not seen, answers of other agents are told as context.

    invocation_id: "" = all of the run is the current invocation.
    """

    agent: str
    run_id: str
    invocation_id: str = ""
    filter_key: str = ""
    policy: ContextPolicy = DEFAULT_POLICY

    def is_own(self, stored: Stored) -> bool:
        """Return whether the event belongs to the current invocation."""
        if self.invocation_id:
            return stored.origin.invocation_id == self.invocation_id
        return stored.origin.run_id == self.run_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Projected:
    """parts: in order. hidden: how many messages, answers' segments and results the summary stands for."""

    parts: list[PartRef]
    hidden: int = 0


def visible(history: Sequence[Stored], view: Viewpoint) -> list[Stored]:
    """Return the events of the view's scope and timeline; also the message that is being answered, and the calls that
    results of the current run answer (those of a client come in the run after).

    history_runs counts runs, the current one among them, and only where no summary is kept.
    """
    policy, key = view.policy, view.filter_key
    in_branch = _BRANCHES[policy.branch]
    keys = {k: in_branch(key, k) for k in {s.origin.filter_key for s in history}}
    seen = [s for s in history if keys[s.origin.filter_key]] if not all(keys.values()) else list(history)
    if policy.timeline == "all":
        if not policy.history_runs or policy.summarise:
            return seen
        runs = list(dict.fromkeys(s.origin.run_id for s in seen))[-policy.history_runs :]
        kept = frozenset(runs)
        inside = [s.origin.run_id in kept for s in seen]
    elif policy.timeline == "request":
        inside = [s.origin.run_id == view.run_id for s in seen]
    else:
        inside = [view.is_own(s) for s in seen]
    asked, answered = last_turn(seen), _answered(seen, inside, view.run_id)
    return [s for s, wanted in zip(seen, inside, strict=True) if wanted or s is asked or s.id in answered]


def _answered(seen: Sequence[Stored], inside: Sequence[bool], run_id: str) -> set[str]:
    """Return the ids of the answers outside whose calls have their results in this run."""
    waiting = {s.record.call_id for s in seen if s.origin.run_id == run_id and isinstance(s.record, ToolReturned)}
    found: set[str] = set()
    for stored, wanted in zip(reversed(seen), reversed(inside), strict=True):
        if waiting and isinstance(stored.record, AssistantMessage):
            calls = waiting.intersection(call.id for call in stored.record.tool_calls)
            waiting -= calls
            if calls and not wanted:
                found.add(stored.id)
    return found


def last_turn(seen: Sequence[Stored]) -> Stored | None:
    """Return the message of a person that is being answered, None without one."""
    return next((s for s in reversed(seen) if is_turn(s)), None)


def project(seen: Sequence[Stored], view: Viewpoint, sizes: Sizes, shown: Covering = NOTHING_COVERED) -> Projected:
    """Return the parts of the events that are seen and not hidden, repaired so that a provider accepts them.

    A part that is shown although it is covered says why in its params: restored is call, anchor, tail or continued.
    """
    items = pair(seen)
    choice = _Choice(items, view, shown, last_turn(seen)) if shown.up_to else _Everything()
    making = _Making(view=view, sizes=sizes)
    asked = last_turn(seen)
    for item in items:
        if isinstance(item, Answer):
            making.answer(choice.of_answer(item))
        elif (why := choice.of_message(item)) is not None:
            making.message(item, why, asked)
    return Projected(parts=making.parts, hidden=choice.hidden)


@dataclass(slots=True, kw_only=True)
class _Shown:
    """What is shown of an answer: whole segments, segments for their calls only, results in call order; and why."""

    answer: Answer
    segments: list[tuple[Stored, bool]]
    results: list[tuple[str, Stored]]
    why: dict[str, str] = field(default_factory=dict)  # by event id, of what is covered


class _Everything:
    """Nothing is hidden."""

    hidden = 0

    def of_answer(self, answer: Answer) -> _Shown:
        return _Shown(answer=answer, segments=[(s, True) for s in answer.segments], results=answer.ordered_results())

    def of_message(self, stored: Stored) -> str | None:
        return ""


class _Choice:
    """What is shown behind a boundary."""

    def __init__(
        self, items: Sequence[Stored | Answer], view: Viewpoint, shown: Covering, asked: Stored | None
    ) -> None:
        self._hides, self._view, self._asked = shown.hides, view, asked
        self.hidden = 0
        self._whole = {id(answer): why for answer, why in _kept_whole(items, view)}
        self._answers = {id(item): self._shown(item) for item in items if isinstance(item, Answer)}
        self._anchors = self._anchored(items)

    def of_answer(self, answer: Answer) -> _Shown:
        return self._answers[id(answer)]

    def of_message(self, stored: Stored) -> str | None:
        """Return why a covered message is shown, "" for one that is not covered, None to hide it."""
        if not self._hides(stored):
            return ""
        if self._never_hidden(stored) or stored.id in self._anchors:
            return "anchor"
        self.hidden += isinstance(stored.record, UserMessage)
        return None

    def _shown(self, answer: Answer) -> _Shown:
        results = answer.ordered_results()
        events = [*answer.segments, *(r for _, r in results)]
        covered = {s.id for s in events if self._hides(s)}
        if why := self._whole.get(id(answer)):
            segments = [(s, True) for s in answer.segments]
            return _Shown(answer=answer, segments=segments, results=results, why=dict.fromkeys(covered, why))
        kept = [(call_id, r) for call_id, r in results if r.id not in covered]
        needed = {call_id for call_id, _ in kept}
        segments = [(s, s.id not in covered) for s in answer.segments if s.id not in covered or _calls(s, needed)]
        shown = {s.id for s, _ in segments} | {r.id for _, r in kept}
        self.hidden += len(covered - shown)
        return _Shown(answer=answer, segments=segments, results=kept, why=dict.fromkeys(covered & shown, "call"))

    def _never_hidden(self, stored: Stored) -> bool:
        record = stored.record
        if stored is self._asked:
            return True
        if stored.origin.run_id != self._view.run_id:
            return False
        return not (isinstance(record, UserMessage) and record.kind is UserMessageKind.SEED)

    def _anchored(self, items: Iterable[Stored | Answer]) -> set[str]:
        """Return the covered messages that began a turn of which something is shown: the last of each."""
        turns = {
            (s.origin.run_id, s.origin.invocation_id)
            for shown in self._answers.values()
            for s in (*(segment for segment, _ in shown.segments), *(result for _, result in shown.results))
            if s.origin.invocation_id
        }
        anchors: set[str] = set()
        for item in reversed(list(items)):
            if isinstance(item, Answer) or (turn := (item.origin.run_id, item.origin.invocation_id)) not in turns:
                continue
            if _begins(item) and self._hides(item):
                turns.remove(turn)
                anchors.add(item.id)
        return anchors


def _begins(stored: Stored) -> bool:
    """Return whether a turn begins here: with what a person said, or with the instruction to go on."""
    record = stored.record
    if isinstance(record, RunStarted):
        return record.action == "continue"
    return isinstance(record, UserMessage) and record.kind is not UserMessageKind.SEED


def _kept_whole(items: Sequence[Stored | Answer], view: Viewpoint) -> list[tuple[Answer, str]]:
    """Return the answers of which nothing may be hidden: the latest complete round, and what is gone on with."""
    rounds = [i for i in items if isinstance(i, Answer) and view.is_own(i.segments[0]) and i.complete_round()]
    kept = [(max(rounds, key=lambda answer: answer.end), "tail")] if rounds else []
    before: Answer | None = None
    for item in items:
        if isinstance(item, Answer):
            before = item
        elif item.origin.run_id == view.run_id and isinstance(item.record, RunStarted):
            if item.record.action == "continue" and before is not None:
                kept.append((before, "continued"))
            break
    return kept


def _calls(stored: Stored, wanted: set[str]) -> bool:
    return isinstance(stored.record, AssistantMessage) and any(call.id in wanted for call in stored.record.tool_calls)


@dataclass(slots=True, kw_only=True)
class _Making:
    view: Viewpoint
    sizes: Sizes
    parts: list[PartRef] = field(default_factory=list)

    def message(self, stored: Stored, why: str, asked: Stored | None) -> None:
        record, params = stored.record, {"restored": why} if why else {}
        if isinstance(record, RunStarted):
            if record.action == "continue":
                self._add(partial(measure, CONTINUE), stored, kind="instruction", ref=sha256(CONTINUE), tag="continue")
        elif isinstance(record, UserMessage):
            if stored is asked and record.context:
                self._add(lambda: measure(context_text(record)), stored, kind="context", tag="open")
            self._add(lambda: measure_record(record), stored, tag="user", params=params)

    def answer(self, shown: _Shown) -> None:
        said = any(isinstance(s.record, AssistantMessage) and s.record.text for s, whole in shown.segments if whole)
        if not shown.results and not said:
            return
        first = shown.answer.segments[0]
        record = first.record
        foreign = first.origin.author != self.view.agent and not (
            isinstance(record, AssistantMessage) and record.seeded
        )
        # Reasoning is replayed only where models ask for it: with the tool calls of the turn that is going on.
        reasoning = bool(shown.results) and first.origin.run_id == self.view.run_id and not foreign
        calls = [call_id for call_id, _ in shown.results]
        how: dict[str, Any] = {"calls": calls} if calls else {}
        if reasoning:
            how["reasoning"] = True
        if foreign:
            how["foreign"] = True
        for stored, whole in shown.segments:
            self._segment(stored, how if whole else {**how, "bare": True}, shown.why.get(stored.id, ""))
        for _, stored in shown.results:
            params: dict[str, Any] = {"foreign": True} if foreign else {}
            if why := shown.why.get(stored.id, ""):
                params["restored"] = why
            self._add(partial(_measured, stored, params), stored, tag="tool", params=params)

    def _segment(self, stored: Stored, how: dict[str, Any], why: str) -> None:
        record = stored.record
        assert isinstance(record, AssistantMessage)
        if why or any(call.id not in how.get("calls", ()) for call in record.tool_calls):
            how = {**how, **({"restored": why} if why else {})}
            if record.tool_calls:
                how["partial"] = True
        self._add(partial(_measured, stored, how), stored, tag="assistant", params=how)

    def _add(
        self,
        measured: Callable[[], Mix],
        stored: Stored,
        *,
        tag: str,
        kind: str = "event",
        ref: str = "",
        params: dict[str, Any] | None = None,
    ) -> None:
        self.parts.append(
            self.sizes.part(measured, kind=kind, ref=ref or stored.id, tag=tag, position=stored.position, params=params)
        )


def _measured(stored: Stored, how: dict[str, Any]) -> Mix:
    """Return the mix of what is shown of an answer's segment or of a result."""
    record = stored.record
    if how.get("foreign"):
        return measure(told_text(stored, PartRef(kind="event", ref=stored.id, tokens=0, params=how)))
    if not isinstance(record, AssistantMessage):
        return measure_record(record)
    calls = tuple(call for call in record.tool_calls if call.id in how.get("calls", ()))
    shown = replace(record, text="" if how.get("bare") else record.text, tool_calls=calls)
    mix = measure_record(shown)
    return mix + measure(record.reasoning) if how.get("reasoning") and record.reasoning else mix
