"""What a person thinks of an answer, and the skills that its run led to, as the page shows them."""

import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agents import jobs
from agents.models.job import Job
from agents.models.review import Feedback, Review, Suggestion
from agents.models.session import Session
from agents.models.skill import SkillRevision
from agents.stores.skillcontent import of_text
from agents.stores.skillfiles import desk
from agents.stores.skilllibrary import Proposal, SkillLibraryRows
from tests.workbench.conversations import answered, asked, conversation, ended, run
from tests.workbench.memorypages import signed_in

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session(alice: Any) -> Session:
    session = conversation(alice, "t-1")
    run(session, "r-1", asked("Write it."), answered("Here."), ended())
    run(session, "r-2", asked("Again."), answered("There."), ended())
    return session


@pytest.fixture
def client(alice: Any) -> Client:
    return signed_in(alice)


def give(client: Client, thread: str = "t-1", **values: Any) -> Any:
    return client.post(f"/c/{thread}/feedback/", {"run": "r-1", **values})


def said(alice: Any) -> list[tuple[str, str, list[str], str]]:
    return list(Feedback.objects.of(alice.pk).order_by("pk").values_list("run", "thumb", "reasons", "note"))


def pressed(client: Client, thread: str = "t-1") -> list[tuple[str, str]]:
    """Return (run, thumb) of what is pressed on the page."""
    html = client.get(f"/c/{thread}/").content.decode()
    articles = re.findall(r'<article class="msg msg-assistant" data-run="([^"]+)"(.*?)</article>', html, re.DOTALL)
    buttons = r'data-thumb="(\w+)" aria-pressed="true"'
    return [(run, thumb) for run, rest in articles for thumb in re.findall(buttons, rest)]


def suggest(alice: Any, session: Session, run_id: str) -> SkillRevision:
    review = Review.objects.of(alice.pk).create(
        owner=alice, session=session, run=run_id, since=0, up_to=9, result="proposed", at=timezone.now()
    )
    with desk() as on:
        content = of_text("letter", "Writes a letter.", "1. Read.\n2. Write.", on, None)
        revision = SkillLibraryRows(alice.pk).submit("letter", content, Proposal())
    Suggestion.objects.of(alice.pk).create(owner=alice, review=review, revision=revision)
    return revision


def test_a_thumb_is_kept_changed_and_taken_back_and_the_page_shows_it(
    client: Client, session: Session, alice: Any
) -> None:
    assert pressed(client) == []
    assert give(client, thumb="up").json()["thumb"] == "up"
    assert (said(alice), pressed(client)) == ([("r-1", "up", [], "")], [("r-1", "up")])
    more = {"thumb": "down", "reasons": ["slow", "wrong"], "note": " It is late.\0 "}
    assert give(client, **more).status_code == 200
    assert said(alice) == [("r-1", "down", ["wrong", "slow"], "It is late.")]
    assert pressed(client) == [("r-1", "down")]
    assert give(client, thumb="").json() == {"thumb": "", "words": "Taken back."}
    assert (said(alice), pressed(client)) == ([], [])


def test_what_was_said_has_the_conversation_looked_at_again(client: Client, session: Session, alice: Any) -> None:
    give(client, thumb="down")
    (owed,) = Job.objects.filter(kind=jobs.REVIEW)
    assert (owed.owner_id, owed.session_id, owed.status) == (alice.pk, session.pk, "queued")


@pytest.mark.parametrize("values", [{"thumb": "sideways"}, {"thumb": "down", "reasons": ["rude"]}])
def test_what_the_page_never_sends_is_refused(client: Client, session: Session, alice: Any, values: Any) -> None:
    assert give(client, **values).status_code == 400
    assert said(alice) == []


def test_nobody_else_says_anything_of_it_or_sees_what_was_said(
    client: Client, session: Session, alice: Any, bob: Any
) -> None:
    give(client, thumb="up")
    stranger = signed_in(bob)
    assert give(stranger, thumb="down").status_code == 404
    conversation(bob, "t-2")
    assert give(stranger, "t-2", thumb="down").status_code == 404
    assert give(client, run="nothing", thumb="up").status_code == 404
    assert said(alice) == [("r-1", "up", [], "")] and said(bob) == []
    assert Client().post("/c/t-1/feedback/", {"run": "r-1", "thumb": "up"}).status_code == 302


def test_an_answer_says_how_many_skills_its_run_led_to_until_they_are_decided(
    client: Client, session: Session, alice: Any, bob: Any
) -> None:
    revision = suggest(alice, session, "r-2")
    html = client.get("/c/t-1/").content.decode()
    (card,) = re.findall(r'<div class="msg-skill" data-slot="skill"><a class="chip" href="([^"]+)">', html)
    assert card == "/skills/#suggested" and "1 skill suggested" in html
    assert html.index("1 skill suggested") > html.index("There.")
    SkillLibraryRows(alice.pk, actor_id=alice.pk).reject(revision.pk)
    assert "skill suggested" not in client.get("/c/t-1/").content.decode()


def test_in_chinese_it_is_said_in_chinese(client: Client, session: Session, alice: Any) -> None:
    suggest(alice, session, "r-2")
    html = client.get("/c/t-1/", headers={"accept-language": "zh-hans"}).content.decode()
    assert "建议了 1 项技能" in html and 'aria-label="回答得好"' in html and "少了内容" in html
