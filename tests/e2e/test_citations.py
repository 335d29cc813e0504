"""Answers that quote documents: from the upload to the passage, and back."""

import json
import os
import re
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Locator, Page, expect

from agents.runtime import codec
from agents.runtime.events import AssistantMessage
from agents.runtime.knowledge import Citation, Cited, Place
from tests.e2e.browser import Desk
from tests.e2e.conftest import House, Open
from tests.e2e.test_library import bring, checked
from tests.modelserver import ModelServer, Reply, call, finish, text
from workbench.embedded import Postgres

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SURVEY = "# Survey\n\n## Leaks\n\nThe rack lost 43 kg of gas last year.\n\n" + "\n\n".join(
    f"## Chamber {n}\n\nChamber {n} was inspected and found in order. {'Nothing else was noted. ' * 12}"
    for n in range(60)
)
CHAMBER = "Chamber 57 was inspected"
COPY = ["clipboard-read", "clipboard-write"]


def answers(model: ModelServer, words: str, query: str = "rack lost gas", *documents: str) -> None:
    """The model searches, in these documents or in all, then says these words; {1} stands for the first passage."""
    asked = json.dumps({"query": query, "documents": documents})
    model.script(
        Reply(steps=(call(asked, id="s1", name="search_knowledge"), *finish("tool_calls"))),
        Reply(steps=(*text(words), *finish())),
    )


def chip(page: Desk, at: int = 0) -> Locator:
    return page.answer.locator(".prose .cite-chip").nth(at)


def in_sight(page: Page, selector: str) -> bool:
    script = """(s) => { const box = document.querySelector('.views').getBoundingClientRect();
                        const it = document.querySelector(s).getBoundingClientRect();
                        return it.top >= box.top - 1 && it.top < box.bottom; }"""
    found: bool = page.evaluate(script, selector)
    return found


def test_from_upload_to_the_cited_passage_and_back(desk: Open, model: ModelServer) -> None:
    page = desk(permissions=COPY)
    bring(page, "survey-long.md", SURVEY)
    answers(model, "Chamber 57 is in order. [[c:{1}]] So it stays.", "chamber 57 inspected")
    page.new().ask("Is chamber 57 in order?")
    page.settles()
    first = chip(page)
    expect(first).to_have_text("1")
    expect(first).to_have_attribute("aria-label", re.compile(r"^Source 1: survey-long\.md, .*“Chamber 57”"))
    expect(page.answer.locator("[data-slot=used] summary")).to_have_text(re.compile("^1 source"))
    first.hover()
    card = page.answer.locator(".cite-card").first
    expect(card).to_be_visible()
    expect(card).to_contain_text(CHAMBER)
    page.page.mouse.move(0, 0)
    first.focus()
    expect(card).to_be_visible()
    page.page.keyboard.press("Enter")
    panel = page.page.locator("#panel")
    expect(panel.locator(".hit")).to_contain_text(CHAMBER)
    expect(panel.locator(".hit")).to_be_focused()
    assert in_sight(page.page, "#panel .hit")
    assert "panel=" in page.page.url
    page.page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(first).to_be_focused()
    first.click()
    expect(panel.locator(".hit")).to_be_visible()
    page.page.go_back()
    expect(panel).to_be_hidden()
    expect(first).to_be_focused()
    page.page.get_by_role("button", name="Copy answer").click()
    copied = page.page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("Chamber 57 is in order.[^1] So it stays.\n\n[^1]: survey-long.md, “Chamber 57”: “")
    live = page.answer.locator(".prose").inner_html()
    page.page.reload()
    expect(page.page.locator("#main[data-ready]")).to_be_visible()
    expect(chip(page)).to_have_text("1")
    assert stripped(page.answer.locator(".prose").inner_html()) == stripped(live)


def stripped(html: str) -> str:
    """HTML without the ids that a card gets when it is described."""
    return re.sub(r' (id|aria-describedby)="cite-\d+"|\s+(?=<)', "", html)


def test_an_address_with_a_panel_opens_it(desk: Open, model: ModelServer) -> None:
    page = desk()
    bring(page, "survey-link.md", SURVEY)
    answers(model, "It lost 43 kg. [[c:{1}]]")
    page.new().ask("How much was lost?")
    page.settles()
    chip(page).click()
    expect(page.page.locator("#panel .hit")).to_be_visible()
    page.open(page.page.url)
    expect(page.page.locator("#panel .hit")).to_contain_text("43 kg")


def test_documents_that_do_not_answer_are_a_state_of_its_own(desk: Open, model: ModelServer) -> None:
    page = desk()
    bring(page, "survey-none.md", SURVEY)
    answers(model, "[[c:none]] Nothing says who owns the harbour.", "rack lost gas", "survey-none.md")
    page.new().ask("Who owns the harbour?")
    page.settles()
    banner = page.answer.locator("[data-slot=none]")
    expect(banner).to_have_text(re.compile("Your documents do not answer this."))
    expect(banner).to_be_visible()
    expect(page.answer.locator("[data-slot=used] summary")).to_have_text("No sources · 1 not used")
    page.page.reload()
    expect(page.answer.locator("[data-slot=none]")).to_be_visible()
    expect(banner).to_have_text(re.compile("Your documents do not answer this."))


def test_what_was_found_and_not_used_is_counted_named_and_opens(desk: Open, model: ModelServer) -> None:
    page = desk()
    bring(page, "quay-used.md", "# Quay\n\nThe zebrano quay has 12 bollards.\n")
    bring(page, "quay-left.md", "# Old quay\n\nThe zebrano quay once had 9 bollards.\n")
    answers(model, "It has some. [[c:{1}]]", "zebrano quay bollards", "quay-used.md", "quay-left.md")
    page.new().ask("How many bollards has the zebrano quay?")
    page.settles()
    summary = page.answer.locator("[data-slot=used] summary")
    expect(summary).to_have_text("1 source · 1 not used")
    summary.click()
    unused = page.answer.locator(".source").last
    expect(unused).to_have_text(re.compile(r"^Found, not used: quay-(used|left)\.md$"))
    live = page.answer.locator("[data-slot=used]").inner_html()
    checked(page, "what was not used")
    page.page.reload()
    expect(summary).to_have_text("1 source · 1 not used")
    summary.click()
    assert page.answer.locator("[data-slot=used]").inner_html() == live
    name = unused.get_by_role("link").inner_text()
    unused.get_by_role("link").click()
    expect(page.page.locator("#panel .panel-title")).to_contain_text(name)


def test_the_quote_of_a_deleted_document_stays(desk: Open, model: ModelServer) -> None:
    page = desk()
    bring(page, "crane-gone.md", "# Crane\n\nThe crane lost 47 bolts in the storm.\n")
    answers(model, "It lost 47 bolts. [[c:{1}]]", "crane bolts storm")
    page.new().ask("What did the crane lose?")
    page.settles()
    address = page.page.url
    page.page.goto(f"{page.base}/library/")
    row = page.page.locator("#documents tr", has_text="crane-gone.md")
    row.locator(".doc-name").focus()
    page.page.keyboard.press("Delete")
    expect(row).to_have_count(0)
    page.open(address)
    chip(page).click()
    panel = page.page.locator("#panel")
    expect(panel).to_contain_text("This document was deleted or is not yours any more.")
    expect(panel).to_contain_text("The crane lost 47 bolts in the storm.")
    expect(chip(page)).to_have_attribute("data-state", "gone")
    checked(page, "a citation without its document")


def rewrite(house: House, thread_id: str, words: str, *sources: Citation) -> None:
    """Make the answer of a conversation cite these messages."""
    cited = tuple(Cited(number=number, citation=source) for number, source in enumerate(sources, 1))
    answer = AssistantMessage(id="", response_id="", text=words, citations=cited)
    payload = {key: value for key, value in codec.dump(answer).items() if key in ("text", "citations")}
    outside = os.environ.get("TEST_SERVERS") == "outside"
    with psycopg.connect(os.environ["DATABASE_URL"] if outside else Postgres(data=house.up.data).url) as connection:
        changed = connection.execute(
            "UPDATE agents_event e SET payload = e.payload || %s::jsonb FROM agents_session s"
            " WHERE s.id = e.session_id AND s.thread_id = %s AND e.type = 'assistant_message'",
            (json.dumps(payload), thread_id),
        )
        assert changed.rowcount == 1


def told(page: Desk, model: ModelServer, words: str) -> tuple[str, str]:
    """A conversation in which a person said this: its thread's id and the message's."""
    model.script(Reply(steps=(*text("Noted."), *finish())))
    page.new().ask(words)
    page.settles()
    return page.page.url.rstrip("/").rpartition("/")[2], page.said.last.get_attribute("data-message") or ""


def said(id: str, thread_id: str, message_id: str, title: str, quote: str) -> Citation:
    return Citation(
        id=id,
        artifact_id="",
        version=0,
        name=title,
        start=0,
        end=len(quote),
        place=Place(),
        quote=quote,
        thread_id=thread_id,
        message_id=message_id,
        at=datetime(2019, 5, 3, 14, 2, tzinfo=UTC),
    )


def test_a_cited_message_shows_its_quote_and_leads_to_it(desk: Open, model: ModelServer, model_house: House) -> None:
    page = desk(permissions=COPY, timezone_id="UTC")
    rent = "The rent will be 1,450 euros a month, heating included."
    thread, message = told(page, model, rent)
    here, question = told(page, model, "What will the rent be?")
    rewrite(
        model_house,
        here,
        "It will be 1,450 euros [1](#c-k3f4ab), as you ask here [2](#c-k3f4ac).",
        said("k3f4ab", thread, message, "Rent talks", rent),
        said("k3f4ac", here, question, "", "What will the rent be?"),
    )
    page.open(f"{page.base}/c/{here}/")
    first = chip(page)
    expect(first).to_have_attribute("aria-label", "Source 1: Rent talks, 3 May 2019, 14:02")
    expect(chip(page, 1)).to_have_attribute("aria-label", "Source 2: Untitled conversation, 3 May 2019, 14:02")
    first.hover()
    card = page.answer.locator(".cite-card").first
    expect(card).to_be_visible()
    expect(card).to_contain_text("Rent talks")
    expect(card).to_contain_text("3 May 2019, 14:02")
    expect(card).to_contain_text(rent)
    checked(page, "the card of a cited message")
    page.answer.locator("[data-slot=used] summary").click()
    expect(page.answer.locator(".source")).to_have_count(2)
    expect(page.answer.locator(".source").first).to_contain_text("Rent talks 3 May 2019, 14:02")
    page.page.get_by_role("button", name="Copy answer").click()
    copied = page.page.evaluate("navigator.clipboard.readText()")
    assert copied.splitlines()[2] == f"[^1]: Rent talks, 3 May 2019, 14:02: “{rent}”"
    page.page.evaluate("window.samePage = true")
    chip(page, 1).click()
    assert page.page.evaluate("window.samePage") is True  # a message of this conversation is no other page
    first.click()
    expect(page.page).to_have_url(f"{page.base}/c/{thread}/?at={message}")
    expect(page.said.locator(".msg-body")).to_have_text([rent])


def test_what_was_said_in_another_conversation_is_found_cited_and_opened(desk: Open, model: ModelServer) -> None:
    page = desk()
    words = "The greenhouse in Werder needs 31 new panes before winter."
    thread, message = told(page, model, words)
    asked = json.dumps({"query": "greenhouse Werder panes", "scope": "other_sessions"})
    model.script(
        Reply(steps=(call(asked, id="s1", name="session_search"), *finish("tool_calls"))),
        Reply(steps=(*text("It needs 31 new panes. [[c:{1}]]"), *finish())),
    )
    page.new().ask("How many panes does the greenhouse in Werder need?")
    page.settles()
    expect(chip(page)).to_have_attribute("href", f"/c/{thread}/?at={message}")
    chip(page).hover()
    expect(page.answer.locator(".cite-card")).to_contain_text(words)
    live = page.answer.locator(".prose").inner_html()
    page.page.reload()
    expect(chip(page)).to_have_text("1")
    assert stripped(page.answer.locator(".prose").inner_html()) == stripped(live)
    chip(page).click()
    expect(page.page).to_have_url(f"{page.base}/c/{thread}/?at={message}")
    expect(page.said.locator(".msg-body")).to_have_text([words])


def test_the_quote_of_a_deleted_conversation_stays(desk: Open, model: ModelServer, model_house: House) -> None:
    page = desk()
    thread, message = told(page, model, "The crane lost 47 bolts.")
    here, _ = told(page, model, "What did the crane lose?")
    source = said("k3f4ab", thread, message, "The crane", "The crane lost 47 bolts.")
    rewrite(model_house, here, "It lost 47 bolts [1](#c-k3f4ab).", source)
    page.open(f"{page.base}/c/{here}/")
    expect(chip(page)).to_have_attribute("href", f"/c/{thread}/?at={message}")
    page.page.locator(f"#side-list a.row[href='/c/{thread}/']").focus()
    page.page.keyboard.press("Delete")
    expect(chip(page)).to_have_attribute("data-state", "gone")  # told, without loading the page again
    expect(chip(page)).to_have_attribute("aria-disabled", "true")
    chip(page).focus()
    card = page.answer.locator(".cite-card")
    expect(card).to_be_visible()
    expect(card).to_contain_text("The crane lost 47 bolts.")
    expect(card).to_contain_text("This conversation was deleted. The quote was kept with the answer.")
    checked(page, "a citation without its conversation")
    page.answer.locator("[data-slot=used] summary").click()
    expect(page.answer.locator(".source")).to_contain_text("3 May 2019, 14:02 (deleted)")
    chip(page).click(force=True)  # it leads nowhere
    expect(page.page).to_have_url(f"{page.base}/c/{here}/")
    page.page.locator("#toasts").get_by_role("button", name="Undo").click()
    expect(chip(page)).to_have_attribute("href", f"/c/{thread}/?at={message}")


def test_the_choice_of_sources_is_kept_sent_and_echoed(desk: Open, model: ModelServer) -> None:
    page = desk()
    bring(page, "scope-one.md", "# One\n\nThe gate is red.\n")
    bring(page, "scope-two.md", "# Two\n\nThe gate is blue.\n")
    page.new()
    scope = page.page.locator("#scope")
    expect(scope).to_have_text("All documents")
    scope.click()
    dialog = page.page.locator("#scope-dialog")
    dialog.get_by_role("searchbox").fill("scope-two")
    expect(dialog.locator(".pick")).to_have_count(1)
    dialog.locator(".pick input").check()
    checked(page, "the choice of sources")
    dialog.get_by_role("button", name="Done").click()
    expect(scope).to_have_text("1 document")
    answers(model, "It is blue. [[c:{1}]]", "gate")
    page.ask("Which colour has the gate?")
    page.settles()
    expect(page.answer.locator("[data-slot=scope]")).to_have_text("Answered from: 1 document")
    expect(page.answer.locator(".cite-card").first).to_contain_text("The gate is blue.")
    page.page.reload()
    expect(page.page.locator("#main[data-ready]")).to_be_visible()
    expect(scope).to_have_text("1 document")
    expect(page.answer.locator("[data-slot=scope]")).to_have_text("Answered from: 1 document")
    answers(model, "[[c:none]] Nothing says how wide it is.", "gate")
    page.ask("How wide is the gate?")
    page.settles()
    banner = page.answer.last.locator("[data-slot=none]")
    expect(banner).to_have_text("The chosen documents do not say this.")
    expect(banner).to_be_visible()
    scope.click()
    expect(dialog.locator(".pick input").first).to_be_checked()
    dialog.get_by_label("No documents").check()
    page.page.keyboard.press("Escape")
    expect(scope).to_have_text("No documents")


def test_a_file_the_agent_made_opens_once_beside_the_conversation(desk: Open, model: ModelServer) -> None:
    saved = json.dumps({"name": "plan.md", "content": "# Plan\n\nBuy paint.\n"})
    model.script(
        Reply(steps=(call(saved, id="c1", name="save_artifact"), *finish("tool_calls"))),
        Reply(steps=(*text("It is saved."), *finish())),
    )
    page = desk(viewport={"width": 1440, "height": 900}).new()
    page.ask("Save a plan")
    page.settles()
    panel = page.page.locator("#panel")
    expect(panel.locator(".prose-doc")).to_contain_text("Buy paint.")
    expect(page.field).to_be_focused()
    checked(page, "a file beside the conversation")
    panel.get_by_role("link", name="Edit").click()
    panel.get_by_label("Text", exact=True).fill("# Plan\n\nBuy green paint.\n")
    panel.get_by_role("button", name="Save as version 2").click()
    expect(panel.locator(".panel-top .stepper-now")).to_have_text("v2 of 2")
    panel.get_by_role("link", name="Changes").click()
    expect(panel.locator(".diff-old ins")).to_have_text("green ")
    panel.get_by_role("link", name="Previous version").click()
    expect(panel.get_by_text("You are looking at version 1; the newest is 2.")).to_be_visible()
    panel.get_by_role("button", name="Restore as version 3").click()
    expect(panel.locator(".panel-top .stepper-now")).to_have_text("v3 of 3")
    panel.get_by_role("button", name="Close panel").click()
    expect(panel).to_be_hidden()
    page.page.reload()
    expect(page.page.locator("#main[data-ready]")).to_be_visible()
    expect(panel).to_be_hidden()
    page.answer.locator(".artifact-card").click()
    expect(panel.locator(".prose-doc")).to_contain_text("Buy paint.")
    with page.page.expect_download() as download:
        panel.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "plan.md"


def test_the_panel_goes_on_to_the_version_that_the_agent_makes(desk: Open, model: ModelServer) -> None:
    saved = json.dumps({"name": "plan-two.md", "content": "# Plan\n\nBuy paint.\n"})
    changed = json.dumps({"name": "plan-two.md", "base_version": 1, "edits": [{"old": "paint", "new": "brushes"}]})
    model.script(
        Reply(steps=(call(saved, id="c1", name="save_artifact"), *finish("tool_calls"))),
        Reply(steps=(*text("It is saved."), *finish())),
        Reply(steps=(call(changed, id="c2", name="edit_artifact"), *finish("tool_calls"))),
        Reply(steps=(*text("It is changed."), *finish())),
    )
    page = desk(viewport={"width": 1440, "height": 900}).new()
    page.ask("Save a plan")
    page.settles()
    panel = page.page.locator("#panel")
    expect(panel.locator(".prose-doc")).to_contain_text("Buy paint.")
    page.ask("Brushes, not paint")
    expect(panel.locator(".prose-doc")).to_contain_text("Buy brushes.")
    expect(panel.locator(".panel-top .stepper-now")).to_have_text("v2 of 2")
    expect(page.field).to_be_focused()


def test_on_a_phone_the_panel_is_a_sheet(desk: Open, model: ModelServer) -> None:
    page = desk(viewport={"width": 390, "height": 844})
    bring(page, "survey-phone.md", SURVEY)
    answers(model, "It lost 43 kg. [[c:{1}]]")
    page.new().ask("How much was lost?")
    page.settles()
    chip(page).click()
    expect(page.page.locator("#panel .hit")).to_be_visible()
    box: Any = page.page.locator("#panel").bounding_box()
    assert (box["x"], box["width"]) == (0, 390)
    expect(page.page.locator("#main")).to_have_js_property("inert", True)
    checked(page, "the sheet")
    page.page.get_by_role("button", name="Close panel").click()
    expect(chip(page)).to_be_focused()
    expect(page.answer.locator(".cite-card").first).to_be_hidden()


def test_footnotes_of_a_report_lead_there_and_back_inside_the_panel(desk: Open, model: ModelServer) -> None:
    filler = "\n\n".join(f"Point {n} is as it was before. {'Nothing was noted. ' * 20}" for n in range(30))
    content = f"# Plan\n\nIt lost gas.[^1]\n\n{filler}\n\n## Sources\n\n[^1]: survey.md, line 3\n"
    model.script(
        Reply(steps=(call(json.dumps({"name": "plan.md", "content": content}), id="c1", name="save_artifact"),
                     *finish("tool_calls"))),
        Reply(steps=(*text("It is saved."), *finish())),
    )  # fmt: skip
    page = desk(viewport={"width": 1440, "height": 900}).new()
    page.ask("Save a plan")
    page.settles()
    checked(page, "a report with footnotes")
    there = page.page.url
    page.page.locator("#panel #marked-1").click()
    expect(page.page.locator("#panel #note-1")).to_be_focused()
    assert in_sight(page.page, "#note-1")
    assert not in_sight(page.page, "#marked-1")
    page.page.locator("#panel #note-1").click()
    expect(page.page.locator("#panel #marked-1")).to_be_focused()
    assert in_sight(page.page, "#marked-1")
    assert page.page.url == there
