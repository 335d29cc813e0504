"""What all figures share, and those of made-up conversations: prefix cache, and what the summariser reads."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from agents.runtime.context.window import Window
from agents.runtime.model import Model, ToolSpec
from agents.runtime.policy import ANALYST, ASSISTANT, ContextPolicy
from agents.runtime.summaries import Source
from agents.runtime.summary.asking import Summarizer
from agents.runtime.summary.report import Mode
from workbench.bench import madeup
from workbench.bench.asking import Answering
from workbench.bench.caching import CachingModel, PrefixCache, size
from workbench.bench.figures import Figure, ratios
from workbench.bench.readers import History
from workbench.bench.replay import Replay, Setting
from workbench.bench.scripts import Exchange, events
from workbench.bench.shortening import RATIO, Shortening

LEAST_PARENT: Final = 8_000
PARENTS: Final = (8_000, 10_000, 14_000, 20_000, 40_000, 80_000)  # the last still fits a fork's budget of this window
PARENT_WINDOW: Final = 128_000
TURNS: Final = 60
MEMORY_EVERY: Final = 10
ENDLESS: Final = 10_000
TOKENS_PER_WORD: Final = 4 / 3

Writer = Callable[[ContextPolicy, PrefixCache], Model | Summarizer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What all figures share. instruction, tools: of the product's assistant. window: of the model, in tokens.

    writer: makes what writes summaries, None = the deterministic one of this ratio. free: it asks no model, so it also
    writes where only the counting provider is asked. answering: a real model whose cache is measured, None = the
    counting one. limit: the most cases of a data set, 0 = all.
    """

    instruction: str
    tools: tuple[ToolSpec, ...]
    window: int = 32_768
    seed: int = 0
    ratio: float = RATIO
    limit: int = 0
    writer: Writer | None = None
    free: bool = False
    answering: Answering | None = None

    def replay(self, setting: Setting, *, real: bool = False, asks: bool = False) -> Replay:
        """Return a conversation. real: the configured model writes its summaries, if there is one; asks: and is asked
        in the agent's place too, so that its cache is warm."""
        cache = PrefixCache()
        answering = CachingModel(lambda request: "", cache=cache)
        if self.writer is not None and (real or self.free):
            asked = self.answering if asks and self.answering is not None else answering
            return Replay(setting, asked, self.writer(setting.policy, cache))
        most = int(setting.policy.summary_words * TOKENS_PER_WORD)
        writer = CachingModel(Shortening(ratio=self.ratio, most=most), name="fixed ratio", cache=cache)
        return Replay(setting, answering, writer)

    def cases(self, histories: Sequence[History]) -> list[History]:
        return list(histories[: self.limit] if self.limit else histories)


async def fork_share(bench: Bench) -> list[Figure]:
    """Cached share of the summary's request, its parent sent just before: as it is when reusing it is asked for, and as
    the shipped policy decides."""
    return [*await _fork_share(bench, "on"), *await _fork_share(bench, "auto")]


async def _fork_share(bench: Bench, fork: str) -> list[Figure]:
    cached: list[int] = []
    prompts: list[int] = []
    parents: list[int] = []
    other: Counter[str] = Counter()
    for template in ("brief", "materials", "worksite"):
        for chinese in (0.0, 1.0):
            for least in PARENTS[: 2 if bench.answering else None]:
                policy = replace(ANALYST, template=template, fork=fork)
                window = Window(tokens=PARENT_WINDOW, source="run")
                replay = bench.replay(
                    Setting(instruction=bench.instruction, tools=bench.tools, policy=policy, window=window),
                    real=True,
                    asks=True,
                )
                parent, how = await _parent(replay, bench.seed + len(parents) + other.total(), chinese, least)
                if how != Mode.FORK:
                    other[how] += 1
                    continue
                usage = replay.costs.summaries[-1]
                cached.append(usage.cached)
                prompts.append(usage.prompt)
                parents.append(parent)
    share = ratios(cached, prompts, seed=bench.seed)
    return [
        Figure(
            name=f"Cached share of the summary request, warm parents of {LEAST_PARENT:,} tokens and more, fork {fork}",
            value=share.of_means,
            bar=0.95,
            ratios=share,
            note=(
                "Three templates, English and Chinese, parents that fit a fork's budget. Not in the share, because "
                f"the parent was not reused: {', '.join(f'{n} {how}' for how, n in sorted(other.items())) or 'none'}."
            ),
            details={"parents": parents, "lowest": _lowest(cached, prompts)},
        )
    ]


async def _parent(replay: Replay, seed: int, chinese: float, least: int) -> tuple[int, str]:
    """Make a summary of a warm parent and return the parent's tokens, and how the model was asked or why it was not."""
    for exchange in madeup.Talk(seed, chinese=chinese).exchanges(10_000):
        await replay.record((exchange,), summarise=False)
        assembled = await replay.assemble()
        parent = size(assembled.request)
        if parent >= least:
            break
    await replay.answering.ask(assembled.request)
    made = await replay.offer(Source.MANUAL, assembled, forced=True)
    return parent, (made.report.call.mode if made.advanced else made.reason).value


async def talk_share(bench: Bench) -> list[Figure]:
    """Cached share over a long conversation with tools, summaries included."""
    found = []
    for name, policy, memory, bar in (
        ("analyst", ANALYST, 0, 0.85),
        ("assistant with memory preload", ASSISTANT, MEMORY_EVERY, 0.75),
        ("the same, memory different in every turn", ASSISTANT, 1, 0.75),
    ):
        setting = Setting(
            instruction=bench.instruction,
            tools=(*bench.tools, *madeup.TOOLS),
            policy=policy,
            window=Window(tokens=bench.window, source="run"),
        )
        replay = bench.replay(setting)
        await replay.play(madeup.Talk(bench.seed, memory_every=memory).exchanges(TURNS))
        calls = [*replay.costs.answering, *replay.costs.summaries]
        share = ratios([u.cached for u in calls], [u.prompt for u in calls], seed=bench.seed)
        note = f"Window {bench.window:,} tokens."
        if memory:
            note += f" The preloaded memory gains a fact every {memory} turns." if memory > 1 else ""
        found.append(
            Figure(
                name=f"Cached share over a {TURNS}-turn tool conversation, summaries included: {name}",
                value=share.of_means,
                bar=bar,
                ratios=share,
                note=note,
                details=spent(replay),
            )
        )
    return found


async def read_again(bench: Bench) -> list[Figure]:
    """Tokens that the summariser reads per token of new events, over a conversation of 10,000 events."""
    found = []
    for name, policy, bar in (("assistant", ASSISTANT, 1.3), ("analyst", ANALYST, None)):
        setting = Setting(
            instruction=bench.instruction,
            tools=(*bench.tools, *madeup.TOOLS),
            policy=policy,
            window=Window(tokens=bench.window, source="run"),
        )
        replay = bench.replay(setting)
        await replay.play(_until(madeup.Talk(bench.seed).exchanges(ENDLESS), ENDLESS))
        newest = await replay.newest()
        new = sum(s.tokens for s in replay.history if newest and s.position <= newest.boundary.position)
        calls = replay.costs.summaries
        value = sum(u.prompt for u in calls) / new if new else 0.0
        uncached = sum(u.prompt - u.cached for u in calls) / new if new else 0.0
        details = {**spent(replay), "new_tokens": new, "not_from_the_cache": round(uncached, 4)}
        found.append(
            Figure(
                name=f"Tokens read by the summariser per token of new events, {ENDLESS:,} events: {name}",
                value=value,
                bar=bar,
                lower=True,
                percent=False,
                note=f"Window {bench.window:,} tokens. New events: those the newest summary covers.",
                details=details,
            )
        )
    return found


def _until(script: Iterator[Exchange], count: int) -> Iterator[Exchange]:
    done = 0
    for exchange in script:
        yield exchange
        done += events((exchange,))
        if done >= count:
            return


def _lowest(parts: Sequence[float], wholes: Sequence[float]) -> float | None:
    return min((round(p / w, 4) for p, w in zip(parts, wholes, strict=True) if w), default=None)


def spent(replay: Replay) -> dict[str, Any]:
    """Return what a conversation cost and what came of each summary that was offered, as JSON values."""
    costs = replay.costs
    offers = Counter(made.reason.value for made in replay.made)
    modes = Counter(made.report.call.mode.value for made in replay.made if made.advanced)
    return {
        "calls": len(costs.answering),
        "prompt": sum(u.prompt for u in costs.answering),
        "summaries": len(costs.summaries),
        "summary_prompt": sum(u.prompt for u in costs.summaries),
        "summary_completion": sum(u.completion for u in costs.summaries),
        "cached": sum(u.cached for u in costs.answering),
        "summary_cached": sum(u.cached for u in costs.summaries),
        "offers": dict(offers),
        "modes": dict(modes),
    }
