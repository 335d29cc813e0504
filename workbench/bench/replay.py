"""A conversation driven as a run drives it, over the runtime alone: histories in memory, no database, no network.

What the agent says and what its tools return is given; what each call to the model would have cost is counted.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from agents.runtime.context.assemble import Assembled, Frame, View, assemble
from agents.runtime.context.injection import Block
from agents.runtime.context.window import GUESS, Window
from agents.runtime.events import (
    AssistantMessage,
    Origin,
    Outcome,
    Preloaded,
    Record,
    RunFinished,
    RunStarted,
    Stored,
    ToolReturned,
    UserMessage,
    UserMessageKind,
)
from agents.runtime.memorystores import Clock, Ids
from agents.runtime.memorysummaries import MemorySummaries
from agents.runtime.model import Model, ModelRequest, TextPart, ToolCall, ToolSpec, Usage
from agents.runtime.policy import ASSISTANT, ContextPolicy
from agents.runtime.preparing import outgrown
from agents.runtime.session import ModelCall
from agents.runtime.summaries import Source, Summary
from agents.runtime.summary.asking import Summarizer
from agents.runtime.summary.making import Made, Making, Sent
from agents.runtime.summary.rolling import update
from agents.runtime.summary.summarizer import ModelSummarizer
from agents.runtime.tokens import Mix, estimate_record
from workbench.bench.asking import Answering
from workbench.bench.scripts import Exchange, Step

AGENT = "assistant"
SECONDS_BETWEEN = 60.0  # two exchanges


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What surrounds a conversation. window: of the model, in tokens."""

    instruction: str
    tools: tuple[ToolSpec, ...] = ()
    policy: ContextPolicy = ASSISTANT
    window: Window = GUESS


@dataclass(slots=True, kw_only=True)
class Costs:
    """Tokens of the calls so far. answering: usage per call of the model that answers; summaries: of each summary."""

    answering: list[Usage] = field(default_factory=list)
    summaries: list[Usage] = field(default_factory=list)

    @property
    def total(self) -> Usage:
        return sum((*self.answering, *self.summaries), Usage())


class Replay:
    """One conversation. answering: what is asked in the agent's place, and counts. writer: writes the summaries.

    made: what came of each attempt to summarise, in order. The clock moves by itself; nothing waits.
    """

    def __init__(self, setting: Setting, answering: Answering, writer: Model | Summarizer) -> None:
        self.setting = setting
        self.answering = answering
        self.summarizer: Summarizer = writer if isinstance(writer, Summarizer) else ModelSummarizer(writer)
        self.history: list[Stored] = []
        self.store = MemorySummaries()
        self.costs = Costs()
        self.made: list[Made] = []
        self._clock = Clock()
        self._ids = Ids()
        self._runs = 0
        self._sizes: dict[str, Mix] = {}

    async def play(self, script: Iterable[Exchange]) -> None:
        """Run the exchanges; every step is a counted call to the model."""
        for exchange in script:
            await self.run(exchange)

    async def record(self, script: Iterable[Exchange], *, summarise: bool = True) -> None:
        """Store the exchanges without asking the model; a summary is offered after each run."""
        for exchange in script:
            self._begin(exchange)
            for step in exchange.steps:
                self._answered(step)
            self._end()
            if summarise:
                await self.offer(Source.BACKGROUND)

    async def run(self, exchange: Exchange) -> None:
        """Run one exchange as an agent's run would: summaries between steps, before large calls, and after the end."""
        policy = self.setting.policy
        self._begin(exchange)
        assembled: Assembled | None = None
        for number, step in enumerate(exchange.steps):
            if number and policy.summarise_in == "run":
                assembled = await self.assemble(exchange.memory)
                await self.offer(Source.RUN, assembled)
            assembled = await self._call(exchange.memory)
            self._answered(step)
        self._end()
        await self.offer(Source.BACKGROUND, assembled)

    async def ask(self, question: str, *, memory: str = "") -> ModelRequest:
        """Return the request of a question asked now; nothing of it stays."""
        kept, runs = len(self.history), self._runs
        self._begin(Exchange(said=(question,), steps=(), memory=memory))
        assembled = await self.assemble(memory)
        del self.history[kept:]
        self._runs = runs
        return assembled.request

    async def assemble(self, memory: str = "") -> Assembled:
        """Return the request for the next call; a new step of compaction is stored, as the run does."""
        view = await self._view(memory)
        setting = self.setting
        frame = Frame(instruction=setting.instruction, tools=setting.tools)
        assembled = assemble(self._read(view.summaries.get(AGENT)), frame, view)
        if assembled.compacted is not None:
            self._add(assembled.compacted, AGENT)
        return assembled

    async def _view(self, memory: str = "") -> View:
        setting = self.setting
        return View(
            agent=AGENT,
            run_id=f"run{self._runs}",
            invocation_id=f"run{self._runs}",
            filter_key=AGENT,
            policy=setting.policy,
            summaries=dict(await self.store.newest([AGENT, ""])),
            window=setting.window,
            sizes=self._sizes,
            blocks=(Block(kind="memory", text=memory),) if memory else (),
        )

    async def offer(self, source: Source, assembled: Assembled | None = None, *, forced: bool = False) -> Made:
        """Offer a summary, with the request about to be sent or last sent, and book what it cost."""
        view = await self._view()
        newest = view.summaries.get(AGENT)
        making = Making.of(
            view,
            history=self._read(newest),
            store=self.store,
            summarizer=self.summarizer,
            source=source,
            forced=forced,
            complete_from=newest.read_from if newest else 0,
            sent=Sent.of(assembled, cached=self.costs.answering[-1].cached if self.costs.answering else None),
            model="bench",
            now=self._clock.now,
            new_id=self._ids,
            monotonic=self._clock.monotonic,
            request_started_at=self._clock.at,
            book=self._book,
        )
        made = await update(making)
        self.made.append(made)
        return made

    async def newest(self) -> Summary | None:
        return (await self.store.newest([AGENT])).get(AGENT)

    async def _call(self, memory: str) -> Assembled:
        assembled = await self.assemble(memory)
        policy = self.setting.policy
        if policy.summarise and outgrown(assembled, policy, self.setting.window):
            made = await self.offer(Source.CALL, assembled)
            if made.advanced is not None:
                assembled = await self.assemble(memory)
        self.costs.answering.append((await self.answering.ask(assembled.request))[1])
        return assembled

    async def _book(self, call: ModelCall) -> None:
        self.costs.summaries.append(call.usage)

    def _read(self, summary: Summary | None) -> list[Stored]:
        return self.history[summary.read_from - 1 :] if summary else list(self.history)

    def _begin(self, exchange: Exchange) -> None:
        self._runs += 1
        self._clock.advance(SECONDS_BETWEEN)
        self._add(RunStarted(agent=AGENT, model="bench"), AGENT)
        for number, said in enumerate(exchange.said):
            kind = UserMessageKind.STEER if number else UserMessageKind.TURN
            self._add(UserMessage(id=self._ids(), parts=(TextPart(text=said),), kind=kind), "user")
        if exchange.memory:
            self._add(Preloaded(blocks=(("memory", exchange.memory),)), AGENT)

    def _answered(self, step: Step) -> None:
        response = self._ids()
        calls = tuple(ToolCall(id=self._ids(), name=c.name, arguments=c.arguments) for c in step.calls)
        self._add(AssistantMessage(id=response, response_id=response, text=step.text, tool_calls=calls), AGENT)
        for call, given in zip(calls, step.calls, strict=True):
            returned = ToolReturned(id=self._ids(), call_id=call.id, name=call.name, content=given.result)
            self._add(returned, AGENT)

    def _end(self) -> None:
        self._add(RunFinished(outcome=Outcome.SUCCESS), AGENT)

    def _add(self, record: Record, author: str) -> None:
        self._clock.advance(1.0)
        run = f"run{self._runs}"
        self.history.append(
            Stored(
                position=len(self.history) + 1,
                fork=0,
                id=f"e{len(self.history) + 1}",
                at=self._clock.at,
                origin=Origin(run_id=run, invocation_id=run, author=author, branch=AGENT, filter_key=AGENT),
                record=record,
                tokens=estimate_record(record),
            )
        )


def without_summaries(setting: Setting) -> Setting:
    """Return the same with the whole history in every request: what the others are held against."""
    return replace(setting, policy=replace(setting.policy, summarise=False, compact=False, tailor=False))
