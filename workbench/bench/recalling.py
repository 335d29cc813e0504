"""`manage.py bench recall`: how much of what was said is found again by one search, and by up to three.

Through the product's own entries and statement on a real database; no model but that of the vectors. A question counts
if the set names its evidence. LoCoMo: one conversation is one owner's, and once all of them are one owner's.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean
from time import perf_counter
from typing import Any, Final

from django.db import transaction

from agents.models.search_entry import Kind
from agents.runtime import recall
from agents.runtime.embedding import Embedder
from agents.runtime.recalling import follow_up
from agents.runtime.tokens import estimate
from workbench.bench.figures import Figure, mean_interval
from workbench.bench.haystack import Haystack, Vectors
from workbench.bench.readers import History, Question, Turn, joined

HITS: Final = 10
CALLS: Final = 3
MANY: Final = 100  # turns asked for where sessions are counted
MULTI_HOP: Final = "1"
CATEGORIES: Final = {"1": "multi-hop", "2": "temporal", "3": "open domain", "4": "single-hop", "5": "adversarial"}
PARTS: Final = ("locomo", "joined", "longmemeval", "qmsum")
NEEDS: Final = {"locomo": "locomo", "joined": "locomo", "longmemeval": "longmemeval", "qmsum": "qmsum"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One question. found: the turns of one call, best first, as many as the budget takes. later: those of more."""

    question: Question
    found: tuple[Turn, ...]
    later: tuple[Turn, ...]
    ms: float

    @property
    def wanted(self) -> set[str]:
        return set(self.question.evidence)

    def share(self, turns: Sequence[Turn]) -> float:
        return len(self.wanted & {turn.id for turn in turns}) / len(self.wanted)

    @property
    def reciprocal(self) -> float:
        return next((1 / n for n, turn in enumerate(self.found, 1) if turn.id in self.wanted), 0.0)


def measure(
    sets: Mapping[str, Sequence[History]],
    embedder: Embedder | None,
    *,
    parts: Sequence[str] = PARTS,
    say: Callable[[Figure], None] = lambda figure: None,
) -> tuple[list[Figure], list[tuple[str, str]]]:
    """Return the figures in their order, each said as soon as it is there, and what was not measured and why.

    embedder: None = by words alone. Leaves nothing in the database.
    """
    figures: list[Figure] = []
    missing: list[tuple[str, str]] = []
    vectors = Vectors(embedder)
    for part in (part for part in PARTS if part in parts):
        histories = sets.get(NEEDS[part], ())
        if not histories:
            missing.append((part, "its data set is not in the folder"))
            continue
        for figure in _measured(part, histories, vectors):
            figures.append(figure)
            say(figure)
    return figures, missing


def fitting(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Return the turns that one call shows: at most TURNS, and of those what TURN_TOKENS take."""
    left, shown = recall.TURN_TOKENS, []
    for turn in turns[: recall.TURNS]:
        if (cost := estimate(turn.text)) <= left:
            shown.append(turn)
            left -= cost
    return tuple(shown)


def _measured(part: str, histories: Sequence[History], vectors: Vectors) -> Iterator[Figure]:
    with transaction.atomic():
        match part:
            case "locomo":
                yield from _locomo("LoCoMo", [case for h in histories for case in _cases([h], vectors)], bars=True)
            case "joined":
                yield from _locomo(f"LoCoMo, {len(histories)} in one owner", _cases(histories, vectors), bars=False)
            case "longmemeval":
                yield from _longmemeval(histories, vectors)
            case "qmsum":
                yield from _qmsum(histories, vectors)
        transaction.set_rollback(True)


def _cases(histories: Sequence[History], vectors: Vectors) -> list[Case]:
    """Ask what can be asked of these histories, all of one owner, a conversation each."""
    haystack = Haystack(vectors)
    named = [joined([history], name=history.id) for history in histories]  # two may use the same ids of turns
    for group, history in enumerate(named, 1):
        haystack.talk(history, group)
    return [_case(haystack, question) for history in named for question in asked_of(history)]


def asked_of(history: History) -> list[Question]:
    """Return the questions some of whose evidence is in the history, with that."""
    known = {turn.id for turn in history.turns}
    found = [replace(q, evidence=tuple(e for e in q.evidence if e in known)) for q in history.questions]
    return [question for question in found if question.evidence]


def _case(haystack: Haystack, question: Question) -> Case:
    haystack.vectors.query(question.text)  # its time is the embedder's
    begun = perf_counter()
    found = haystack.ask(question.text, limit=recall.TURNS, hits=HITS)
    ms = (perf_counter() - begun) * 1000
    shown = fitting(found)
    later: list[Turn] = list(shown)
    asked: list[str] = []
    for _ in range(CALLS - 1):
        if (query := follow_up(question.text, [turn.text for turn in shown], asked)) is None:
            break
        asked.append(query)
        later += fitting(haystack.ask(query, limit=recall.TURNS, hits=HITS))
    return Case(question=question, found=shown, later=tuple(later), ms=ms)


def _locomo(name: str, cases: Sequence[Case], *, bars: bool) -> Iterator[Figure]:
    if not cases:
        return
    multi = [case for case in cases if case.question.kind == MULTI_HOP]

    def figure(words: str, value: Callable[[Case], float], some: Sequence[Case], bar: float | None = None) -> Figure:
        values = [value(case) for case in some]
        mean, low, high = mean_interval(values)
        of = {
            CATEGORIES.get(kind, kind): [round(fmean(part), 4), len(part)]
            for kind, part in sorted(_by_kind(some, values).items())
        }
        details: dict[str, Any] = {"n": len(values), "interval": [round(low, 4), round(high, 4)], "of_category": of}
        shown = ", ".join(f"{kind} {share * 100:.1f}" for kind, (share, _) in of.items())
        return Figure(
            name=f"{name}, {words}",
            value=mean,
            bar=bar if bars else None,
            note=f"n = {len(values)}, [{low * 100:.1f}, {high * 100:.1f}]; {shown}",
            details=details,
        )

    yield figure("any evidence in the first 10", lambda c: c.share(c.found[:HITS]) > 0, cases, 0.88)
    yield figure("all evidence in the first 10", lambda c: c.share(c.found[:HITS]) == 1, cases)
    yield figure("any evidence in one call", lambda c: c.share(c.found) > 0, cases, 0.94)
    yield figure("all evidence in one call", lambda c: c.share(c.found) == 1, cases, 0.84)
    yield figure("mean reciprocal rank", lambda c: c.reciprocal, cases)
    if multi:
        yield figure("multi-hop, all evidence in one call", lambda c: c.share(c.found) == 1, multi, 0.40)
        yield figure("multi-hop, all evidence in up to three calls", lambda c: c.share(c.later) == 1, multi, 0.50)
    times = sorted(case.ms for case in cases)
    yield _plain(f"{name}, one search: ms p95", times[int(len(times) * 0.95)], n=len(cases), p50=times[len(times) // 2])
    sizes = sorted(sum(estimate(turn.text) for turn in case.found) for case in cases)
    yield _plain(f"{name}, tokens of one call, median", sizes[len(sizes) // 2], n=len(cases), most=sizes[-1])


def _by_kind(cases: Sequence[Case], values: Sequence[float]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for case, value in zip(cases, values, strict=True):
        found[case.question.kind].append(value)
    return found


def _plain(name: str, value: float, **details: float) -> Figure:
    return Figure(name=name, value=value, percent=False, details={k: round(v, 2) for k, v in details.items()})


def _longmemeval(cases: Sequence[History], vectors: Vectors) -> Iterator[Figure]:
    """Each case is one owner's, each of its sessions a conversation. A case counts if one of its turns answers."""
    ranks = []
    for case in cases:
        haystack = Haystack(vectors)
        sessions = {name: list(turns) for name, turns in groupby(case.turns, key=_session)}
        for group, (name, turns) in enumerate(sessions.items(), 1):
            haystack.talk(History(id=name, turns=tuple(turns)), group)
        for question in asked_of(case):
            found = list(dict.fromkeys(_session(turn) for turn in haystack.ask(question.text, limit=MANY)))
            wanted = {e.rpartition(":")[0] for e in question.evidence}
            ranks.append([name in wanted for name in found])
    for most, bar in ((5, 0.94), (10, 0.98)):
        mean, low, high = mean_interval([float(any(rank[:most])) for rank in ranks])
        yield Figure(
            name=f"LongMemEval, session among the first {most}",
            value=mean,
            bar=bar,
            note=f"n = {len(ranks)}, [{low * 100:.1f}, {high * 100:.1f}]",
            details={"n": len(ranks), "interval": [round(low, 4), round(high, 4)]},
        )


def _session(turn: Turn) -> str:
    return turn.id.rpartition(":")[0]


def _qmsum(meetings: Sequence[History], vectors: Vectors) -> Iterator[Figure]:
    """All meetings are one owner's documents, and each question is asked of its own, as when one is chosen."""
    haystack = Haystack(vectors)
    covered, hit = [], []
    for group, meeting in enumerate(meetings, 1):
        haystack.document(meeting, group)
    for group, meeting in enumerate(meetings, 1):
        for question in asked_of(meeting):
            found = {turn.id for turn in haystack.ask(question.text, Kind.PASSAGE, groups=[group], limit=recall.TURNS)}
            share = len(found & set(question.evidence)) / len(set(question.evidence))
            covered.append(share)
            hit.append(float(share > 0))
    mean, low, high = mean_interval(covered)
    yield Figure(
        name="QMSum, turns of the span covered in 26, one document chosen",
        value=mean,
        bar=0.36,
        note=f"n = {len(covered)}, [{low * 100:.1f}, {high * 100:.1f}]; any of it {mean_interval(hit)[0] * 100:.1f}",
        details={"n": len(covered), "interval": [round(low, 4), round(high, 4)]},
    )
