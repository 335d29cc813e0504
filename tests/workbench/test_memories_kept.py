"""The memories page: what is replaced, muted, deleted and undone, the switch, the file, strangers, and a bad day."""

import json
import re
from datetime import UTC, datetime
from typing import Any
from unittest import mock

import pytest
from django.test import Client

from agents.models.memory import MemorySetting, MemoryTombstone
from agents.runtime.memory.encoding import memory_from
from agents.runtime.memory.memories import Draft, Source
from agents.stores import memoryswitch
from agents.stores.memoryrows import MemoryRows
from tests.workbench.lockedtable import locked_out
from tests.workbench.memorypages import (
    HTMX,
    edit,
    held,
    page,
    remembered,
    said,
    signed_in,
    texts,
    token_in,
)


@pytest.fixture
def client(alice: Any) -> Client:
    return signed_in(alice)


# What it replaced


def test_the_history_of_a_fact_is_shown_and_brought_back(client: Client, alice: Any) -> None:
    store = MemoryRows(alice.pk)
    first = remembered(alice, "The contract runs 4 years.")
    second = store.supersede(first.id, Draft(text="The contract runs 5 years.", source=Source.EXTRACTOR)).memory
    third = store.supersede(second.id, Draft(text="The contract runs 6 years.", source=Source.EXTRACTOR)).memory
    html = page(client)
    assert texts(html) == ["The contract runs 6 years."]
    assert "Replaced 2 earlier versions" in html
    assert re.findall(r"<del[^>]*>([^<]+)", html) == ["The contract runs 5 years.", "The contract runs 4 years."]
    sent = {"earlier": second.id, "version": third.version}
    answer = client.post(f"/memories/{third.id}/bring-back/", sent, **HTMX)
    assert answer.status_code == 200
    assert texts(answer.content.decode()) == ["The contract runs 5 years."]
    assert held(alice) == ["The contract runs 5 years."]
    everything = [memory.text for memory in store.export()]
    assert "The contract runs 6 years." in everything, "nothing is lost by it"
    assert client.post(f"/memories/{third.id}/bring-back/", sent, **HTMX).status_code == 404, "it is history by now"
    assert held(alice) == ["The contract runs 5 years."]


def test_bringing_back_waits_for_a_look_if_the_memory_was_changed_meanwhile(client: Client, alice: Any) -> None:
    store = MemoryRows(alice.pk)
    first = remembered(alice, "5 years.")
    second = store.supersede(first.id, Draft(text="6 years.", source=Source.EXTRACTOR)).memory
    store.update(second.id, Draft(text="7 years.", source=Source.PERSON))
    answer = client.post(f"/memories/{second.id}/bring-back/", {"earlier": first.id, "version": 1}, **HTMX)
    assert answer.status_code == 409
    assert texts(answer.content.decode()) == ["7 years."]
    assert held(alice) == ["7 years."]


@pytest.mark.parametrize("earlier", ["", "nothing", "itself"])
def test_only_what_a_memory_replaced_is_brought_back(client: Client, alice: Any, earlier: str) -> None:
    memory = remembered(alice, "5 years.")
    sent = {"earlier": memory.id if earlier == "itself" else earlier, "version": 1}
    assert client.post(f"/memories/{memory.id}/bring-back/", sent, **HTMX).status_code == 404


# Not used in answers


def test_a_memory_is_kept_from_answers_and_used_again(client: Client, alice: Any) -> None:
    memory = remembered(alice, "Quiet.")
    muted = client.post(f"/memories/{memory.id}/mute/", {"muted": "1"}, **HTMX)
    assert "Not used in answers" in muted.content.decode()
    assert MemoryRows(alice.pk).read() == ()
    assert texts(page(client)) == ["Quiet."]
    again = client.post(f"/memories/{memory.id}/mute/", {"muted": "0"}, **HTMX)
    assert 'class="badge" data-state="warn"' not in again.content.decode()
    assert [one.text for one in MemoryRows(alice.pk).read()] == ["Quiet."]


# Deleting


def test_a_deleted_memory_is_gone_at_once_and_comes_back_whole_with_undo(client: Client, alice: Any) -> None:
    store = MemoryRows(alice.pk)
    first = remembered(alice, "5 years.", participants=("Ana",))
    second = store.supersede(first.id, Draft(text="6 years.", source=Source.EXTRACTOR)).memory
    before = store.export()
    toast = client.post("/memories/delete/", {"id": second.id}, **HTMX).content.decode()
    assert "Deleted: “6 years.”" in toast
    assert store.export() == ()
    assert MemoryTombstone.objects.of(alice.pk).count() == 2
    undone = client.post("/memories/restore/", {"token": token_in(toast)}, **HTMX)
    assert undone.status_code == 204
    assert store.export() == before
    assert not MemoryTombstone.objects.of(alice.pk).exists()
    assert client.post("/memories/restore/", {"token": token_in(toast)}, **HTMX).status_code == 204
    assert store.export() == before, "undone twice is undone once"


def test_ticked_memories_are_deleted_together(client: Client, alice: Any) -> None:
    ids = [remembered(alice, f"Number {n}.").id for n in range(3)]
    toast = client.post("/memories/delete/", {"id": [*ids[:2], "unknown", ids[0]]}, **HTMX).content.decode()
    assert "2 memories deleted" in toast
    assert held(alice) == ["Number 2."]
    client.post("/memories/restore/", {"token": token_in(toast)}, **HTMX)
    assert len(held(alice)) == 3


def test_an_undo_that_comes_too_late_says_so(client: Client, alice: Any) -> None:
    with mock.patch("django.core.signing.time.time", return_value=datetime.now(UTC).timestamp() - 61):
        toast = client.post("/memories/delete/", {"id": remembered(alice, "Late.").id}, **HTMX).content.decode()
    late = client.post("/memories/restore/", {"token": token_in(toast)}, **HTMX)
    assert late.status_code == 410
    assert "It is too late to undo this." in late.content.decode()
    assert held(alice) == []


def test_an_undo_whose_text_is_said_again_by_now_brings_nothing_back(client: Client, alice: Any) -> None:
    toast = client.post("/memories/delete/", {"id": remembered(alice, "Again.").id}, **HTMX).content.decode()
    remembered(alice, "again")
    refused = client.post("/memories/restore/", {"token": token_in(toast)}, **HTMX)
    assert refused.status_code == 409
    assert "another memory says this by now" in refused.content.decode()
    assert held(alice) == ["again"]


@pytest.mark.parametrize("token", ["", "nonsense", "a:b:c", "\x00"])
def test_an_undo_that_nobody_gave_is_not_found(client: Client, token: str) -> None:
    assert client.post("/memories/restore/", {"token": token}, **HTMX).status_code == 404


def test_too_much_for_one_undo_is_not_deleted_together(client: Client, alice: Any) -> None:
    import random

    letters = random.Random(6)
    ids = [
        remembered(alice, "".join(chr(letters.randrange(0x4E00, 0x9FA5)) for _ in range(2_000))).id for _ in range(80)
    ]
    refused = client.post("/memories/delete/", {"id": ids}, **HTMX)
    assert refused.status_code == 413
    assert "Select fewer." in refused.content.decode()
    assert len(held(alice)) == 80
    assert client.post("/memories/delete/", {"id": ids[:20]}, **HTMX).status_code == 200


def test_everything_is_forgotten_only_with_the_word(client: Client, alice: Any) -> None:
    old = remembered(alice, "5 years.")
    MemoryRows(alice.pk).supersede(old.id, Draft(text="6 years.", source=Source.PERSON))
    remembered(alice, "Other.")
    assert "Deletes all 3 memories for good" in page(client)
    for wrong in ("", "yes", "forge"):
        assert client.post("/memories/forget/", {"word": wrong}, **HTMX).status_code == 422
    assert len(held(alice)) == 2
    done = client.post("/memories/forget/", {"word": " Forget "}, **HTMX)
    assert (done.status_code, said(done)) == (204, "3 memories were deleted for good.")
    assert MemoryRows(alice.pk).export() == ()


def test_in_chinese_the_word_is_chinese(client: Client, alice: Any) -> None:
    client.cookies["django_language"] = "zh-hans"
    remembered(alice, "一")
    assert "请输入“忘记”" in page(client)
    assert client.post("/memories/forget/", {"word": "forget"}, **HTMX).status_code == 422
    assert client.post("/memories/forget/", {"word": "忘记"}, **HTMX).status_code == 204


# The switch, the file


def test_switched_off_nothing_is_read_or_written_and_the_page_can_still_be_used(client: Client, alice: Any) -> None:
    memory = remembered(alice, "Kept.")
    off = client.post("/memories/switch/", {}, **HTMX).content.decode()
    assert "Off: no answer uses them" in off
    assert MemoryRows(alice.pk, heeds_switch=True).read() == ()
    assert texts(page(client)) == ["Kept."]
    assert edit(client, memory, text="Changed.").status_code == 200
    assert client.post("/memories/delete/", {"id": memory.id}, **HTMX).status_code == 200
    assert client.post("/memories/add/", {"text": "New.", "kind": "fact"}, **HTMX).status_code == 200


def test_switched_on_again_what_was_said_meanwhile_stays_unread(client: Client, alice: Any) -> None:
    before = datetime.now(UTC)
    client.post("/memories/switch/", {}, **HTMX)
    client.post("/memories/switch/", {}, **HTMX)
    assert not memoryswitch.is_on(alice.pk)
    client.post("/memories/switch/", {"on": "on"}, **HTMX)
    since = MemorySetting.objects.of(alice.pk).get().since
    assert since is not None
    assert since >= before
    client.post("/memories/switch/", {"on": "on"}, **HTMX)
    assert MemorySetting.objects.of(alice.pk).get().since == since, "it was on already"


def test_a_switch_that_was_never_touched_is_on(client: Client, alice: Any) -> None:
    assert re.search(r'id="use-memories" checked', page(client))
    client.post("/memories/switch/", {"on": "on"}, **HTMX)
    assert not MemorySetting.objects.of(alice.pk).exists()


def test_the_file_holds_everything_with_history(client: Client, alice: Any, bob: Any) -> None:
    old = remembered(alice, "5 年。", participants=("李明",))
    MemoryRows(alice.pk).supersede(old.id, Draft(text="6 年。", source=Source.PERSON))
    remembered(bob, "Secret of Bob.")
    response = client.get("/memories/export/")
    assert re.fullmatch(
        r'attachment; filename="memories-\d{4}-\d\d-\d\d\.json"', response.headers["Content-Disposition"]
    )
    file = json.loads(response.content)
    assert (file["format"], file["version"]) == ("workbench-memories", 1)
    assert tuple(memory_from(one) for one in file["memories"]) == MemoryRows(alice.pk).export()
    assert "5 年。" in response.content.decode(), "a person can read it"


# Who may, and when it fails


def all_requests(id: str, token: str, earlier: str) -> list[tuple[str, str, dict[str, str]]]:
    """Return a request to every address that names a memory, with what it would need to succeed."""
    typed = {"text": "Taken over.", "kind": "fact", "version": "1"}
    return [
        ("get", f"/memories/{id}/row/", {}),
        ("get", f"/memories/{id}/edit/", {}),
        ("post", f"/memories/{id}/edit/", typed),
        ("post", f"/memories/{id}/mute/", {"muted": "1"}),
        ("post", f"/memories/{id}/bring-back/", {"earlier": earlier, "version": "1"}),
        ("post", "/memories/delete/", {"id": id}),
        ("post", "/memories/restore/", {"token": token}),
    ]


def test_memory_1_3_another_person_reaches_nothing_by_any_address(client: Client, alice: Any, bob: Any) -> None:
    old = remembered(alice, "Alice's old secret.")
    secret = MemoryRows(alice.pk).supersede(old.id, Draft(text="Alice's secret.", source=Source.PERSON)).memory
    token = token_in(client.post("/memories/delete/", {"id": remembered(alice, "Gone.").id}, **HTMX).content.decode())
    before = MemoryRows(alice.pk).export()
    stranger = signed_in(bob)
    for how in (HTMX, {}):
        for method, address, data in all_requests(secret.id, token, old.id):
            response = getattr(stranger, method)(address, data, **how)
            unknown = getattr(stranger, method)(address.replace(secret.id, "abcdefgh"), data, **how)
            assert response.status_code == 404, address
            assert unknown.status_code == 404, address
            assert b"secret" not in response.content, address
    assert "secret" not in page(stranger, edit=secret.id)
    assert b"secret" not in stranger.get("/memories/export/").content
    stranger.post("/memories/forget/", {"word": "forget"}, **HTMX)
    stranger.post("/memories/switch/", {}, **HTMX)
    assert MemoryRows(alice.pk).export() == before
    assert memoryswitch.is_on(alice.pk)


def test_who_is_not_signed_in_gets_nowhere(alice: Any) -> None:
    memory = remembered(alice, "Secret.")
    others = [
        ("get", "/memories/", {}),
        ("get", "/memories/export/", {}),
        ("post", "/memories/forget/", {"word": "forget"}),
    ]
    more = [("post", "/memories/switch/", {}), ("post", "/memories/add/", {"text": "x", "kind": "fact"})]
    for method, address, data in [*all_requests(memory.id, "x", "y"), *others, *more]:
        response = getattr(Client(), method)(address, data)
        assert response.status_code == 302, address
        assert response.headers["Location"].startswith("/signin/"), address
    assert held(alice) == ["Secret."]


def test_nothing_is_changed_by_a_form_of_another_site_or_by_a_link(alice: Any) -> None:
    memory = remembered(alice, "Secret.")
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(alice)
    posts = [one for one in all_requests(memory.id, "x", "y") if one[0] == "post"]
    posts += [("post", "/memories/forget/", {"word": "forget"}), ("post", "/memories/switch/", {})]
    for _method, address, data in [*posts, ("post", "/memories/add/", {"text": "x", "kind": "fact"})]:
        assert strict.post(address, data, **HTMX).status_code == 403, address
        if not address.endswith("/edit/"):
            assert strict.get(address).status_code == 405, address
    assert held(alice) == ["Secret."]
    assert memoryswitch.is_on(alice.pk)


@pytest.mark.parametrize("id", ["x" * 200, "%00", "..", "0", "a-b_c", "%E4%B8%AD"])
def test_ids_that_cannot_be_are_not_found(client: Client, id: str) -> None:
    for address in (f"/memories/{id}/edit/", f"/memories/{id}/row/"):
        assert client.get(address).status_code == 404


def test_the_sidebar_leads_there_and_marks_it(client: Client) -> None:
    assert re.search(r'href="/memories/"(?! aria-current)', client.get("/library/").content.decode())
    assert 'href="/memories/" aria-current="page"' in page(client)
    assert not re.search(r'href="/library/" aria-current', page(client))


@pytest.mark.django_db(transaction=True)
def test_memories_that_cannot_be_read_are_said_to_be_safe(client: Client, alice: Any) -> None:
    memory = remembered(alice, "Safe.")
    with locked_out("agents_memory"):
        response = client.get("/memories/")
        assert response.status_code == 503
        assert "Memories cannot be read right now. Nothing is lost" in response.content.decode()
        assert edit(client, memory, text="Not now.").status_code == 503
        assert client.post("/memories/delete/", {"id": memory.id}, **HTMX).status_code == 503
    assert texts(page(client)) == ["Safe."]
