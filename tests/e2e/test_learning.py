"""What is learned in a browser: thumbs under an answer, the card of a suggestion, accepting it, and the next answer."""

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import Desk
from tests.e2e.conftest import Open
from tests.e2e.test_library import bring
from tests.e2e.test_page import checked

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PUMPS = "# Pump tariffs\n\nPump P4 from Nordwind costs 4200 euros. Nordwind delivers pumps in March.\n"
FANS = "# Fan tariffs\n\nFan F9 from Nordwind costs 900 euros. Nordwind delivers fans in April.\n"


def test_a_thumb_is_pressed_explained_seen_elsewhere_and_taken_back(offline_desk: Open) -> None:
    desk = offline_desk()
    desk.new().ask("Hello.")
    desk.settles()
    up, down = (desk.answer.get_by_role("button", name=name) for name in ("Good answer", "Bad answer"))
    expect(up).to_have_attribute("aria-pressed", "false")
    up.focus()
    desk.page.keyboard.press("Enter")
    expect(up).to_have_attribute("aria-pressed", "true")
    other = offline_desk().open(desk.page.url)
    seen = other.answer.get_by_role("button", name="Good answer")
    expect(seen).to_have_attribute("aria-pressed", "true")
    down.click()
    form = desk.answer.locator(".thumb-why")
    expect(form.get_by_role("checkbox").first).to_be_focused()
    expect(seen).to_have_attribute("aria-pressed", "false")
    checked(desk, "a thumb that is asked for its reasons")
    desk.page.keyboard.press("Space")
    form.get_by_label("In your own words").fill("It is late.")
    desk.page.keyboard.press("Enter")
    expect(form).to_have_count(0)
    expect(down).to_be_focused()
    desk.page.reload()
    expect(down).to_have_attribute("aria-pressed", "true")
    down.click()
    expect(down).to_have_attribute("aria-pressed", "false")
    expect(form).to_have_count(0)
    desk.page.reload()
    expect(desk.answer.locator('[data-thumb][aria-pressed="true"]')).to_have_count(0)


def test_what_was_done_twice_is_suggested_accepted_and_used_the_next_time(offline_desk: Open) -> None:
    desk = offline_desk()
    bring(desk, "learn-pumps.md", PUMPS)
    bring(desk, "learn-fans.md", FANS)
    report(desk.new(), "Write a tariff report about Nordwind pumps.")
    report(desk, "Write a tariff report about Nordwind fans.")
    expect(desk.answer.locator("[data-slot=used]")).to_be_hidden()  # the report itself lists its sources
    card = desk.answer.locator(".msg-skill a")
    expect(card).to_have_text("1 skill suggested")
    checked(desk, "an answer that led to a skill")
    first = desk.page.url
    card.click()
    proposal = desk.page.locator("#suggested .proposal")
    expect(proposal).to_contain_text("tariff report")
    expect(proposal).to_contain_text("search_knowledge")
    proposal.get_by_role("button", name="Accept").click()
    expect(proposal).to_have_count(0)
    desk.open(first)
    expect(card).to_have_count(0)
    report(desk.new(), "Write a tariff report about Nordwind deliveries.")
    expect(desk.answer).to_contain_text("Following the skill “tariff-report”")


def report(desk: Desk, words: str) -> None:
    desk.ask(words)
    desk.settles()


def test_in_chinese_and_narrow(offline_desk: Open) -> None:
    desk = offline_desk(locale="zh-CN", viewport={"width": 390, "height": 844})
    desk.new().ask("你好。")
    desk.settles()
    desk.answer.get_by_role("button", name="回答不好").click()
    form = desk.answer.locator(".thumb-why")
    expect(form).to_contain_text("少了内容")
    checked(desk, "a thumb in Chinese, narrow")
    desk.page.keyboard.press("Escape")
    expect(form).to_have_count(0)
