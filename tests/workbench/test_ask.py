"""`manage.py ask`: the whole machinery in one process, on real PostgreSQL and Valkey, with a model on a socket."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from agents.models.model_call import ModelCall
from agents.models.run import Run
from agents.models.session import Session
from agents.runtime.events import (
    CitationShown,
    ContextCompacted,
    Emitted,
    Origin,
    Preloaded,
    Summarising,
    TextDelta,
    WindowUsed,
)
from agents.runtime.knowledge import Citation, Cited, Place
from agents.runtime.session import RunRequest
from agents.stores import sessions
from artifacts.models import Artifact
from tests.artifacts.pdfs import pdf
from tests.modelserver import (
    WAIT_S,
    Cut,
    Hang,
    ModelServer,
    Reply,
    call,
    error,
    finish,
    text,
    usage,
)
from workbench.management.commands.ask import Shown

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).resolve().parents[2]
LEASE = "# Lease\n\n## Rent\n\nThe rent is 1,450 euros a month.\n\n## Pets\n\nDogs need the consent of the landlord.\n"


@pytest.fixture(autouse=True)
def storage(settings: Any, tmp_path: Path) -> None:
    stores = {name: dict(store) for name, store in settings.STORAGES.items()}
    stores["artifacts"] = {**stores["artifacts"], "OPTIONS": {"location": str(tmp_path / "files")}}
    settings.STORAGES = stores


@pytest.fixture
def lease(tmp_path: Path) -> str:
    path = tmp_path / "lease.md"
    path.write_text(LEASE, encoding="utf-8")
    return str(path)


@pytest.fixture
def server(settings: Any) -> Iterator[ModelServer]:
    with ModelServer() as server:
        settings.OPENAI_BASE_URL = server.base_url
        settings.OPENAI_API_KEY = "sk-abcdef123456"
        settings.OPENAI_MODEL = "test"
        yield server


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    """Run the command and return what it wrote to stdout and stderr."""
    call_command("ask", *words)
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_a_question_about_a_file_is_answered_offline(
    capsys: pytest.CaptureFixture[str], alice: Any, lease: str
) -> None:
    out, err = ask(capsys, "Are dogs allowed?", "--file", lease, "--user", "alice")
    assert "> Dogs need the consent of the landlord." in out
    assert "read_artifact: lease.md" in err
    run = Run.objects.of(alice.pk).get()
    assert (run.status, run.origin) == ("finished", "shell")
    assert Artifact.objects.of(alice.pk).get().name == "lease.md"


def test_a_pdf_is_quoted_with_its_page(capsys: pytest.CaptureFixture[str], alice: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.pdf"
    path.write_bytes(pdf("The harbour was dredged in spring.", "The new crane lifts forty tons."))
    out, err = ask(capsys, "How many tons does the crane lift?", "--file", str(path), "--user", "alice")
    assert "> The new crane lifts forty tons. [1]\n" in out
    assert out.endswith("\n\n[1] report.pdf: page 2\n")
    assert "read_artifact: report.pdf, pages 1-2" in err


def test_json_gives_one_object_with_everything(capsys: pytest.CaptureFixture[str], alice: Any, lease: str) -> None:
    out, err = ask(capsys, "What is the rent?", "--file", lease, "--user", "alice", "--json")
    found = json.loads(out)
    assert "1,450 euros" in found["text"]
    assert (found["outcome"], found["error"], found["agent"], found["model"]) == (
        "success",
        None,
        "assistant",
        "offline",
    )
    assert [(t["name"], t["status"]) for t in found["tools"]] == [("read_artifact", "ok")]
    assert found["usage"]["prompt"] > 0
    assert err == ""


def test_thread_goes_on_with_a_conversation(capsys: pytest.CaptureFixture[str], alice: Any, lease: str) -> None:
    first = json.loads(ask(capsys, "What is the rent?", "--file", lease, "--user", "alice", "--json")[0])
    out, _ = ask(capsys, "And what about dogs?", "--user", "alice", "--thread", first["thread"], "--json")
    found = json.loads(out)
    assert "consent of the landlord" in found["text"]
    assert found["tools"] == []  # it was read before
    assert Session.objects.of(alice.pk).count() == 1


def test_another_persons_thread_is_not_gone_on_with(
    capsys: pytest.CaptureFixture[str], alice: Any, bob: Any, lease: str
) -> None:
    first = json.loads(ask(capsys, "What is the rent?", "--file", lease, "--user", "alice", "--json")[0])
    out, _ = ask(capsys, "What is the rent?", "--user", "bob", "--thread", first["thread"], "--json")
    assert "1,450" not in json.loads(out)["text"]
    assert Session.objects.of(alice.pk).count() == Session.objects.of(bob.pk).count() == 1


def test_a_model_streams_with_tools(
    capsys: pytest.CaptureFixture[str], alice: Any, lease: str, server: ModelServer
) -> None:
    server.script(
        Reply(
            steps=(*text("I look."), call('{"name":"lease.md"}', id="c1", name="read_artifact"), *finish("tool_calls"))
        ),
        Reply(steps=(*text("It is 1,450 euros."), *finish(counts=usage(50, 7, cached=20)))),
    )
    out, err = ask(capsys, "What is the rent?", "--file", lease, "--user", "alice")
    assert out == "I look.\n\n\nIt is 1,450 euros.\n"
    assert "read_artifact: lease.md" in err
    told = server.chats[1].body["messages"]
    assert [m["role"] for m in told] == ["system", "user", "assistant", "tool"]
    assert "1,450 euros a month" in told[3]["content"]
    chats = ModelCall.objects.of(alice.pk).order_by("id")
    assert [(c.model, c.purpose, c.finish_reason) for c in chats] == [
        ("test", "chat", "tool_calls"),
        ("test", "chat", "stop"),
    ]
    assert (chats[1].prompt_tokens, chats[1].cached_tokens) == (50, 20)


def test_citations_are_numbers_and_their_sources_stand_at_the_end(
    capsys: pytest.CaptureFixture[str], alice: Any, lease: str, server: ModelServer
) -> None:
    server.script(
        Reply(steps=(call('{"name":"lease.md"}', id="c1", name="read_artifact"), *finish("tool_calls"))),
        Reply(steps=(*text("I read it."), *finish())),
    )
    first = json.loads(ask(capsys, "Read this.", "--file", lease, "--user", "alice", "--json")[0])
    assert first["sources"] == []
    given = re.findall(r"\[\[c:\w+\]\](?= line)", server.chats[1].body["messages"][-1]["content"])
    answer = Reply(steps=(*text(f"It is 1,450 euros{given[-1]}, see {given[0]}{given[-1]}."), *finish()))
    server.script(answer, answer)
    on = ("What is the rent?", "--user", "alice", "--thread", first["thread"])
    out, _ = ask(capsys, *on)
    said, _, listed = out.partition("\n\n")
    assert said == "It is 1,450 euros[1], see [1][1]."
    assert re.fullmatch(r"\[1\] lease\.md: lines? [^\n]*Lease[^\n]*\n", listed)
    found = json.loads(ask(capsys, *on, "--json")[0])
    assert found["text"] == said
    assert {(s["number"], s["name"], s["version"]) for s in found["sources"]} == {(1, "lease.md", 1)}
    assert "1,450 euros" in "".join(s["quote"] for s in found["sources"])


def test_a_cited_message_is_listed_with_its_title_and_date(settings: Any) -> None:
    settings.TIME_ZONE = "UTC"
    out = io.StringIO()
    shown = Shown(request=RunRequest(owner_id=1, thread_id="t", run_id="r"), out=out, rows=io.StringIO())
    said = Citation(
        id="k3f9ab",
        artifact_id="",
        version=0,
        name="Rent talks",
        start=0,
        end=9,
        place=Place(),
        quote="1,450 it is.",
        thread_id="t0",
        message_id="u1",
        at=datetime(2026, 5, 3, 14, 2, tzinfo=UTC),
    )
    untitled = replace(said, id="k3f9ac", name="", message_id="u2", at=None)
    origin = Origin(run_id="r", invocation_id="i", author="a")
    for event in (
        CitationShown("m", Cited(number=1, citation=said)),
        CitationShown("m", Cited(number=2, citation=untitled)),
        TextDelta("m", "1,450 [1](#c-k3f9ab) [2](#c-k3f9ac)"),
    ):
        shown.take(Emitted(event, None, origin, datetime.now(UTC)))
    shown.end()
    assert out.getvalue() == "1,450 [1] [2]\n\n[1] Rent talks: 2026-05-03 14:02\n[2] Conversation\n"
    assert shown.result()["sources"][0] == {
        "number": 1,
        "thread": "t0",
        "message": "u1",
        "name": "Rent talks",
        "at": "2026-05-03T14:02:00+00:00",
        "quote": "1,450 it is.",
    }


def test_a_summary_that_is_made_is_a_row_and_nothing_of_the_context_is_text() -> None:
    out, rows = io.StringIO(), io.StringIO()
    shown = Shown(request=RunRequest(owner_id=1, thread_id="t", run_id="r"), out=out, rows=rows)
    origin = Origin(run_id="r", invocation_id="i", author="a")
    for event in (
        Preloaded(blocks=(("memory", "Likes metres."),)),
        Summarising(state="started", tokens_before=9),
        Summarising(state="done", tokens_before=9, tokens_after=4, summary_id="s", position=2),
        ContextCompacted(up_to=2, results=3, tokens=5),
        WindowUsed(tokens=4, window=10, source="guess"),
        TextDelta("m", "Yes."),
    ):
        shown.take(Emitted(event, None, origin, datetime.now(UTC)))
    assert out.getvalue() == "Yes."
    assert rows.getvalue() == "· summarising earlier messages\n"


def test_a_refused_key_ends_with_exit_code_1_and_the_setting(
    capsys: pytest.CaptureFixture[str], alice: Any, server: ModelServer
) -> None:
    server.script(error(401, "bad key"))
    with pytest.raises(CommandError, match="OPENAI_API_KEY") as caught:
        ask(capsys, "Hello", "--user", "alice")
    assert caught.value.returncode == 1


def test_a_cut_stream_keeps_the_text_and_fails_with_1(
    capsys: pytest.CaptureFixture[str], alice: Any, server: ModelServer
) -> None:
    server.script(Reply(steps=(*text("Half an answer"), Cut())))
    with pytest.raises(CommandError, match="broke in the middle") as caught:
        ask(capsys, "Hello", "--user", "alice")
    assert caught.value.returncode == 1
    assert "Half an answer" in capsys.readouterr().out
    session = Session.objects.of(alice.pk).get()
    stored = [s.record for s in sessions.read_history(alice.pk, session.thread_id).stored]
    assert any(getattr(r, "text", "") == "Half an answer" for r in stored)


def test_ctrl_c_stops_the_run_and_keeps_the_text(
    capsys: pytest.CaptureFixture[str], alice: Any, server: ModelServer
) -> None:
    server.script(Reply(steps=(*text("Half an answer"), Hang())))

    def press() -> None:
        server.wait_for(1)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    with pytest.raises(CommandError, match="kept") as caught:
        ask(capsys, "Hello", "--user", "alice")
    presser.join(WAIT_S)
    assert caught.value.returncode == 130
    assert server.requests[0].closed.wait(WAIT_S)
    assert server.requests[0].broken
    assert Run.objects.of(alice.pk).get().status == "cancelled"


def test_the_question_may_come_from_stdin(
    capsys: pytest.CaptureFixture[str], alice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("Hello\n"))
    assert "Put documents into the library" in ask(capsys, "-", "--user", "alice")[0]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("Hello", "--user", "nobody"), "no active user 'nobody'"),
        (("Hello", "--user", "alice", "--file", "/nowhere/x.txt"), "No such file"),
        (("Hello", "--user", "alice", "--model", "unknown"), 'no model "unknown"'),
        (("", "--user", "alice"), "empty"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_the_reason(
    capsys: pytest.CaptureFixture[str], alice: Any, words: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(CommandError, match=complaint) as caught:
        ask(capsys, *words)
    assert caught.value.returncode == 1
    assert not Run.objects.of(alice.pk).exists()


@pytest.mark.slow
def test_on_a_machine_where_nothing_runs_it_brings_its_own_servers(tmp_path: Path, lease: str) -> None:
    data = Path("/tmp") / f"wb-ask-{os.getpid()}"
    outside = ("DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL", "SECRET_KEY", "WORKBENCH_DATA", "TEST_DATABASE_NAME")
    env = {k: v for k, v in os.environ.items() if k not in outside}
    try:
        done = subprocess.run(
            [sys.executable, "manage.py", "ask", "Are dogs allowed?", "--file", lease, "--json", "--data", str(data)],
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "consent of the landlord" in json.loads(done.stdout)["text"]
        left = subprocess.run(["pgrep", "-f", str(data)], capture_output=True, text=True, check=False).stdout
        assert left == ""
    finally:
        subprocess.run(["rm", "-rf", str(data)], check=False)
