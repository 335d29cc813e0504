"""Landing on a message: the stretch around it, gaps, other lines of the conversation, and ids that lead nowhere."""

import re
from typing import Any

import pytest
from django.test import Client

from agents.models.event import Event
from agents.models.session import Fork, Session
from agents.runtime.events import AssistantMessage, ToolReturned, ToolStatus
from agents.runtime.model import ToolCall
from agents.runtime.session import RunStatus
from tests.workbench.conversations import answered, asked, conversation, ended, run
from tests.workbench.test_views_sessions import HTMX
from workbench import landing


@pytest.fixture
def client(alice: Any) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def long(owner: Any, turns: int) -> Session:
    """A conversation of so many turns, each of four records."""
    session = conversation(owner, "t", title="Long")
    for n in range(turns):
        run(session, f"r{n}", asked(f"Question {n}.", f"u{n}"), answered(f"Answer {n}.", f"a{n}"), ended())
    return session


def numbers(html: str) -> list[int]:
    return [int(n) for n in re.findall(r"Question (\d+)\.<", html)]


def attribute(html: str, name: str) -> str:
    found = re.search(rf'<main[^>]* {name}="([^"]*)"', html)
    return found[1] if found else ""


def fork(session: Session, shared: int) -> Session:
    number = Fork.objects.filter(session=session).count()
    Fork.objects.create(session=session, number=number, parent=session.head_fork, shared_position=shared)
    Session.objects.of(session.owner_id).filter(pk=session.pk).update(head_fork=number)
    session.refresh_from_db()
    return session


def test_message_far_back_comes_with_what_is_around_it_and_the_newest_stay(client: Client, alice: Any) -> None:
    long(alice, 300)
    html = client.get("/c/t/?at=u20").content.decode()
    shown = numbers(html)
    assert shown[0] < 20 < shown[-16] < 60, "the stretch around it"
    assert shown[-15:] == list(range(285, 300)), "the newest"
    assert (attribute(html, "data-at"), attribute(html, "data-target")) == ("u20", "u20")
    assert f'id="{attribute(html, "data-place")}"' in html
    assert 'class="gap"' in html
    assert html.count("link-quiet older") == 1, "older ones come above the stretch, not above the newest"


@pytest.mark.parametrize("last", [False, True])
def test_gap_closes_from_either_side_and_shows_each_message_once(client: Client, alice: Any, last: bool) -> None:
    long(alice, 200)
    html = client.get("/c/t/?at=u20").content.decode()
    found = numbers(html)
    gap = next(i for i, n in enumerate(found[1:], 1) if n != found[i - 1] + 1)
    above, below = found[:gap], found[gap:]
    while more := re.search(r'href="([^"]+after=[^"]+?)(&amp;last)?"[^>]*>Show (later|earlier)', html):
        address = more[1].replace("&amp;", "&") + ("&last" if last else "")
        html = client.get(address, **HTMX).content.decode()
        assert numbers(html), "each step brings something"
        if last:
            below = numbers(html) + below
        else:
            above = above + numbers(html)
    assert above + below == list(range(above[0], 200))


def test_no_answer_is_cut_by_the_edge_of_a_stretch(client: Client, alice: Any) -> None:
    session = conversation(alice, "t", title="Many steps")
    for n in range(60):
        steps = [answered(f"Step {n} {i}.") for i in range(7)]
        run(session, f"r{n}", asked(f"Question {n}.", f"u{n}"), *steps, ended())
    html = client.get("/c/t/?at=u20").content.decode()
    runs = re.findall(r'class="msg msg-assistant" data-run="(r\d+)"', html)
    assert len(runs) == len(set(runs)), "an answer would stand in two articles"
    for n in numbers(html):
        assert f"Step {n} 0." in html
        assert f"Step {n} 6." in html


def test_message_among_the_newest_needs_no_other_stretch(client: Client, alice: Any) -> None:
    long(alice, 100)
    html = client.get("/c/t/?at=a95").content.decode()
    assert numbers(html) == numbers(client.get("/c/t/").content.decode())
    assert attribute(html, "data-target") == "a95"
    assert 'class="gap"' not in html


def test_stretch_that_reaches_the_newest_leaves_no_gap(client: Client, alice: Any) -> None:
    long(alice, 100)
    html = client.get("/c/t/?at=u80").content.decode()
    shown = numbers(html)
    assert shown == list(range(shown[0], 100))
    assert 'class="gap"' not in html


def test_ids_of_events_messages_and_calls_lead_to_what_the_page_shows(client: Client, alice: Any) -> None:
    session = conversation(alice, "t")
    called = AssistantMessage(
        id="a1", response_id="a1", text="", tool_calls=(ToolCall(id="call-1", name="read_artifact", arguments="{}"),)
    )
    returned = ToolReturned(id="t1", call_id="call-1", name="read_artifact", content="43 kg", status=ToolStatus.OK)
    run(session, "r", asked("How much?", "u1"), called, returned, answered("43 kg.", "a2"), ended())
    events = {e.type: e.event_id for e in Event.objects.of(alice.pk).filter(session=session)}
    wanted = {
        "u1": "u1", "a1": "call-1", "call-1": "call-1", "a2": "a2",
        events["tool_returned"]: "call-1", events["user_message"]: "u1", events["run_finished"]: "",
    }  # fmt: skip
    for asked_for, target in wanted.items():
        html = client.get("/c/t/", {"at": asked_for}).content.decode()
        assert attribute(html, "data-target") == target, asked_for
        assert f'id="{attribute(html, "data-place")}"' in html
    assert 'data-call="call-1"' in html


def test_id_that_is_not_there_opens_the_conversation_with_a_notice(client: Client, alice: Any, bob: Any) -> None:
    long(alice, 1)
    run(conversation(bob, "bobs"), "r", asked("Secret", "bobs-message"), ended())
    for unknown in ("nothing", "bobs-message", "x" * 500, "a\0b", "合同"):
        html = client.get("/c/t/", {"at": unknown}).content.decode()
        assert "That message is not in this conversation any more." in html
        assert numbers(html) == [0]
        assert not attribute(html, "data-place")
    assert "not in this conversation" not in client.get("/c/t/").content.decode()
    assert client.get("/c/bobs/?at=bobs-message").status_code == 404


def test_message_on_another_line_is_told_and_shown_on_request(client: Client, alice: Any) -> None:
    session = conversation(alice, "t")
    run(session, "r1", asked("One.", "u1"), answered("First answer.", "a1"), ended())
    run(fork(session, 2), "r2", answered("Second answer.", "a2"), ended())
    html = client.get("/c/t/?at=a1").content.decode()
    assert "That message stands in another version of this conversation: 1 of 2." in html
    assert "Second answer." in html
    assert "First answer." not in html
    form = re.search(r'name="fork" value="(\d+)"><input type="hidden" name="at" value="(\w+)"', html)
    assert form
    response = client.post("/c/t/line/", {"fork": form[1], "at": form[2]})
    assert response["Location"] == "/c/t/?at=a1"
    html = client.get(response["Location"]).content.decode()
    assert "First answer." in html
    assert "another version" not in html.partition('id="landed"')[2].partition("</div>")[0]
    assert attribute(html, "data-target") == "a1"


def test_other_line_cannot_be_chosen_while_an_answer_is_written(client: Client, alice: Any) -> None:
    session = conversation(alice, "t")
    run(session, "r1", asked("One.", "u1"), answered("First answer.", "a1"), ended())
    run(fork(session, 2), "r2", status=RunStatus.RUNNING)
    html = client.get("/c/t/?at=a1").content.decode()
    assert "It can be shown once the answer being written is complete." in html
    assert 'name="fork"' not in html
    assert client.post("/c/t/line/", {"fork": "0", "at": "a1"})["Location"] == "/c/t/?at=a1"
    session.refresh_from_db()
    assert session.head_fork == 1


def test_deeper_line_names_the_place_where_the_two_part(alice: Any) -> None:
    session = conversation(alice, "t")
    run(session, "r1", asked("One.", "u1"), answered("A.", "a1"), ended())
    run(session, "r2", asked("Two.", "u2"), answered("B.", "b1"), ended())
    run(fork(session, 6), "r3", answered("C.", "c1"), ended())
    Session.objects.of(alice.pk).filter(pk=session.pk).update(head_fork=0)
    session.refresh_from_db()
    run(fork(session, 1), "r4", asked("Anew.", "u4"), answered("D.", "d1"), ended())
    found = landing.of(session, "c1")
    assert (found.fork, found.version, found.versions, found.position) == (1, 1, 2, 2)
    assert landing.of(session, "u2").fork == 1, "the newest line that holds it"


def test_running_answer_is_left_to_the_socket_and_waited_for(client: Client, alice: Any) -> None:
    session = long(alice, 2)
    run(session, "now", asked("During it", "u-now"), status=RunStatus.RUNNING)
    html = client.get("/c/t/?at=u-now").content.decode()
    assert (attribute(html, "data-target"), attribute(html, "data-place")) == ("u-now", "")
    assert "During it" not in html


def test_page_fetched_anew_keeps_the_stretch(client: Client, alice: Any) -> None:
    long(alice, 200)
    html = client.get("/c/t/messages/?at=u20", **HTMX).content.decode()
    assert 20 in numbers(html)
    assert 199 in numbers(html)
    assert 20 not in numbers(client.get("/c/t/messages/?at=nothing", **HTMX).content.decode())


def test_landing_takes_few_statements_whatever_the_length(
    client: Client, alice: Any, django_assert_max_num_queries: Any
) -> None:
    long(alice, 300)
    with django_assert_max_num_queries(26):
        client.get("/c/t/?at=u20")


def test_gaps_of_others_are_closed(client: Client, bob: Any) -> None:
    run(conversation(bob, "bobs"), "r", asked("Secret"), ended())
    assert client.get("/c/bobs/messages/?after=0&before=9", **HTMX).status_code == 404
