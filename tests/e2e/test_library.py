"""The library in a browser: files in, their states live, and what is done to them by hand and by keyboard."""

import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, expect

from tests.artifacts.pdfs import pdf
from tests.e2e.browser import Desk
from tests.e2e.conftest import Open

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

Named = tuple[str, str | bytes]


def library(page: Desk) -> Desk:
    return page.open(f"{page.base}/library/")


def upload(page: Desk, *files: Named) -> None:
    page.page.locator("#upload").set_input_files(
        [
            {"name": name, "mimeType": "", "buffer": content if isinstance(content, bytes) else content.encode()}
            for name, content in files
        ]
    )


def row(page: Desk, name: str) -> Locator:
    return page.page.locator("#documents tr[data-document]", has_text=name)


def bring(page: Desk, name: str, content: str | bytes) -> None:
    """Put a document into the library and wait until it was read."""
    library(page)
    upload(page, (name, content))
    expect(row(page, name).locator(".state")).to_have_text("Ready", timeout=40_000)


def checked(page: Desk, where: str) -> None:
    page.examined = True
    found = Axe().run(page.page).response["violations"]
    # links to skip by stand before all regions
    bad = [v for v in found if v["impact"] != "minor" and v["id"] != "region"]
    assert [(v["id"], [n["html"][:200] for n in v["nodes"]]) for v in bad] == [], where
    assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), where


def test_files_are_uploaded_read_and_named_when_they_cannot_be(desk: Open) -> None:
    page = library(desk())
    upload(
        page, ("up-冷库报告.md", "# 冷库\n\n去年泄漏四十三公斤。\n"), ("up-scan.pdf", pdf(b"")), ("up-nothing.txt", "")
    )
    expect(row(page, "up-冷库报告.md").locator(".state")).to_have_text("Ready", timeout=40_000)
    expect(row(page, "up-scan.pdf").locator(".state")).to_have_text("Not readable", timeout=40_000)
    expect(row(page, "up-scan.pdf").locator(".state-reason")).to_contain_text("It holds no text.")
    refused = page.page.locator("#uploads tr")
    expect(refused).to_have_count(1)
    expect(refused).to_contain_text("It is empty.")
    refused.get_by_role("button", name="Remove up-nothing.txt").click()
    expect(page.page.locator("#uploads")).to_be_hidden()
    upload(page, ("up-冷库报告.md", "# 冷库\n\n去年泄漏四十三公斤。\n"))
    expect(page.page.locator("#uploads tr")).to_contain_text("Already there")


def test_a_dropped_file_goes_in_wherever_it_falls(desk: Open) -> None:
    page = library(desk())
    page.page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File(['# Dropped'], 'dropped.md'));
          const fire = (type) => document.body.dispatchEvent(
            new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
          fire('dragenter'); fire('dragover');
        }"""
    )
    expect(page.page.locator(".drop-over")).to_be_visible()
    page.page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File(['# Dropped'], 'dropped.md'));
          document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
        }"""
    )
    expect(page.page.locator(".drop-over")).to_be_hidden()
    expect(row(page, "dropped.md").locator(".state")).to_have_text("Ready", timeout=40_000)


def test_an_upload_is_cancelled_and_tried_again(desk: Open) -> None:
    page = library(desk())
    page.page.route("**/library/upload/", lambda route: route.abort())
    upload(page, ("again.md", "# Again"))
    line = page.page.locator("#uploads tr")
    expect(line).to_contain_text("The connection broke. Try again.")
    page.page.unroute("**/library/upload/")
    line.get_by_role("button", name="Retry").click()
    expect(row(page, "again.md").locator(".state")).to_have_text("Ready", timeout=40_000)
    page.page.route("**/library/upload/", lambda route: None)  # never answered
    upload(page, ("never.md", "# Never"))
    line.get_by_role("button", name="Cancel upload of never.md").click()
    expect(page.page.locator("#uploads")).to_be_hidden()
    page.page.unroute("**/library/upload/")
    expect(row(page, "never.md")).to_have_count(0)


def test_states_arrive_in_another_window(desk: Open) -> None:
    watching, working = library(desk()), desk()
    bring(working, "seen.md", "# Seen")
    expect(row(watching, "seen.md").locator(".state")).to_have_text("Ready", timeout=40_000)


def test_documents_are_renamed_deleted_and_brought_back_by_keyboard(desk: Open) -> None:
    page = desk()
    bring(page, "keys-one.md", "# One")
    bring(page, "keys-two.md", "# Two")
    row(page, "keys-two.md").locator(".doc-name").focus()
    page.page.keyboard.press("ArrowDown")
    expect(row(page, "keys-one.md").locator(".doc-name")).to_be_focused()
    page.page.keyboard.press("F2")
    field = page.page.locator("#name-dialog").get_by_label("Name")
    expect(field).to_have_value("keys-one.md")
    field.fill("keys-two.md")
    page.page.keyboard.press("Enter")
    expect(page.page.locator("#name-error")).to_contain_text("another document")
    field.fill("keys-first.md")
    page.page.keyboard.press("Enter")
    expect(row(page, "keys-first.md")).to_have_count(1)
    row(page, "keys-first.md").locator(".doc-name").focus()
    page.page.keyboard.press("Delete")
    expect(row(page, "keys-first.md")).to_have_count(0)
    page.page.locator("#toasts").get_by_role("button", name=re.compile("Undo")).click()
    expect(row(page, "keys-first.md")).to_have_count(1)


def test_ticked_documents_go_into_a_collection_together(desk: Open) -> None:
    page = desk()
    bring(page, "bulk-one.md", "# One")
    bring(page, "bulk-two.md", "# Two")
    page.page.get_by_role("button", name="New collection").click()
    page.page.locator("#name-dialog").get_by_label("Name").fill("法律 Law")
    page.page.keyboard.press("Enter")
    expect(page.page.locator("#collections a", has_text="法律 Law")).to_be_visible()
    for name in ("bulk-one.md", "bulk-two.md"):
        row(page, name).get_by_role("checkbox").check()
    bulk = page.page.locator("#bulk")
    expect(bulk).to_contain_text("2 selected")
    checked(page, "ticked documents")
    bulk.get_by_label("Move to a collection").select_option("法律 Law")
    page.page.locator("#collections a", has_text="法律 Law").click()
    expect(page.page).to_have_url(re.compile("collection="))
    expect(page.page.locator("#documents tr[data-document]")).to_have_count(2)
    upload(page, ("bulk-three.md", "# Three"))
    expect(row(page, "bulk-three.md")).to_be_visible()
    page.page.locator("#tick-all").check()
    page.page.locator("#bulk").get_by_role("button", name="Delete").click()
    expect(page.page.locator("#toasts")).to_contain_text("3 documents deleted")
    expect(page.page.locator("#documents")).to_contain_text("There is nothing in this collection")


def test_typing_filters_and_keeps_the_address(desk: Open) -> None:
    page = desk()
    bring(page, "filter-one.md", "# One\n\nThe lighthouse keeper earns 900 crowns.\n")
    search = page.page.get_by_role("searchbox", name="Search names and text")
    search.fill("lighthouse crowns")
    expect(row(page, "filter-one.md")).to_be_visible()
    expect(page.page).to_have_url(re.compile("q=lighthouse"))
    search.fill("zqxvvk wqzzyx")
    expect(page.page.locator("#documents .empty")).to_contain_text("No document matches these filters")
    expect(search).to_be_focused()
    page.page.get_by_role("link", name="Clear filters").click()
    expect(row(page, "filter-one.md")).to_be_visible()


def test_a_header_sorts_and_the_sort_stays_while_one_types_and_rows_change(desk: Open) -> None:
    page = desk()
    for name in ("sort-b.md", "sort-c.md", "sort-a.md"):
        bring(page, name, f"# {name}")
    names = page.page.locator("#documents .doc-name")
    page.page.get_by_role("searchbox", name="Search names and text").fill("sort-")
    header = page.page.locator("#documents th").get_by_role("link", name="Name")
    header.focus()
    page.page.keyboard.press("Enter")
    expect(names).to_have_text(["sort-a.md", "sort-b.md", "sort-c.md"])
    expect(page.page.locator("#documents th[aria-sort=ascending]")).to_have_text("Name")
    expect(header).to_be_focused()
    page.page.keyboard.press("Enter")
    expect(names).to_have_text(["sort-c.md", "sort-b.md", "sort-a.md"])
    expect(page.page).to_have_url(re.compile(r"(?=.*q=sort-)(?=.*sort=-name)"))
    upload(page, ("sort-bb.md", "# Four"))
    expect(names).to_have_text(["sort-c.md", "sort-bb.md", "sort-b.md", "sort-a.md"], timeout=40_000)
    page.page.get_by_role("searchbox", name="Search names and text").fill("sort-b")
    expect(names).to_have_text(["sort-bb.md", "sort-b.md"])
    order = page.page.get_by_label("Sort", exact=True)
    order.focus()
    order.select_option("Oldest first")
    expect(names).to_have_text(["sort-b.md", "sort-bb.md"])
    expect(order).to_be_focused()
    page.page.go_back()
    expect(names).to_have_text(["sort-a.md", "sort-b.md", "sort-bb.md", "sort-c.md"])


def test_changes_are_walked_with_n_and_p(desk: Open) -> None:
    page = desk()
    words = [f"Paragraph {n} says something.\n" for n in range(40)]
    bring(page, "walk.md", "\n".join(words))
    words[5] = "Paragraph five says something.\n"
    words[30] = "Paragraph 30 says nothing.\n"
    bring(page, "walk.md", "\n".join(words))
    expect(row(page, "walk.md")).to_contain_text("version 2")
    row(page, "walk.md").locator(".doc-name").click()
    page.page.get_by_role("link", name="Changes").click()
    expect(page.page.locator(".diff-row[data-change]")).to_have_count(2)
    page.page.keyboard.press("n")
    page.page.keyboard.press("n")
    expect(page.page.locator("[data-slot=change]")).to_have_text("2 of 2")
    expect(page.page.locator(".diff-row[data-change='2']")).to_be_focused()
    page.page.keyboard.press("p")
    expect(page.page.locator("[data-slot=change]")).to_have_text("1 of 2")
    checked(page, "two versions")


def test_an_edit_is_kept_until_saved_and_overwrites_nothing(desk: Open) -> None:
    page = desk()
    bring(page, "draft.md", "one\n")
    row(page, "draft.md").locator(".doc-name").click()
    page.page.get_by_role("link", name="Edit").click()
    field = page.page.get_by_label("Text", exact=True)
    field.fill("mine\n")
    expect(page.page.get_by_text("Kept in this browser")).to_be_visible()
    bring(page, "draft.md", "theirs\n")
    second = row(page, "draft.md").filter(has=page.page.locator("a[download][href$='/2/']"))
    expect(second.locator(".state")).to_have_text("Ready", timeout=40_000)
    second.locator(".doc-name").click()
    page.page.get_by_role("link", name="Edit").click()
    expect(field).to_have_value("mine\n")
    page.page.get_by_role("button", name="Save as version").click()
    expect(page.page.get_by_role("alert").filter(has_text="Nothing was overwritten")).to_be_visible()
    expect(page.page.locator(".diff-old del")).to_have_text("theirs")
    page.page.get_by_role("button", name="Save as version 3").click()
    expect(page.page.locator(".prose-doc")).to_have_text("mine")


LOOKS: list[dict[str, Any]] = [
    {"viewport": {"width": 1440, "height": 900}},
    {"viewport": {"width": 1440, "height": 900}, "color_scheme": "dark"},
    {"viewport": {"width": 390, "height": 844}},
]


@pytest.mark.parametrize("look", LOOKS, ids=["wide", "dark", "phone"])
def test_axe_finds_nothing_and_nothing_sticks_out(desk: Open, look: dict[str, Any]) -> None:
    page = desk(**look)
    bring(
        page, "a-table-with-a-very-long-name-that-has-no-blanks-in-it.csv", "month,kwh\nJanuary,91000\nFebruary,92000\n"
    )
    checked(page, "the library")
    page.page.goto(f"{page.base}/library/?q=nothing-has-this")
    checked(page, "nothing found")
    library(page)
    row(page, "a-table").locator(".doc-name").click()
    expect(page.page.locator("table")).to_be_visible()
    checked(page, "a table")
    page.page.get_by_role("link", name="Source").click()
    expect(page.page.locator(".passage").first).to_be_visible()
    checked(page, "its text")
    page.page.get_by_role("link", name="Versions").click()
    expect(page.page.locator(".version")).to_have_count(1)
    checked(page, "its versions")
