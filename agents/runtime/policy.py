"""How an agent's context is kept: one dataclass, validated, with the field's standard names beside ours.

The names in parentheses are those of tRPC-Agent-Go's options. Staff may change each agent's values in the admin; what
is refused here cannot be saved there.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

TRIGGER_JOINS: Final = ("any", "all")
TEMPLATES: Final = ("brief", "materials", "worksite")
PLACEMENTS: Final = ("system", "user")
PRELOAD_PLACEMENTS: Final = (*PLACEMENTS, "turn")
SUMMARISE_IN: Final = ("background", "run")
FORKS: Final = ("off", "auto", "on")
TAILORINGS: Final = ("middle", "head", "tail")
TIMELINES: Final = ("all", "request", "invocation")
BRANCHES: Final = ("prefix", "subtree", "exact", "all")
SKILL_MODES: Final = ("turn", "once", "session")
LOAD_TOOL: Final = "session_load"
SEARCH_TOOL: Final = "session_search"
MEMORY_TOOLS: Final = (
    "memory_add",
    "memory_clear",
    "memory_delete",
    "memory_load",
    "memory_search",
    "memory_update",
)
SESSION_TOOLS: Final = (SEARCH_TOOL, LOAD_TOOL)
SKILL_TOOLS: Final = ("skill_load", "skill_list_docs", "skill_select_docs")
RECOVERY_TOOLS: Final = (LOAD_TOOL, SEARCH_TOOL, "skill_load", "skill_select_docs")


class PolicyInvalid(ValueError):
    """A value that cannot be. `field` names it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPolicy:
    """The context policy of one agent. Tokens are estimates of runtime/tokens.py; None = that trigger is off.

    summarise: a rolling summary is kept and shown (WithAddSessionSummary).
    summary_events, summary_tokens, summary_idle_s, summary_ratio: triggers; more than so many new events
    (WithEventThreshold), more than so many tokens of the request (WithTokenThreshold), a longer pause before the
    request (WithTimeThreshold), more than this share of the window (WithContextThreshold) but never below summary_floor
    tokens. summary_join: "any" or "all" of them must hold (WithChecksAny, WithChecksAll). None set = always.
    summary_words: asked for, never cut to; 0 = no limit (WithMaxSummaryWords).
    summary_least: the fewest tokens of new events that are worth a call; what would not pay is not summarised.
    keep_rounds, keep_tokens: so many complete rounds at the end, as far as they fit, stay raw (WithSkipRecent).
    template: of the prompt: brief, or the state recovery for materials or worksite (WithSummarizerPrompt).
    summarise_in: "background" by a job, "run" also between the steps of a run (WithSyncSummaryIntraRun).
    summary_timeout_s: of one making. summary_wait_s: of a run, for a summary before a call that can be made without
    one; a job makes it then. placement: where the text goes, system or user message
    (WithSessionSummaryInjectionMode). summary_model: configured name, "" = the model that answers.
    fork: the summary call reuses the run's cached prefix; "auto" where that is cheaper (WithCacheSafeForking).
    cascade: also refresh the whole session's summary; allow: branch scopes that may have one, None = all
    (WithSummaryFilterAllowlist).
    presummary_ratio: share of the window from which a request is summarised before it is sent, 0 = never
    (WithContextCompactionThresholdRatio).
    compact: results of earlier requests are replaced by recoverable placeholders (WithEnableContextCompaction);
    compact_over: if larger (WithToolResultMaxTokens); compact_keep_requests: not of the last so many completed ones
    (WithKeepRecentRequests); compact_oversized: any result larger is cut to head and tail, 0 = off
    (WithOversizedToolResultMaxTokens); compact_force, compact_keep: tools always and never replaced
    (WithForceCompactToolNames, WithKeepToolNames); compact_step: only when this share of the request would go.
    tailor: whole rounds are left out as the last resort (WithEnableTokenTailoring), in this order
    (WithTailoringStrategy); max_input_tokens: an explicit budget, 0 = from the window (WithMaxInputTokens);
    margin, output_reserve, protocol_overhead, input_floor, input_ratio: of the budget (WithTokenTailoringConfig).
    history_runs: without a summary, only the last so many runs, 0 = all (WithMaxHistoryRuns). timeline, branch: which
    events are seen at all (WithMessageTimelineFilterMode, WithMessageBranchFilterMode). preload_placement: of memory
    and recall (WithPreloadMemoryInjectionMode); "turn" = with the message that is answered (context/injection.py).
    session_tools: the model may search and load the past (WithEnableOnDemandSession). preload_recall: what is found for
    a question that refers back is put before the model unasked (WithPreloadSessionRecall).
    preload_memory: so many memories are put before the model, all if there are no more, else those that fit the
    question; 0 = none, -1 = all (WithPreloadMemory). memory_tools: those of MEMORY_TOOLS that the model may call
    (WithToolExposed). remember: after a run a job reads what the person said for what is to be remembered, once more
    than memory_messages wait (CheckMessageThreshold) and more than memory_pause_s seconds have passed
    (CheckTimeInterval). memory_model: configured name of who reads, "" = the model that answers.
    skills: the agent is told which skills there are, and may load them. skill_mode: how long one stays loaded: for the
    "turn", for the next request only ("once"), or for the "session" (WithSkillLoadMode). skills_loaded: so many at
    once, those touched last, 0 = no limit (WithMaxLoadedSkills). skills_overview: so many are described, the others
    named (WithMaxOverviewSkills).
    review: after a run a job looks whether there is something to learn for the next one like it; review_calls: from so
    many calls of tools on, below 0 = only when a person corrected something or a tool had to be tried again.
    review_model: configured name of who reviews, "" = the model that answers.
    """

    summarise: bool = True
    summary_events: int | None = None
    summary_tokens: int | None = None
    summary_idle_s: float | None = None
    summary_ratio: float | None = 0.6
    summary_floor: int = 2_000
    summary_join: str = "any"
    summary_words: int = 500
    summary_least: int = 500
    summary_timeout_s: float = 60.0
    summary_wait_s: float = 10.0
    summary_model: str = ""
    keep_rounds: int = 2
    keep_tokens: int = 4_000
    template: str = "materials"
    summarise_in: str = "background"
    placement: str = "system"
    preload_placement: str = "turn"
    fork: str = "auto"
    cascade: bool = False
    allow: tuple[str, ...] | None = None
    presummary_ratio: float = 0.7
    compact: bool = True
    compact_over: int = 1_024
    compact_keep_requests: int = 1
    compact_oversized: int = 8_192
    compact_force: tuple[str, ...] = ()
    compact_keep: tuple[str, ...] = RECOVERY_TOOLS
    compact_step: float = 0.2
    tailor: bool = True
    tailoring: str = "middle"
    max_input_tokens: int = 0
    margin: float = 0.1
    output_reserve: int = 2_048
    protocol_overhead: int = 512
    input_floor: int = 1_024
    input_ratio: float = 1.0
    history_runs: int = 0
    timeline: str = "all"
    branch: str = "prefix"
    session_tools: bool = True
    preload_recall: bool = True
    preload_memory: int = 12
    memory_tools: tuple[str, ...] = ("memory_load", "memory_search")
    remember: bool = True
    memory_messages: int = 0
    memory_pause_s: float = 0.0
    memory_model: str = ""
    skills: bool = True
    skill_mode: str = "turn"
    skills_loaded: int = 0
    skills_overview: int = 50
    review: bool = True
    review_calls: int = 4
    review_model: str = ""

    def __post_init__(self) -> None:
        _choices(self)
        _numbers(self)
        for name in ("allow", "compact_force", "compact_keep", "memory_tools"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, tuple) and all(isinstance(v, str) and v for v in value)):
                raise PolicyInvalid(name, "must be a list of names.")

        if unknown := set(self.memory_tools) - set(MEMORY_TOOLS):
            raise PolicyInvalid("memory_tools", f"there is no tool {min(unknown)!r}.")

    @classmethod
    def of(cls, values: Mapping[str, Any], base: "ContextPolicy | None" = None) -> "ContextPolicy":
        """Return the policy with these values (JSON: lists for tuples) over those of base. Raises PolicyInvalid."""
        known = {f.name for f in fields(cls)}
        for name in values:
            if name not in known:
                raise PolicyInvalid(name, "there is no such value.")
        given = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return cls(**{**(asdict(base) if base else {}), **given})


def _choices(policy: ContextPolicy) -> None:
    for name, allowed in (
        ("summary_join", TRIGGER_JOINS),
        ("template", TEMPLATES),
        ("placement", PLACEMENTS),
        ("preload_placement", PRELOAD_PLACEMENTS),
        ("summarise_in", SUMMARISE_IN),
        ("fork", FORKS),
        ("tailoring", TAILORINGS),
        ("timeline", TIMELINES),
        ("branch", BRANCHES),
        ("skill_mode", SKILL_MODES),
    ):
        if getattr(policy, name) not in allowed:
            raise PolicyInvalid(name, f"must be one of {', '.join(allowed)}.")
    for name in ("summarise", "cascade", "compact", "tailor", "session_tools", "preload_recall", "remember", "skills"):
        if not isinstance(getattr(policy, name), bool):
            raise PolicyInvalid(name, "must be true or false.")
    if not isinstance(policy.summary_model, str):
        raise PolicyInvalid("summary_model", "must be a model's name.")


def _numbers(policy: ContextPolicy) -> None:
    """Check the numbers: (name, least, most, may be None)."""
    for name, least, most, optional in (
        ("summary_events", 1, 100_000, True),
        ("summary_tokens", 1, 10_000_000, True),
        ("summary_floor", 0, 10_000_000, False),
        ("summary_words", 0, 20_000, False),
        ("summary_least", 0, 1_000_000, False),
        ("keep_rounds", 0, 1_000, False),
        ("keep_tokens", 0, 1_000_000, False),
        ("compact_over", 1, 1_000_000, False),
        ("compact_keep_requests", 0, 1_000, False),
        ("compact_oversized", 0, 1_000_000, False),
        ("max_input_tokens", 0, 10_000_000, False),
        ("output_reserve", 0, 1_000_000, False),
        ("protocol_overhead", 0, 100_000, False),
        ("input_floor", 1, 1_000_000, False),
        ("history_runs", 0, 100_000, False),
        ("preload_memory", -1, 1_000, False),
        ("memory_messages", 0, 100_000, False),
        ("skills_loaded", 0, 100, False),
        ("skills_overview", 0, 1_000, False),
        ("review_calls", -1, 1_000, False),
    ):
        value = getattr(policy, name)
        if value is None and optional:
            continue
        if type(value) is not int or not least <= value <= most:
            raise PolicyInvalid(name, f"must be a whole number from {least} to {most}.")
    for name, low, high, optional in (
        ("summary_idle_s", 0.001, 10_000_000.0, True),
        ("summary_ratio", 0.01, 1.0, True),
        ("summary_timeout_s", 0.01, 3_600.0, False),
        ("summary_wait_s", 0.01, 3_600.0, False),
        ("presummary_ratio", 0.0, 1.0, False),
        ("compact_step", 0.0, 1.0, False),
        ("margin", 0.0, 0.9, False),
        ("input_ratio", 0.01, 1.0, False),
        ("memory_pause_s", 0.0, 10_000_000.0, False),
    ):
        value = getattr(policy, name)
        if value is None and optional:
            continue
        if type(value) not in (int, float) or not low <= value <= high:
            raise PolicyInvalid(name, f"must be a number from {low:g} to {high:g}.")


ASSISTANT: Final = ContextPolicy()
ANALYST: Final = ContextPolicy(
    summary_ratio=0.7,
    summary_words=2_000,
    summary_wait_s=30.0,  # for four times as many words
    keep_rounds=3,
    keep_tokens=8_000,
    template="worksite",
    summarise_in="run",
    placement="user",
)
