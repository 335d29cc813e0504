"""A sink that remembers what it was told."""

from collections.abc import Mapping
from typing import Any

from agents.runtime.measures import Known, Labels, Measure
from agents.runtime.metrics import Metrics, Span

KNOWN = Known(
    models=frozenset({"scripted", "gpt"}),
    agents=frozenset({"assistant", "researcher"}),
    tools=frozenset({"look", "session_search", "session_load"}),
    summarizers=frozenset({"extractive", "tested"}),
)


class Remembering:
    """counts and values by name and the values of the labels, in the order of Measure.labels."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, ...], float] = {}
        self.values: dict[tuple[str, ...], list[float]] = {}
        self.spans: list[Span] = []

    def count(self, measure: Measure, amount: float, labels: Mapping[str, str]) -> None:
        key = self._key(measure, labels)
        self.counts[key] = self.counts.get(key, 0) + amount

    def observe(self, measure: Measure, value: float, labels: Mapping[str, str]) -> None:
        self.values.setdefault(self._key(measure, labels), []).append(value)

    def span(self, span: Span) -> None:
        self.spans.append(span)

    def close(self) -> None:
        pass

    def total(self, name: str) -> float:
        """Return the sum of a counter over all its labels."""
        return sum(amount for key, amount in self.counts.items() if key[0] == name)

    def all(self, name: str) -> list[float]:
        """Return the values of a histogram over all its labels."""
        return [value for key, values in self.values.items() if key[0] == name for value in values]

    def everything(self) -> str:
        """Return all that was ever told, as text."""
        return repr((self.counts, self.values, self.spans))

    def _key(self, measure: Measure, labels: Mapping[str, str]) -> tuple[str, ...]:
        assert set(labels) == set(measure.labels), measure.name
        return (measure.name, *(labels[label] for label in measure.labels))


class Broken:
    """A sink that can nothing, and says in its errors what it was given."""

    def count(self, measure: Measure, amount: float, labels: Mapping[str, str]) -> None:
        raise RuntimeError(f"no {measure} {labels}")

    def observe(self, measure: Measure, value: float, labels: Mapping[str, str]) -> None:
        raise OSError(f"no {measure} {labels}")

    def span(self, span: Span) -> None:
        raise ValueError(f"no {span}")

    def close(self) -> None:
        raise RuntimeError


def measured(*sinks: Any) -> Metrics:
    return Metrics(sinks, Labels(KNOWN))
