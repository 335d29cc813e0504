"""What a person must be able to do, in a real browser against a real installation."""

import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.artifacts import pdfs
from tests.e2e.conftest import House, Open
from tests.modelserver import Gate, ModelServer, Reply, call, chunk, error, finish, text

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

LONG = (
    "First paragraph of the answer, which says a few things.\n\n" + "- one point\n" * 3 + "\nThe end **of it** is here."
)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """A stop in the model's answer that the test opens."""
    event = threading.Event()
    yield event
    event.set()


def halves(gate: threading.Event, first: str = "One two three fo", second: str = "ur five.\n\nSix seven.") -> Reply:
    return Reply(steps=(*text(first), Gate(gate), chunk({"content": second}), *finish()))


@pytest.mark.smoke
def test_attached_text_file_is_read_with_a_tool_and_answered_live(offline_desk: Open, tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("# Cold store\n\nThe rack holds 310 kg of gas.\n\nThe roof is green.\n", encoding="utf-8")
    desk = offline_desk().new()
    desk.page.set_input_files("#files", notes)
    expect(desk.page.locator("#chips .chip")).to_have_text("notes.md")
    desk.ask("How much gas does the rack hold?")
    answer = desk.settles()
    expect(answer.locator(".phase-head")).to_contain_text("Read the files")
    expect(answer.locator(".prose")).to_contain_text("310 kg")
    expect(desk.said.locator(".chip")).to_have_text("notes.md")
    desk.said.locator(".chip").click()
    with desk.page.expect_download() as download:
        desk.page.locator("#panel").get_by_role("link", name="Download").click()
    assert Path(download.value.path()).read_bytes() == notes.read_bytes()


@pytest.mark.smoke
def test_attached_pdf_is_answered_with_its_page(offline_desk: Open, tmp_path: Path) -> None:
    report = tmp_path / "report.pdf"
    report.write_bytes(pdfs.pdf("The survey begins here.", "The lighthouse keeper earns 900 crowns."))
    desk = offline_desk().new()
    desk.page.set_input_files("#files", report)
    expect(desk.page.locator("#chips .chip")).to_have_text("report.pdf")
    desk.ask("What does the lighthouse keeper earn?")
    expect(desk.settles().locator(".prose")).to_contain_text("900 crowns")
    expect(desk.answer.get_by_role("link", name="Source 1: report.pdf, Page 2")).to_be_visible()


def test_saved_note_is_a_card_to_download(desk: Open, model: ModelServer) -> None:
    arguments = '{"name": "plan.md", "content": "# Plan\\n\\nBuy paint."}'
    model.script(
        Reply(
            steps=(
                chunk({"reasoning_content": "A note will do."}),
                call(arguments, id="c1", name="save_artifact"),
                *finish("tool_calls"),
            )
        ),
        Reply(steps=(*text("It is saved."), *finish())),
    )
    page = desk().new()
    page.ask("Save a plan")
    answer = page.settles()
    expect(answer.locator(".artifact-card .artifact-name")).to_have_text("plan.md")
    answer.locator(".artifact-card").click()
    with page.page.expect_download() as download:
        page.page.locator("#panel").get_by_role("link", name="Download").click()
    assert "Buy paint." in Path(download.value.path()).read_text()


def test_reasoning_tool_row_and_text_arrive_while_they_are_made(
    desk: Open, model: ModelServer, gate: threading.Event
) -> None:
    second, third = threading.Event(), threading.Event()
    thinking = (chunk({"reasoning_content": "Let me look."}), Gate(gate))
    asking = (call('{"name": ', id="r1", name="read_artifact"), Gate(second), call('"nothing.txt"}'))
    model.script(
        Reply(steps=(*thinking, *asking, *finish("tool_calls"))),
        Reply(steps=(*text("There is no such file.\n\nSo I"), Gate(third), *text(" stop."), *finish())),
    )
    page = desk().new()
    page.ask("What is in nothing.txt?")
    expect(page.answer.locator("[data-kind=thought] .step-title")).to_have_text("Thinking")
    expect(page.answer.locator("[data-kind=thought] .step-more")).to_have_text("Let me look.")
    gate.set()
    row = page.answer.locator("[data-kind=tool]")
    expect(row).to_have_attribute("data-state", "running")  # before its arguments are complete
    expect(row.locator(".step-title")).to_have_text("Looking at the files")
    second.set()
    expect(row).to_have_attribute("data-state", "failed")
    expect(row.locator(".step-title")).to_have_text("Could not read nothing.txt")
    expect(row.locator(".step-note")).to_contain_text("The agent went on without it.")
    expect(page.answer.locator(".prose > p").first).to_have_text("There is no such file.")
    expect(page.answer.locator(".open-block")).to_contain_text("So I")
    expect(page.answer).to_have_attribute("aria-busy", "true")
    third.set()
    page.settles()
    expect(page.answer.locator(".run-head")).to_contain_text("2 steps")
    live = page.page.locator("#live").inner_text()
    page.page.reload()
    assert page.page.locator("#transcript").inner_text() == live


@pytest.mark.smoke
def test_reload_in_the_middle_of_a_word_goes_on(desk: Open, model: ModelServer, gate: threading.Event) -> None:
    model.script(halves(gate))
    page = desk().new()
    page.ask("Count")
    expect(page.answer.locator(".open-block")).to_have_text("One two three fo")
    page.page.reload()
    expect(page.answer.locator(".open-block")).to_have_text("One two three fo")
    expect(page.page.locator("#stop")).to_be_visible()
    gate.set()
    page.settles()
    assert page.text() == "One two three four five.\n\nSix seven."


@pytest.mark.smoke
def test_stop_keeps_the_partial_text_and_continue_goes_on(
    desk: Open, model: ModelServer, gate: threading.Event
) -> None:
    model.script(halves(gate))
    page = desk().new()
    page.ask("Count")
    expect(page.answer.locator(".open-block")).to_have_text("One two three fo")
    page.page.keyboard.press("Escape")
    page.settles("stopped")
    expect(page.answer.locator(".prose")).to_have_text("One two three fo")
    expect(page.answer.locator(".msg-end")).to_contain_text("Stopped by you")
    expect(page.page.locator("#send")).to_be_visible()
    page.page.reload()
    expect(page.answer.locator(".prose")).to_have_text("One two three fo")
    model.script(Reply(steps=(*text("ur five."), *finish())))
    page.answer.get_by_role("button", name="Continue").click()
    expect(page.page.locator("#live .msg-assistant .prose")).to_have_text("ur five.")
    page.settles()
    expect(page.page.locator(".msg-assistant")).to_have_count(2)


@pytest.mark.smoke
def test_retry_replaces_the_answer_and_stays_after_a_reload(desk: Open, model: ModelServer) -> None:
    model.script(Reply(steps=(*text("Bad answer."), *finish())), Reply(steps=(*text("Good answer."), *finish())))
    page = desk().new()
    page.ask("Answer well")
    page.settles()
    page.answer.get_by_role("button", name="Answer again").click()
    expect(page.page.locator("#thread .prose")).to_have_text(["Good answer."])
    page.settles()
    page.page.reload()
    expect(page.page.locator("#thread .prose")).to_have_text(["Good answer."])
    expect(page.said).to_have_count(1)


def test_edited_message_starts_anew_from_there(desk: Open, model: ModelServer) -> None:
    model.script(Reply(steps=(*text("To the first."), *finish())), Reply(steps=(*text("To the second."), *finish())))
    page = desk().new()
    page.ask("First wording")
    page.settles()
    page.field.press("ArrowUp")
    field = page.page.locator(".msg-edit textarea")
    expect(field).to_have_value("First wording")
    field.fill("Second wording")
    field.press("Enter")
    expect(page.page.locator("#thread .prose")).to_have_text(["To the second."])
    page.settles()
    page.page.reload()
    expect(page.said.locator(".msg-body")).to_have_text(["Second wording"])
    asked = model.asked[-1]
    assert [m["content"] for m in asked.body["messages"] if m["role"] == "user"] == ["Second wording"]


@pytest.mark.smoke
def test_second_tab_and_phone_see_the_same_run(desk: Open, model: ModelServer, gate: threading.Event) -> None:
    model.script(halves(gate))
    first = desk().new()
    first.ask("Count for all")
    expect(first.answer.locator(".open-block")).to_have_text("One two three fo")
    second = desk().open(first.page.url)
    phone = desk(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True).open(first.page.url)
    for other in (second, phone):
        expect(other.answer.locator(".open-block")).to_have_text("One two three fo")
        expect(other.page.locator("#stop")).to_be_visible()
    gate.set()
    texts = {d.settles() and d.text() for d in (first, second, phone)}
    assert texts == {"One two three four five.\n\nSix seven."}
    model.script(Reply(steps=(*text("And now this."), *finish())))
    phone.field.fill("From the phone")
    phone.page.locator("#send").click()
    for each in (first, second, phone):
        expect(each.said.last).to_contain_text("From the phone")
        expect(each.answer.locator(".prose")).to_have_text("And now this.")
        each.settles()
        assert each.order() == ["user", "assistant"] * 2  # nothing of an answer stands above what was asked
        expect(each.page.locator("#thread .run-head:visible")).to_have_count(2)


def test_retry_in_one_tab_replaces_the_answer_in_the_other(desk: Open, model: ModelServer) -> None:
    model.script(Reply(steps=(*text("Bad."), *finish())))
    first = desk().new()
    first.ask("Say it")
    first.settles()
    second = desk().open(first.page.url)
    expect(second.answer.locator(".prose")).to_have_text("Bad.")
    model.script(Reply(steps=(*text("Good."), *finish())))
    first.answer.get_by_role("button", name="Answer again").click()
    for each in (first, second):
        expect(each.page.locator("#thread .prose")).to_have_text(["Good."])
        expect(each.said).to_have_count(1)


def test_queued_message_runs_after_and_steering_is_read_between_steps(
    desk: Open, model: ModelServer, gate: threading.Event
) -> None:
    model.script(
        Reply(steps=(*text("Looking."), Gate(gate), call("{}", id="l1", name="read_artifact"), *finish("tool_calls"))),
        Reply(steps=(*text("In green, then."), *finish())),
        Reply(steps=(*text("Queued answer."), *finish())),
    )
    page = desk().new()
    page.ask("Paint it")
    expect(page.answer.locator(".open-block")).to_have_text("Looking.")
    page.ask("And the door?")
    expect(page.page.locator("#queue .queue-item")).to_contain_text("And the door?")
    page.field.fill("In green please")
    page.field.press("Control+Shift+Enter")
    expect(page.page.locator("#queue .queue-item")).to_have_count(2)
    gate.set()
    expect(page.said.locator(".msg-body")).to_have_text(["Paint it", "In green please", "And the door?"])
    expect(page.page.locator("#thread .prose")).to_have_text(["Looking.", "In green, then.", "Queued answer."])
    expect(page.page.locator("#queue")).to_be_hidden()
    page.settles()
    assert page.order() == ["user", "assistant"] * 3
    page.page.reload()
    expect(page.said.locator(".msg-body")).to_have_text(["Paint it", "In green please", "And the door?"])


def test_queue_survives_stop_and_waits_for_a_click(desk: Open, model: ModelServer, gate: threading.Event) -> None:
    model.script(halves(gate))
    page = desk().new()
    page.ask("Count")
    expect(page.answer.locator(".open-block")).to_be_visible()
    page.ask("Wait for me")
    item = page.page.locator("#queue .queue-item")
    expect(item).to_contain_text("Wait for me")
    page.page.locator("#stop").click()
    page.settles("stopped")
    page.page.reload()
    expect(item).to_contain_text("Wait for me")
    model.script(Reply(steps=(*text("Here."), *finish())))
    item.get_by_role("button", name="Send now").click()
    expect(page.answer.locator(".prose")).to_have_text("Here.")
    expect(item).to_have_count(0)


def test_queued_message_can_be_taken_back_into_the_field(desk: Open, model: ModelServer, gate: threading.Event) -> None:
    model.script(halves(gate))
    page = desk().new()
    page.ask("Count")
    expect(page.answer.locator(".open-block")).to_be_visible()
    page.ask("Not so fast")
    page.page.get_by_role("button", name="Edit queued message").click()
    expect(page.field).to_have_value("Not so fast")
    expect(page.page.locator("#queue")).to_be_hidden()


@pytest.mark.fault
def test_killed_server_is_told_plainly_and_everything_is_found_after_the_restart(
    desk: Open, model_house: House, model: ModelServer, gate: threading.Event
) -> None:
    model.script(halves(gate))
    page = desk().new()
    page.ask("Count until you die")
    expect(page.answer.locator(".open-block")).to_have_text("One two three fo")
    os.kill(model_house.up.child("workbench.serve"), signal.SIGKILL)
    page.settles("lost")
    expect(page.answer.locator(".error")).to_contain_text("stopped early because the server restarted")
    expect(page.answer.locator(".error")).to_contain_text("What was written is kept")
    expect(page.answer.locator(".prose")).to_have_text("One two three fo")
    model.script(Reply(steps=(*text("All of it."), *finish())))
    page.answer.get_by_role("button", name="Retry").click()
    expect(page.answer.locator(".prose")).to_have_text("All of it.")
    page.settles()
    page.page.reload()
    expect(page.said.locator(".msg-body")).to_have_text("Count until you die")
    expect(page.answer.locator(".prose")).to_have_text("All of it.")


def test_failure_of_the_model_is_told_with_its_reference_and_retry(desk: Open, model: ModelServer) -> None:
    model.script(error(401, "bad key"))
    page = desk().new()
    page.ask("Fail")
    page.settles("failed")
    box = page.answer.locator(".error")
    expect(box.locator(".error-title")).to_have_text("The model's provider refused the request.")
    expect(box.get_by_role("button", name="Retry")).to_be_visible()
    model.script(Reply(steps=(*text("Now it works."), *finish())))
    box.get_by_role("button", name="Retry").click()
    expect(page.answer.locator(".prose")).to_have_text("Now it works.")


def test_three_messages_sent_offline_arrive_once_and_in_order(desk: Open, model: ModelServer) -> None:
    page = desk().new()
    model.script(*[Reply(steps=(*text(f"Answer {n}."), *finish())) for n in (1, 2, 3, 4)])
    page.ask("Zero")
    page.settles()
    page.page.context.set_offline(True)
    page.page.evaluate("dispatchEvent(new Event('offline'))")
    for n in (1, 2, 3):
        page.ask(f"Message {n}")
    expect(page.page.locator("#pill")).to_contain_text("Reconnecting")
    expect(page.said.nth(1)).to_contain_text("Your message is saved")
    page.page.context.set_offline(False)
    page.page.evaluate("dispatchEvent(new Event('online'))")
    expect(page.said.locator(".msg-body")).to_have_text(["Zero", "Message 1", "Message 2", "Message 3"], timeout=30_000)
    page.settles()
    page.page.reload()
    expect(page.said.locator(".msg-body")).to_have_text(["Zero", "Message 1", "Message 2", "Message 3"])


def test_draft_and_attached_file_survive_a_reload(desk: Open, tmp_path: Path) -> None:
    (tmp_path / "报告 📄.txt").write_text("内容", encoding="utf-8")
    page = desk().new()
    page.page.set_input_files("#files", tmp_path / "报告 📄.txt")
    chip = page.page.locator("#chips .chip")
    expect(chip).to_have_text("报告 📄.txt")
    page.field.fill("half a thought")
    page.page.reload()
    expect(page.field).to_have_value("half a thought")
    expect(chip).to_have_text("报告 📄.txt")
    chip.get_by_role("button").click()
    expect(chip).to_have_count(0)


def test_refused_file_says_why_in_its_place(desk: Open, tmp_path: Path) -> None:
    (tmp_path / "old.doc").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600)
    page = desk().new()
    page.page.set_input_files("#files", tmp_path / "old.doc")
    expect(page.page.locator("#chips .chip")).to_have_attribute("data-state", "err")
    expect(page.page.locator("#chips .chip")).to_contain_text("old.doc")


def test_model_text_is_never_run_as_html(desk: Open, model: ModelServer, gate: threading.Event) -> None:
    evil = '<img src=x onerror="document.title=1"> <script>document.title=2</script> [x](javascript:alert(1))'
    model.script(Reply(steps=(*text(f"{evil}\n\n{evil}"), Gate(gate), *finish())))
    page = desk().new()
    page.ask(evil)
    expect(page.answer.locator(".prose")).to_contain_text("onerror")
    gate.set()
    page.settles()
    page.page.reload()
    for root in ("#thread", "#side-list"):
        assert page.page.locator(f"{root} :is(img, script, [onerror], a[href^=javascript])").count() == 0
    assert not re.fullmatch("[12]", page.page.title())


def test_code_block_gets_colours_and_a_copy_button(desk: Open, model: ModelServer) -> None:
    model.script(Reply(steps=(*text("```python\nx = 1  # one\n```\n"), *finish())))
    page = desk(permissions=["clipboard-read", "clipboard-write"]).new()
    page.ask("Code")
    page.settles()
    expect(page.answer.locator("pre .tok-c")).to_have_text("# one")
    page.answer.get_by_role("button", name="Copy code").click()
    assert page.page.evaluate("navigator.clipboard.readText()").strip() == "x = 1  # one"
