"""LLMAgent: ask the model, run the tools it calls, ask again, until it answers without calling any."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from agents.runtime import hooks as chains
from agents.runtime.context.assemble import Frame
from agents.runtime.context.citing import settled
from agents.runtime.context.overview import overview
from agents.runtime.context.words import FINISH
from agents.runtime.errors import ContextTooLong, EmptyAnswer, LimitExceeded, RunError
from agents.runtime.events import AssistantMessage, Event, UserMessageKind
from agents.runtime.invocation import NO_HOOKS, Hooks, Invocation
from agents.runtime.model import FinishReason, ToolCall
from agents.runtime.modelcall import ModelTurn, calls_of, with_calls
from agents.runtime.policy import ASSISTANT, MEMORY_TOOLS, SESSION_TOOLS, SKILL_TOOLS, ContextPolicy
from agents.runtime.preparing import Preload, Preparing
from agents.runtime.recall import NO_RECALL
from agents.runtime.toolround import ToolRound
from agents.runtime.tools import Tool
from agents.runtime.toolset import OPEN_GATES, Gates, Prepared, Toolset

NO_MORE_TOOLS = "no more tools can be called in this run; answer with what you have."


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What an agent's requests begin with. tools: visible or not; those of the model pass the agent's gates."""

    instruction: str
    tools: tuple[Tool, ...]


class LLMAgent:
    """An agent whose decisions a model makes. One instance serves many runs at once; the model is the invocation's.

    instruction: the system text, the same for every run. tools: in the order the model sees them; two of one name are
    a ValueError. max_tokens, temperature: None = the provider's default. policy: how its context is kept, unless staff
    have set another. preloads: asked once per run for what the model is to have before it without asking.
    """

    def __init__(  # noqa: PLR0913  # a constructor, all by keyword: nothing else gathers these
        self,
        *,
        name: str,
        instruction: str,
        tools: Sequence[Tool] = (),
        hooks: Hooks = NO_HOOKS,
        max_tokens: int | None = None,
        temperature: float | None = None,
        gates: Gates = OPEN_GATES,
        policy: ContextPolicy = ASSISTANT,
        preloads: Sequence[Preload] = (),
    ) -> None:
        Toolset(tools)  # refuses two tools of one name now, not in the first run
        self._name = name
        self.instruction = instruction
        self.tools = tuple(tools)
        self.hooks = hooks
        self.max_tokens = max_tokens
        self.temperature = temperature
        self.gates = gates
        self.policy = policy
        self.preloads = tuple(preloads)

    @property
    def name(self) -> str:
        return self._name

    def offer(self, policy: ContextPolicy, *, past: bool = True, memories: bool = True, skills: bool = True) -> Offer:
        """Return the system text and the tools under a policy. past, memories, skills: whether there are such at all.

        The memory tools come last, by name, so that a provider's cache of what comes before them stays.
        """
        allowed = {
            *(SESSION_TOOLS if policy.session_tools and past else ()),
            *(policy.memory_tools if memories else ()),
            *(SKILL_TOOLS if policy.skills and skills else ()),
        }
        optional = {*SESSION_TOOLS, *MEMORY_TOOLS, *SKILL_TOOLS}
        kept = [tool for tool in self.tools if tool.spec.name in allowed or tool.spec.name not in optional]
        kept.sort(key=lambda tool: tool.spec.name if tool.spec.name in MEMORY_TOOLS else "")
        tools = tuple(kept)
        about = overview({tool.spec.name for tool in tools if self.gates.visible(tool)})
        text = f"{self.instruction.rstrip()}\n\n{about}" if about else self.instruction
        return Offer(instruction=text, tools=tools)

    def run(self, invocation: Invocation) -> AsyncIterator[Event]:
        hooks = invocation.hooks + self.hooks
        events = self._loop(invocation, hooks)
        if hooks.before_agent or hooks.after_agent:
            events = self._guided(invocation, hooks, events)
        return self._watched(invocation, events) if self.hooks.on_event else events

    async def _watched(
        self, invocation: Invocation, events: AsyncGenerator[Event, None]
    ) -> AsyncGenerator[Event, None]:
        async with aclosing(events):
            async for event in events:
                yield await chains.on_event(self.hooks, invocation, event)

    async def _guided(
        self, invocation: Invocation, hooks: Hooks, events: AsyncGenerator[Event, None]
    ) -> AsyncGenerator[Event, None]:
        async with aclosing(events):
            answer = await chains.before_agent(hooks, invocation)
            if answer is not None:
                yield _spoken(invocation, answer)
            else:
                async for event in events:
                    yield event
        if not invocation.cancel.cancelled and (more := await chains.after_agent(hooks, invocation)) is not None:
            yield _spoken(invocation, more)

    async def _loop(self, invocation: Invocation, hooks: Hooks) -> AsyncGenerator[Event, None]:
        preparing = Preparing(invocation, self.policy, self.preloads)
        services = invocation.services
        if any(tool.spec.name in SKILL_TOOLS and self.gates.visible(tool) for tool in self.tools):
            await preparing.skilled.open()
        offer = self.offer(
            preparing.policy,
            past=services.recall is not NO_RECALL,
            memories=services.memories is not None,
            skills=invocation.skills is not None,
        )
        toolset = Toolset(offer.tools, invocation.external_tools, self.gates)
        steered = await invocation.services.ledger.steered()
        while not invocation.cancel.cancelled:
            for message in steered:
                yield replace(message, kind=UserMessageKind.STEER)
            step = _Step(
                agent=self,
                instruction=offer.instruction,
                invocation=invocation,
                hooks=hooks,
                toolset=toolset,
                preparing=preparing,
            )
            async with aclosing(step.run()) as events:
                async for event in events:
                    yield event
            if invocation.cancel.cancelled or (step.over and not step.answered):
                return
            # What came while the last answer was written is answered too: the run goes on with it.
            steered = await invocation.services.ledger.steered()
            if step.over and not steered:
                return


@dataclass(slots=True, kw_only=True)
class _Step:
    """One model call and the tools it asks for. After `run`: over = no further step; answered = without a call.

    A request that the provider finds too long is made shorter and sent once more, once in a run. turn: the answer.
    spoke: what came before an error is stored.
    """

    agent: LLMAgent
    instruction: str
    invocation: Invocation
    hooks: Hooks
    toolset: Toolset
    preparing: Preparing
    over: bool = False
    answered: bool = False
    turn: ModelTurn | None = None
    spoke: bool = False

    async def run(self) -> AsyncGenerator[Event, None]:
        last = _count(self.invocation)
        try:
            async with aclosing(self._ask(last)) as events:
                async for event in events:
                    yield event
        except ContextTooLong as refused:
            if self.spoke or not self.preparing.shorten():
                raise
            async with aclosing(self._ask(last, refused)) as events:
                async for event in events:
                    yield event
        turn = self.turn
        if turn is None:
            return
        self.preparing.answered(turn.usage)
        if turn.finish is FinishReason.CANCELLED:
            for segment in turn.take():
                yield segment
            return
        async with aclosing(self._act(turn, last)) as events:
            async for event in events:
                yield event

    async def _ask(self, last: bool, refused: ContextTooLong | None = None) -> AsyncGenerator[Event, None]:
        """Prepare a request and ask the model. refused: what came of a longer one; raised again if this is no shorter.

        Then `turn` is the answer, None if the run was told to stop or a hook gave the answer.
        """
        before = self.preparing.assembled
        async with aclosing(self.preparing.prepare(self._frame(last))) as events:
            async for event in events:
                yield event
        assembled = self.preparing.assembled
        if assembled is None:
            return
        if refused is not None and before is not None and assembled.tokens >= before.tokens:
            raise refused
        request = await chains.before_model(self.hooks, self.invocation, assembled.request)
        if isinstance(request, str):
            self.over = self.answered = True
            yield _spoken(self.invocation, request)
            return
        turn = ModelTurn(self.invocation, assembled, request, _call_ids(self.invocation))
        try:
            async with aclosing(turn.stream()) as events:
                async for event in events:
                    yield event
        except RunError:
            for segment in turn.take():
                self.spoke = True
                yield segment
            raise
        self.turn = turn

    async def _act(self, turn: ModelTurn, last: bool) -> AsyncGenerator[Event, None]:
        segments = await chains.after_model(self.hooks, self.invocation, turn.segments)
        if segments is not turn.segments:
            citable = self.invocation.citable()
            segments = tuple(settled(segment, citable) for segment in segments)
        calls = [self._prepared(call, turn, last) for call in calls_of(segments)]
        segments = with_calls(segments, {prepared.call.id: prepared.call for prepared in calls})
        if not segments and not _spoke(self.invocation):
            raise EmptyAnswer
        turn.take()
        for segment in segments:
            yield segment
        if not calls:
            self.over = self.answered = True
            return
        _count_round(self.invocation, last)
        tools = ToolRound(self.invocation, self.hooks)
        async with aclosing(tools.run(calls)) as events:
            async for event in events:
                yield event
        if last and not any(segment.text for segment in segments):
            raise LimitExceeded("The run used up its limit and the model gave no answer without tools.")
        self.over = last or tools.end_run or bool(tools.pending)

    def _frame(self, last: bool) -> Frame:
        return Frame(
            instruction=self.instruction,
            tools=() if last else self.toolset.specs,
            max_tokens=self.agent.max_tokens,
            temperature=self.agent.temperature,
            tail=FINISH if last else "",
        )

    def _prepared(self, call: ToolCall, turn: ModelTurn, last: bool) -> Prepared:
        if last:
            return Prepared(call=call, problem=NO_MORE_TOOLS)
        return self.toolset.prepare(call, cut=turn.finish is FinishReason.LENGTH)


def _count(invocation: Invocation) -> bool:
    """Count one model call and return whether it is the last, without tools. Raises LimitExceeded."""
    limits, own, whole = invocation.limits, invocation.counters, invocation.run_counters
    for used, limit in ((own.model_calls, limits.model_calls), (whole.model_calls, limits.model_calls_run)):
        if limit is not None and used >= limit:
            raise LimitExceeded(f"The run used up its limit of {limit} model calls.")
    own.model_calls += 1
    whole.model_calls += 1
    return limits.finish_without_tools and (
        own.model_calls == limits.model_calls
        or whole.model_calls == limits.model_calls_run
        or (limits.tool_rounds is not None and own.tool_rounds >= limits.tool_rounds)
    )


def _count_round(invocation: Invocation, last: bool) -> None:
    """Count one tool round. Raises LimitExceeded; then the calls are not run."""
    limit = invocation.limits.tool_rounds
    if limit is not None and invocation.counters.tool_rounds >= limit and not last:
        raise LimitExceeded(f"The run used up its limit of {limit} rounds of tool calls.")
    invocation.counters.tool_rounds += 1
    invocation.run_counters.tool_rounds += 1


def _call_ids(invocation: Invocation) -> set[str]:
    return {
        call.id for s in invocation.history if isinstance(s.record, AssistantMessage) for call in s.record.tool_calls
    }


def _spoke(invocation: Invocation) -> bool:
    """Return whether an answer of this run was stored already; an empty end after tools is then no failure."""
    return any(
        isinstance(s.record, AssistantMessage) and s.origin.run_id == invocation.run_id for s in invocation.history
    )


def _spoken(invocation: Invocation, text: str) -> AssistantMessage:
    message_id = invocation.services.new_id()
    message = AssistantMessage(id=message_id, response_id=message_id, text=text)
    return settled(message, invocation.citable())
