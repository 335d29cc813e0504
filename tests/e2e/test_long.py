"""A conversation that goes on for long: the line above which it is summarised, the window's meter, the archive."""

import json
import os
import re

import psycopg
import pytest
from playwright.sync_api import Locator, expect

from agents.runtime.knowledge import Citation, Place
from agents.runtime.summaries import Boundary, Summary
from agents.stores import summaryrows
from tests.e2e.browser import Desk
from tests.e2e.conftest import House, Open
from tests.e2e.test_page import checked
from tests.modelserver import ModelServer, Reply, finish, text
from workbench.embedded import Postgres

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

DETAIL = "The boiler in house {n} burns {n}00 cubic metres of gas a month, which costs {n}43 euros."
ZH_DETAIL = "{n} 号楼的锅炉每月用气 {n}00 立方米，费用为 {n}43 元，由王工负责检修。"
LINE = "Earlier messages summarised"
SUMMARISED = "Earlier messages are summarised."


def spoken(desk: Desk, words: str = DETAIL, turns: int = 5) -> Desk:
    """A conversation in which enough was said to be worth a summary."""
    for n in range(1, turns + 1):
        desk.ask(" ".join(words.format(n=f"{n}{i}") for i in range(12)))
        expect(desk.page.locator("#thread .msg-assistant")).to_have_count(n)
        desk.settles()
    return desk


def line(desk: Desk) -> Locator:
    return desk.page.locator("#thread .compaction")


def choose(desk: Desk, item: str) -> None:
    """Choose from the conversation's own menu."""
    desk.page.locator("#actions > summary").click()
    desk.page.locator("#actions").get_by_role("button", name=item, exact=True).click()


def around(desk: Desk) -> list[str]:
    """Who speaks and where the line stands, from above to below."""
    found = desk.page.locator("#thread :is(article.msg, .compaction)").all()
    kinds = {"msg-user": "user", "msg-assistant": "assistant", "compaction": "line"}
    return [next(v for k, v in kinds.items() if k in (one.get_attribute("class") or "").split()) for one in found]


def test_person_has_a_conversation_summarised_reads_the_summary_and_goes_on(offline_desk: Open) -> None:
    desk = spoken(offline_desk().new())
    choose(desk, "Summarise now")
    expect(desk.page.locator("#toasts")).to_contain_text(SUMMARISED)
    expect(line(desk)).to_have_count(1)
    placed = around(desk)
    at = placed.index("line")
    assert placed[at - 1 : at + 2] == ["assistant", "line", "user"]
    line(desk).locator("summary").focus()
    desk.page.keyboard.press("Enter")
    body = line(desk).locator(".compaction-body")
    expect(body).to_contain_text("The boiler in house 10 burns 1000 cubic metres")
    expect(body).to_contain_text(f"{at} messages")
    expect(body).to_contain_text("because you asked for it")
    expect(desk.page.locator(".msg-user").first).to_contain_text("house 10")  # the originals stay
    checked(desk, "an open summary")
    desk.page.keyboard.press("Enter")
    expect(body).to_be_hidden()
    desk.ask("And what of house 23?")
    expect(desk.page.locator("#thread .msg-assistant")).to_have_count(6)
    desk.settles()
    before = around(desk)
    assert before == [*placed, "user", "assistant"]
    desk.page.reload()
    expect(line(desk)).to_contain_text(LINE)
    assert around(desk) == before


def test_edit_of_a_message_that_is_summarised_takes_the_line_away_and_one_after_it_leaves_it(
    offline_desk: Open,
) -> None:
    desk = spoken(offline_desk().new())
    other = offline_desk().open(desk.page.url)
    choose(desk, "Summarise now")
    expect(line(desk)).to_have_count(1)
    expect(line(other)).to_have_count(1)  # told by a hint
    rewrite(desk, desk.said.last, "Something else entirely")
    expect(line(desk)).to_have_count(1)
    rewrite(desk, desk.said.first, "Begin anew")
    expect(line(desk)).to_have_count(0)
    assert around(desk) == ["user", "assistant"]
    expect(line(other)).to_have_count(0)
    desk.page.reload()
    expect(desk.page.locator("#thread .msg-assistant")).to_have_count(1)
    expect(line(desk)).to_have_count(0)
    desk.said.first.hover()
    desk.page.get_by_role("button", name="Previous version").first.click()
    expect(line(desk)).to_have_count(1)  # on the old line it holds


def rewrite(desk: Desk, message: Locator, words: str) -> None:
    message.hover()
    message.get_by_role("button", name="Edit message").click()
    field = desk.page.locator(".msg-edit textarea")
    field.fill(words)
    desk.page.locator(".msg-edit [type=submit]").click()
    expect(desk.said.last).to_contain_text(words)
    desk.settles()


def test_nothing_to_summarise_is_said_plainly(offline_desk: Open) -> None:
    desk = spoken(offline_desk().new(), turns=1)
    choose(desk, "Summarise now")
    expect(desk.page.locator("#toasts")).to_contain_text(SUMMARISED)
    expect(line(desk)).to_have_count(1)
    assert around(desk) == ["user", "assistant", "line"]
    expect(desk.answer.get_by_role("button", name="Answer again")).to_be_visible()  # it is still the last answer
    choose(desk, "Summarise now")
    expect(desk.page.locator("#toasts")).to_contain_text("There is nothing new to summarise.")
    assert around(desk) == ["user", "assistant", "line"]


def test_meter_shows_the_window_live_and_the_same_after_a_reload(offline_desk: Open) -> None:
    desk = offline_desk().new()
    gauge = desk.page.locator("#gauge")
    expect(gauge).to_be_hidden()
    spoken(desk, turns=1)
    expect(gauge.locator("summary")).to_have_accessible_name(re.compile(r"\d+\s%.*window used, show details"))
    live = gauge.text_content()
    desk.page.reload()
    expect(gauge.locator("summary")).to_have_accessible_name(re.compile(r"\d+\s%.*window used, show details"))
    assert gauge.text_content() == live
    gauge.locator("summary").focus()
    desk.page.keyboard.press("Enter")
    meter = gauge.get_by_role("meter")
    expect(meter).to_be_visible()
    assert 1 <= int(meter.get_attribute("aria-valuenow") or 0) < 20
    expect(meter).to_have_attribute("aria-valuetext", re.compile(r"[\d,]+ of [\d,]+ tokens"))
    expect(gauge.locator("dt")).to_contain_text(["Instructions", "Tools", "Messages", "Results of tools"])
    expect(gauge).to_contain_text("The size is")
    checked(desk, "the window's meter")
    desk.page.keyboard.press("Escape")
    expect(meter).to_be_hidden()
    expect(gauge.locator("summary")).to_be_focused()


def test_archived_conversation_leaves_the_list_in_all_windows_and_comes_back(offline_desk: Open) -> None:
    desk = spoken(offline_desk().new(), "Archive me, number {n}.", turns=1)
    other = offline_desk().open(desk.page.url)
    row = desk.page.locator("#side-list .row[aria-current]")
    expect(row).to_have_count(1)
    choose(desk, "Archive")
    expect(desk.page.locator("#archived")).to_contain_text("This conversation is archived.")
    expect(row).to_have_count(0)
    expect(other.page.locator("#archived")).to_be_visible()
    checked(desk, "an archived conversation")
    desk.page.locator(".side-archived").click()
    expect(desk.page.get_by_role("heading", name="Archived conversations")).to_be_visible()
    checked(desk, "the archived conversations")
    desk.page.locator("#main").get_by_role("button", name=re.compile("Archive me.* back into the list")).first.click()
    expect(desk.page.get_by_role("heading", name="Archived conversations")).to_be_visible()
    expect(other.page.locator("#archived")).to_be_hidden()
    expect(other.page.locator("#side-list .row[aria-current]")).to_have_count(1)


def test_row_of_the_list_is_archived_from_its_menu_and_undone(offline_desk: Open) -> None:
    desk = spoken(offline_desk().new(), "From the row {n}.", turns=1)
    item = desk.page.locator("#side-list .side-item:has([aria-current])")
    item.hover()
    item.locator("summary").click()
    item.get_by_role("button", name="Archive").click()
    expect(desk.page.locator("#toasts")).to_contain_text("Conversation archived")
    expect(item).to_have_count(0)
    desk.page.locator("#toasts").get_by_role("button", name=re.compile("Undo")).click()
    expect(item).to_have_count(1)
    expect(desk.page.locator("#archived")).to_be_hidden()


def test_run_summarises_before_it_asks_and_the_line_appears_without_a_reload(
    fresh_desk: Open, model: ModelServer
) -> None:
    page = fresh_desk().new()
    page.page.locator("#model").select_option("smaller")  # its window is small
    for n in (1, 2):
        model.script(Reply(steps=(*text(f"Answer {n}."), *finish())))
        page.ask(" ".join(DETAIL.format(n=f"{n}{i}") for i in range(390)))
        expect(page.page.locator("#thread .msg-assistant")).to_have_count(n)
        page.settles()
    expect(line(page)).to_have_count(1)
    assert around(page) == ["user", "assistant", "line", "user", "assistant"]
    gauge = page.page.locator("#gauge")
    gauge.locator("summary").click()
    expect(gauge).to_contain_text("of 28,000 tokens")
    expect(gauge).to_contain_text("The size is from the settings.")
    expect(gauge.locator("dt")).to_contain_text(["Instructions", "Tools", "Summary", "Messages"])
    gauge.locator("summary").click()
    line(page).locator("summary").click()
    expect(line(page).locator(".compaction-body")).to_contain_text("while it answered")
    shown = line(page).inner_text()
    page.page.reload()
    line(page).locator("summary").click()
    assert line(page).inner_text() == shown
    assert around(page) == ["user", "assistant", "line", "user", "assistant"]


def test_summary_cites_as_answers_do(desk: Open, model: ModelServer, model_house: House) -> None:
    page = desk().new()
    model.script(Reply(steps=(*text("They fell."), *finish())))
    page.ask("What of the costs?")
    page.settles()
    source = Citation(
        id="k3f4ab", artifact_id="d1", version=1, name="报告.pdf", start=0, end=9, place=Place(page=3), quote="It fell."
    )
    store(model_house, page.page.url.rstrip("/").rpartition("/")[2], "Costs fell [[c:k3f4ab]].", source)
    page.page.reload()
    line(page).locator("summary").click()
    chip = line(page).locator(".cite-chip")
    expect(chip).to_have_text("1")
    expect(chip).to_have_accessible_name(re.compile("报告.pdf"))
    chip.hover()
    expect(line(page).locator(".cite-card")).to_contain_text("It fell.")


def store(house: House, thread_id: str, words: str, source: Citation) -> None:
    """Store a summary of everything in a conversation that cites this."""
    outside = os.environ.get("TEST_SERVERS") == "outside"
    with psycopg.connect(os.environ["DATABASE_URL"] if outside else Postgres(data=house.up.data).url) as connection:
        found = connection.execute(
            "SELECT e.position, e.fork, e.event_id, e.at FROM agents_event e"
            " JOIN agents_session s ON s.id = e.session_id WHERE s.thread_id = %s ORDER BY e.position DESC LIMIT 1",
            (thread_id,),
        ).fetchone()
        assert found
        position, fork, event_id, at = found
        made = Summary(
            id=f"s-{thread_id}",
            text=words,
            filter_key="",
            boundary=Boundary(position=position, fork=fork, event_id=event_id, at=at),
            read_from=position,
            made_at=at,
            citations=(source,),
        )
        citations = json.dumps(json.loads(summaryrows.dump(made)[0])["citations"])
        connection.execute(
            "INSERT INTO agents_summary (summary_id, owner_id, session_id, filter_key, fork, position, event_id, at,"
            " read_from, text, citations, tokens, covered_tokens, covered_events, summarizer, model, source, report,"
            " created_at) SELECT %s, owner_id, id, '', %s, %s, %s, %s, %s, %s, %s::jsonb, 0, 0, 0, '', '',"
            " 'background', '{}', %s FROM agents_session WHERE thread_id = %s",
            (made.id, fork, position, event_id, at, position, words, citations, at, thread_id),
        )


@pytest.mark.parametrize("width", [390, 320])
def test_everything_in_the_composer_has_its_place_on_a_phone(desk: Open, model: ModelServer, width: int) -> None:
    page = desk(viewport={"width": width, "height": 700}).new()
    model.script(Reply(steps=(*text("Yes."), *finish())))
    page.ask("Is there room?")
    page.settles()
    bar = page.page.locator(".composer-bar")
    edge = bar.bounding_box()
    assert edge
    for name in ("#attach", "#model", "#scope", "#gauge summary", ".gauge-ring", "#send"):
        box = page.page.locator(name).bounding_box()
        assert box, name
        assert edge["x"] <= box["x"], name
        assert box["x"] + box["width"] <= edge["x"] + edge["width"], name
        assert box["width"] >= 16, name
    checked(page, "the composer with its meter")


@pytest.mark.parametrize("dark", [False, True])
def test_line_and_meter_on_a_phone_in_chinese(offline_desk: Open, dark: bool) -> None:
    how = {"color_scheme": "dark"} if dark else {}
    desk = spoken(offline_desk(locale="zh-CN", viewport={"width": 390, "height": 844}, **how).new(), ZH_DETAIL)
    choose(desk, "立即整理摘要")
    expect(desk.page.locator("#toasts")).to_contain_text("较早的消息已整理为摘要。")
    line(desk).locator("summary").click()
    body = line(desk).locator(".compaction-body")
    expect(body).to_contain_text("10 号楼的锅炉每月用气 1000 立方米")
    for told in body.locator("> p").all_inner_texts():
        assert not re.findall(r"[A-Za-z]{3,}", told.replace("token", ""))
    checked(desk, "a summary on a phone")
    desk.page.reload()
    desk.page.locator("#gauge summary").click()
    card = desk.page.locator(".gauge-card")
    expect(card).to_contain_text("个 token 中已用")
    box = card.bounding_box()
    assert box
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    checked(desk, "the meter on a phone")
