"""Keys beside an input method (experience 4.1, cases a to e), and the page by keyboard alone.

The events are made by hand, in the order each browser sends them; the page cannot tell them from typed ones.
"""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import Desk
from tests.e2e.conftest import Open
from tests.modelserver import Gate, ModelServer, Reply, chunk, finish, text

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PLAY = """([selector, steps]) => {
  const field = document.querySelector(selector);
  field.focus();
  for (const [type, detail] of steps) {
    if (type === 'value') { field.value = detail; continue; }
    const init = { bubbles: true, cancelable: true, ...detail };
    let event;
    if (type.startsWith('composition')) event = new CompositionEvent(type, init);
    else if (type === 'input') event = new InputEvent(type, init);
    else event = new KeyboardEvent(type, init);
    if (detail?.keyCode) Object.defineProperty(event, 'keyCode', { value: detail.keyCode });
    field.dispatchEvent(event);
  }
}"""

START: list[Any] = ["compositionstart", {}]
END: list[Any] = ["compositionend", {"data": "合同"}]
TYPED: list[Any] = ["value", "合同"]
ENTER: list[Any] = ["keydown", {"key": "Enter", "keyCode": 13}]
ENTER_COMPOSING: list[Any] = ["keydown", {"key": "Enter", "keyCode": 229, "isComposing": True}]
ENTER_229: list[Any] = ["keydown", {"key": "Enter", "keyCode": 229}]
INPUT_COMPOSING: list[Any] = ["input", {"isComposing": True}]
INPUT: list[Any] = ["input", {"isComposing": False}]

CHROME = [START, INPUT_COMPOSING, TYPED, ENTER_COMPOSING, INPUT_COMPOSING, END]
SAFARI = [START, INPUT_COMPOSING, TYPED, INPUT_COMPOSING, END, ENTER_229]
FIREFOX = [
    START,
    INPUT_COMPOSING,
    TYPED,
    ["keydown", {"key": "Process", "keyCode": 229, "isComposing": True}],
    END,
    INPUT,
]
LATIN = [START, INPUT_COMPOSING, ["value", "hetong"], ENTER_COMPOSING, ["compositionend", {"data": "hetong"}], INPUT]
TAIL = [START, INPUT_COMPOSING, TYPED, END, ENTER]  # Enter right behind the end, without the 229


@pytest.mark.parametrize(
    "steps",
    [CHROME, SAFARI, FIREFOX, LATIN, TAIL],
    ids=["a chrome", "b safari", "c firefox", "e pinyin as latin", "tail"],
)
def test_enter_that_chooses_a_candidate_does_not_send(desk: Open, steps: list[Any]) -> None:
    page = desk().new()
    page.page.evaluate(PLAY, ["#composer-text", steps])
    assert page.field.input_value() in ("合同", "hetong")
    expect(page.said).to_have_count(0)
    page.page.wait_for_timeout(80)  # longer than the tail: what follows is a new key press
    page.page.evaluate(PLAY, ["#composer-text", [ENTER]])
    expect(page.said.locator(".msg-body")).to_have_text([steps[2][1]])


def test_tail_swallows_one_enter_only(desk: Open) -> None:
    page = desk().new()
    page.page.evaluate(PLAY, ["#composer-text", [*TAIL, ENTER]])
    expect(page.said.locator(".msg-body")).to_have_text(["合同"])


def test_dropped_compositionend_does_not_lock_the_field(desk: Open) -> None:
    """Case d: the flag is cleared by the next plain input, or by leaving the field."""
    page = desk().new()
    page.page.evaluate(PLAY, ["#composer-text", [START, INPUT_COMPOSING, TYPED, ENTER]])
    expect(page.said).to_have_count(0)
    page.page.evaluate(PLAY, ["#composer-text", [INPUT, ENTER]])
    expect(page.said).to_have_count(1)
    page.settles()
    page.page.evaluate(PLAY, ["#composer-text", [START, TYPED]])
    page.page.locator("#attach").focus()
    page.page.evaluate(PLAY, ["#composer-text", [ENTER]])
    expect(page.said).to_have_count(2)


def test_ime_rules_hold_in_rename_and_edit(desk: Open) -> None:
    page = desk().new()
    page.ask("First")
    page.settles()
    page.page.keyboard.press("F2")
    expect(page.page.locator(".bar-rename input")).to_be_focused()
    page.page.evaluate(PLAY, [".bar-rename input", SAFARI])
    page.page.evaluate(
        PLAY, [".bar-rename input", [["keydown", {"key": "Escape", "isComposing": True, "keyCode": 229}]]]
    )
    expect(page.page.locator(".bar-rename input")).to_have_value("合同")
    page.page.keyboard.press("Enter")
    expect(page.page.locator("#title")).to_have_text("合同")
    page.field.press("ArrowUp")
    page.page.evaluate(PLAY, [".msg-edit textarea", CHROME])
    expect(page.page.locator(".msg-edit textarea")).to_have_value("合同")
    expect(page.said).to_have_count(1)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_escape_while_composing_does_not_stop_the_run(desk: Open, model: ModelServer, gate: threading.Event) -> None:
    model.script(Reply(steps=(*text("Going on"), Gate(gate), chunk({"content": "."}), *finish())))
    page = desk().new()
    page.ask("Go")
    expect(page.answer.locator(".open-block")).to_be_visible()
    page.page.evaluate(
        PLAY, ["#composer-text", [START, ["keydown", {"key": "Escape", "keyCode": 229, "isComposing": True}], END]]
    )
    page.phase("running")
    gate.set()
    page.settles()


def test_enter_shift_enter_and_blank(desk: Open) -> None:
    page = desk().new()
    page.field.fill("  \n ")
    page.field.press("Enter")
    expect(page.said).to_have_count(0)
    expect(page.page.locator("#send")).to_be_disabled()
    page.field.fill("one")
    page.field.press("Shift+Enter")
    page.field.press_sequentially("two")
    expect(page.said).to_have_count(0)
    page.field.press("Control+Enter")
    expect(page.said.locator(".msg-body")).to_have_text(["one\ntwo"])
    expect(page.field).to_be_focused()
    expect(page.field).to_have_value("")


def test_enter_makes_a_new_line_on_a_phone(desk: Open) -> None:
    page = desk(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True).new()
    page.field.fill("one")
    page.field.press("Enter")
    expect(page.said).to_have_count(0)
    expect(page.field).to_have_value("one\n")


def test_message_is_on_screen_within_one_frame(desk: Open) -> None:
    page = desk().new()
    page.field.fill("Quick")
    took = page.page.evaluate(
        """() => {
          const field = document.querySelector('#composer-text');
          field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }));
          const said = document.querySelectorAll('#live .msg-user').length;
          return [said, field.value, document.querySelector('#stop').hidden, document.activeElement.id];
        }"""
    )
    assert took == [1, "", False, "composer-text"]


def tab_to(page: Desk, selector: str, *, limit: int = 300) -> None:
    """Press Tab until the element has the focus."""
    for _ in range(limit):
        page.page.keyboard.press("Tab")
        if page.page.evaluate("(s) => document.activeElement?.matches(s)", selector):
            return
    raise AssertionError(f"{selector} cannot be reached with Tab")


def test_whole_day_by_keyboard_alone(desk: Open) -> None:
    page = desk().new()
    page.page.keyboard.type("By keyboard")
    page.page.keyboard.press("Enter")
    page.settles()
    page.page.keyboard.press("Control+/")
    expect(page.page.locator("#shortcuts")).to_be_visible()
    page.page.keyboard.press("Escape")
    expect(page.page.locator("#shortcuts")).to_be_hidden()
    page.page.keyboard.press("Alt+ArrowUp")
    assert page.page.evaluate("document.activeElement.matches('#thread article')")
    page.page.keyboard.press("Shift+Escape")
    expect(page.field).to_be_focused()
    expect(page.page.locator("#side-list .row[aria-current]")).to_have_count(1)
    tab_to(page, "#side-list .row[aria-current]")
    page.page.keyboard.press("F2")
    expect(page.page.locator("#side-list .side-rename .input")).to_be_focused()
    page.page.keyboard.type("Typed title")
    page.page.keyboard.press("Enter")
    expect(page.page.locator("#side-list .row[aria-current] .row-title")).to_have_text("Typed title")
    expect(page.page.locator("#title")).to_have_text("Typed title")
    page.page.keyboard.press("Control+Shift+KeyO")
    expect(page.page).to_have_url(f"{page.base}/")
    tab_to(page, "#side-list .row")
    page.page.keyboard.press("Delete")
    toast = page.page.locator("#toasts .toast")
    expect(toast).to_contain_text("Conversation deleted")
    expect(page.page.locator("#side-list .row-title", has_text="Typed title")).to_have_count(0)
    tab_to(page, "#toasts button")
    page.page.keyboard.press("Enter")
    expect(page.page.locator("#side-list .row-title", has_text="Typed title")).to_have_count(1)
