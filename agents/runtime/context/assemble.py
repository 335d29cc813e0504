"""From stored history to the request a model gets: pure, and every message traceable to the part it came from.

scope and timeline -> projection behind a summary -> injection -> compaction -> tailoring -> rendering. Every step takes
parts and returns parts and what it did; rendering alone makes messages. Whoever keeps the parts, the events and the
texts can render the same request again, and digests.request_sha256 says whether it is the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from agents.runtime.context.compaction import compact, decided
from agents.runtime.context.digests import sha256, tools_sha256
from agents.runtime.context.injection import Block, covering, dated, inject
from agents.runtime.context.projection import Viewpoint, project, visible
from agents.runtime.context.rendering import render
from agents.runtime.context.sizes import Sizes
from agents.runtime.context.skillparts import ShownSkill, settle, unsaid
from agents.runtime.context.tailoring import Tailored, tailor
from agents.runtime.context.window import GUESS, Window, budget
from agents.runtime.context.words import CONTINUE
from agents.runtime.events import ContextCompacted, Stored, WindowUsed
from agents.runtime.model import ModelRequest, ToolSpec
from agents.runtime.session import PartRef
from agents.runtime.summaries import Summary
from agents.runtime.tokens import DEFAULT_RATES, Mix, Rates, measure, measure_tools

METER_TAGS: Final = (
    "system", "tools", "skills", "summary", "memory", "recall", "history", "results", "placeholder", "open", "dropped",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What surrounds the history. tail: an instruction for this one call, "" = none; nothing comes behind it."""

    instruction: str
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    tail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class View(Viewpoint):
    """Who looks, and what they are shown besides the history.

    summaries: the newest of each scope, by filter key. window, rates: of the model that answers. sizes: mixes by event
    id, owned by the caller, so that an event is measured once per run; None = measured anew. blocks: memory, recall,
    the overview of skills. skills: those that are loaded, None = not known, and what results hold of skills stays.
    tailor: False = nothing is left out, whatever policy says, to see what the whole would take.
    """

    summaries: Mapping[str, Summary] = field(default_factory=dict)
    window: Window = GUESS
    rates: Rates = DEFAULT_RATES
    sizes: dict[str, Mix] | None = None
    blocks: tuple[Block, ...] = ()
    skills: tuple[ShownSkill, ...] | None = None
    tailor: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """request: what the model sees. parts: where it came from, in order; kind dropped for what was left out.

    mix: of all that is sent. tokens: what that costs, the sum of the parts. compacted: a new step of compaction,
    applied here already; the caller stores it before the call. dropped_rounds, overflow: what tailoring did, and
    whether the request is too large even so. summary: the one injected; where several scopes are shown together, the
    one whose boundary counts. hidden: how many messages, segments of answers and results summaries stand for.
    """

    request: ModelRequest
    parts: tuple[PartRef, ...]
    mix: Mix
    tokens: int
    window_used: WindowUsed
    compacted: ContextCompacted | None = None
    dropped_rounds: int = 0
    overflow: bool = False
    summary: Summary | None = None
    hidden: int = 0

    @property
    def untailored_tokens(self) -> int:
        """Return what the request would cost if nothing had been left out of it."""
        return self.tokens + dict(self.window_used.parts).get("dropped", 0)


def assemble(history: Sequence[Stored], frame: Frame, view: View) -> Assembled:
    """Return the request for the next call: system text, history in order, the frame's tail last.

    history: the visible chain, oldest first, this run's records included. It may begin anywhere before the boundary of
    the summaries, but not behind it. The same input gives the same bytes.
    """
    sizes = Sizes(view.rates, view.sizes)
    making = _Making(history, frame, view, sizes)
    blocks = dated(view.blocks, making.seen, view.filter_key)
    made = making.fitted(blocks)
    # what a skill says may have gone with a summary, a step of compaction or a round that does not fit
    while more := [block for block in unsaid(made.parts, making.events, view.skills) if block not in blocks]:
        blocks = (*blocks, *more)
        made = making.fitted(blocks)
    used = window_used(made.parts, view.window)
    return Assembled(
        request=_rendered(made.parts, making.events, frame, replace(view, blocks=blocks)),
        parts=tuple(made.parts),
        mix=sizes.total(made.parts),
        tokens=used.tokens,
        window_used=used,
        compacted=made.step,
        dropped_rounds=made.dropped_rounds,
        overflow=made.overflow,
        summary=making.shown.summary,
        hidden=making.projected.hidden,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fitted(Tailored):
    step: ContextCompacted | None


class _Making:
    """What does not change while the blocks of one request are settled."""

    def __init__(self, history: Sequence[Stored], frame: Frame, view: View, sizes: Sizes) -> None:
        self.events = {s.id: s for s in history}
        self.seen = visible(history, view)
        self.shown = covering(view.summaries, view.policy, view.filter_key)
        self.projected = project(self.seen, view, sizes, self.shown)
        self._frame, self._view, self._sizes = frame, view, sizes
        self._settled = decided(history, self.seen, view, sizes)
        self._framed = _frame_parts(frame, sizes)
        self._parts = settle(self.projected.parts, self.events, view.skills, sizes)

    def fitted(self, blocks: Sequence[Block]) -> _Fitted:
        """Return the parts of a request with these blocks, compacted and tailored."""
        frame, view, sizes = self._frame, self._view, self._sizes
        parts = [*self._framed, *inject(self._parts, self.events, self.shown, blocks, view.policy, sizes)]
        if frame.tail:
            parts.append(_text_part(frame.tail, sizes, kind="instruction", tag="tail"))
        offered = frozenset(tool.name for tool in frame.tools)
        compacted = compact(parts, self.events, self._settled, view, sizes, offered)
        tools_tokens = sum(part.tokens for part in self._framed if part.kind == "tools")
        room = budget(view.window, view.policy, max_tokens=frame.max_tokens, tools_tokens=tools_tokens)
        tailored = tailor(compacted.parts, self.events, budget=room, strategy=_strategy(view))
        return _Fitted(
            parts=tailored.parts,
            dropped_rounds=tailored.dropped_rounds,
            overflow=tailored.overflow,
            step=compacted.step,
        )


def _rendered(parts: Sequence[PartRef], events: Mapping[str, Stored], frame: Frame, view: View) -> ModelRequest:
    texts = {sha256(text): text for text in (frame.instruction, frame.tail, CONTINUE)}
    texts |= {sha256(block.text): block.text for block in view.blocks}
    tools = {part.ref: frame.tools for part in parts if part.kind == "tools"}
    return render(parts, events, texts, tools, {summary.id: summary for summary in view.summaries.values()})


def _frame_parts(frame: Frame, sizes: Sizes) -> list[PartRef]:
    params = {k: v for k in ("max_tokens", "temperature") if (v := getattr(frame, k)) is not None}
    parts = [_text_part(frame.instruction, sizes, kind="system", tag="instruction", params=params)]
    if frame.tools:
        ref = tools_sha256(frame.tools)
        parts.append(sizes.part(partial(measure_tools, frame.tools), kind="tools", ref=ref, tag="tools"))
    return parts


def _text_part(text: str, sizes: Sizes, *, kind: str, tag: str, params: Mapping[str, Any] | None = None) -> PartRef:
    return sizes.part(partial(measure, text), kind=kind, ref=sha256(text), tag=tag, params=params)


def _strategy(view: View) -> str:
    return view.policy.tailoring if view.tailor and view.policy.tailor else ""


def window_used(parts: Sequence[PartRef], window: Window) -> WindowUsed:
    """Return what a request of these parts takes of its window, as it is told live and shown later."""
    by_tag: dict[str, int] = {}
    for part in parts:
        tag = _meter_tag(part)
        by_tag[tag] = by_tag.get(tag, 0) + part.tokens
    return WindowUsed(
        tokens=sum(tokens for tag, tokens in by_tag.items() if tag != "dropped"),
        window=window.tokens,
        source=window.source,
        parts=tuple((tag, by_tag[tag]) for tag in METER_TAGS if tag in by_tag),
    )


def _meter_tag(part: PartRef) -> str:
    match part.kind:
        case "system" | "tools" | "summary" | "placeholder" | "dropped":
            return part.kind
        case "block":
            return "skills" if part.tag == "skill" else part.tag
        case "context":
            return "open"
        case _:
            return "results" if part.tag == "tool" else "history"
