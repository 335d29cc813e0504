"""The result file: figures with everything that is needed to judge them and to measure them again."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from workbench.bench.figures import CONFIDENCE, Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What was measured and how. sets: of each data set how many histories, turns and questions were read."""

    model: str
    summariser: str
    version: str
    at: datetime
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)
    sets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def document(setup: Setup, figures: Sequence[Figure]) -> dict[str, Any]:
    """Return the result as JSON values. Apart from the date the same run gives the same document."""
    return {
        "model": setup.model,
        "summariser": setup.summariser,
        "version": setup.version,
        "date": setup.at.isoformat(timespec="seconds"),
        "seed": setup.seed,
        "confidence": CONFIDENCE,
        "options": dict(setup.options),
        "sets": {name: dict(counts) for name, counts in setup.sets.items()},
        "figures": [_figure(figure) for figure in figures],
    }


def write(path: Path, setup: Setup, figures: Sequence[Figure]) -> None:
    """Write the result file, UTF-8 JSON, in place of an older one."""
    text = json.dumps(document(setup, figures), ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def _figure(figure: Figure) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": figure.name,
        "value": round(figure.value, 6),
        "bar": figure.bar,
        "bar_is": None if figure.bar is None else "most" if figure.lower else "least",
        "met": figure.met,
    }
    if figure.ratios is not None:
        named = {k: v if isinstance(v, int) else round(v, 6) for k, v in asdict(figure.ratios).items()}
        made |= {
            "n": named["n"],
            "ratio_of_means": named["of_means"],
            "mean_of_ratios": named["mean_of"],
            "interval": [named["low"], named["high"]],
        }
    if figure.note:
        made["note"] = figure.note
    return made | ({"details": figure.details} if figure.details else {})
