"""One model call as it was sent: made again from its parts and checked against its hash, beside the call before."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from agents import wiring
from agents.background import title
from agents.models.model_call import ModelCall
from agents.runtime.context.digests import request_sha256
from agents.runtime.context.rendering import render
from agents.runtime.events import Stored
from agents.runtime.knowledge import Citation
from agents.runtime.model import ModelRequest
from agents.runtime.session import PartRef
from artifacts import rows
from workbench import citations, contextwords, documentwords, wording
from workbench.inspector import parts as inspectedparts
from workbench.inspector import words as inspectorwords
from workbench.inspector.partdiff import Change, Difference, difference, sent
from workbench.inspector.parts import Known
from workbench.inspector.places import Address
from workbench.inspector.rows import Calls

PART_CHARS: Final = 1_200  # of a part's text on the page; all of it is one link away
WHOLE_CHARS: Final = 200_000
MOST_CHANGES: Final = 40
REBUILT: Final = frozenset({ModelCall.Purpose.CHAT, ModelCall.Purpose.TITLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """A message that a part quotes. title: of its conversation. address: "" = the conversation is gone."""

    title: str
    at: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a request. number: its place, from 1. share: of the largest, in per cent. more: its text is cut here.

    said: its text is shown. source: address of where it came from, "" = nowhere to go. problem: why it cannot be
    shown, "" = it can. gone: names of files that are deleted since.
    """

    number: int
    tag: str
    label: str
    name: str
    detail: str
    role: str
    tokens: int
    share: str
    text: str
    lang: str
    more: bool
    source: str
    problem: str
    gone: tuple[str, ...]
    quoted: tuple[Quoted, ...]
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A piece of the window's bar. x, width: in per cent, as SVG writes them."""

    tag: str
    x: str
    width: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A kind of part in the window."""

    tag: str
    label: str
    tokens: int
    percent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Whether the request could be made again. state: same, differs or unknown, with sentences."""

    state: str
    words: str
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A line of what changed since the call before."""

    change: Change
    tag: str
    label: str
    name: str
    tokens: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """What changed since the call before. more: so many changes are not listed. elsewhere: it was in another run."""

    name: str
    address: str
    became: str
    same: str
    changes: tuple[Changed, ...]
    more: int
    difference: Difference
    elsewhere: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A call to go to."""

    name: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One model call. place, total: among those of its run. shared: after which part the beginning that it has in
    common with the call before ends, 0 = none. dropped: parts that were left out."""

    id: str
    name: str
    place: int
    total: int
    earlier: Step | None
    later: Step | None
    facts: tuple[tuple[str, str], ...]
    tokens: int
    window: int
    percent: str
    source: str
    segments: tuple[Segment, ...]
    shares: tuple[Share, ...]
    parts: tuple[Part, ...]
    dropped: tuple[Part, ...]
    shared: int
    shared_tokens: int
    checked: Checked
    against: Against | None
    hash: str


def build(calls: Calls, known: Known, address: Address, whole: int) -> tuple[Call, ModelRequest | None]:
    row = calls.call
    assert row is not None
    alike = [one for one in calls.rows if one.purpose == row.purpose]
    at = next((n for n, one in enumerate(alike) if one.pk == row.pk), 0)
    parts = _parts(calls.parts, row, known, address, whole)
    window = wiring.window_of(row.model)
    tokens = sum(sent(part) for part in calls.parts)
    request, checked = verify(row, calls.parts, known)
    against = _against(calls, known, address)
    call = Call(
        id=row.call_id,
        name=inspectorwords.call_name(row.purpose, at + 1),
        place=at + 1,
        total=len(alike),
        earlier=_step(alike, at - 1, address) if at else None,
        later=_step(alike, at + 1, address) if at + 1 < len(alike) else None,
        facts=_call_facts(row, tokens),
        tokens=tokens,
        window=window.tokens,
        percent=inspectorwords.percent(tokens, window.tokens),
        source=contextwords.window_sources().get(window.source, ""),
        segments=_segments(calls.parts, window.tokens),
        shares=_shares(calls.parts, window.tokens),
        parts=tuple(part for part in parts if part.tag != "dropped"),
        dropped=tuple(part for part in parts if part.tag == "dropped"),
        shared=against.difference.shared if against else 0,
        shared_tokens=against.difference.shared_tokens if against else 0,
        checked=checked,
        against=against,
        hash=row.request_sha256,
    )
    return call, request


def _step(alike: Sequence[ModelCall], at: int, address: Address) -> Step:
    return Step(name=inspectorwords.call_name(alike[at].purpose, at + 1), address=address.call(alike[at]))


def _call_facts(row: ModelCall, estimated: int) -> tuple[tuple[str, str], ...]:
    words = inspectorwords.call_facts()
    time = inspectorwords.listed(inspectorwords.duration(row.latency_ms), inspectorwords.waited(row.ttft_ms))
    found = {
        "model": f"{row.model} ({row.provider})",
        "time": time,
        "tokens": inspectorwords.usage(row.prompt_tokens, row.cached_tokens, row.completion_tokens),
        "estimate": contextwords.number(estimated) if row.prompt_tokens else "",
        "finish": row.finish_reason,
        "error": row.error_code,
    }
    return tuple((words[key], value) for key, value in found.items() if value)


def verify(row: ModelCall, parts: Sequence[PartRef], known: Known) -> tuple[ModelRequest | None, Checked]:
    """Return the request made again from its parts, None if that cannot be, and what came of it. Never raises."""
    words, why = inspectorwords.checks(), inspectorwords.reasons()
    if not parts or not row.request_sha256:
        return None, Checked(state="unknown", words=words["unknown"], reasons=(why["kept"],))
    problems = dict.fromkeys(problem for part in parts if (problem := _needed(part, known)))
    if problems:
        return None, Checked(state="unknown", words=words["unknown"], reasons=(*problems, why["parts"]))
    if row.purpose not in REBUILT and not any(part.tag == "fork" for part in parts):
        return None, Checked(state="unknown", words=words["unknown"], reasons=(why["job"],))
    try:
        if row.purpose == ModelCall.Purpose.TITLE:
            request = title.request_of(*_named(parts, known))
        else:
            request = render(parts, known.events, known.texts, known.tools, known.summaries)
    except (LookupError, TypeError, ValueError, AssertionError):
        return None, Checked(state="unknown", words=words["unknown"], reasons=(why["changed"],))
    if request_sha256(request) == row.request_sha256:
        return request, Checked(state="same", words=words["same"])
    return request, Checked(state="differs", words=words["differs"], reasons=(why["changed"],))


def _named(parts: Sequence[PartRef], known: Known) -> tuple[Stored, Stored | None]:
    """Return what a title was made of. Raises LookupError if the parts are not those of a title."""
    said = [known.events[part.ref] for part in parts if part.kind == "event"]
    return said[0], said[1] if len(said) > 1 else None


def _needed(part: PartRef, known: Known) -> str:
    return "" if part.kind == "dropped" else inspectedparts.missing(part, known)


def _parts(parts: Sequence[PartRef], row: ModelCall, known: Known, address: Address, whole: int) -> list[Part]:
    largest = max((sent(part) for part in parts), default=0)
    names, roles = inspectorwords.tags(), inspectorwords.roles()
    gone = _gone(parts, known, row.owner_id)
    messages = [inspectedparts.messages_of(part, known) for part in parts]
    threads = citations.gone(row.owner_id, (one for quoted in messages for one in quoted))
    out: list[Part] = []
    for number, (part, quoted) in enumerate(zip(parts, messages, strict=True), 1):
        role, text = told(part, known)
        limit = WHOLE_CHARS if number == whole else PART_CHARS
        tag = inspectedparts.tag_of(part)
        out.append(
            Part(
                number=number,
                tag=tag,
                label=names[tag],
                name=inspectedparts.name(part, known),
                detail=inspectedparts.detail(part, known, text),
                role=roles.get(role, ""),
                tokens=part.tokens,
                share=f"{100 * sent(part) / largest:.1f}%" if largest else "0%",
                text=text[:limit],
                lang=wording.language(text[:PART_CHARS]),
                more=len(text) > limit,
                source=address.source(part, known),
                problem=inspectedparts.missing(part, known),
                gone=tuple(f.name for f in inspectedparts.files_of(part, known) if f.artifact_id in gone),
                quoted=tuple(_quoted(one, threads) for one in quoted),
                open=number == whole,
            )
        )
    return out


def _quoted(message: Citation, gone: Collection[str]) -> Quoted:
    return Quoted(
        title=message.name or documentwords.script_words()["citeConversation"],
        at=inspectorwords.clock(message.at) if message.at else "",
        address="" if message.thread_id in gone else citations.address(message),
    )


def told(part: PartRef, known: Known) -> tuple[str, str]:
    """Return (role, text) of a part; ("", "") if it cannot be shown any more. Never raises."""
    try:
        found = inspectedparts.told(part, known)
    except (LookupError, TypeError, ValueError, AssertionError, AttributeError):
        return "", ""
    return found.role, found.text


def _gone(parts: Sequence[PartRef], known: Known, owner_id: int) -> set[str]:
    """Return which files that messages name are deleted since; nothing is asked if they name none."""
    ids = dict.fromkeys(f.artifact_id for part in parts for f in inspectedparts.files_of(part, known))
    return set(rows.missing(owner_id, list(ids))) if ids else set()


def _segments(parts: Sequence[PartRef], window: int) -> tuple[Segment, ...]:
    """Return the bar in sending order, neighbours of one kind as one piece."""
    whole = max(window, sum(sent(part) for part in parts), 1)
    pieces: list[tuple[str, int]] = []
    for tag, tokens in (*((inspectedparts.tag_of(part), sent(part)) for part in parts), ("reserve", _reserve(parts))):
        if tokens and pieces and pieces[-1][0] == tag:
            pieces[-1] = (tag, pieces[-1][1] + tokens)
        elif tokens:
            pieces.append((tag, tokens))
    out, at = [], 0
    for tag, tokens in pieces:
        x, width = 100 * at / whole, 100 * min(tokens, max(whole - at, 0)) / whole
        out.append(Segment(tag=tag, x=f"{x:.3f}%", width=f"{width:.3f}%"))
        at += tokens
    return tuple(out)


def _shares(parts: Sequence[PartRef], window: int) -> tuple[Share, ...]:
    sums: dict[str, int] = {}
    for part in parts:
        tag = inspectedparts.tag_of(part)
        sums[tag] = sums.get(tag, 0) + part.tokens
    sums["reserve"] = _reserve(parts)
    sums["free"] = max(0, window - sum(n for tag, n in sums.items() if tag != "dropped"))
    return tuple(
        Share(tag=tag, label=label, tokens=sums[tag], percent=inspectorwords.percent(sums[tag], window))
        for tag, label in inspectorwords.tags().items()
        if sums.get(tag)
    )


def _reserve(parts: Sequence[PartRef]) -> int:
    """Return what the request kept for the answer, 0 if it did not say."""
    most = next((part.params.get("max_tokens") for part in parts if part.kind == "system"), None)
    return most if isinstance(most, int) else 0


def _against(calls: Calls, known: Known, address: Address) -> Against | None:
    before = calls.before
    if before is None or calls.call is None:
        return None

    def say(part: PartRef) -> str:
        return told(part, known)[1]

    found = difference(calls.parts_before, calls.parts, say, say)
    alike = [one for one in calls.rows if one.purpose == before.purpose]
    at = next((n for n, one in enumerate(alike, 1) if one.pk == before.pk), 0)
    return Against(
        name=inspectorwords.call_name(before.purpose, at) if at else inspectorwords.call_elsewhere(),
        address=address.call(before),
        became=inspectorwords.became(found.before, found.after),
        same=inspectorwords.unchanged(found.same) if found.same else "",
        changes=tuple(_changed(change, known) for change in found.changes[:MOST_CHANGES]),
        more=max(0, len(found.changes) - MOST_CHANGES),
        difference=found,
        elsewhere=not at,
    )


def _changed(change: Change, known: Known) -> Changed:
    tag = inspectedparts.tag_of(change.part)
    name = inspectedparts.name(change.part, known)
    was = inspectedparts.tag_of(change.old) if change.old is not None else tag
    names = inspectorwords.tags()
    if was != tag:
        name = inspectorwords.was(name, names[was])
    return Changed(change=change, tag=tag, label=names[tag], name=name, tokens=inspectorwords.signed(change.tokens))
