"""/metrics and what an OpenTelemetry collector gets: figures of all processes, and never what was said."""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from django.conf import settings as configured
from django.db import connection
from django.test import Client
from django.utils import timezone

from agents import wiring
from agents.background import sweep
from agents.metrics import backlog
from agents.models.job import Job
from agents.models.session import Session
from agents.runtime.measures import MEASURES, Known, Labels
from agents.runtime.metrics import Metrics
from agents.runtime.model import Usage
from agents.runtime.session import ModelCall, RunStatus
from agents.runtime.testing import ScriptedModel
from agents.runtime.testing import text as spoken
from agents.runtime.testing import turn as scripted
from agents.stores.db import in_thread
from tests.agents.house import Gate, two_processes
from tests.agents.house import ask as asked
from tests.agents.test_sweep import die, expire
from tests.modelserver import ModelServer, Reply, finish, text, usage
from tests.workbench.collector import Collector, tags
from tests.workbench.test_settings import load, value
from workbench import tokens
from workbench.datadir import forget_figures

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0
TOKEN = "a token of sixteen".replace(" ", "-")
CANARY = "kanarienvogel-7731"
CANARY_ZH = "金丝雀七七三一"
AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def counting(settings: Any) -> Iterator[Any]:
    settings.METRICS_TOKEN = TOKEN
    wiring.metrics.cache_clear()
    yield settings
    wiring.metrics.cache_clear()


def ask(token: str = TOKEN) -> Any:
    return Client(headers={"authorization": f"Bearer {token}"} if token else {}).get("/metrics")


def figures(said: str) -> dict[str, float]:
    """Return the samples by name and labels, as they stand there."""
    lines = [line for line in said.splitlines() if line and not line.startswith("#")]
    return {name: float(number) for name, number in (line.rsplit(" ", 1) for line in lines)}


def test_the_page_is_not_there_without_a_token_in_the_settings(client: Client) -> None:
    assert configured.METRICS_TOKEN == ""
    assert client.get("/metrics").status_code == 404
    assert ask("").status_code == 404
    assert wiring.metrics().sinks == ()


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], TOKEN + "x", "词"])
def test_only_the_token_opens_the_page_and_being_on_this_machine_does_not(counting: Any, token: str) -> None:
    response = Client(headers={"authorization": f"Bearer {token}".encode().decode("latin-1")}).get("/metrics")
    assert response.status_code == 401
    assert response["WWW-Authenticate"] == "Bearer"
    assert b"jobs_" not in response.content
    assert Client().get("/metrics", REMOTE_ADDR="127.0.0.1").status_code == 401


@pytest.mark.django_db(transaction=True)
def test_the_page_shows_what_was_counted_in_this_process_and_in_others(counting: Any) -> None:
    first = figures(ask().content.decode())
    wiring.metrics().compacted(3, 1000)
    wiring.metrics().summary_enqueued("assistant/child")
    code = (
        "import os, django; django.setup()\n"
        "from agents import wiring\n"
        "wiring.metrics().compacted(4, 10)\n"
        "if os.fork() == 0:\n"
        "    wiring.metrics().compacted(5, 20)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    environment = {**os.environ, "METRICS_TOKEN": TOKEN, "WORKBENCH_DATA": str(configured.DATA_DIR)}
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=environment, cwd=ROOT, check=True)
    response = ask()
    said = figures(response.content.decode())
    assert response["Content-Type"].startswith("text/plain; version=0.0.4")
    assert said["compaction_results_total"] - first.get("compaction_results_total", 0) == 12
    assert said["compaction_tokens_saved_total"] - first.get("compaction_tokens_saved_total", 0) == 1030
    assert said['summary_enqueue_total{filter_key="assistant",force="false"}'] >= 1
    assert not [name for name in said if "_created" in name]


@pytest.mark.django_db(transaction=True)
def test_the_page_shows_how_many_jobs_wait_and_for_how_long(counting: Any, alice: Any) -> None:
    now = timezone.now()
    for scope, kind, ago, status in (
        ("a", "read", 90, "queued"),
        ("b", "read", 30, "queued"),
        ("c", "embed", 5, "queued"),
        ("d", "embed", 500, "done"),
        ("e", "title", 500, "running"),
    ):
        Job.objects.create(
            kind=kind, owner=alice, scope=scope, status=status, next_at=now, created_at=now - timedelta(seconds=ago)
        )
    said = figures(ask().content.decode())
    assert said['jobs_waiting{kind="read"}'] == 2
    assert said['jobs_waiting{kind="embed"}'] == 1
    assert 90 <= said['jobs_oldest_seconds{kind="read"}'] < 150
    assert not [name for name in said if name.startswith("jobs_") and "title" in name]


@pytest.mark.django_db
def test_how_much_waits_is_one_statement(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        assert backlog.waiting() == ()


def test_labels_show_the_models_agents_and_tools_of_this_installation_alone(counting: Any) -> None:
    counting.MODELS = [{"name": "gpt-4.1"}, {"name": "qwen3"}]
    labels = wiring.metrics().labels
    assert labels.value("model", "qwen3") == "qwen3"
    assert labels.value("model", "somebody-elses") == "other"
    assert labels.value("tool", "read_artifact") == "read_artifact"
    assert labels.value("tool", "a_clients_tool") == "other"
    assert labels.value("filter_key", f"assistant-{uuid4()}/x") == "assistant"


def test_a_short_token_is_refused_and_not_repeated() -> None:
    for wrong in ("short-secret", "long enough but with blanks", "词" * 20):
        done = load(METRICS_TOKEN=wrong)
        assert done.returncode == 1
        assert "ImproperlyConfigured: METRICS_TOKEN" in done.stderr
        assert wrong not in done.stderr.rpartition("ImproperlyConfigured")[2]
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in load(OTEL_EXPORTER_OTLP_ENDPOINT="collector:4318").stderr
    assert value("s.METRICS_DIR", WORKBENCH_DATA="/srv/wb") == "/srv/wb/metrics"


@pytest.mark.django_db(transaction=True)
async def test_a_lost_run_is_counted_by_whoever_closes_it(counting: Any, alice: Any) -> None:
    before = figures((await in_thread(ask)()).content.decode())
    gate = Gate()
    async with two_processes(ScriptedModel(scripted(spoken("half "), gate.step))) as (here, there):
        await here.start(asked(alice.id))
        await gate.reached.wait()
        await die(here)
        await expire()
        assert await sweep.close_lost_runs(there.log) == 1
    said = figures((await in_thread(ask)()).content.decode())
    for name in ('run_total{outcome="lost"}', 'run_error_total{code="lost"}'):
        assert said[name] - before.get(name, 0) == 1


def test_a_place_that_cannot_be_written_stops_nothing(
    counting: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    counting.METRICS_DIR = tmp_path / "file" / "metrics"
    assert wiring.metrics().sinks == ()
    assert "no figures for Prometheus" in caplog.text


def test_nothing_is_loaded_that_nobody_asked_for() -> None:
    code = (
        "import sys, django; django.setup()\n"
        "from agents import wiring\n"
        "import workbench.urls\n"
        "wiring.metrics(); wiring.close_metrics()\n"
        "print([m for m in ('prometheus_client', 'opentelemetry.exporter', 'requests') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], env=os.environ, cwd=ROOT, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_a_new_start_forgets_the_figures_of_the_one_before(tmp_path: Path) -> None:
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "counter_1.db").write_bytes(b"x")
    (tmp_path / "secret_key").write_text("kept")
    forget_figures(tmp_path)
    forget_figures(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["secret_key"]


def call(purpose: str, *, error: str = "") -> ModelCall:
    return ModelCall(
        id="c1",
        run_id="r1",
        invocation_id="i1",
        purpose=purpose,
        provider="testing",
        model="gpt",
        usage=Usage(prompt=100, cached=64, completion=7),
        ttft_ms=20.0,
        latency_ms=1500.0,
        finish_reason="stop",
        error_code=error,
        parts=(),
        request_sha256="",
        started_at=AT,
    )


def otlp(endpoint: str) -> Any:
    from agents.metrics.otlp import OtlpSink

    rows = (backlog.Backlog(kind="summary", waiting=3, oldest_s=12.5),)
    return OtlpSink(endpoint=endpoint, version="0.1.0", backlog=lambda: rows)


def measured(sink: Any) -> Metrics:
    return Metrics((sink,), Labels(Known(models=frozenset({"gpt"}), tools=frozenset({"look"}))))


def test_a_collector_gets_a_run_with_its_calls_below_it() -> None:
    with Collector() as collector:
        sink = otlp(collector.endpoint + "/")
        run = measured(sink).of_run("7", "r1")
        run.model_called(call("chat"))
        run.tool_called("look", status="ok", elapsed_ms=40, ended=AT + timedelta(seconds=2))
        run.run_ended(
            outcome=RunStatus.FAILED,
            code="model_busy",
            began=AT,
            ended=AT + timedelta(seconds=3),
            usage=Usage(prompt=100),
        )
        measured(sink).of_run("7", "r1").model_called(call("title"))
        measured(sink).of_run("8", "r1").model_called(call("summary", error="model_error"))
        measured(sink).model_called(call("chat"))
        sink.close()
        spans, counted = collector.spans(), collector.figures()
        resource = collector.resources()[0]
    by_trace: dict[bytes, list[Any]] = {}
    for span in spans:
        by_trace.setdefault(span.trace_id, []).append(span)
    of_run, elsewhere, alone = by_trace.values()
    chat, tool, root, title = of_run
    assert [span.name for span in of_run] == ["model call", "tool call", "run", "model call"]
    assert root.parent_span_id == alone[0].parent_span_id == b""
    assert {span.parent_span_id for span in (chat, tool, title)} == {root.span_id}
    assert len({span.span_id for span in spans}) == 6
    assert elsewhere[0].parent_span_id not in (b"", root.span_id)
    assert tags(chat)["task.type"] == "chat"
    assert tags(title)["task.type"] == "title"
    assert (tags(chat)["prompt"], tags(chat)["cached"], tags(chat)["model"]) == (100, 64, "gpt")
    assert chat.end_time_unix_nano - chat.start_time_unix_nano == 1_500_000_000
    assert chat.start_time_unix_nano == int(AT.timestamp()) * 10**9
    assert tags(tool) == {"tool": "look", "status": "ok"}
    assert (root.status.code, chat.status.code, elsewhere[0].status.code) == (2, 0, 2)
    assert tags(root)["code"] == "model_busy"
    assert resource["service.name"] == "workbench"
    point = counted["model_call_tokens_total"].sum.data_points
    assert {(tags(p)["purpose"], tags(p)["kind"]): p.as_int for p in point}["title", "cached"] == 64
    latency = counted["model_call_latency_ms"].histogram.data_points[0]
    assert list(latency.explicit_bounds) == list(MEASURES["model_call_latency_ms"].buckets)
    assert counted["jobs_waiting"].gauge.data_points[0].as_int == 3
    assert counted["jobs_oldest_seconds"].gauge.data_points[0].as_double == 12.5


def test_a_run_that_is_not_sampled_sends_none_of_its_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "desk")
    with Collector() as collector:
        sink = otlp(collector.endpoint)
        for number in range(64):
            run = measured(sink).of_run("7", f"r{number}")
            run.model_called(call("chat"))
            run.run_ended(outcome=RunStatus.FINISHED, code="", began=AT, ended=AT, usage=Usage())
        sink.close()
        spans, resource = collector.spans(), collector.resources()[0]
    traces = [span.trace_id for span in spans]
    assert 10 < len(set(traces)) < 54
    assert all(traces.count(found) == 2 for found in traces)
    assert resource["service.name"] == "desk"


def test_a_collector_that_is_away_costs_no_time_but_a_moment_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as held:  # bound and not listening: refused, and nobody else gets the port
        held.bind(("127.0.0.1", 0))
        sink = otlp(f"http://127.0.0.1:{held.getsockname()[1]}")
        began = time.monotonic()
        for _ in range(200):
            measured(sink).model_called(call("chat"))
        assert time.monotonic() - began < 5  # one wait for each would be minutes
        with caplog.at_level(logging.CRITICAL):
            sink.close()
        assert time.monotonic() - began < 20


# Everything together, in real processes


@pytest.fixture
def installation(transactional_db: Any, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """A web process and a worker with a child, both counting, on the test's database."""
    database = urlsplit(configured.DATABASE_URL)._replace(path=f"/{connection.settings_dict['NAME']}").geturl()
    with socket.socket() as listening, ModelServer() as model, Collector() as collector:
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)
        ready, log = tmp_path / "ready", tmp_path / "log"
        env = {
            **os.environ,
            **{"DATABASE_URL": database, "WORKBENCH_DATA": str(tmp_path), "WORKER_READY_FILE": str(ready)},
            **{"OPENAI_BASE_URL": model.base_url, "OPENAI_MODEL": "test", "OPENAI_API_KEY": "k", "LOG_LEVEL": "DEBUG"},
            **{"METRICS_TOKEN": TOKEN, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint},
        }
        fd = listening.fileno()
        worker_words = ["-m", "celery", "--app=workbench.celery", "--quiet", "worker", "--concurrency=1"]
        with log.open("ab") as out:
            web = subprocess.Popen(
                [sys.executable, "-m", "workbench.serve", "--fd", str(fd)],
                **{"env": env, "cwd": ROOT, "stdout": out, "stderr": out, "pass_fds": (fd,)},
            )
            worker = subprocess.Popen(
                [sys.executable, *worker_words, "--without-gossip", "--without-mingle"],
                **{"env": env, "cwd": ROOT, "stdout": out, "stderr": out},
            )
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"

        def stop() -> None:
            for process in (web, worker):
                process.send_signal(signal.SIGTERM)
            for process in (web, worker):
                process.wait(PATIENCE_S)

        try:
            until(ready.exists, web, worker)
            yield {"url": url, "model": model, "collector": collector, "log": log, "stop": stop, "data": tmp_path}
        finally:
            for process in (web, worker):
                process.kill()
                process.wait()


def until(done: Any, *processes: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + PATIENCE_S
    while not done():
        assert all(process.poll() is None for process in processes), "a process ended"
        assert time.monotonic() < end, "this takes too long"
        time.sleep(0.05)


def fetch(url: str, token: str, body: Any = None) -> str:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Accept": "*/*"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=PATIENCE_S) as response:
        return str(response.read().decode())


@pytest.mark.slow
def test_context_8_7_of_a_whole_installation_nothing_that_was_said_is_counted_sent_or_logged(
    installation: dict[str, Any], alice: Any
) -> None:
    said = f"{CANARY} {CANARY_ZH}"
    installation["model"].script(
        Reply(steps=(*text(f"About {said}: "), *text(said), *finish(counts=usage(1000, 20, cached=640)))),
        # the jobs behind it, in whatever order: a title, and what is to be remembered
        *[Reply(steps=(*text(said), *finish(counts=usage(50, 5))))] * 2,
    )
    _, token = tokens.make_token(owner_id=alice.pk, name="test")
    asked = {"id": "u1", "role": "user", "content": f"What is {said}?"}
    answer = fetch(installation["url"] + "/agui/", token, {"threadId": "t", "runId": "r", "messages": [asked]})
    assert CANARY in answer
    assert "RUN_FINISHED" in answer
    until(lambda: Session.objects.of(alice.pk).exclude(title="").exists())

    def counted() -> dict[str, float]:
        return figures(fetch(installation["url"] + "/metrics", TOKEN))

    for purpose in ("title", "memory"):
        until(lambda: f'model_call_total{{model="test",outcome="ok",purpose="{purpose}"}}' in counted())  # noqa: B023  # used at once
    page = fetch(installation["url"] + "/metrics", TOKEN)
    assert figures(page)['run_total{outcome="finished"}'] == 1
    assert figures(page)['model_call_tokens_total{kind="cached",model="test",purpose="chat"}'] == 640
    assert figures(page)['model_call_tokens_total{kind="prompt",model="test",purpose="title"}'] == 50
    installation["stop"]()
    spans = installation["collector"].spans()
    assert sorted(span.name for span in spans) == ["model call", "model call", "model call", "run"]
    assert len({span.trace_id for span in spans}) == 1
    assert {tags(span).get("task.type") for span in spans} == {None, "chat", "memory", "title"}
    sent = b"".join(body for _, body in installation["collector"].bodies)
    logged = installation["log"].read_bytes()
    kept = b"".join(path.read_bytes() for path in (installation["data"] / "metrics").iterdir())
    assert b"run r ended finished" in logged
    for canary in (CANARY, CANARY_ZH):
        assert canary.encode() not in sent + logged + kept
        assert canary not in page
