"""Signing in and out."""

import datetime as dt
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from workbench import tokens
from workbench.models import SignInLink

PASSWORD = "alice's long password"


@pytest.fixture(autouse=True)
def no_tries_left_over() -> None:
    cache.clear()


def signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_link_shows_a_button_and_only_the_press_uses_it_up(alice: Any) -> None:
    secret = tokens.make_link(owner_id=alice.pk)
    client = Client(enforce_csrf_checks=True)
    for _ in range(3):  # previews and mail scanners
        page = client.get(f"/signin/{secret}/")
        assert page.status_code == 200
        assert page["Cache-Control"].count("no-store") == 1
    assert not signed_in(client)
    assert client.post(f"/signin/{secret}/").status_code == 403
    token = client.cookies["csrftoken"].value
    assert client.post(f"/signin/{secret}/", {"csrfmiddlewaretoken": token})["Location"] == "/"
    assert signed_in(client)


def test_used_old_and_made_up_links_are_refused_alike(alice: Any) -> None:
    used, old = tokens.make_link(owner_id=alice.pk), ""
    Client().post(f"/signin/{used}/")
    old = tokens.make_link(owner_id=alice.pk)
    SignInLink.objects.of(alice.pk).filter(used_at=None).update(expires_at=timezone.now() - dt.timedelta(seconds=1))
    for secret in (used, old, "made-up"):
        client = Client()
        for response in (client.get(f"/signin/{secret}/"), client.post(f"/signin/{secret}/")):
            assert response.status_code == 410
            assert "This link was used already" in response.content.decode()
        assert not signed_in(client)


def test_name_and_password_lead_where_the_person_wanted_to_go(alice: Any) -> None:
    client = Client()
    page = client.get("/signin/?next=/c/t/").content.decode()
    assert 'name="next" value="/c/t/"' in page
    response = client.post("/signin/", {"username": "alice", "password": PASSWORD, "next": "/c/t/"})
    assert response["Location"] == "/c/t/"
    assert signed_in(client)
    assert client.get("/signin/")["Location"] == "/"


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_address_of_another_site_is_not_followed(alice: Any, target: str) -> None:
    response = Client().post("/signin/", {"username": "alice", "password": PASSWORD, "next": target})
    assert response["Location"] == "/"


def test_wrong_password_and_unknown_name_say_the_same(alice: Any) -> None:
    for name in ("alice", "nobody"):
        response = Client().post("/signin/", {"username": name, "password": "wrong"})
        assert response.status_code == 422
        assert "Name and password do not match." in response.content.decode()


def test_many_wrong_passwords_bring_a_pause_for_this_name_only(alice: Any, bob: Any) -> None:
    for _ in range(5):
        Client().post("/signin/", {"username": "alice", "password": "wrong"})
    client = Client()
    response = client.post("/signin/", {"username": "alice", "password": PASSWORD})
    assert response.status_code == 429
    assert not signed_in(client)
    assert Client().post("/signin/", {"username": "bob", "password": "bob's long password"}).status_code == 302


def test_signing_out_takes_a_post(alice: Any) -> None:
    client = Client()
    client.force_login(alice)
    assert client.get("/signout/").status_code == 405
    assert client.post("/signout/")["Location"] == "/signin/"
    assert not signed_in(client)


def test_signing_in_changes_the_session_key(alice: Any) -> None:
    client = Client()
    client.get("/signin/")
    session = client.session
    session["x"] = 1
    session.save()
    before = client.session.session_key
    client.post("/signin/", {"username": "alice", "password": PASSWORD})
    assert client.session.session_key != before


def test_page_is_in_the_browsers_language() -> None:
    page = Client(headers={"accept-language": "zh-CN,zh;q=0.9"}).get("/signin/").content.decode()
    assert '<html lang="zh-CN"' in page
    assert ">登录<" in page
