"""Summaries, shortened results, the window and the archive as the conversation page shows them, without a browser."""

import json
import re
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from django.test import Client
from django.utils import timezone
from django.utils.translation import override

from agents import jobs
from agents.models.event import Event
from agents.models.job import Job
from agents.models.model_call import ModelCall
from agents.models.session import Fork, Session
from agents.models.summary import Summary
from agents.runtime.events import ContextCompacted, ToolReturned
from agents.runtime.knowledge import Citation, Place
from agents.runtime.model import ToolCall
from agents.runtime.session import RunStatus
from agents.runtime.summaries import Boundary, Source
from agents.runtime.summaries import Summary as Made
from agents.runtime.summary.report import Reason
from agents.stores import pool, summaries, summaryrows
from tests.workbench.conversations import answered, asked, conversation, ended, run
from workbench import contextwords

HTMX = {"HTTP_HX_REQUEST": "true"}
CHINESE = {"HTTP_ACCEPT_LANGUAGE": "zh-hans"}
LINE = "Earlier messages summarised"


@pytest.fixture
def client(alice: Any) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def turns(session: Session, *numbers: int) -> None:
    for n in numbers:
        run(session, f"r{n}", asked(f"Question {n}."), answered(f"Answer {n}."), ended())


def position(session: Session, run_id: str, type_: str = "run_finished") -> int:
    found: int = Event.objects.of(session.owner_id).get(session=session, run__client_id=run_id, type=type_).position
    return found


def summarised(session: Session, at: int, text: str = "They spoke of **gas**.", **more: Any) -> Summary:
    """Store a summary whose boundary is the event at this position."""
    event = Event.objects.of(session.owner_id).get(session=session, position=at)
    made = Made(
        id=more.pop("id", f"s{at}"),
        text=text,
        filter_key=more.pop("filter_key", ""),
        boundary=Boundary(position=at, fork=event.fork, event_id=event.event_id, at=event.at),
        read_from=at,
        made_at=timezone.now(),
        tokens=120,
        covered_tokens=9_400,
        covered_events=at,
        **more,
    )
    values = json.loads(summaryrows.dump(made)[0])
    values["summary_id"], values["created_at"] = values.pop("id"), values.pop("made_at")
    del values["base"]
    row: Summary = Summary.objects.of(session.owner_id).create(owner_id=session.owner_id, session=session, **values)
    return row


def shown(html: str) -> list[str]:
    """What stands in the conversation, from above to below: Q<n>, A<n>, and the line."""
    transcript_only = html[html.index('id="transcript"') :].split('id="live"')[0]
    found = re.findall(r"Question (\d+)\.|Answer (\d+)\.|(Earlier messages summarised)", transcript_only)
    return [f"Q{q}" if q else f"A{a}" if a else "line" for q, a, _ in found]


def test_line_stands_behind_the_last_message_that_is_summarised_and_opens_the_summary(
    client: Client, alice: Any
) -> None:
    session = conversation(alice, "t")
    turns(session, 1, 2, 3)
    report = {
        "call": {"mode": "cache_safe_fork", "prompt_tokens": 9_000, "cached_tokens": 8_640, "completion_tokens": 130}
    }
    summarised(session, position(session, "r2"), model="test", source=Source.MANUAL, report=report)
    html = client.get("/c/t/").content.decode()
    assert shown(html) == ["Q1", "A1", "Q2", "A2", "line", "Q3", "A3"]
    body = html[html.index("compaction-body") :].split("</details>")[0]
    assert "They spoke of <strong>gas</strong>." in body
    assert "<strong>4 messages, " in body
    assert "9,400 tokens became 120." in body
    assert "It took 9,000 tokens, 96 % of them from the cache, and 130 for the text." in body
    assert "because you asked for it, by test." in body
    assert "first steps of the answer below" not in body


def test_line_and_its_summary_speak_chinese(client: Client, alice: Any) -> None:
    session = conversation(alice, "t")
    run(session, "r1", asked("煤气费是多少？"), answered("每月 43 元。"), ended())
    summarised(session, position(session, "r1"), "讨论了**煤气费**。", report={"call": {"mode": "extractive"}})
    html = client.get("/c/t/", **CHINESE).content.decode()
    body = html[html.index('<details class="compaction"') :].split("</details>")[0]
    assert "较早的消息已整理为摘要" in body
    assert "2 条消息，" in body
    assert "未使用模型，没有花费。" in body
    assert 'lang="zh-CN"><p>讨论了<strong>煤气费</strong>。' in body
    assert not re.findall(r">[^<]*[A-Za-z]{4,}[^<]*<", body.replace("token", ""))


def test_line_stands_at_the_end_once_all_is_summarised_and_before_an_answer_that_is_in_part(
    client: Client, alice: Any
) -> None:
    session = conversation(alice, "t")
    turns(session, 1)
    call = ToolCall(id="c1", name="search", arguments="{}")
    asking = answered("Answer 2.", "a2")
    step = type(asking)(id="a1", response_id="a1", tool_calls=(call,))
    result = ToolReturned(id="tr", call_id="c1", name="search", content="x")
    run(session, "r2", asked("Question 2."), step, result, asking, ended())
    summarised(session, position(session, "r2", "tool_returned"))
    html = client.get("/c/t/").content.decode()
    assert shown(html) == ["Q1", "A1", "Q2", "line", "A2"]
    assert "The first steps of the answer below are summarised too." in html
    summarised(session, position(session, "r2"), id="later")
    html = client.get("/c/t/").content.decode()
    assert shown(html) == ["Q1", "A1", "Q2", "A2", "line"]
    assert "first steps" not in html


def test_only_one_page_of_a_long_conversation_has_the_line_wherever_it_stands(client: Client, alice: Any) -> None:
    session = conversation(alice, "t")
    turns(session, *range(40))
    for n in range(40):
        Summary.objects.of(alice.pk).filter(session=session).delete()
        summarised(session, position(session, f"r{n}"))
        page = client.get("/c/t/").content.decode()
        found = shown(page)
        while older := re.search(r'hx-get="(/c/t/messages/\?before=\d+)"', page):
            page = client.get(older[1], **HTMX).content.decode()
            found = shown('id="transcript"' + page) + found
        assert found.count("line") == 1
        assert found[found.index("line") - 1] == f"A{n}"


def test_line_stands_where_two_stretches_that_were_read_meet(
    client: Client, alice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.views.sessions.RECORDS", 8)
    session = conversation(alice, "t")
    turns(session, 1, 2, 3, 4)
    for at, above in ((position(session, "r2"), True), (position(session, "r1"), False)):
        Summary.objects.of(alice.pk).filter(session=session).delete()
        summarised(session, at)
        assert (shown(client.get("/c/t/").content.decode())[0] == "line") is above


def test_edit_before_the_boundary_makes_the_line_go_and_an_older_one_counts_again(client: Client, alice: Any) -> None:
    session = conversation(alice, "t")
    turns(session, 1, 2, 3)
    summarised(session, position(session, "r1"), "The older one.")
    summarised(session, position(session, "r3"), "The newer one.")
    assert "The newer one." in client.get("/c/t/").content.decode()
    Fork.objects.create(session=session, number=1, parent=0, shared_position=position(session, "r1"))
    Session.objects.of(alice.pk).filter(pk=session.pk).update(head_fork=1)
    session.refresh_from_db()
    run(session, "r4", asked("Question 4."), answered("Answer 4."), ended())
    html = client.get("/c/t/").content.decode()
    assert shown(html) == ["Q1", "A1", "line", "Q4", "A4"]
    assert "The newer one." not in html
    Fork.objects.create(session=session, number=2, parent=0, shared_position=0)
    Session.objects.of(alice.pk).filter(pk=session.pk).update(head_fork=2)
    session.refresh_from_db()
    run(session, "r5", asked("Question 5."), answered("Answer 5."), ended())
    assert shown(client.get("/c/t/").content.decode()) == ["Q5", "A5"]


def test_summary_is_escaped_and_cites_what_it_was_made_of(client: Client, alice: Any) -> None:
    session = conversation(alice, "t")
    turns(session, 1)
    source = Citation(
        id="k3f4ab", artifact_id="d1", version=1, name="报告.pdf", start=0, end=9, place=Place(page=3), quote="It fell."
    )
    text = "Costs fell [[c:k3f4ab]], says nobody [[c:zzzzzz]]. <script>alert(1)</script>"
    summarised(session, position(session, "r1"), text, citations=(source,))
    html = client.get("/c/t/").content.decode()
    prose = html[html.index("compaction-prose") :].split("</details>")[0]
    assert '<a href="#c-k3f4ab" class="cite-chip"' in prose or 'class="cite-chip" href="#c-k3f4ab"' in prose
    assert "&quot;quote&quot;: &quot;It fell.&quot;" in prose
    assert "[[c:" not in prose
    assert "<script" not in prose


def test_boundary_inside_the_run_that_goes_on_is_said(client: Client, alice: Any) -> None:
    session = conversation(alice, "t")
    turns(session, 1)
    call = ToolCall(id="c1", name="search", arguments="{}")
    step = type(answered(""))(id="a1", response_id="a1", tool_calls=(call,))
    result = ToolReturned(id="tr", call_id="c1", name="search", content="x")
    run(session, "r2", asked("Question 2."), step, result, answered("Answer 2."), status=RunStatus.RUNNING)
    summarised(session, position(session, "r2", "tool_returned"))
    html = client.get("/c/t/").content.decode()
    assert shown(html) == ["Q1", "A1", "line"]
    assert "The first steps of the answer below are summarised too." in html


def test_shortened_results_are_told_where_it_began(client: Client, alice: Any) -> None:
    session = conversation(alice, "t")
    compacted = ContextCompacted(up_to=1, results=1_200, tokens=3_200)
    run(session, "r1", asked("Question 1."), compacted, answered("Answer 1."), ended())
    said = "1,200 results of earlier requests are shown to the model in short form; nothing is deleted."
    html = client.get("/c/t/").content.decode()
    assert html.index("Question 1.") < html.index(said) < html.index("Answer 1.")
    assert (
        "较早请求的 1,200 个结果以简短形式提供给模型；内容没有删除。" in client.get("/c/t/", **CHINESE).content.decode()
    )
    with override("en"):
        assert contextwords.compacted(1).startswith("1 result of earlier requests is")


def called(alice: Any, session: Session, run_id: str, *parts: dict[str, Any], **more: Any) -> None:
    row = session.runs.get(client_id=run_id)
    ModelCall.objects.of(alice.pk).create(
        owner=alice,
        call_id=more.pop("id", f"call-{run_id}"),
        session=session,
        run=row,
        purpose=more.pop("purpose", "chat"),
        provider="x",
        model="test",
        parts=list(parts),
        started_at=datetime.now(UTC),
        **more,
    )


def window(client: Client) -> Any:
    html = client.get("/c/t/").content.decode()
    found = re.search(r'<script id="window" type="application/json">(.*?)</script>', html)
    assert found
    return json.loads(found[1])


def test_window_is_that_of_the_last_call_for_an_answer(client: Client, alice: Any) -> None:
    session = conversation(alice, "t")
    turns(session, 1, 2, 3)
    assert window(client) is None
    called(alice, session, "r1", {"kind": "system", "ref": "a", "tokens": 1, "tag": "system"})
    called(
        alice,
        session,
        "r2",
        {"kind": "system", "ref": "a", "tokens": 900, "tag": "instruction"},
        {"kind": "summary", "ref": "s", "tokens": 300, "tag": "summary"},
        {"kind": "event", "ref": "e", "tokens": 70, "tag": "user", "position": 2},
        {"kind": "event", "ref": "f", "tokens": 30},
        {"kind": "dropped", "ref": "g", "tokens": 5_000, "tag": "tool"},
    )
    called(alice, session, "r2", {"kind": "system", "ref": "a", "tokens": 7}, id="title", purpose="title")
    assert window(client) == {  # r3 failed before it called
        "kind": "window",
        "tokens": 1_300,
        "window": 32_768,
        "source": "guess",
        "parts": [
            {"tag": "system", "tokens": 900},
            {"tag": "summary", "tokens": 300},
            {"tag": "history", "tokens": 100},
            {"tag": "dropped", "tokens": 5_000},
        ],
    }


def test_summary_is_made_when_asked_for_and_what_came_of_it_is_said(client: Client, alice: Any) -> None:
    session = conversation(alice, "t")
    turns(session, 1)
    assert client.get("/c/t/summarise/").json() == {"state": "none", "words": ""}
    for _ in range(2):
        assert client.post("/c/t/summarise/", **HTMX).status_code == 202
    job = Job.objects.get(kind=jobs.SUMMARY)
    assert (job.session_id, job.owner_id, job.scope) == (session.pk, alice.pk, summaries.MANUAL)
    assert client.get("/c/t/summarise/").json() == {"state": "queued", "words": ""}
    claim = jobs.claim(job.pk)
    assert claim
    assert client.get("/c/t/summarise/").json()["state"] == "running"
    jobs.done(claim, Reason.NOTHING_NEW.value)
    told = client.get("/c/t/summarise/", **CHINESE).json()
    assert told == {"state": "done", "words": "没有新的内容需要整理。"}
    response = client.post("/c/t/summarise/")  # without scripts
    assert (response.status_code, response["Location"]) == (302, "/c/t/")


def test_press_while_a_summary_is_being_made_says_so(client: Client, alice: Any) -> None:
    session = conversation(alice, "t")
    turns(session, 1)
    with psycopg.connect(**pool.params()) as other:  # a run of another process, say, makes one
        other.execute("SELECT pg_advisory_lock(%s)", [summaries._lock("hold", session.pk, session.agent)])
        told = client.post("/c/t/summarise/", **HTMX, **CHINESE)
        assert (told.status_code, told.json()) == (202, {"state": "queued", "words": "已经在整理摘要了。"})
        other.execute("SELECT pg_advisory_unlock_all()")
    assert client.post("/c/t/summarise/", **HTMX).json() == {"state": "queued", "words": ""}
    assert Job.objects.filter(kind=jobs.SUMMARY).count() == 1


def test_every_way_a_making_can_end_is_worded_in_both_languages() -> None:
    for reason in [*Reason, "not known yet"]:
        with override("en"):
            english = contextwords.outcome(reason)
        with override("zh-hans"):
            chinese = contextwords.outcome(reason)
        assert english.endswith(".")
        assert re.search("[\u4e00-\u9fff]", chinese)
    assert "could not be made" in contextwords.outcome(Reason.MODEL_ERROR)
    assert "could not be made" in contextwords.outcome("")


def test_archived_conversation_leaves_the_list_is_found_and_comes_back(client: Client, alice: Any) -> None:
    session = conversation(alice, "t", title="Gas")
    turns(session, 1)
    other = conversation(alice, "other", title="Water")
    turns(other, 1)
    assert "?archived" not in client.get("/c/", **HTMX).content.decode()
    response = client.post("/c/t/archive/", **HTMX)
    assert response["HX-Trigger"] == "sessions-changed"
    assert 'action="/c/t/unarchive/"' in response.content.decode()
    aside = client.get("/c/", **HTMX).content.decode()
    assert "Gas" not in aside
    assert "Water" in aside
    assert 'href="/c/?archived"' in aside
    page = client.get("/c/?archived").content.decode()
    assert "Gas" in page[page.index('id="main"') :]
    assert "Water" not in page[page.index('id="main"') :]
    assert Job.objects.get(kind=jobs.SUMMARY).scope == summaries.ARCHIVE
    assert "This conversation is archived." in client.get("/c/t/").content.decode()
    assert "<title>Gas · Workbench</title>" in client.get("/c/t/").content.decode()
    assert client.post("/c/t/unarchive/?list")["Location"] == "/c/?archived="
    assert "Gas" in client.get("/c/", **HTMX).content.decode()
    assert "Nothing is archived." in client.get("/c/?archived").content.decode()


def test_archiving_twice_owes_one_summary(client: Client, alice: Any) -> None:
    session = conversation(alice, "t")
    turns(session, 1)
    client.post("/c/t/archive/", **HTMX)
    first = Session.objects.of(alice.pk).get().archived_at
    jobs.done(jobs.claim(Job.objects.get().pk))  # type: ignore[arg-type]  # nobody else takes it
    client.post("/c/t/archive/", **HTMX)
    assert Job.objects.count() == 1
    assert Session.objects.of(alice.pk).get().archived_at == first


def test_upkeep_of_foreign_conversations_is_refused_and_asks_a_stranger_to_sign_in(client: Client, bob: Any) -> None:
    turns(conversation(bob, "bobs"), 1)
    for name in ("summarise", "archive", "unarchive"):
        assert client.post(f"/c/bobs/{name}/").status_code == 404
        assert client.post(f"/c/nobodys/{name}/").status_code == 404
        assert Client().post(f"/c/bobs/{name}/").status_code == 302
    assert client.get("/c/bobs/summarise/").status_code == 404
    for name in ("archive", "unarchive"):
        assert client.get(f"/c/bobs/{name}/").status_code == 405
    assert not Job.objects.exists()
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(bob)
    assert strict.post("/c/bobs/summarise/").status_code == 403
