"""What an answer says of memory: what was remembered of its turn, what it was given, and what is done about it."""

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import Desk
from tests.e2e.conftest import Open
from tests.e2e.test_page import checked

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PREFERENCE = "I prefer reports in Chinese, tables first."


def told(desk: Desk, words: str, what: str) -> None:
    """Say something in a new conversation, and wait until its answer tells that it is remembered."""
    desk.new().ask(words)
    desk.settles()
    expect(desk.answer.locator(".memory-change")).to_contain_text(what)


def test_what_is_said_once_is_there_in_the_next_conversation_and_can_be_taken_back(offline_desk: Open) -> None:
    desk = offline_desk()
    told(desk, PREFERENCE, "I prefer reports in Chinese, tables first")
    checked(desk, "an answer that says what is remembered")
    change = desk.answer.locator(".memory-change")
    live = change.inner_text()
    desk.page.reload()
    assert change.inner_text() == live
    first = desk.page.url
    desk.new().ask("What do I prefer?")
    desk.settles()
    expect(desk.answer.locator(".prose")).to_contain_text("tables first")
    used = desk.answer.locator(".msg-memory details")
    expect(used.locator("summary")).to_have_text("Used 1 memory")
    used.locator("summary").click()
    expect(used.locator(".memory-used")).to_contain_text("I prefer reports in Chinese, tables first")
    used.get_by_role("button", name="Don’t use this").click()
    expect(used.locator(".memory-used")).to_contain_text("Not used any more.")
    expect(used.get_by_role("button", name="Use again")).to_be_focused()
    desk.new().ask("What do I prefer?")
    desk.settles()
    expect(desk.answer.locator(".msg-memory details")).to_have_count(0)
    desk.open(first)
    change.get_by_role("button", name="Undo").click()
    expect(change).to_contain_text("Taken back")
    expect(change.get_by_role("button", name="Undo")).to_have_count(0)


def test_other_window_sees_what_is_remembered_and_what_is_taken_back(offline_desk: Open) -> None:
    first = offline_desk()
    first.new().ask("I live in Lisbon.")
    first.settles()
    second = offline_desk().open(first.page.url)
    for desk in (first, second):
        expect(desk.answer.locator(".memory-change")).to_contain_text("I live in Lisbon")
    first.ask("I live in Porto now.")
    first.settles()
    for desk in (first, second):
        change = desk.answer.locator(".memory-change")
        expect(change.locator("del")).to_contain_text("Lisbon")
        expect(change).to_contain_text("Porto")
    second.answer.get_by_role("button", name="Undo").click()
    for desk in (first, second):
        expect(desk.answer.locator(".memory-change")).to_contain_text("Taken back")


def test_chinese_is_remembered_and_told_in_chinese(offline_desk: Open) -> None:
    desk = offline_desk(locale="zh-CN", viewport={"width": 390, "height": 844})
    desk.new().ask("我喜欢先看表格的报告。")
    desk.settles()
    expect(desk.answer.locator(".memory-change")).to_contain_text("我喜欢先看表格的报告")
    expect(desk.answer.get_by_role("button", name="撤销")).to_be_visible()
    checked(desk, "memory in Chinese, narrow")
