"""What the model saw, in a real browser: found from the conversation, readable in both languages, by keyboard."""

import os
import re

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import Desk
from tests.e2e.conftest import Open
from tests.e2e.test_long import SUMMARISED, choose, spoken
from tests.e2e.test_page import checked
from tests.modelserver import ModelServer, Reply, call, finish, text, usage

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SHOTS = os.environ.get("INSPECTOR_SHOTS", "")


def calling(*names: str) -> Reply:
    calls = [call("{}", index=n, id=f"c-{n}-{name}", name=name) for n, name in enumerate(names)]
    return Reply(steps=(*calls, *finish("tool_calls", counts=usage(1_900, 40))))


def asked(desk: Desk, model: ModelServer, words: str = "What do my documents say about the cold store?") -> str:
    """Ask something that takes three calls and three tools; return the address of what the model saw."""
    last = Reply(steps=(*text("Nothing is there yet."), *finish(counts=usage(2_300, 12, cached=1_900))))
    model.script(calling("list_documents"), calling("list_documents", "search_knowledge"), last)
    desk.ask(words)
    desk.settles()
    address: str = desk.page.locator("#inspect-here").evaluate("link => link.href")
    return address


def look(desk: Desk, name: str) -> None:
    """Keep a picture of all of the page, for people, if a place for them is named."""
    if SHOTS:
        size = desk.page.viewport_size
        assert size is not None
        height = desk.page.evaluate("document.querySelector('#scroller').scrollHeight + 60")
        desk.page.set_viewport_size({"width": size["width"], "height": min(height, 5_000)})
        desk.page.screenshot(path=f"{SHOTS}/{name}.png")
        desk.page.set_viewport_size(size)


def test_page_is_one_click_from_an_answer_and_leads_back_to_each_message(desk: Open, model: ModelServer) -> None:
    window = desk().new()
    page = window.page
    asked(window, model)
    model.script(Reply(steps=(*text("一共 120 箱。"), *finish())))
    window.ask("再问一次：有多少箱？")
    expect(page.locator("#thread .msg-assistant")).to_have_count(2)
    window.settles()
    conversation = page.url
    first = page.locator("#thread .msg-assistant").first
    first.get_by_role("link", name="What the model saw").click()  # of an answer that was written live
    expect(page.locator("[data-check]")).to_have_attribute("data-check", "same")
    expect(page.locator(".wf-labels")).to_contain_text("Model call 3")
    checked(window, "the inspector")
    page.goto(conversation)
    expect(page.locator("#main[data-ready]")).to_be_visible()
    window.answer.get_by_role("link", name="What the model saw").click()  # of a stored one
    expect(page.locator(".part").last).to_contain_text("再问一次：有多少箱？")
    page.locator(".part", has_text="有多少箱").first.locator("summary").press("Enter")
    page.locator(".part[open]").get_by_role("link", name="Show in the conversation").click()
    expect(page.locator("#main[data-ready]")).to_be_visible()
    expect(page).to_have_url(re.compile(r"#h\d+$"))
    expect(window.said.first).to_be_in_viewport()


def test_page_shows_the_run_and_the_request_and_is_fit_for_everybody(desk: Open, model: ModelServer) -> None:
    window = desk().new()
    asked(window, model)
    page = window.page
    page.locator("#actions > summary").press("Enter")
    page.locator("#actions").get_by_role("link", name="What the model saw").click()
    expect(page.locator("[data-check]")).to_have_attribute("data-check", "same")
    expect(page.locator(".wf-labels")).to_contain_text("Model call 3")
    expect(page.locator(".wf-chart .wf-tool")).to_have_count(2)
    expect(page.locator(".wf-chart .wf-fail")).to_have_count(1)
    page.locator(".part > summary").last.press("Enter")
    expect(page.locator(".part[open] .part-text")).to_be_visible()
    checked(window, "an open part")
    look(window, "desktop")
    page.get_by_role("link", name="Model call 2", exact=True).last.click()
    expect(page.locator("#call-title")).to_contain_text("Model call 2")
    expect(page.locator(".wf-label[aria-current]")).to_contain_text("Model call 2")


def test_page_fits_a_phone_in_the_dark(desk: Open, model: ModelServer) -> None:
    wide = desk().new()
    address = asked(wide, model)
    narrow = desk(viewport={"width": 390, "height": 844}, color_scheme="dark")
    narrow.page.goto(address)
    expect(narrow.page.locator("[data-check]")).to_have_attribute("data-check", "same")
    narrow.page.locator(".part > summary").first.click()
    expect(narrow.page.locator(".part[open] .part-text")).to_be_visible()
    checked(narrow, "the inspector on a phone")
    look(narrow, "phone-dark")


def test_page_speaks_chinese_and_needs_no_scripts(desk: Open, model: ModelServer) -> None:
    window = desk().new()
    address = asked(window, model, "我的文档里关于冷库说了什么？")
    plain = desk(locale="zh-CN", java_script_enabled=False)
    plain.page.goto(address)
    expect(plain.page.locator("h1")).to_have_text("这个回答是怎样得出的")
    plain.page.locator(".part > summary").last.click()
    expect(plain.page.locator(".part[open] .part-text")).to_be_visible()
    plain.page.locator(".changes").scroll_into_view_if_needed()
    if SHOTS:
        plain.page.set_viewport_size({"width": 1280, "height": 2_600})
        plain.page.screenshot(path=f"{SHOTS}/chinese.png")
    plain.page.locator(".stepper a").first.click()
    expect(plain.page.locator("#call-title")).to_have_text(re.compile("模型调用 2"))


def test_summary_that_the_model_was_sent_leads_to_its_line_in_the_conversation(offline_desk: Open) -> None:
    window = spoken(offline_desk().new())
    page = window.page
    choose(window, "Summarise now")
    expect(page.locator("#toasts")).to_contain_text(SUMMARISED)
    window.ask("And what of house 23?")
    expect(page.locator("#thread .msg-assistant")).to_have_count(6)
    window.settles()
    window.answer.get_by_role("link", name="What the model saw").click()
    expect(page.locator("[data-check]")).to_have_attribute("data-check", "same")
    page.locator('.part[data-part="summary"] > summary').press("Enter")
    checked(window, "a request with a summary")
    look(window, "summary")
    page.locator(".part[open]").get_by_role("link", name="Show in the conversation").click()
    expect(page.locator("#main[data-ready]")).to_be_visible()
    expect(page.locator("#summary")).to_be_in_viewport()
