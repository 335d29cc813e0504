"""The page as a whole: scrolling, the list, looks, languages, sizes, and what axe says."""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from tests.e2e.browser import Desk
from tests.e2e.conftest import House, Open, sign_in
from tests.modelserver import Gate, ModelServer, Pause, Reply, call, chunk, finish, text
from tests.workbench.installation import manage

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

LINE = "Paragraph {n} says something that fills a line or two of the column, and then a bit more."
PARAGRAPHS = "\n\n".join(LINE.format(n=n) for n in range(30))


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def top_of(desk: Desk, selector: str) -> float:
    """Pixels from the top edge of the conversation to the element."""
    found: float = desk.page.evaluate(
        """(s) => [...document.querySelectorAll(s)].at(-1).getBoundingClientRect().top
                  - document.querySelector('#scroller').getBoundingClientRect().top""",
        selector,
    )
    return found


def test_sent_message_stands_at_the_top_and_text_does_not_move_it(
    desk: Open, model: ModelServer, gate: threading.Event
) -> None:
    model.script(
        Reply(steps=(*text(PARAGRAPHS), *finish())),
        Reply(steps=(*text("Short."), Gate(gate), chunk({"content": "\n\n" + PARAGRAPHS}), *finish())),
    )
    page = desk().new()
    page.ask("First")
    page.settles()
    page.ask("Second")
    expect(page.answer.locator(".prose")).to_contain_text("Short.")
    assert abs(top_of(page, ".msg-user") - 16) <= 2
    before = page.scrolled()
    gate.set()
    page.settles()
    assert page.scrolled() == before
    expect(page.page.locator("#to-new")).to_be_visible()
    expect(page.page.locator("#to-new")).to_contain_text("New text")


def test_new_text_button_follows_until_the_reader_scrolls_up(
    desk: Open, model: ModelServer, gate: threading.Event
) -> None:
    second = threading.Event()
    more = chunk({"content": "\n\n" + PARAGRAPHS})
    model.script(Reply(steps=(*text(PARAGRAPHS), Gate(gate), more, Gate(second), more, *finish())))
    page = desk().new()
    page.ask("Write")
    expect(page.answer.locator(".prose")).to_contain_text("Paragraph 29")
    page.page.locator("#to-new").click()
    expect(page.page.locator("#to-new")).to_be_hidden()
    expect(page.field).to_be_focused()
    gate.set()
    expect(page.page.locator(".prose p", has_text="Paragraph 29")).to_have_count(2)
    page.scrolled()
    expect(page.page.locator("#to-new")).to_be_hidden()
    page.page.mouse.move(640, 300)
    page.page.mouse.wheel(0, -300)
    expect(page.page.locator("#to-new")).to_be_visible()
    before = page.scrolled()
    second.set()
    page.settles()
    assert page.scrolled() == before


def turn_wheel(page: Desk) -> None:
    page.page.mouse.move(640, 300)
    page.page.mouse.wheel(0, -300)


def press_page_up(page: Desk) -> None:
    page.page.locator("#scroller").focus()
    page.page.keyboard.press("PageUp")


def drag_scrollbar(page: Desk) -> None:
    box = page.page.locator("#scroller").bounding_box()
    assert box
    across = box["x"] + box["width"] - 4
    page.page.mouse.move(across, box["y"] + box["height"] - 20)
    page.page.mouse.down()
    page.page.mouse.move(across, box["y"] + box["height"] / 2, steps=4)
    page.page.mouse.up()


def drag_finger(page: Desk) -> None:
    touch = page.page.context.new_cdp_session(page.page)
    for kind, y in (("touchStart", 200), ("touchMove", 260), ("touchMove", 320), ("touchMove", 420), ("touchEnd", 0)):
        points = [] if kind == "touchEnd" else [{"x": 300, "y": y}]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


@pytest.mark.parametrize("up", [turn_wheel, press_page_up, drag_scrollbar, drag_finger])
def test_reader_who_moves_up_while_text_streams_is_not_pulled_back(
    desk: Open, model: ModelServer, gate: threading.Event, up: Callable[[Desk], None]
) -> None:
    stream = [step for n in range(400) for step in (chunk({"content": f"\n\n{LINE.format(n=n)}"}), Pause(0.01))]
    model.script(Reply(steps=(*text(PARAGRAPHS), Gate(gate), *stream, *finish())))
    page = desk(has_touch=up is drag_finger).new()
    page.field.fill("Write")
    page.page.locator("#send").click()
    expect(page.answer.locator(".prose")).to_contain_text("Paragraph 29")
    page.page.locator("#to-new").click()
    expect(page.page.locator("#to-new")).to_be_hidden()
    gate.set()
    expect(page.page.locator(".prose p")).not_to_have_count(30)
    up(page)
    expect(page.page.locator("#to-new")).to_be_visible()
    before = page.scrolled()
    page.phase("running")  # all this happened while it grew
    page.settles()
    assert page.scrolled() <= before  # a finger's swing may go on upwards


def test_older_messages_load_above_without_moving_what_is_read(desk: Open, model: ModelServer) -> None:
    page = desk().new()
    page.ask("Number 0")
    page.settles()
    for n in range(1, 18):
        page.ask(f"Number {n}")
        expect(page.answer).to_have_attribute("data-asked", page.said.last.get_attribute("data-message") or "-")
        page.settles()
    page.page.evaluate("sessionStorage.clear()")
    page.open(page.page.url)
    expect(page.said.first).to_contain_text("Number 3")
    page.page.evaluate("document.querySelector('#scroller').scrollTop = 40")
    expect(page.said.first).to_contain_text("Number 0")
    assert 0 <= top_of(page, ".msg-user:nth-of-type(1)") or page.scrolled() > 40
    moved = page.page.evaluate(
        """() => [...document.querySelectorAll('.msg-user')].find((m) => m.textContent.includes('Number 3'))
                 .getBoundingClientRect().top - document.querySelector('#scroller').getBoundingClientRect().top"""
    )
    assert -60 <= moved <= 80


def test_details_stay_as_the_reader_put_them(desk: Open, model: ModelServer, gate: threading.Event) -> None:
    model.script(
        Reply(steps=(call("{}", id="d1", name="read_artifact"), *finish("tool_calls"))),
        Reply(steps=(*text("Now text."), Gate(gate), *finish())),
    )
    page = desk().new()
    page.ask("Look")
    expect(page.answer.locator(".prose")).to_contain_text("Now text.")
    phase = page.answer.locator(".phase")
    expect(phase).not_to_have_attribute("open", "")
    phase.locator(".phase-head").click()
    expect(phase).to_have_attribute("open", "")
    gate.set()
    page.settles()
    expect(phase).to_have_attribute("open", "")


def test_list_shows_running_then_unread_then_seen(desk: Open, model: ModelServer, gate: threading.Event) -> None:
    model.script(Reply(steps=(*text("Slow"), Gate(gate), *finish())))
    worker = desk().new()
    watcher = desk().new()
    worker.ask("Dots")
    expect(worker.answer.locator(".open-block")).to_be_visible()
    address = worker.page.url
    row = watcher.page.locator(f"#side-list a.row[href='{address.removeprefix(worker.base)}']")
    expect(row.locator(".dot")).to_have_attribute("data-state", "live")
    worker.new()
    gate.set()
    expect(row.locator(".dot")).to_have_attribute("data-state", "unread")
    expect(row.locator(".row-title")).to_have_text("A fitting title")
    worker.open(address)
    expect(row.locator(".dot")).to_have_count(0)


def test_deleted_conversation_can_be_undone_from_the_toast(desk: Open) -> None:
    page = desk().new()
    page.ask("To be deleted")
    page.settles()
    address = page.page.url
    page.page.locator("#actions summary").click()
    page.page.locator("#delete-here button").click()
    toast, composer = page.page.locator("#toasts .toast"), page.page.locator("#composer")
    expect(toast).to_contain_text("Conversation deleted")
    expect(page.page).to_have_url(f"{page.base}/")  # loading it again does not tell it again
    under, above = composer.bounding_box(), toast.bounding_box()
    assert under and above and above["y"] >= under["y"] + under["height"], (above, under)
    page.page.get_by_role("button", name="Undo").click()
    expect(page.page).to_have_url(address)  # back to where the person was
    row = page.page.locator(f"#side-list a.row[href='{address.removeprefix(page.base)}']")
    expect(row).to_have_count(1)
    expect(page.said.locator(".msg-body")).to_have_text(["To be deleted"])
    expect(page.page.locator("#toasts .toast")).to_have_count(0)


def test_question_in_a_conversation_deleted_elsewhere_is_refused_in_its_place(desk: Open) -> None:
    page = desk().new()
    page.ask("Soon gone")
    page.settles()
    other = desk().open(page.page.url)
    page.page.locator("#actions summary").click()
    page.page.locator("#delete-here button").click()
    expect(page.page.locator("#toasts .toast")).to_be_visible()
    other.ask("Still there?")
    failed = other.said.last.locator("[data-slot=failed]")
    expect(failed).to_contain_text("This conversation does not exist any more.")
    expect(other.page.locator("#thread .ring:visible")).to_have_count(0)  # nothing goes on as if an answer came
    other.phase("idle")


def test_signing_out_in_one_tab_signs_out_the_others(browser: Browser, model_house: House) -> None:
    link = manage(model_house.up.data, "owner").stdout.strip()  # a session of its own: that of the house goes on
    context = browser.new_context(storage_state=sign_in(browser, link))
    try:
        pages = [Desk(context.new_page(), model_house.base).new() for _ in range(2)]
        pages[0].page.locator("#account summary").click()
        pages[0].page.get_by_role("button", name="Sign out").click()
        for each in pages:
            expect(each.page.locator("#username")).to_be_visible()
    finally:
        context.close()


def test_language_and_theme_are_kept(desk: Open) -> None:
    page = desk().new()
    page.page.locator("#account summary").click()
    page.page.get_by_role("button", name="Dark").click()
    expect(page.page.locator("html")).to_have_attribute("data-theme", "dark")
    page.page.get_by_role("button", name="中文").click()
    expect(page.page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(page.page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.page.locator(".row-new .row-title")).to_have_text("新对话")
    page.ask("你好")
    page.settles()
    expect(page.answer.locator(".run-head")).to_contain_text("已完成")


LOOKS: list[dict[str, Any]] = [
    {"viewport": {"width": 1440, "height": 900}},
    {"viewport": {"width": 1440, "height": 900}, "color_scheme": "dark"},
    {"viewport": {"width": 900, "height": 700}},
    {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
    {"viewport": {"width": 320, "height": 640}, "color_scheme": "dark", "is_mobile": True, "has_touch": True},
]


@pytest.mark.parametrize(
    "look", LOOKS, ids=lambda look: f"{look['viewport']['width']} {look.get('color_scheme', 'light')}"
)
def test_axe_finds_nothing_serious_and_nothing_sticks_out(desk: Open, model: ModelServer, look: dict[str, Any]) -> None:
    table = "| Option | Net cost |\n| --- | ---: |\n| A | 18 |\n\n```python\nx = 1\n```\n\n- [a link](https://example.org)\n"
    model.script(
        Reply(
            steps=(
                chunk({"reasoning_content": "Hm."}),
                call("{}", id="x1", name="read_artifact"),
                *finish("tool_calls"),
            )
        ),
        Reply(steps=(*text(table), *finish())),
    )
    page = desk(**look).new()
    checked(page, "an empty page")
    page.field.fill("Show everything " + "averylongwordwithoutanyspace" * 6)
    page.page.locator("#send").click()
    page.settles()
    page.page.locator(".phase-head").click()
    page.page.locator(".step[data-kind=tool] summary").click()
    checked(page, "a conversation")
    if look["viewport"]["width"] < 720:
        page.page.get_by_role("link", name="Open sidebar").click()
        expect(page.page.locator("#sidebar")).to_be_visible()
    page.page.locator("#account summary").click()
    checked(page, "the open menu")


def test_axe_finds_nothing_serious_on_the_way_in(desk: Open) -> None:
    page = desk()
    page.page.context.clear_cookies()
    page.page.goto(f"{page.base}/signin/")
    page.page.get_by_label("Name").fill("nobody")
    page.page.get_by_label("Password", exact=True).fill("wrong")
    page.page.get_by_role("button", name="Sign in").click()
    expect(page.page.get_by_role("alert").filter(has_text="do not match")).to_be_visible()
    checked(page, "the form with an error")


def checked(page: Desk, where: str) -> None:
    page.examined = True
    found = Axe().run(page.page).response["violations"]
    serious = [v for v in found if v["impact"] in ("serious", "critical")]
    said = [(v["id"], [n["html"][:200] for n in v["nodes"][:3]]) for v in serious]
    assert not serious, f"{where}: {json.dumps(said, indent=1)}"
    wide = page.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, f"{where}: {wide} px stick out to the side"
