"""Whether a summary pays.

Before a call: the text that is to be expected must save, over the calls to come, what making it reads and writes. As
many calls are expected as there were so far, within HORIZON: who has asked ten times will more likely ask another ten
than who has asked once. After the call: the request that follows must be shorter than it would have been, or nothing
is stored. All tokens are estimates of one kind (tokens.py), so the two sides can be compared.

What hiding an event saves is counted low: a result that is shown as a placeholder counts as the shortest of these, a
call without its result counts nothing, and neither does a person's message that stays shown because its turn goes on
behind the boundary.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from agents.runtime.context import words
from agents.runtime.context.sizes import Sizes
from agents.runtime.events import AssistantMessage, Stored, ToolReturned, UserMessage
from agents.runtime.policy import ContextPolicy
from agents.runtime.summaries import Summary
from agents.runtime.tokens import MESSAGE_TOKENS

HORIZON: Final = (8, 20)  # calls to come, at least and at most
INSTRUCTION_TOKENS: Final = 250  # of the prompt that asks for a summary
RATIO: Final = 0.3  # of a first summary to what it covers
RATIO_BOUNDS: Final = (0.05, 0.6)
WORD_TOKENS: Final = 1.4
RESULT_TOKENS: Final = 500  # of a tool's result, as text.py shortens it
PLACEHOLDER_TOKENS: Final = 30  # the shortest of context/placeholders.py
CUT_SHARE: Final = 0.9  # of its limit that an oversized result, cut to head and tail, has at least


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """hidden: tokens that the boundary takes out of the next request, counted low. read: tokens of the same events as
    they are; told: as a summarizer reads them. base: of the text that goes with the old boundary, its frame included.
    frame: of the new one.
    """

    hidden: int
    read: int
    told: int
    base: int
    frame: int

    def expected(self, policy: ContextPolicy, base: Summary | None) -> int:
        """Return how many tokens the text will probably have."""
        ratio, before = RATIO, 0
        if base is not None and base.covered_tokens:
            ratio, before = min(max(base.tokens / base.covered_tokens, RATIO_BOUNDS[0]), RATIO_BOUNDS[1]), base.tokens
        text = before + round(ratio * min(self.told, self.read))
        if policy.summary_words:
            text = min(text, max(before, round(policy.summary_words * WORD_TOKENS)))
        return max(text, 1)

    def pays(self, policy: ContextPolicy, base: Summary | None, calls: int, *, forced: bool = False) -> bool:
        """Return whether making the summary is worth its call. calls: to the model so far. Forced: whether the next
        request would be shorter."""
        text = self.expected(policy, base)
        saved = self.hidden + self.base - text - self.frame
        if forced:
            return saved > 0
        to_come = min(max(calls, HORIZON[0]), HORIZON[1])
        cost = self.told + self.base + text + INSTRUCTION_TOKENS
        return self.hidden >= policy.summary_least and saved * to_come >= cost

    def holds(self, text_tokens: int) -> bool:
        """Return whether the next request is shorter with this text."""
        return text_tokens + self.frame < self.hidden + self.base


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """How events are shown while they are not covered. up_to: where the newest step of compaction ends, 0 = there was
    none. stays: ids of events that are shown though they are covered."""

    policy: ContextPolicy
    up_to: int = 0
    stays: Collection[str] = ()

    def result(self, stored: Stored, tool: str, tokens: int) -> int:
        """Return the tokens of a tool's result, at most."""
        policy = self.policy
        if not policy.compact:
            return tokens
        if tool not in policy.compact_keep:
            old = stored.position <= self.up_to and tokens > policy.compact_over
            if old or tool in policy.compact_force:
                return min(tokens, PLACEHOLDER_TOKENS)
        if 0 < policy.compact_oversized < tokens:
            return int(policy.compact_oversized * CUT_SHARE)
        return tokens


def weigh(events: Sequence[Stored], base: Summary | None, shown: Shown, sizes: Sizes) -> Worth:
    """Return what covering these events is worth."""
    answered = {s.record.call_id for s in events if isinstance(s.record, ToolReturned)}
    called: set[str] = set()
    hidden = read = told = 0
    for stored in events:
        record, tokens = stored.record, sizes.event(stored)
        read += tokens
        told += min(tokens, RESULT_TOKENS) if isinstance(record, ToolReturned) else tokens
        if stored.id in shown.stays:
            continue
        match record:
            case AssistantMessage():
                called |= {call.id for call in record.tool_calls}
                whole = all(call.id in answered for call in record.tool_calls)
                hidden += tokens if whole else sizes.text(record.text)
            case ToolReturned():
                hidden += shown.result(stored, record.name, tokens) if record.call_id in called else 0
            case UserMessage():
                hidden += tokens
            case _:
                pass
    frame = _frame(shown.policy, sizes.text)
    before = sizes.text(base.text) + frame if base else 0
    return Worth(hidden=hidden, read=read, told=told, base=before, frame=frame)


def _frame(policy: ContextPolicy, tokens: Callable[[str], int]) -> int:
    lead = words.SUMMARY_IN_SYSTEM if policy.placement == "system" else words.SUMMARY_IN_USER
    return tokens(words.tagged(lead, "summary", "")) + MESSAGE_TOKENS
