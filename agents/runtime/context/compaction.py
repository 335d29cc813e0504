"""Large tool results shown as placeholders that say how to read them again. Stored events never change.

Pass 0 leaves out the results of tools that policy names, pass 1 large results of earlier requests, pass 2 cuts any
oversized result to head and tail. What pass 1 replaces changes in steps only, so that requests keep their beginning: a
step replaces everything that can go, once that is a good share of the request; it is stored (ContextCompacted) and
holds from then on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from agents.runtime.context.injection import is_turn
from agents.runtime.context.placeholders import (
    EARLIER,
    FORCED,
    OVERSIZED,
    RESUMED,
    cut_params,
    placeholder,
    result_params,
    short_arguments,
)
from agents.runtime.context.projection import Viewpoint, last_turn
from agents.runtime.context.rendering import told_text
from agents.runtime.context.sizes import Sizes
from agents.runtime.events import (
    AssistantMessage,
    ContextCompacted,
    Outcome,
    RunFinished,
    Stored,
    ToolReturned,
)
from agents.runtime.policy import LOAD_TOOL, ContextPolicy
from agents.runtime.session import PartRef
from agents.runtime.tokens import Mix, estimate, estimate_record, measure, measure_record


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What is settled before a request is looked at.

    runs, since: passes 0 and 1 leave results alone that are of these runs, or stand at this position or later. up_to:
    where the newest step of pass 1 ends, 0 = there was none.
    """

    runs: frozenset[str]
    since: int | None = None
    up_to: int = 0

    def protects(self, stored: Stored) -> bool:
        return stored.origin.run_id in self.runs or (self.since is not None and stored.position >= self.since)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """parts: in order. step: applied in these parts, and to be stored before the request is sent; None = no new one."""

    parts: list[PartRef]
    step: ContextCompacted | None = None


def decided(history: Sequence[Stored], seen: Sequence[Stored], view: Viewpoint, sizes: Sizes) -> Decided:
    """Return what is settled. Protected are the current run, the turn it answers, the last completed runs, and whole
    rounds before the current one as far as policy keeps them (keep_rounds, keep_tokens).

    history: all that was read, since the end of a run is told to no scope in particular.
    """
    runs = {view.run_id}
    keep = view.policy.compact_keep_requests
    for stored in reversed(history):
        if len(runs) > keep:
            break
        record = stored.record
        if isinstance(record, RunFinished) and record.outcome is Outcome.SUCCESS and not record.pending_call_ids:
            runs.add(stored.origin.run_id)
    steps = (s.record.up_to for s in seen if isinstance(s.record, ContextCompacted))
    return Decided(runs=frozenset(runs), since=_recent(seen, view.policy, sizes), up_to=max(steps, default=0))


def _recent(seen: Sequence[Stored], policy: ContextPolicy, sizes: Sizes) -> int | None:
    """Return where the part that stays raw begins: the current turn, and whole rounds before it as far as they fit."""
    asked = last_turn(seen)
    if asked is None:
        return None
    since, rounds, tokens = asked.position, 0, 0
    for stored in reversed(seen):
        if stored.position >= asked.position:
            continue
        tokens += sizes.settled(stored)
        if rounds == policy.keep_rounds or tokens > policy.keep_tokens:
            break
        if is_turn(stored):
            since, rounds = stored.position, rounds + 1
    return since


def compact(
    parts: Sequence[PartRef],
    events: Mapping[str, Stored],
    settled: Decided,
    view: Viewpoint,
    sizes: Sizes,
    offered: frozenset[str] = frozenset(),
) -> Compacted:
    """Return the parts with results replaced. offered: names of the tools the request has.

    Run over its own output it changes nothing.
    """
    if not view.policy.compact:
        return Compacted(parts=list(parts))
    compacting = _Compacting(view=view, events=events, sizes=sizes, offered=offered)
    return compacting.run(parts, settled)


@dataclass(slots=True, kw_only=True)
class _Compacting:
    view: Viewpoint
    events: Mapping[str, Stored]
    sizes: Sizes
    offered: frozenset[str]

    def run(self, parts: Sequence[PartRef], settled: Decided) -> Compacted:
        out: list[PartRef] = []
        beyond: list[int] = []  # where results stand that a further step would replace
        for part in parts:
            stored = self.events[part.ref] if part.kind == "event" else None
            if stored is not None and isinstance(stored.record, ToolReturned):
                if self._historical(stored, settled) and stored.position > settled.up_to:
                    beyond.append(len(out))
                part = self._result(part, stored, settled)
            elif stored is not None and isinstance(stored.record, AssistantMessage):
                part = self._arguments(part, stored.record)
            out.append(part)
        return Compacted(parts=out, step=self._step(out, beyond))

    def _historical(self, stored: Stored, settled: Decided) -> bool:
        """Return whether pass 1 may replace the result, in this request or a later one."""
        policy, record = self.view.policy, stored.record
        assert isinstance(record, ToolReturned)
        if record.name in policy.compact_keep or record.name in policy.compact_force or settled.protects(stored):
            return False
        return self.sizes.settled(stored) > policy.compact_over

    def _result(self, part: PartRef, stored: Stored, settled: Decided) -> PartRef:
        policy, record = self.view.policy, stored.record
        assert isinstance(record, ToolReturned)
        if record.name and record.name in policy.compact_keep:
            return part
        if record.name in policy.compact_force and not settled.protects(stored):
            return self._placeholder(part, stored, FORCED)
        size = self.sizes.settled(stored)
        if part.params.get("restored") == "tail" and size > policy.compact_over:
            return self._if_smaller(part, stored, self._placeholder(part, stored, RESUMED))
        if self._historical(stored, settled) and stored.position <= settled.up_to:
            shorter = self._if_smaller(part, stored, self._placeholder(part, stored, EARLIER))
            if shorter is not part:
                return shorter
        if 0 < policy.compact_oversized < size and record.name != LOAD_TOOL:
            params = result_params(record, OVERSIZED, self.offered)
            params = cut_params(stored.id, record, limit=policy.compact_oversized, params=params)
            return self._if_smaller(part, stored, self._replaced(part, stored, params))
        return part

    def _step(self, parts: list[PartRef], beyond: Sequence[int]) -> ContextCompacted | None:
        """Replace what lies beyond the last step if it is worth a new one, and return that."""
        total = sum(part.tokens for part in parts)
        least = max(1.0, self.view.policy.compact_step * total)
        if sum(parts[i].tokens for i in beyond) < least or not beyond:
            return None
        shorter: dict[int, PartRef] = {}
        for i in beyond:
            stored = self.events[parts[i].ref]
            made = self._placeholder(parts[i], stored, EARLIER)
            if self._if_smaller(parts[i], stored, made) is made:
                shorter[i] = made
        saved = sum(parts[i].tokens - made.tokens for i, made in shorter.items())
        if not shorter or saved < least:
            return None
        for i, made in shorter.items():
            parts[i] = made
        up_to = max(parts[i].position for i in shorter)
        return ContextCompacted(up_to=up_to, results=len(shorter), tokens=saved)

    def _placeholder(self, part: PartRef, stored: Stored, why: str) -> PartRef:
        assert isinstance(stored.record, ToolReturned)
        return self._replaced(part, stored, result_params(stored.record, why, self.offered))

    def _replaced(self, part: PartRef, stored: Stored, params: Mapping[str, object]) -> PartRef:
        how = {k: v for k, v in part.params.items() if k in ("foreign", "restored")}
        made = PartRef(
            kind="placeholder",
            ref=part.ref,
            tokens=0,
            tag=part.tag,
            position=part.position,
            params={**how, **params},
        )
        return self.sizes.part(
            partial(measured_short, stored, made),
            kind=made.kind,
            ref=made.ref,
            tag=made.tag,
            position=made.position,
            params=made.params,
        )

    def _if_smaller(self, part: PartRef, stored: Stored, made: PartRef) -> PartRef:
        assert isinstance(stored.record, ToolReturned)
        shown = replace(stored.record, content=placeholder(stored.id, stored.record, made.params))
        return made if estimate_record(shown) < self.sizes.settled(stored) else part

    def _arguments(self, part: PartRef, record: AssistantMessage) -> PartRef:
        """Return the answer with large arguments left out, if it is of the round that goes on behind a summary."""
        if part.params.get("restored") != "tail":
            return part
        short = [call.id for call in record.tool_calls if self._too_large(call.arguments)]
        if not short:
            return part
        calls = tuple(
            replace(call, arguments=short_arguments(call.arguments)) if call.id in short else call
            for call in record.tool_calls
        )
        shown = replace(record, tool_calls=calls)
        return self.sizes.part(
            partial(measure_record, shown),
            kind="placeholder",
            ref=part.ref,
            tag=part.tag,
            position=part.position,
            params={**part.params, "why": RESUMED, "short": short},
        )

    def _too_large(self, arguments: str) -> bool:
        size = estimate(arguments)
        return size > self.view.policy.compact_over and estimate(short_arguments(arguments)) < size


def measured_short(stored: Stored, part: PartRef) -> Mix:
    """Return the mix of a result that is shown as its placeholder says."""
    assert isinstance(stored.record, ToolReturned)
    if part.params.get("foreign"):
        return measure(told_text(stored, part))
    return measure_record(replace(stored.record, content=placeholder(stored.id, stored.record, part.params)))
