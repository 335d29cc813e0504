"""Memories in a browser: typed in, changed, deleted and brought back, by hand and by keyboard, in several windows."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.e2e.browser import Desk
from tests.e2e.conftest import House, Open
from tests.e2e.test_library import checked
from tests.workbench.installation import manage

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SEND = """([address, fields]) => fetch(address, {
  method: 'POST', body: new URLSearchParams(fields),
  headers: {'X-CSRFToken': document.body.dataset.csrf, 'HX-Request': 'true'},
}).then((r) => r.status)"""
HISTORY = """
from django.contrib.auth import get_user_model
from agents.runtime.memory.memories import Draft, Origin, Source
from agents.stores.memoryrows import MemoryRows
store = MemoryRows(get_user_model().objects.order_by("pk")[0].pk)
of = dict(source=Source.EXTRACTOR, origin=Origin(thread_id="gone", event_id="e", position=1))
first = store.add(Draft(text="The contract runs 4 years.", **of)).memory
second = store.supersede(first.id, Draft(text="The contract runs 5 years.", **of)).memory
store.supersede(second.id, Draft(text="The contract runs 6 years.", **of))
"""


def send(page: Desk, address: str, **fields: str) -> int:
    status: int = page.page.evaluate(SEND, [address, list(fields.items())])
    return status


def memories(page: Desk, *texts: str) -> Desk:
    """Open the page with these memories and no others, the first one oldest."""
    page.open(f"{page.base}/memories/")
    assert send(page, "/memories/forget/", word="forget") == 204
    assert send(page, "/memories/switch/", on="on") == 200
    for text in texts:
        assert send(page, "/memories/add/", text=text, kind="fact") == 200
    return page.open(f"{page.base}/memories/")


@pytest.fixture(autouse=True)
def forgotten(desk: Open) -> Iterator[None]:
    """Other tests ask on the same installation, and must find nobody remembered."""
    yield
    memories(desk())


def row(page: Desk, text: str) -> Locator:
    return page.page.locator("#memories tr[data-memory]", has_text=text)


def texts(page: Desk) -> Locator:
    return page.page.locator("#memories .memory-text:visible")


def toast(page: Desk) -> Locator:
    return page.page.locator("#toasts .toast")


def test_a_memory_is_typed_in_and_stands_in_another_window_at_once(desk: Open) -> None:
    page, other = memories(desk()), desk().open(f"{desk().base}/memories/")
    expect(page.page.locator("#memories .empty")).to_contain_text("Nothing is remembered yet")
    page.page.locator("#filters").get_by_role("link", name="Add").click()
    field = page.page.locator("#new-text")
    expect(field).to_be_focused()
    field.fill("Berichte bitte auf Chinesisch, Tabellen zuerst.")
    page.page.locator("#new-when").fill("once upon a time")
    expect(page.page.locator("#new-count")).to_have_text("47 of 2,000 characters")
    page.page.locator("#new-text").press("Control+Enter")
    expect(page.page.locator("#new-when-error")).to_contain_text("This time cannot be read.")
    expect(page.page.locator("#new-when")).to_be_focused()
    expect(page.page.locator("#new-text")).to_have_value("Berichte bitte auf Chinesisch, Tabellen zuerst.")
    page.page.locator("#new-when").fill("2026-05")
    page.page.locator("#new-when").press("Enter")
    expect(toast(page)).to_contain_text("Remembered")
    for window in (page, other):
        expect(texts(window)).to_have_text(["Berichte bitte auf Chinesisch, Tabellen zuerst."])
    expect(page.page.locator("#new-memory")).to_be_hidden()


def test_what_is_being_written_stays_while_the_list_changes(desk: Open) -> None:
    page = memories(desk(), "One.", "Two.", "Three.")
    other = desk().open(f"{page.base}/memories/")
    row(page, "Two.").get_by_role("link", name="Edit: Two.").click()
    field = page.page.locator("#memories tr[data-editing] textarea")
    expect(field).to_be_focused()
    field.press("End")
    field.press_sequentially(" And a half-written")
    assert send(other, "/memories/add/", text="Four.", kind="fact") == 200
    expect(texts(page)).to_have_text(["Four.", "Three.", "One."])
    expect(field).to_be_focused()
    field.press_sequentially(" thought")
    expect(field).to_have_value("Two. And a half-written thought")
    page.page.keyboard.press("Escape")
    expect(field).to_have_value("Two. And a half-written thought")
    field.press("Control+Enter")
    expect(texts(page)).to_have_text(["Two. And a half-written thought", "Four.", "Three.", "One."])
    expect(row(page, "half-written").locator("[data-key=edit]")).to_be_focused()


def test_two_windows_that_edit_one_memory_see_both_texts(desk: Open) -> None:
    page = memories(desk(), "First.")
    other = desk().open(f"{page.base}/memories/")
    for window in (page, other):
        row(window, "First.").get_by_role("link", name="Edit: First.").click()
    page.page.locator("tr[data-editing] textarea").fill("From one window.")
    page.page.get_by_role("button", name="Save").click()
    expect(texts(page)).to_have_text(["From one window."])
    mine = other.page.locator("tr[data-editing] textarea")
    mine.fill("From the other.")
    other.page.get_by_role("button", name="Save").click()
    notice = other.page.locator("tr[data-editing] .notice")
    expect(notice).to_contain_text("This memory was changed meanwhile. It now says:")
    expect(notice).to_contain_text("From one window.")
    expect(mine).to_have_value("From the other.")
    checked(other, "a conflict")
    other.page.get_by_role("button", name="Save").click()
    for window in (page, other):
        expect(texts(window)).to_have_text(["From the other."])


def test_an_address_that_opens_a_form_opens_it_once(desk: Open) -> None:
    page = memories(desk(), "One.")
    id = row(page, "One.").get_attribute("data-memory")
    page.open(f"{page.base}/memories/{id}/edit/")
    page.page.locator("tr[data-editing] textarea").fill("Two.")
    page.page.get_by_role("button", name="Save").click()
    expect(texts(page)).to_have_text(["Two."])
    assert send(page, "/memories/add/", text="Three.", kind="fact") == 200
    expect(texts(page)).to_have_text(["Three.", "Two."])
    expect(page.page).to_have_url(f"{page.base}/memories/")


def test_what_was_typed_about_a_memory_that_is_gone_becomes_a_new_one(desk: Open) -> None:
    page = memories(desk(), "First.")
    row(page, "First.").get_by_role("link", name="Edit: First.").click()
    field = page.page.locator("tr[data-editing] textarea")
    field.fill("Second thoughts.")
    send(page, "/memories/forget/", word="forget")
    field.press("Control+Enter")
    expect(page.page.locator("tr[data-editing] .notice")).to_contain_text("This memory is not there any more")
    page.page.get_by_role("button", name="Remember as new").click()
    expect(texts(page)).to_have_text(["Second thoughts."])


def test_by_keyboard_a_memory_is_edited_deleted_and_brought_back(desk: Open) -> None:
    page = memories(desk(), "One.", "Two.")
    row(page, "Two.").locator("[data-key=edit]").focus()
    page.page.keyboard.press("ArrowDown")
    expect(row(page, "One.").locator("[data-key=edit]")).to_be_focused()
    page.page.keyboard.press("F2")
    expect(page.page.locator("tr[data-editing] textarea")).to_be_focused()
    page.page.keyboard.press("Escape")
    expect(row(page, "One.").locator("[data-key=edit]")).to_be_focused()
    page.page.keyboard.press("Delete")
    expect(texts(page)).to_have_text(["Two."])
    expect(row(page, "Two.").locator("[data-key=delete]")).to_be_focused()
    expect(toast(page)).to_contain_text("Deleted: “One.”")
    toast(page).get_by_role("button", name=re.compile("Undo")).focus()
    page.page.keyboard.press("Enter")
    expect(texts(page)).to_have_text(["Two.", "One."])
    expect(toast(page)).to_have_count(0)


def test_ticked_memories_are_deleted_together_and_come_back(desk: Open) -> None:
    page = memories(desk(), "One.", "Two.", "Three.")
    for text in ("One.", "Three."):
        row(page, text).get_by_role("checkbox").check()
    bulk = page.page.locator("#bulk")
    expect(bulk).to_contain_text("2 selected")
    expect(row(page, "One.")).to_have_attribute("aria-selected", "true")
    expect(row(page, "Two.")).to_have_attribute("aria-selected", "false")
    checked(page, "ticked")
    bulk.get_by_role("button", name="Delete").click()
    expect(texts(page)).to_have_text(["Two."])
    expect(bulk).to_be_hidden()
    toast(page).get_by_role("button", name=re.compile("Undo")).click()
    expect(texts(page)).to_have_text(["Three.", "Two.", "One."])


def test_a_memory_that_was_not_deleted_comes_back_and_says_so(desk: Open) -> None:
    page = memories(desk(), "One.", "Two.")
    page.page.route("**/memories/delete/", lambda route: route.abort())
    row(page, "One.").locator("[data-key=delete]").click()
    error = row(page, "One.").get_by_role("alert")
    expect(error).to_contain_text("Not deleted. Check the connection.")
    page.page.unroute("**/memories/delete/")

    def pretend(route: Route) -> None:
        route.fulfill(status=200, body='<div class="toast">Deleted</div>', content_type="text/html")

    page.page.route("**/memories/delete/", pretend)
    error.get_by_role("button", name="Try again").click()
    expect(error).to_contain_text("Not deleted, the server still has it.")
    checked(page, "not deleted")
    page.page.unroute("**/memories/delete/")
    error.get_by_role("button", name="Try again").click()
    expect(toast(page)).to_contain_text("Deleted: “One.”")
    page.page.reload()
    expect(texts(page)).to_have_text(["Two."])


def test_the_list_follows_what_is_typed_and_keeps_the_address(desk: Open) -> None:
    page = memories(desk(), "李明在上海管理冷库。", "李萍在北京。", "The board meets on Mondays.")
    search = page.page.get_by_role("searchbox", name="Search memories")
    search.fill("冷库")
    expect(texts(page)).to_have_text(["李明在上海管理冷库。"])
    expect(page.page).to_have_url(re.compile(r"q=%E5%86%B7%E5%BA%93"))
    expect(search).to_be_focused()
    search.fill("board zqx")
    expect(page.page.locator("#memories .empty")).to_contain_text("No memory matches this search")
    page.page.get_by_role("link", name="Clear search").click()
    expect(texts(page)).to_have_count(3)
    header = page.page.locator("#memories th").get_by_role("link", name="Memory")
    header.focus()
    page.page.keyboard.press("Enter")
    expect(page.page.locator("#memories th[aria-sort=ascending]")).to_have_text("Memory")
    expect(header).to_be_focused()
    page.page.locator("#kinds").get_by_role("link", name="Episodes 0").click()
    expect(page.page.locator("#memories .empty")).to_be_visible()
    page.page.go_back()
    expect(texts(page)).to_have_count(3)


def test_a_key_that_belongs_to_a_composition_neither_sends_nor_closes_a_form(desk: Open) -> None:
    page = memories(desk())
    page.page.locator("#filters").get_by_role("link", name="Add").click()
    page.page.locator("#new-text").fill("住在上海。")
    place = page.page.locator("#new-place")
    place.focus()
    place.dispatch_event("compositionstart")
    page.page.keyboard.press("Enter")
    page.page.keyboard.press("Escape")
    expect(page.page.locator("#new-memory")).to_be_visible()
    place.dispatch_event("compositionend")
    place.fill("上海")
    page.page.get_by_role("button", name="Remember").click()
    expect(texts(page)).to_have_text(["住在上海。"])


def test_what_a_fact_replaced_is_shown_and_brought_back(desk: Open, model_house: House) -> None:
    page = memories(desk())
    done = manage(model_house.up.data, "shell", "-c", HISTORY)
    assert done.returncode == 0, done.stderr
    page.page.reload()
    row(page, "6 years").get_by_text("Replaced 2 earlier versions").click()
    checked(page, "history")
    send(page, "/memories/add/", text="Something else.", kind="fact")
    page.page.evaluate("document.body.dispatchEvent(new CustomEvent('memories-changed', {detail: {}}))")
    expect(texts(page)).to_have_text(["Something else.", "The contract runs 6 years."])
    expect(row(page, "6 years").locator("del")).to_have_text(
        ["The contract runs 5 years.", "The contract runs 4 years."]
    )
    row(page, "6 years").get_by_role("button", name="Bring back: The contract runs 5 years.").click()
    expect(toast(page)).to_contain_text("What held until now is among the earlier versions.")
    expect(texts(page)).to_have_text(["The contract runs 5 years.", "Something else."])
    expect(row(page, "5 years").locator(".history summary")).to_have_text("Replaced 3 earlier versions")


def test_a_memory_is_kept_from_answers_and_the_switch_says_what_it_does(desk: Open) -> None:
    page = memories(desk(), "Quiet.")
    page.page.get_by_role("button", name="Do not use in answers: Quiet.").press("Enter")
    expect(row(page, "Quiet.")).to_contain_text("Not used in answers")
    page.page.get_by_role("button", name="Use in answers again: Quiet.").press("Enter")
    expect(row(page, "Quiet.").locator(".badge", has_text="Not used")).to_have_count(0)
    switch = page.page.get_by_role("switch", name="Use memories")
    switch.press("Space")
    expect(page.page.locator("#switch-says")).to_contain_text("Off: no answer uses them")
    expect(switch).to_be_focused()
    page.page.reload()
    expect(switch).not_to_be_checked()
    page.page.route("**/memories/switch/", lambda route: route.abort())
    switch.press("Space")
    expect(toast(page)).to_contain_text("That did not work.")
    expect(switch).not_to_be_checked()
    page.page.unroute("**/memories/switch/")
    page.complaints.clear()  # htmx tells of the cut
    switch.press("Space")
    expect(page.page.locator("#switch-says")).to_contain_text("Answers use them")


def test_everything_is_forgotten_with_the_word_alone_and_can_be_taken_along_before(desk: Open) -> None:
    page = memories(desk(), "One.", "二。")
    with page.page.expect_download() as download:
        page.page.get_by_role("link", name="Export").click()
    assert download.value.suggested_filename.startswith("memories-")
    held = json.loads(download.value.path().read_text("utf-8"))["memories"]
    assert [memory["text"] for memory in held] == ["One.", "二。"]
    page.page.locator(".forget summary").click()
    field = page.page.get_by_label("Type “forget” to confirm")
    field.fill("yes")
    field.press("Enter")
    expect(page.page.locator("#forget-error")).to_contain_text("Type “forget” to confirm.")
    expect(field).to_be_focused()
    checked(page, "the wrong word")
    field.fill("forget")
    field.press("Enter")
    expect(toast(page)).to_contain_text("2 memories were deleted for good.")
    expect(page.page.locator("#memories .empty")).to_contain_text("Nothing is remembered yet")
    expect(page.page.locator("#forget")).to_be_hidden()


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"color_scheme": "dark"},
        {"viewport": {"width": 390, "height": 844}},
        {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark", "locale": "zh-CN"},
        {"viewport": {"width": 800, "height": 700}, "locale": "zh-CN"},
    ],
)
def test_every_part_of_the_page_can_be_used_by_everybody(desk: Open, how: dict[str, Any]) -> None:
    memories(desk(), "A rather long memory: " + "word " * 60, "x" * 300, "一" * 300, "短。")
    page = desk(**how).open(f"{desk().base}/memories/")
    send(page, f"/memories/{row(page, '短。').get_attribute('data-memory')}/mute/", muted="1")
    page.page.reload()
    expect(texts(page)).to_have_count(4)
    checked(page, f"the list {how}")
    page.page.locator("[data-act=add-memory]").first.click()
    page.page.locator("#new-memory [type=submit]").click()
    expect(page.page.locator("#new-text-error")).to_be_visible()
    page.page.locator("#new-memory [data-cancel]").click()
    row(page, "短。").locator("[data-key=edit]").click()
    expect(page.page.locator("tr[data-editing]")).to_be_visible()
    checked(page, f"forms {how}")
    page.page.get_by_role("searchbox").first.fill("zqx")
    expect(page.page.locator("#memories .empty, #memories tr[data-editing]").first).to_be_visible()
    checked(page, f"nothing found {how}")
