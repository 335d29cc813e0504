"""Figures for Prometheus, of all processes on one data directory together.

A worker's children serve no HTTP, and most summaries are made there. So every process keeps its figures in files of its
own (prometheus-client's multiprocess mode), and whichever web process is asked adds them up. A restarted process begins
new files beside its old ones: totals never fall while the installation is up.

Import this only after multiprocess.keep_in: prometheus-client decides at its import whether it keeps files.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector

from agents.metrics.backlog import Backlog
from agents.runtime.measures import MEASURES, Kind, Measure
from agents.runtime.metrics import Span


class PrometheusSink:
    """Keeps the figures of this process."""

    def __init__(self) -> None:
        disable_created_metrics()
        registry = CollectorRegistry()  # of its own: nobody else's figures are shown
        self._counters: dict[str, Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        for measure in MEASURES.values():
            if measure.kind is Kind.COUNTER:
                self._counters[measure.name] = Counter(measure.name, measure.help, measure.labels, registry=registry)
            else:
                self._histograms[measure.name] = Histogram(
                    measure.name, measure.help, measure.labels, registry=registry, buckets=measure.buckets
                )

    def count(self, measure: Measure, amount: float, labels: Mapping[str, str]) -> None:
        counter = self._counters[measure.name]
        (counter.labels(**labels) if measure.labels else counter).inc(amount)

    def observe(self, measure: Measure, value: float, labels: Mapping[str, str]) -> None:
        histogram = self._histograms[measure.name]
        (histogram.labels(**labels) if measure.labels else histogram).observe(value)

    def span(self, span: Span) -> None:
        """Prometheus has no spans."""

    def close(self) -> None:
        """What was counted is in the files already."""


def exposition(directory: Path, backlog: Iterable[Backlog]) -> bytes:
    """Return what all processes keep in this directory, and what waits, in the form that Prometheus reads."""
    directory.mkdir(parents=True, exist_ok=True)
    registry = CollectorRegistry()
    MultiProcessCollector(registry, str(directory))
    registry.register(_Waiting(tuple(backlog)))
    return generate_latest(registry)


class _Waiting:
    def __init__(self, backlog: tuple[Backlog, ...]) -> None:
        self._backlog = backlog

    def collect(self) -> Iterable[Metric]:
        waiting = GaugeMetricFamily("jobs_waiting", "Background jobs that wait.", labels=("kind",))
        oldest = GaugeMetricFamily("jobs_oldest_seconds", "How long the first of them has waited.", labels=("kind",))
        for row in self._backlog:
            waiting.add_metric((row.kind,), row.waiting)
            oldest.add_metric((row.kind,), row.oldest_s)
        return waiting, oldest
