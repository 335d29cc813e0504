"""API tokens and sign-in links."""

import datetime as dt
import threading
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from workbench import tokens
from workbench.models import ApiToken, SignInLink


def test_a_token_is_found_by_its_secret_and_only_its_hash_is_stored(alice: Any) -> None:
    row, secret = tokens.make_token(owner_id=alice.pk, name="laptop")
    found = tokens.find_token(secret)
    assert found is not None
    assert (found.pk, found.owner, found.scope) == (row.pk, alice, "run")
    assert secret not in str(ApiToken.objects.of_everyone().values())
    assert set(secret) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-")


def test_a_revoked_token_a_wrong_one_and_one_of_a_closed_account_open_nothing(alice: Any, bob: Any) -> None:
    row, secret = tokens.make_token(owner_id=alice.pk, name="a")
    _, other = tokens.make_token(owner_id=bob.pk, name="b")
    assert tokens.find_token(secret[:-1]) is None
    assert tokens.find_token("wb_" + "x" * 100_000) is None
    row.revoked_at = timezone.now()
    row.save()
    assert tokens.find_token(secret) is None
    bob.is_active = False
    bob.save()
    assert tokens.find_token(other) is None


def test_last_used_is_written_at_most_once_a_minute(alice: Any, django_assert_num_queries: Any) -> None:
    _, secret = tokens.make_token(owner_id=alice.pk, name="a")
    with django_assert_num_queries(2):
        tokens.find_token(secret)
    with django_assert_num_queries(1):
        tokens.find_token(secret)


def test_a_link_works_once(alice: Any) -> None:
    secret = tokens.make_link(owner_id=alice.pk)
    assert tokens.link_works(secret)
    assert tokens.use_link(secret) == alice.pk
    assert not tokens.link_works(secret)
    assert tokens.use_link(secret) is None


def test_a_new_link_ends_the_ones_before_it_and_leaves_other_peoples(alice: Any, bob: Any) -> None:
    old, others = tokens.make_link(owner_id=alice.pk), tokens.make_link(owner_id=bob.pk)
    new = tokens.make_link(owner_id=alice.pk)
    assert [tokens.link_works(s) for s in (old, others, new)] == [False, True, True]


def test_a_link_ends_after_fifteen_minutes(alice: Any) -> None:
    secret = tokens.make_link(owner_id=alice.pk)
    row = SignInLink.objects.of(alice.pk).get()
    assert row.expires_at - row.created_at <= dt.timedelta(minutes=15, seconds=1)
    SignInLink.objects.of(alice.pk).update(expires_at=timezone.now() - dt.timedelta(seconds=1))
    assert tokens.use_link(secret) is None


@pytest.mark.django_db(transaction=True)
def test_of_many_who_press_at_once_one_gets_in(alice: Any) -> None:
    secret = tokens.make_link(owner_id=alice.pk)
    together, answers = threading.Barrier(6), []

    def press() -> None:
        together.wait(10)
        answers.append(tokens.use_link(secret))
        connection.close()

    threads = [threading.Thread(target=press) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(20)
    assert sorted(a is not None for a in answers) == [False] * 5 + [True]
