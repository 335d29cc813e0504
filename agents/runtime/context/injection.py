"""What a request shows beside the conversation's own messages, and where: the overview of skills in the system message,
then memory, summary, recall, loaded skills, in this order.

In the system message: behind the instruction, after a blank line. In a user message: in front of the first message of
a person that the request holds, or as a message of its own before everything else if it holds none. With the turn, for
what was preloaded: in front of the message that is answered, where it stays for as long as the turns that follow load
the same; so nothing before it changes when memory does, and what is no longer remembered is not shown on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from agents.runtime.context.digests import sha256
from agents.runtime.context.sizes import Sizes
from agents.runtime.context.words import BLOCK_LEADS, SUMMARY_IN_SYSTEM, SUMMARY_IN_USER, tagged
from agents.runtime.events import Preloaded, Stored, UserMessage, UserMessageKind
from agents.runtime.knowledge import Citation
from agents.runtime.policy import ContextPolicy
from agents.runtime.scopes import SEPARATOR
from agents.runtime.session import PartRef
from agents.runtime.summaries import Summary, covers
from agents.runtime.tokens import measure


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A text put before the model without being asked for. kind: memory, recall, skills or skill. Untrusted.

    citations: those that it names as `[[c:ID]]`, which the model may cite. memories: (id, version) of those in it.
    since: position of the person's message since which every turn had it; 0 = only the one that is answered. params:
    kept with its part, JSON: what the text can be made of again.
    """

    kind: str
    text: str
    citations: tuple[Citation, ...] = ()
    memories: tuple[tuple[str, int], ...] = ()
    since: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)

    def was_in(self, loaded: Sequence[Preloaded]) -> bool:
        """Return whether one of these records is of the same block."""
        if self.memories:
            return any(self.memories == record.memories for record in loaded)
        return any((self.kind, self.text) in record.blocks for record in loaded)


def blocks_of(preloaded: Preloaded | None) -> tuple[Block, ...]:
    """Return the blocks that a run kept of what it preloaded, those of memories left out; none without a record."""
    return tuple(Block(kind=kind, text=text) for kind, text in preloaded.blocks) if preloaded else ()


def dated(blocks: Sequence[Block], seen: Sequence[Stored], filter_key: str) -> tuple[Block, ...]:
    """Return the blocks with where they stand since when. seen: in order; filter_key: the scope that loaded them."""
    return tuple(replace(block, since=_since(block, seen, filter_key)) for block in blocks)


def _since(block: Block, seen: Sequence[Stored], filter_key: str) -> int:
    since, had = 0, True  # what is answered now has it
    loaded: list[Preloaded] = []  # by the turn that is looked at
    for stored in reversed(seen):
        if isinstance(stored.record, Preloaded) and stored.origin.filter_key == filter_key:
            loaded.append(stored.record)
        elif is_turn(stored):
            if not had and not block.was_in(loaded):
                break
            since, had, loaded = stored.position, False, []
    return since


@dataclass(frozen=True, slots=True, kw_only=True)
class Covering:
    """The summaries that a request shows, and so what it need not show. up_to: position of the earliest boundary."""

    summaries: tuple[Summary, ...] = ()
    up_to: int = 0

    def hides(self, stored: Stored) -> bool:
        """Return whether the event is covered by one of the summaries that are shown."""
        return stored.position <= self.up_to and any(covers(s.filter_key, s.boundary, stored) for s in self.summaries)

    @property
    def summary(self) -> Summary | None:
        """Return the summary whose boundary counts, None without one."""
        return min(self.summaries, key=lambda s: s.boundary.position, default=None)


NOTHING_COVERED: Final = Covering()


def covering(summaries: Mapping[str, Summary], policy: ContextPolicy, filter_key: str) -> Covering:
    """Return what is shown of the newest summaries (by filter key) to who looks from this scope.

    The one of the scope itself; else, where a scope sees all below it, those of the scopes below, up to the earliest of
    their boundaries; else the whole session's. None if the policy keeps no summary or shows only a part of the
    timeline. A summary without a text is not shown, and so hides nothing.
    """
    if not policy.summarise or policy.timeline != "all":
        return NOTHING_COVERED
    key = "" if policy.branch == "all" else filter_key
    told = {k: s for k, s in summaries.items() if s.text.strip()}
    found: list[Summary] = [told[key]] if key in told else []
    if not found and policy.branch == "prefix" and key:
        found = [told[k] for k in sorted(told) if k.startswith(key + SEPARATOR)]
    if not found and "" in told:
        found = [told[""]]
    return Covering(summaries=tuple(found), up_to=min((s.boundary.position for s in found), default=0))


def summary_text(texts: Sequence[str], placement: str) -> str:
    """Return the texts of summaries as they stand in a request."""
    lead = SUMMARY_IN_SYSTEM if placement == "system" else SUMMARY_IN_USER
    return tagged(lead, "summary", "\n\n".join(text.strip() for text in texts))


def block_text(kind: str, text: str) -> str:
    """Return a block as it stands in a request."""
    return tagged(BLOCK_LEADS[kind], kind, text)


def inject(
    parts: Sequence[PartRef],
    events: Mapping[str, Stored],
    shown: Covering,
    blocks: Sequence[Block],
    policy: ContextPolicy,
    sizes: Sizes,
) -> list[PartRef]:
    """Return the parts of a history with those of blocks and summaries, those of the system message first."""
    said = [i for i, part in enumerate(parts) if _from_person(part, events)]
    turns = [i for i in said if is_turn(events[parts[i].ref])]
    placement = policy.preload_placement if turns or policy.preload_placement != "turn" else "user"
    alone = not said
    overview = _blocks("skills", blocks, "system", sizes, alone)
    memory, recall = (_blocks(kind, blocks, placement, sizes, alone) for kind in ("memory", "recall"))
    skills = _blocks("skill", blocks, "turn" if turns else "user", sizes, alone)
    summaries = [(part, 0) for part in _summaries(shown, policy, sizes, alone)]
    in_system: list[PartRef] = []
    in_front: dict[int, list[PartRef]] = {}
    for part, since in (*overview, *memory, *summaries, *recall, *skills):
        if part.params["placement"] == "system":
            in_system.append(part)
            continue
        at = said[0] if said else 0
        if part.params["placement"] == "turn":
            at = next((i for i in turns if 0 < since <= parts[i].position), turns[-1])
        in_front.setdefault(_with_context(parts, at), []).append(part)
    return [*in_system, *(p for i in range(len(parts) + 1) for p in (*in_front.get(i, ()), *parts[i : i + 1]))]


def is_turn(stored: Stored) -> bool:
    """Return whether a person began or went on with the conversation here, and did not steer a run."""
    return isinstance(stored.record, UserMessage) and stored.record.kind is UserMessageKind.TURN


def _from_person(part: PartRef, events: Mapping[str, Stored]) -> bool:
    return part.kind == "event" and isinstance(events[part.ref].record, UserMessage)


def _with_context(parts: Sequence[PartRef], at: int) -> int:
    """Return where a person's message begins, with what they had open."""
    return at - 1 if at > 0 and parts[at - 1].kind == "context" else at


def _place(placement: str, alone: bool) -> dict[str, object]:
    return {"placement": placement, **({"alone": True} if alone and placement != "system" else {})}


def _summaries(shown: Covering, policy: ContextPolicy, sizes: Sizes, alone: bool) -> list[PartRef]:
    params, out = _place(policy.placement, alone), []
    for number, summary in enumerate(shown.summaries):
        # the words around them are counted with the first
        text = summary.text if number else summary_text((summary.text,), policy.placement)
        out.append(sizes.part(partial(measure, text), kind="summary", ref=summary.id, tag="summary", params=params))
    return out


def _blocks(kind: str, blocks: Sequence[Block], placement: str, sizes: Sizes, alone: bool) -> list[tuple[PartRef, int]]:
    place = _place(placement, alone)
    out = []
    for block in blocks:
        if block.kind != kind or not block.text.strip():
            continue
        params = {**place, **block.params}
        if block.memories:
            params["memories"] = [list(one) for one in block.memories]
        measured = partial(measure, block_text(kind, block.text))
        part = sizes.part(measured, kind="block", ref=sha256(block.text), tag=kind, params=params)
        out.append((part, block.since))
    return out
