"""Going back to an earlier answer or wording, choosing the model, beginning, and losing a conversation elsewhere."""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from playwright.sync_api import Locator, expect

from tests.e2e.browser import Desk
from tests.e2e.conftest import House, Open
from tests.e2e.test_keys import tab_to
from tests.e2e.test_page import checked
from tests.modelserver import Gate, ModelServer, Reply, call, finish, text
from workbench.embedded import Postgres

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def answers(model: ModelServer, *words: str) -> None:
    model.script(*[Reply(steps=(*text(each), *finish())) for each in words])


def stepper(where: Locator, now: str) -> Locator:
    """Return the stepper of a message or an answer, once it says so."""
    found = where.locator(".stepper")
    expect(found.locator(".stepper-now")).to_have_text(now)
    return found


def last_asked(model: ModelServer) -> list[str]:
    """What the model was shown last of what was said and answered."""
    asked = model.asked[-1]
    return [m["content"] for m in asked.body["messages"] if m["role"] in ("user", "assistant")]


def retried(desk: Desk, model: ModelServer) -> Desk:
    """A conversation with two answers to one question, the second shown."""
    answers(model, "First answer.", "Second answer.")
    desk.ask("Answer twice")
    desk.settles()
    desk.answer.get_by_role("button", name="Answer again").click()
    expect(desk.page.locator("#thread .prose")).to_have_text(["Second answer."])
    desk.settles()
    return desk


def test_person_goes_back_to_an_earlier_answer_and_on_from_there(desk: Open, model: ModelServer) -> None:
    page = retried(desk().new(), model)
    stepper(page.answer, "2 / 2").get_by_role("button", name="Previous version").click()
    expect(page.page.locator("#thread .prose")).to_have_text(["First answer."])
    stepper(page.answer, "1 / 2")
    checked(page, "an answer with versions")
    answers(model, "On the first.")
    page.ask("Go on")
    expect(page.answer.locator(".prose")).to_have_text("On the first.")
    page.settles()
    assert last_asked(model) == ["Answer twice", "First answer.", "Go on"]
    page.page.reload()
    expect(page.page.locator("#thread .prose")).to_have_text(["First answer.", "On the first."])
    stepper(page.page.locator(".msg-assistant").first, "1 / 2").get_by_role("button", name="Next version").click()
    expect(page.page.locator("#thread .prose")).to_have_text(["Second answer."])


def test_other_tab_shows_the_chosen_version_and_keeps_what_is_typed_there(desk: Open, model: ModelServer) -> None:
    first = retried(desk().new(), model)
    second = desk().open(first.page.url)
    second.field.fill("half a thought")
    second.page.locator(".msg-user").hover()
    second.page.get_by_role("button", name="Edit message").click()
    second.page.locator(".msg-edit textarea").fill("a change half made")
    stepper(first.answer, "2 / 2").get_by_role("button", name="Previous version").click()
    for each in (first, second):
        expect(each.page.locator("#thread .prose")).to_have_text(["First answer."])
        stepper(each.answer, "1 / 2")
    expect(second.field).to_have_value("a change half made\n\nhalf a thought")


def test_stepper_works_by_keyboard_and_keeps_the_focus_at_its_ends(desk: Open, model: ModelServer) -> None:
    page = retried(desk().new(), model)
    stepper(page.answer, "2 / 2")
    tab_to(page, "[data-step=before]")
    page.page.keyboard.press("Enter")
    stepper(page.answer, "1 / 2")
    before = page.page.locator("[data-step=before]")
    expect(before).to_be_focused()
    expect(before).to_have_attribute("aria-disabled", "true")
    page.page.keyboard.press("Tab")
    page.page.keyboard.press("Space")
    stepper(page.answer, "2 / 2")
    expect(page.page.locator("[data-step=after]")).to_be_focused()


def test_edited_message_can_be_stepped_through_but_not_while_an_answer_is_written(
    desk: Open, model: ModelServer, gate: threading.Event
) -> None:
    answers(model, "To the first.", "To the second.")
    page = desk().new()
    page.ask("First wording")
    page.settles()
    page.field.press("ArrowUp")
    page.page.locator(".msg-edit textarea").fill("Second wording")
    page.page.locator(".msg-edit textarea").press("Enter")
    expect(page.page.locator("#thread .prose")).to_have_text(["To the second."])
    page.settles()
    stepper(page.said, "2 / 2").get_by_role("button", name="Previous version").click()
    expect(page.said.locator(".msg-body")).to_have_text(["First wording"])
    expect(page.page.locator("#thread .prose")).to_have_text(["To the first."])
    model.script(Reply(steps=(*text("Slowly"), Gate(gate), *finish())))
    page.ask("And now?")
    expect(page.answer.locator(".open-block")).to_be_visible()
    expect(page.page.locator(".stepper")).to_be_hidden()
    gate.set()
    page.settles()
    expect(page.page.locator(".stepper")).to_be_visible()


BODIES_WAIT = """() => {
  const text = Response.prototype.text;
  Response.prototype.text = async function () {
    const body = await text.call(this);
    if (!this.url.includes('/messages/')) return body;
    Response.prototype.text = text;
    await new Promise((done) => { window.letBodyIn = done; });
    return body;
  };
}"""


def test_run_that_begins_while_the_transcript_comes_stays_on_the_page(
    desk: Open, model: ModelServer, gate: threading.Event
) -> None:
    page = retried(desk().new(), model)
    before = stepper(page.answer, "2 / 2").get_by_role("button", name="Previous version")
    page.page.evaluate(BODIES_WAIT)
    before.click()
    page.page.wait_for_function("() => window.letBodyIn")
    model.script(Reply(steps=(*text("Slowly"), Gate(gate), *finish())))
    page.ask("And now?")
    expect(page.answer.locator(".open-block")).to_have_text("Slowly")
    page.page.evaluate("() => window.letBodyIn()")
    expect(page.page.locator("#thread .prose").first).to_have_text("First answer.")
    expect(page.answer.locator(".open-block")).to_have_text("Slowly")
    gate.set()
    page.settles()
    expect(page.page.locator("#thread .prose")).to_have_text(["First answer.", "Slowly"])


def test_model_is_chosen_for_this_conversation_and_named_under_its_answers(desk: Open, model: ModelServer) -> None:
    page = desk().new()
    choice = page.page.get_by_label("Model", exact=True)
    expect(choice.locator("option")).to_have_text(["test", "smaller"])
    choice.select_option("smaller")
    page.ask("Who are you?")
    page.settles()
    expect(page.answer.locator(".msg-meta")).to_contain_text("smaller · ")
    assert model.asked[-1].body["model"] == "smaller"
    page.page.reload()
    expect(choice).to_have_value("smaller")
    expect(page.answer.locator(".msg-meta")).to_contain_text("smaller · ")
    choice.select_option("test")
    page.ask("And now?")
    expect(page.said).to_have_count(2)
    page.settles()
    expect(page.answer.locator(".msg-meta")).not_to_contain_text("test")
    expect(desk().new().page.get_by_label("Model", exact=True)).to_have_value("test")


def test_without_a_choice_there_is_no_picker_and_starters_work_with_a_file(offline_desk: Open, tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("# Harbour\n\nThe store costs 900 crowns a month.\n\nIt opened on 3 May 2024.\n", encoding="utf-8")
    desk = offline_desk().new()
    expect(desk.page.get_by_label("Model", exact=True)).to_have_count(0)
    composer = desk.page.locator("#composer").bounding_box()
    assert composer and 200 < composer["y"] < 500, "the composer stands in the middle"
    desk.field.fill("mine")
    desk.page.get_by_role("button", name="Write a note").click()
    expect(desk.field).to_have_value("Save as a note: \n\nmine")
    desk.field.fill("")
    desk.page.get_by_role("button", name="Write a note").click()
    with desk.page.expect_file_chooser() as chooser:
        desk.page.get_by_role("button", name="Find something in a file").click()
    chooser.value.set_files(notes)
    expect(desk.field).to_have_value("What does the attached file say about ")
    expect(desk.said).to_have_count(0)
    expect(desk.page.locator("#chips .chip")).to_have_text("notes.md")
    desk.page.keyboard.type("the cost of the store?")  # the field has the focus, the caret stands at its end
    desk.page.keyboard.press("Enter")
    expect(desk.page.locator("#starters")).to_be_hidden()
    expect(desk.settles().locator(".prose")).to_contain_text("900 crowns")
    docked = desk.page.locator("#composer").bounding_box()
    assert docked and docked["y"] > 600


def test_conversation_deleted_elsewhere_is_told_and_what_is_typed_comes_along(desk: Open, model: ModelServer) -> None:
    answers(model, "Here.")
    first = desk().new()
    first.ask("Soon gone")
    first.settles()
    second = desk().open(first.page.url)
    second.field.fill("half a thought")
    first.page.locator("#actions summary").click()
    first.page.locator("#delete-here button").click()
    notice = second.page.locator("#gone")
    expect(notice).to_contain_text("deleted in another window")
    checked(second, "the notice")
    first.page.get_by_role("button", name="Undo").click()
    expect(notice).to_be_hidden()
    first.page.locator("#actions summary").click()
    first.page.locator("#delete-here button").click()
    notice.get_by_role("link", name="Start a new one").click()
    expect(second.page).to_have_url(f"{second.base}/")
    expect(second.field).to_have_value("half a thought")


def test_conversation_deleted_while_a_tab_was_offline_is_told_when_it_is_back(desk: Open, model: ModelServer) -> None:
    answers(model, "Here.")
    first = desk().new()
    first.ask("Soon gone")
    first.settles()
    second = desk().open(first.page.url)
    second.page.context.set_offline(True)
    second.page.evaluate("dispatchEvent(new Event('offline'))")
    expect(second.page.locator("#pill")).to_contain_text("Reconnecting")
    first.page.locator("#actions summary").click()
    first.page.locator("#delete-here button").click()
    expect(first.page.locator("#toasts .toast")).to_be_visible()
    second.page.context.set_offline(False)
    second.page.evaluate("dispatchEvent(new Event('online'))")
    expect(second.page.locator("#gone")).to_be_visible()


def test_each_text_carries_its_language_and_emphasis_follows_it(desk: Open, model: ModelServer) -> None:
    answers(model, "这是*重点*。", "That is *the point*.")
    page = desk().new()
    for said, style in (("中文问题", "normal"), ("An English one", "italic")):
        page.ask(said)
        expect(page.answer.locator(".prose em")).to_have_css("font-style", style)
        page.settles()
    for _ in range(2):  # live, then stored
        for at, lang in enumerate(("zh-CN", "en")):
            expect(page.said.nth(at).locator(".msg-body")).to_have_attribute("lang", lang)
            expect(page.page.locator("#thread .prose").nth(at)).to_have_attribute("lang", lang)
        page.page.reload()


@contextlib.contextmanager
def files_stand_still(house: House) -> Iterator[None]:
    """Hold the installation's table of file versions, so that whoever reads a file waits."""
    address = (
        os.environ["DATABASE_URL"] if os.environ.get("TEST_SERVERS") == "outside" else Postgres(data=house.up.data).url
    )
    with psycopg.connect(address) as connection:
        connection.execute("LOCK TABLE artifacts_version, artifacts_artifact IN ACCESS EXCLUSIVE MODE")
        yield


def test_long_step_is_stopped_by_itself_and_the_answer_goes_on(
    desk: Open, model_house: House, model: ModelServer
) -> None:
    reading = (call('{"name": "plan.md"}', id="r1", name="read_artifact"), *finish("tool_calls"))
    model.script(Reply(steps=reading), Reply(steps=(*text("Without the file, then."), *finish())))
    page = desk().new()
    with files_stand_still(model_house):
        page.ask("Read plan.md")
        row = page.answer.locator("[data-kind=tool]")
        expect(row).to_have_attribute("data-state", "running")
        row.get_by_role("button", name="Stop this step").click()  # offered after a while
        expect(row).to_have_attribute("data-state", "cancelled")
        expect(page.answer.locator(".prose")).to_have_text("Without the file, then.")
    page.settles("done")
    page.page.reload()
    page.answer.locator(".phase-head").click()
    expect(row).to_have_attribute("data-state", "cancelled")
    expect(row.locator(".step-title")).to_have_text("Reading plan.md")
