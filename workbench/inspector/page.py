"""A run of a conversation as it went, and each of its requests as it was sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, product

from django.utils import timezone

from agents import wiring
from agents.background.title import INSTRUCTION as TITLE
from agents.models.run import Run
from agents.runtime.context.digests import sha256, tools_sha256
from agents.runtime.context.words import CONTINUE, FINISH
from agents.runtime.events import Preloaded, Stored
from agents.runtime.llm import LLMAgent, Offer
from agents.runtime.model import ModelRequest, ToolSpec
from agents.runtime.policy import MEMORY_TOOLS, ContextPolicy
from agents.runtime.summaries import Summary
from agents.runtime.summary.prompts import prompts_of
from agents.runtime.summary.templates import LANGUAGES, PURPOSES
from agents.runtime.toolset import Toolset
from agents.stores import policies
from workbench.inspector import call as inspectedcall
from workbench.inspector import rows as inspectedrows
from workbench.inspector import skills as inspectedskills
from workbench.inspector import words as inspectorwords
from workbench.inspector.call import Call
from workbench.inspector.parts import Known
from workbench.inspector.places import Address
from workbench.inspector.rows import Calls, Found
from workbench.inspector.spans import facts, spans
from workbench.inspector.waterfall import Waterfall, draw


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run in the list of runs."""

    address: str
    at: str
    state: str
    word: str
    calls: int
    tokens: str
    current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """What the page shows. owner: whose conversation it is. request: of the call, None if it cannot be made again."""

    thread_id: str
    owner: int
    run_id: str
    agent: str
    model: str
    at: str
    permalink: str
    runs: tuple[RunRow, ...]
    facts: tuple[tuple[str, str, str], ...] = ()
    waterfall: Waterfall | None = None
    call: Call | None = None
    request: ModelRequest | None = field(default=None, repr=False)


def build(found: Found, call_id: str, whole: int = 0) -> Inspected:
    """Return the page of a conversation's run and one of its calls. whole: number of a part to show in full."""
    calls = inspectedrows.calls(found, call_id)
    events, own = inspectedrows.stored(found, calls)
    parts = (*calls.parts, *calls.parts_before)
    remembered = inspectedrows.remembered(found, parts, events.values())
    made_again = {**remembered, **inspectedskills.texts(found.session.owner_id, parts)}
    known = _known(events, inspectedrows.summaries(found, parts), made_again)
    forks = inspectedrows.line(found, {one.fork for one in events.values()})
    address = Address.of(found, forks, events.values())
    run = found.run
    call, request = inspectedcall.build(calls, known, address, whole) if calls.call is not None else (None, None)
    return Inspected(
        thread_id=found.session.thread_id,
        owner=found.session.owner_id,
        run_id=run.client_id if run else "",
        agent=run.agent if run else found.session.agent,
        model=run.model if run else "",
        at=inspectorwords.clock(run.started_at) if run else "",
        permalink=address.call(calls.call) if calls.call else address.run(run) if run else "",
        runs=tuple(_run_row(one, address, current=run is not None and one.pk == run.pk) for one in found.runs),
        facts=facts(run, calls.rows, own) if run else (),
        waterfall=_waterfall(found, run, calls, own) if run else None,
        call=call,
        request=request,
    )


def _waterfall(found: Found, run: Run, calls: Calls, own: Sequence[Stored]) -> Waterfall:
    shown = calls.call.call_id if calls.call is not None else ""
    all_spans = spans(run, calls.rows, own, inspectedrows.jobs(found), shown)
    whole_s = ((run.ended_at or timezone.now()) - run.started_at).total_seconds()
    soon = [s.start_s + (s.seconds or 0.0) for s in all_spans if s.start_s <= 1.5 * whole_s + 1]
    return draw(all_spans, max(whole_s, min(max(soon, default=0.0), 2 * whole_s + 1)))


def _offers() -> list[tuple[LLMAgent, Offer]]:
    """Return what our agents' requests may begin with, whatever staff have set."""
    memory_tools = [named for count in range(len(MEMORY_TOOLS) + 1) for named in combinations(MEMORY_TOOLS, count)]
    switches = list(product((True, False), repeat=2))
    allowed = [
        ContextPolicy(session_tools=past, skills=skills, memory_tools=named)
        for past, skills in switches
        for named in memory_tools
    ]
    return [(agent, agent.offer(policy)) for policy in allowed for agent in wiring.agents()]


@cache
def _texts() -> Mapping[str, str]:
    """Return what agents, the application and its jobs say themselves, by hash."""
    texts = {"", CONTINUE, FINISH, TITLE, *(offer.instruction for _, offer in _offers())}
    limits = {0, *(policies.own(agent.name).summary_words for agent in wiring.agents())}
    for prompts in (prompts_of(t, lang, words) for t in PURPOSES for lang in LANGUAGES for words in limits):
        texts |= {prompts.system_text(), prompts.fork_text(), prompts.user}
    return {sha256(text): text for text in texts}


@cache
def _tools() -> Mapping[str, tuple[ToolSpec, ...]]:
    declared = [Toolset(offer.tools, (), agent.gates).specs for agent, offer in _offers()]
    return {tools_sha256(specs): specs for specs in declared}


def _known(events: Mapping[str, Stored], summaries: Mapping[str, Summary], made_again: Mapping[str, str]) -> Known:
    blocks = {
        sha256(text): text
        for stored in events.values()
        if isinstance(stored.record, Preloaded)
        for _kind, text in stored.record.blocks
    }
    return Known(events=events, texts={**_texts(), **blocks, **made_again}, tools=_tools(), summaries=summaries)


def _run_row(run: Run, address: Address, *, current: bool) -> RunRow:
    state, word = inspectorwords.states().get(run.status, ("", run.status))
    return RunRow(
        address=address.run(run),
        at=inspectorwords.clock(run.started_at),
        state=state,
        word=word,
        calls=run.model_calls,
        tokens=inspectorwords.usage(run.prompt_tokens, run.cached_tokens, run.completion_tokens),
        current=current,
    )
