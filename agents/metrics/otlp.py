"""Figures and spans for an OpenTelemetry collector, over OTLP/HTTP in the background.

A run, its model calls and its tool calls are spans of one trace. Its id, and the id of the run's own span, are the hash
that `Metrics.of_run` made: so a job in a worker, hours later, still adds its spans to the run that caused it, and no
context has to travel. Everything else that OpenTelemetry can be told (headers, sampling, resource) it reads itself from
its own environment variables.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final
from uuid import uuid4

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from agents.metrics.backlog import Backlog
from agents.runtime.measures import MEASURES, Kind, Measure
from agents.runtime.metrics import Span

NAME: Final = "workbench"
TIMEOUT_S: Final = 2.0  # of one export: a collector that is away must not hold up the end of a process


class _Ids(RandomIdGenerator):
    """Random ids, but for the next span of this thread if it was given its own."""

    def __init__(self) -> None:
        self._given = threading.local()

    def give(self, trace_id: int, span_id: int) -> None:
        self._given.ids = (trace_id, span_id)

    def take_back(self) -> None:
        self._given.ids = None

    def generate_trace_id(self) -> int:
        ids: tuple[int, int] | None = getattr(self._given, "ids", None)
        return ids[0] if ids else super().generate_trace_id()

    def generate_span_id(self) -> int:
        ids: tuple[int, int] | None = getattr(self._given, "ids", None)
        return ids[1] if ids else super().generate_span_id()


class OtlpSink:
    """Sends what it is told to endpoint/v1/traces and endpoint/v1/metrics: spans after 5 s, figures every minute.

    Calls return at once; while the collector is away, what does not fit the queue of 2,048 spans is dropped. backlog is
    asked on the figures' own thread.
    """

    def __init__(self, *, endpoint: str, version: str, backlog: Callable[[], Iterable[Backlog]]) -> None:
        base = endpoint.rstrip("/")
        resource = Resource.create({"service.version": version, "service.instance.id": uuid4().hex})
        resource = resource.merge(Resource({"service.name": NAME})).merge(OTELResourceDetector().detect())
        self._ids = _Ids()
        self._traces = TracerProvider(resource=resource, id_generator=self._ids)
        self._traces.add_span_processor(
            BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{base}/v1/traces", timeout=TIMEOUT_S))
        )
        self._tracer = self._traces.get_tracer(NAME, version)
        exporter = OTLPMetricExporter(endpoint=f"{base}/v1/metrics", timeout=TIMEOUT_S)
        self._figures = MeterProvider([PeriodicExportingMetricReader(exporter)], resource=resource)
        meter = self._figures.get_meter(NAME, version)
        self._counters = {
            m.name: meter.create_counter(m.name, description=m.help)
            for m in MEASURES.values()
            if m.kind is Kind.COUNTER
        }
        self._histograms = {
            m.name: meter.create_histogram(
                m.name, description=m.help, explicit_bucket_boundaries_advisory=list(m.buckets)
            )
            for m in MEASURES.values()
            if m.kind is Kind.HISTOGRAM
        }

        def waiting(_: CallbackOptions) -> Iterable[Observation]:
            return [Observation(row.waiting, {"kind": row.kind}) for row in backlog()]

        def oldest(_: CallbackOptions) -> Iterable[Observation]:
            return [Observation(row.oldest_s, {"kind": row.kind}) for row in backlog()]

        meter.create_observable_gauge("jobs_waiting", [waiting], description="Background jobs that wait.")
        meter.create_observable_gauge("jobs_oldest_seconds", [oldest], description="How long the first has waited.")

    def count(self, measure: Measure, amount: float, labels: Mapping[str, str]) -> None:
        self._counters[measure.name].add(amount, labels)

    def observe(self, measure: Measure, value: float, labels: Mapping[str, str]) -> None:
        self._histograms[measure.name].record(value, labels)

    def span(self, span: Span) -> None:
        trace_id, root_id = int(span.trace[:32] or "0", 16), int(span.trace[32:] or "0", 16)
        context = None
        if span.trace and span.root:
            self._ids.give(trace_id, root_id)
        elif span.trace:
            context = trace.set_span_in_context(NonRecordingSpan(self._root(trace_id, root_id)))
        try:
            made = self._tracer.start_span(
                span.name,
                context=context if context is not None else trace.set_span_in_context(trace.INVALID_SPAN),
                kind=SpanKind.CLIENT if span.name == "model call" else SpanKind.INTERNAL,
                attributes=dict(span.attributes),
                start_time=_ns(span.started_at),
            )
        finally:
            self._ids.take_back()
        if span.failed:
            made.set_status(Status(StatusCode.ERROR))
        made.end(_ns(span.ended_at))

    def close(self) -> None:
        """Send what there is and stop; at most a few seconds. For processes that end without Python's own way out."""
        self._traces.shutdown()
        self._figures.shutdown()

    def _root(self, trace_id: int, root_id: int) -> SpanContext:
        """Return the run's own span, which may come later, sampled or not as it will be."""
        decision = self._traces.sampler.should_sample(None, trace_id, "run").decision
        flags = TraceFlags(TraceFlags.SAMPLED if decision.is_sampled() else TraceFlags.DEFAULT)
        return SpanContext(trace_id, root_id, is_remote=True, trace_flags=flags)


def _ns(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000) * 1_000
