"""The conversation page and its list, without a browser."""

import datetime as dt
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from agents.models.run import Inbox, Run
from agents.models.session import Fork, Session
from agents.runtime import codec
from agents.runtime.events import Outcome, UserMessageKind
from agents.runtime.session import RunStatus
from tests.workbench.conversations import answered, asked, conversation, ended, failed, run
from workbench.transcript import Answer, Said

HTMX = {"HTTP_HX_REQUEST": "true"}


@pytest.fixture
def client(alice: Any) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def test_every_page_asks_a_stranger_to_sign_in(db: None) -> None:
    for name, args in (("new", []), ("sessions", []), ("session", ["t"]), ("messages", ["t"]), ("queue", ["t"])):
        address = reverse(name, args=args)
        response = Client().get(address)
        assert (response.status_code, response["Location"]) == (302, f"/signin/?next={address}")
    for name in ("rename", "delete", "restore", "seen", "line"):
        assert Client().post(reverse(name, args=["t"])).status_code == 302


def test_foreign_and_unknown_conversations_answer_alike(client: Client, bob: Any) -> None:
    run(conversation(bob, "bobs"), "r", asked("secret of bob"), ended())
    for thread_id in ("bobs", "nobodys"):
        for name in ("session", "messages", "queue", "rename"):
            assert client.get(reverse(name, args=[thread_id])).status_code == 404
        for name in ("rename", "delete", "restore", "seen", "line"):
            assert client.post(reverse(name, args=[thread_id]), {"title": "mine", "fork": "0"}).status_code == 404
        assert client.post(reverse("take_back", args=[thread_id, "m"])).status_code == 404
    assert "bobs" not in client.get("/").content.decode()
    assert Session.objects.of(bob.pk).get().title == ""


def test_conversation_shows_what_was_said_answered_and_how_it_ended(client: Client, alice: Any) -> None:
    session = conversation(alice, "t", title="Gas")
    run(session, "r1", asked("How much?"), answered("It is **43 kg**."), ended())
    run(session, "r2", asked("And now?"), answered("Hal"), ended(Outcome.CANCELLED), status=RunStatus.CANCELLED)
    run(session, "r3", asked("Again"), failed("lost", "ab12"), status=RunStatus.LOST)
    html = client.get("/c/t/").content.decode()
    assert "<strong>43 kg</strong>" in html
    assert "Stopped by you after" in html
    assert "This answer stopped early because the server restarted." in html
    assert "ab12" in html
    assert "not for people" not in html


def test_run_going_on_is_named_and_its_records_are_left_to_the_socket(client: Client, alice: Any) -> None:
    session = conversation(alice, "t")
    run(session, "r1", asked("Before"), answered("Yes."), ended())
    run(session, "r2", asked("During it"), status=RunStatus.RUNNING)
    html = client.get("/c/t/").content.decode()
    assert 'data-run="r2" data-last-run="r1" data-last-state="done"' in html
    transcript = html[html.index('id="transcript"') : html.index('id="live"')]
    assert "Before" in transcript
    assert "During it" not in transcript


def test_what_people_and_models_wrote_is_escaped(client: Client, alice: Any) -> None:
    evil = "<script>alert(1)</script>"
    session = conversation(alice, "t", title=evil)
    run(session, "r", asked(evil), answered(f"{evil}\n\n[x](javascript:alert(1))"), ended())
    html = client.get("/c/t/").content.decode()
    assert "<script>alert" not in html
    assert 'href="javascript' not in html


def test_older_messages_come_a_page_at_a_time_and_no_turn_is_cut(client: Client, alice: Any) -> None:
    session = conversation(alice, "t")
    for n in range(40):
        run(session, f"r{n}", asked(f"Question {n}."), answered(f"Answer {n}."), ended())
    shown: list[str] = []
    page = client.get("/c/t/").content.decode()
    while True:
        said = re.findall(r"Question \d+\.", page[page.index('class="msg msg-user"') :])
        shown = list(dict.fromkeys(said)) + shown
        older = re.search(r'hx-get="(/c/t/messages/\?before=\d+)"', page)
        if older is None:
            break
        page = client.get(older[1], **HTMX).content.decode()
        assert "<html" not in page
    assert shown == [f"Question {n}." for n in range(40)]


def test_link_to_older_messages_works_without_scripts(client: Client, alice: Any) -> None:
    session = conversation(alice, "t")
    for n in range(40):
        run(session, f"r{n}", asked(f"Question {n}."), answered(f"Answer {n}."), ended())
    older = re.search(r'href="(/c/t/messages/\?before=\d+)"', client.get("/c/t/").content.decode())
    assert older
    page = client.get(older[1]).content.decode()
    assert "<html" in page
    assert "Question 20." in page
    assert "Question 30." not in page


def test_catching_up_costs_nothing_if_nothing_happened(client: Client, alice: Any) -> None:
    session = conversation(alice, "t")
    run(session, "r1", asked("One"), answered("1"), ended())
    assert client.get("/c/t/messages/?run=r1&state=done", **HTMX).status_code == 204
    assert "One" in client.get("/c/t/messages/?run=r0&state=done", **HTMX).content.decode()
    run(session, "r2", asked("Two"), failed("lost"), status=RunStatus.LOST)
    fresh = client.get("/c/t/messages/?run=r1&state=done", **HTMX).content.decode()
    assert 'data-last-run="r2" data-last-state="lost"' in fresh
    assert client.get("/c/t/messages/?run=r2&state=lost", **HTMX).status_code == 204


def forked(session: Session, parent: int, shared_position: int) -> Session:
    """Return the session with a new line as its head."""
    number = session.forks.count()
    Fork.objects.create(session=session, number=number, parent=parent, shared_position=shared_position)
    Session.objects.of(session.owner_id).filter(pk=session.pk).update(head_fork=number)
    session.refresh_from_db()
    return session


def test_retried_answer_and_edited_message_have_a_stepper_and_the_choice_is_kept(client: Client, alice: Any) -> None:
    session = conversation(alice, "t")
    run(session, "r1", asked("One"), answered("First answer."), ended())  # 1 to 4
    run(forked(session, 0, 2), "r2", answered("Second answer."), ended())  # 5 to 7
    run(forked(session, 1, 0), "r3", asked("Another one"), answered("Third answer."), ended())
    page = client.get("/c/t/").content.decode()
    assert re.findall(r"\d / \d", page) == ["2 / 2"]  # of the message; the retry lies on the other line
    assert "Versions of this message" in page
    assert 'data-step="before" data-fork="1"' in page
    assert client.post("/c/t/line/", {"fork": "1"}).status_code == 204
    page = client.get("/c/t/messages/", **HTMX).content.decode()
    assert re.findall(r"\d / \d", page) == ["1 / 2", "2 / 2"]
    assert re.findall(r"(\w+) answer\.", page) == ["Second"]
    assert re.search(r'aria-label="Versions of this answer">.*data-step="after" data-fork=""\s+aria-disabled', page)
    assert client.get("/c/t/messages/?run=r2&state=done", **HTMX).status_code == 204
    assert (
        client.get("/c/t/messages/?run=r3&state=done", **HTMX).status_code == 200
    )  # who shows the other line learns it


def test_line_that_is_not_there_is_not_found_and_none_is_chosen_while_a_run_goes_on(client: Client, alice: Any) -> None:
    session = conversation(alice, "t")
    run(session, "r1", asked("One"), answered("First answer."), ended())
    for number in ("1", "-1", "x", ""):
        assert client.post("/c/t/line/", {"fork": number}).status_code == 404
    run(forked(session, 0, 2), "r2", status=RunStatus.RUNNING)
    assert client.post("/c/t/line/", {"fork": "0"}).status_code == 409
    session.refresh_from_db()
    assert session.head_fork == 1


def test_models_are_offered_where_there_are_several_and_the_answer_names_another_one(
    client: Client, alice: Any, settings: Any
) -> None:
    run(conversation(alice, "t"), "r1", asked("One"), answered("First answer."), ended())
    assert 'id="model"' not in client.get("/c/t/").content.decode()
    settings.MODELS = [{"name": "large"}, {"name": "test"}]
    page = client.get("/c/t/").content.decode()
    assert re.findall(r"<option>(\w+)</option>", page) == ["large", "test"]
    assert 'data-slot="model">test · <' in page
    settings.MODELS = [{"name": "test"}, {"name": "large"}]
    assert 'data-slot="model"><' in client.get("/c/t/messages/", **HTMX).content.decode()


def test_list_is_newest_first_in_days_with_its_dots(client: Client, alice: Any) -> None:
    run(conversation(alice, "old", title="Old one", age=dt.timedelta(days=3)), "r", asked("x"), ended())
    run(conversation(alice, "bad", title="Bad one"), "r", asked("x"), failed("model_error"), status=RunStatus.FAILED)
    run(conversation(alice, "busy", title="Busy one"), "r", asked("x"), status=RunStatus.RUNNING)
    seen = conversation(alice, "seen", title="Seen one")
    run(seen, "r", asked("x"), ended())
    client.post("/c/seen/seen/")
    conversation(alice, "empty", title="Only an upload")
    html = client.get("/c/", **HTMX).content.decode()
    assert re.findall(r"(\w+) one</span>", html) == ["Seen", "Busy", "Bad", "Old"]
    states = dict(re.findall(r'href="/c/(\w+)/"(?: data-state="(\w+)")?', html))
    assert states == {"seen": "", "busy": "live", "bad": "failed", "old": "unread"}
    assert html.index("Today") < html.index("Last 7 days")
    assert "Only an upload" not in html


def test_conversation_without_a_title_is_called_by_its_first_words(client: Client, alice: Any) -> None:
    run(conversation(alice, "t"), "r", asked("  How   much\ngas? " + "long " * 40), ended())
    assert re.search(r">How much gas\? (long ?)+…</span>", client.get("/c/", **HTMX).content.decode())


def test_list_of_many_is_paged_without_gaps(client: Client, alice: Any) -> None:
    for n in range(120):
        run(conversation(alice, f"t{n}", title=f"No {n}.", age=dt.timedelta(minutes=n)), "r", asked("x"), ended())
    found: list[str] = []
    address: str | None = "/c/"
    pages = 0
    while address:
        html = client.get(address, **HTMX).content.decode()
        found += re.findall(r">(No \d+\.)</span>", html)
        more = re.search(r'hx-get="(/c/\?cursor=[^"]+)"', html)
        address = more[1].replace("&amp;", "&") if more else None
        pages += 1
    assert found == [f"No {n}." for n in range(120)]
    assert pages == 3


def test_page_asks_few_questions_whatever_the_length(
    client: Client, alice: Any, django_assert_max_num_queries: Any
) -> None:
    session = conversation(alice, "t")
    for n in range(10):
        run(session, f"r{n}", asked(f"Question {n}."), answered(f"Answer {n}."), ended())
        run(conversation(alice, f"t{n}"), "r", asked("x"), ended())
    with django_assert_max_num_queries(15):
        client.get("/c/t/")


def test_rename_keeps_the_persons_title(client: Client, alice: Any) -> None:
    run(conversation(alice, "t", title="Machine's"), "r", asked("x"), ended())
    assert 'value="Machine&#x27;s"' in client.get("/c/t/rename/", **HTMX).content.decode()
    row = client.post("/c/t/rename/", {"title": "  合同  审阅 "}, **HTMX).content.decode()
    assert "合同 审阅" in row
    session = Session.objects.of(alice.pk).get()
    assert (session.title, session.title_by_person) == ("合同 审阅", True)
    assert "Machine" not in client.get("/c/t/rename/?cancel=1", **HTMX).content.decode()
    assert client.post("/c/t/rename/", {"title": "Without scripts"})["Location"] == "/c/t/"


@pytest.mark.parametrize("title", ["", "   ", "x" * 201])
def test_title_that_cannot_be_is_refused_in_its_place(client: Client, alice: Any, title: str) -> None:
    run(conversation(alice, "t", title="Before"), "r", asked("x"), ended())
    response = client.post("/c/t/rename/", {"title": title}, **HTMX)
    assert response.status_code == 422
    assert 'aria-invalid="true"' in response.content.decode()
    assert Session.objects.of(alice.pk).get().title == "Before"


def test_deleted_conversation_comes_back_with_undo(client: Client, alice: Any) -> None:
    session = conversation(alice, "t", title="Precious")
    run(session, "r", asked("x"), status=RunStatus.RUNNING)
    toast = client.post("/c/t/delete/?current=other", **HTMX)
    assert "/c/t/restore/" in toast.content.decode()
    assert client.get("/c/t/").status_code == 404
    assert "Precious" not in client.get("/c/", **HTMX).content.decode()
    assert Run.objects.of(alice.pk).get().cancel_requested_at is not None
    assert client.post("/c/t/restore/", **HTMX)["HX-Trigger"] == "sessions-changed"
    assert client.get("/c/t/").status_code == 200
    assert client.post("/c/t/restore/").status_code == 404


def test_deleting_what_one_looks_at_leads_to_a_new_page_with_undo(client: Client, alice: Any) -> None:
    run(conversation(alice, "t"), "r", asked("x"), ended())
    response = client.post("/c/t/delete/")
    assert response["Location"] == "/?deleted=t"
    assert "/c/t/restore/" in client.get(response["Location"]).content.decode()


def test_waiting_message_is_listed_and_taken_back_once(client: Client, alice: Any) -> None:
    session = conversation(alice, "t")
    run(session, "r", asked("x"), status=RunStatus.RUNNING)
    message = asked("Wait for me", "m1")
    Inbox.objects.of(alice.pk).create(
        owner=alice,
        session=session,
        client_id="m1",
        kind="queue",
        payload={**codec.dump(message), "kind": UserMessageKind.TURN.value},
    )
    assert "Wait for me" in client.get("/c/t/queue/", **HTMX).content.decode()
    assert client.post("/c/t/queue/m1/").json() == {"text": "Wait for me", "files": []}
    assert client.post("/c/t/queue/m1/").status_code == 404
    assert "hidden" in client.get("/c/t/queue/", **HTMX).content.decode()


def test_thread_ids_that_a_path_cannot_carry_have_an_address(client: Client, alice: Any) -> None:
    for thread_id in ("a/b", "~x", "..", "合同 1", "%2F"):
        run(conversation(alice, thread_id, title=f"[{thread_id}]"), "r", asked("x"), ended())
        response = client.get(reverse("session", args=[thread_id]))
        assert response.status_code == 200, thread_id
        assert f"[{thread_id}]" in response.content.decode()


def test_times_are_shown_in_the_browsers_zone(client: Client, alice: Any) -> None:
    run(conversation(alice, "t"), "r", asked("x"), ended())

    def shown(zone: str) -> str:
        client.cookies["tz"] = zone
        found = re.search(r"You, (\d\d:\d\d)", client.get("/c/t/").content.decode())
        assert found
        return found[1]

    assert shown("Asia/Tokyo") != shown("UTC") == shown("../../etc/passwd")


def test_page_speaks_chinese_when_asked(client: Client, alice: Any) -> None:
    run(conversation(alice, "t"), "r", asked("x"), failed("lost"), status=RunStatus.LOST)
    client.post(reverse("set_language"), {"language": "zh-hans", "next": "/"})
    html = client.get("/c/t/").content.decode()
    assert '<html lang="zh-CN"' in html
    assert "服务器重启，回答中断。" in html
    assert "新对话" in html


def test_page_runs_under_its_policy(client: Client) -> None:
    response = client.get("/")
    html = response.content.decode()
    policy = response["Content-Security-Policy"]
    nonce = re.search(r"'nonce-([^']+)'", policy)
    assert nonce
    assert f'<script type="importmap" nonce="{nonce[1]}">' in html
    assert "unsafe" not in policy
    assert not re.search(r"\sstyle=|\son\w+=", html)
    inline = re.findall(r"<script(?![^>]*\bsrc=)([^>]*)>", html)
    assert [("importmap" in tag) or ("application/json" in tag) for tag in inline] == [True] * 3


def test_every_module_has_its_name_in_the_import_map(client: Client) -> None:
    from django.conf import settings

    html = client.get("/").content.decode()
    named = set(re.findall(r'"([a-z]+)": "/static/js/\1', html))
    files = {path.stem for path in (settings.BASE_DIR / "static" / "js").glob("*.js")}
    assert named == files - {"main", "shell", "library", "document", "memories", "skills"}
    imported = set()
    for path in (settings.BASE_DIR / "static" / "js").glob("*.js"):
        source = path.read_text(encoding="utf-8")
        imported |= set(re.findall(r'from "([^"]+)"', source))
        assert len(source.splitlines()) <= 200, path.name
    assert imported <= named


def test_transcript_kinds_are_what_the_template_asks_for() -> None:
    assert {Said.__dataclass_fields__["kind"].default, Answer.__dataclass_fields__["kind"].default} == {
        "said",
        "answer",
    }


@pytest.mark.parametrize("address", ["/c/a%00b/", "/c/~AAAA/", "/c/a%00b/messages/", "/c/t/queue/a%00b/"])
def test_an_address_that_no_conversation_can_have_is_not_found(client: Client, address: str) -> None:
    assert client.get(address).status_code in (404, 405)
    assert client.post(address).status_code in (404, 405)


@pytest.mark.parametrize("number", ["\u00b2", "\u0661", "9" * 5000, "-1", "1.5", "9" * 18])
def test_strange_numbers_in_an_address_are_no_positions(client: Client, alice: Any, number: str) -> None:
    run(conversation(alice, "t"), "r", asked("Hi"), ended())
    assert client.get("/c/t/messages/", {"before": number}).status_code == 200
    assert client.get("/c/", {"cursor": f"2026-01-01T00:00:00+00:00,{number}"}).status_code == 200
