"""Code in the page: from a table of the library to a chart that is kept, with the code and its output to be read."""

import json
import re

import pytest
from playwright.sync_api import Locator, expect

from tests.e2e.browser import Desk
from tests.e2e.conftest import Open
from tests.e2e.test_library import bring
from tests.modelserver import ModelServer, Reply, call, finish, text

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CODE = """\
rows = read_table("work/inputs/sales.csv")
print("rows:", len(rows))
data = [dict(Region=row["Region"], Amount=int(row["Amount"])) for row in rows]
chart("bar", data, "Sales by region", "out/sales.svg")"""


def calls(name: str, **arguments: object) -> Reply:
    return Reply(steps=(call(json.dumps(arguments), id=f"c-{name}", name=name), *finish("tool_calls")))


def row(page: Desk, name: str) -> Locator:
    return page.answer.locator(f'.step[data-call="c-{name}"]')


def shows_code_and_output(page: Desk) -> None:
    step = row(page, "workspace_exec")
    expect(step.locator("[data-slot=title]")).to_have_text("Ran code")
    expect(step.locator("[data-slot=note]")).to_have_text("1 file written")
    asked = step.locator("[data-slot=arguments]")
    expect(asked).to_contain_text('print("rows:", len(rows))\ndata = [')
    expect(asked).to_contain_text('"inputs": [')
    expect(asked).not_to_contain_text('"code"')
    expect(step.locator("[data-slot=result]")).to_contain_text("[stdout]\nrows: 2")
    card = page.answer.locator(".artifact-card")
    expect(card.locator("[data-slot=name]")).to_have_text("sales.svg")


def test_a_table_of_the_library_becomes_a_chart_that_is_kept(desk: Open, model: ModelServer) -> None:
    page = desk()
    bring(page, "sales.csv", "Region,Amount\nNorth,10\nSouth,32\n")
    model.script(
        calls("workspace_exec", code=CODE, inputs=["sales.csv"]),
        calls("workspace_save_artifact", path="out/sales.svg"),
        Reply(steps=(*text("South sold more than three times as much."), *finish())),
    )
    page.new().ask("Draw the sales by region.")
    page.settles()
    page.answer.locator(".phase > summary").first.click()
    row(page, "workspace_exec").locator("summary").first.click()
    shows_code_and_output(page)
    card = page.answer.locator(".artifact-card")
    expect(page.page.locator("#panel .preview-image")).to_have_attribute("alt", "sales.svg")
    assert page.page.evaluate("document.querySelector('#panel .preview-image').naturalWidth") == 760
    drawn = page.page.request.get(card.evaluate("card => card.href"))
    assert drawn.text().startswith("<svg") and "Sales by region" in drawn.text()
    page.page.reload()
    page.settles()
    shows_code_and_output(page)


def test_output_is_shown_while_code_runs_and_stopping_ends_it(desk: Open, model: ModelServer) -> None:
    page = desk()
    model.script(calls("workspace_exec", code="print('working on it')\nwhile True:\n    pass"))
    page.new().ask("Count for ever.")
    step = row(page, "workspace_exec")
    expect(step.locator("[data-slot=title]")).to_have_text("Running code")
    expect(step.locator("[data-slot=note]")).to_have_text(re.compile("working on it"))
    page.page.keyboard.press("Escape")
    page.settles("stopped")
    expect(step).to_have_attribute("data-state", "cancelled")
