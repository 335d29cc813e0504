"""`manage.py bench context`: which figures there are, in which order, and on which data."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from workbench.bench import measuring, readers, savings
from workbench.bench.figures import Figure
from workbench.bench.measuring import Bench
from workbench.bench.questions import Quiz, ask_all, figures
from workbench.bench.readers import History, Question

PARTS: Final = ("fork", "talk", "locomo", "mtbench", "endless", "questions")
READERS: Final[Mapping[str, Callable[[Path], list[History]]]] = {
    "locomo": readers.locomo,
    "qmsum": readers.qmsum,
    "mtbench101": readers.mtbench,
    "longmemeval": readers.longmemeval,
}
ASKED: Final = ("locomo", "qmsum", "longmemeval")
NEEDS: Final = {"locomo": ("locomo",), "mtbench": ("mtbench101",), "questions": ASKED}
MADE_UP: Final = {"fork": measuring.fork_share, "talk": measuring.talk_share, "endless": measuring.read_again}
ADVERSARIAL: Final = "5"  # LoCoMo asks what was never said; a word score says nothing of the answer
DISTANT: Final = 80  # turns from the evidence to the end, of QMSum


@dataclass(slots=True, kw_only=True)
class Measured:
    """What was measured. missing: parts that had no data or no model, with the reason."""

    figures: list[Figure] = field(default_factory=list)
    missing: list[tuple[str, str]] = field(default_factory=list)


def read(folder: Path) -> dict[str, list[History]]:
    """Return the data sets that are in the folder, each in its own folder. Raises SetUnreadable."""
    return {name: reader(folder / name) for name, reader in READERS.items() if (folder / name).is_dir()}


async def measure(
    bench: Bench,
    sets: Mapping[str, Sequence[History]],
    *,
    parts: Sequence[str] = PARTS,
    asked: Quiz | None = None,
    say: Callable[[Figure], None] = lambda figure: None,
) -> Measured:
    """Measure the parts in their order; each figure is said as soon as it is there."""
    measured = Measured()

    async def add(made: Awaitable[list[Figure]]) -> None:
        for figure in await made:
            measured.figures.append(figure)
            say(figure)

    for part in (part for part in PARTS if part in parts):
        if reason := _not_measured(part, bench, sets, asked):
            measured.missing.append((part, reason))
        elif part == "questions" and asked is not None:
            for name in ASKED:
                if name in sets:
                    await add(_asked(bench, asked, name, sets[name]))
        elif part == "locomo":
            await add(savings.locomo_saved(bench, sets["locomo"]))
        elif part == "mtbench":
            await add(savings.mtbench(bench, sets["mtbench101"]))
        else:
            await add(MADE_UP[part](bench))
    return measured


def _not_measured(part: str, bench: Bench, sets: Mapping[str, Sequence[History]], asked: Quiz | None) -> str:
    """Return why a part cannot be measured, "" if it can."""
    if part == "fork" and bench.free:
        return "no model is asked for summaries"
    if part == "questions" and asked is None:
        return "--model names none"
    if part in NEEDS and not any(sets.get(name) for name in NEEDS[part]):
        return "its data set is not in the folder"
    return ""


def asked_of(name: str, history: History) -> tuple[Question, ...]:
    """Return the questions of a history that are asked: QMSum's from afar, LoCoMo's without the adversarial ones."""
    if name == "qmsum":
        return readers.distant(history, DISTANT)
    return tuple(q for q in history.questions if name != "locomo" or q.kind != ADVERSARIAL)


async def _asked(bench: Bench, asked: Quiz, name: str, histories: Sequence[History]) -> list[Figure]:
    chosen = [(h, asked_of(name, h)) for h in bench.cases(histories)]
    cases, costs = await ask_all(bench, asked, [(h, questions) for h, questions in chosen if questions])
    return figures(bench, cases, costs, name)


def counts(sets: Mapping[str, Sequence[History]]) -> dict[str, dict[str, int]]:
    """Return of each data set how much was read, for the result file."""
    return {
        name: {
            "histories": len(histories),
            "turns": sum(len(h.turns) for h in histories),
            "questions": sum(len(h.questions) for h in histories),
        }
        for name, histories in sets.items()
    }
