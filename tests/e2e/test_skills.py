"""Skills in a browser: what is suggested, writing, importing, comparing and deleting, by hand and by keyboard."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.agents.skillpacking import skill, zip_of
from tests.e2e.browser import Desk
from tests.e2e.conftest import House, Open
from tests.e2e.test_library import checked
from tests.workbench.installation import manage

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PROPOSE = """
from django.contrib.auth import get_user_model
from agents.stores import skillcontent
from agents.stores.skillfiles import desk
from agents.stores.skilllibrary import Proposal, SkillLibraryRows
owner = get_user_model().objects.get(is_superuser=True).pk
with desk() as on:
    content = skillcontent.of_text({name!r}, "Writes a paper for the board.", {body!r}, on, None)
    evidence = {{"reason": "In three of the last four memos you moved the decision to the top."}}
    SkillLibraryRows(owner).submit(content.slug, content, Proposal(evidence=evidence))
"""


def propose(house: House, name: str, body: str) -> None:
    """Put a suggestion before the owner, as a review of their runs does."""
    done = manage(house.up.data, "shell", "-c", PROPOSE.format(name=name, body=body))
    assert done.returncode == 0, done.stderr


def skills(page: Desk) -> Desk:
    return page.open(f"{page.base}/skills/")


def row(page: Desk, slug: str) -> Locator:
    return page.page.locator(f'#skills [data-skill="mine/{slug}"]')


def write(page: Desk, name: str, body: str) -> None:
    page.open(f"{page.base}/skills/new/")
    page.page.get_by_label("Name").fill(name)
    page.page.get_by_label("When to use it").fill("Writes a paper for the board.")
    page.page.get_by_label("What to do").fill(body)
    page.page.get_by_role("button", name="Make skill").click()
    expect(page.page.get_by_role("heading", level=1, name=name)).to_be_visible()


def test_a_suggestion_is_seen_from_everywhere_read_and_accepted(offline_desk: Open, offline_house: House) -> None:
    page = offline_desk()
    write(page, "Accepted memo", "1. Say why.\n2. Close with a recommendation.\n")
    propose(offline_house, "Accepted memo", "1. The decision asked for.\n2. Say why.\n3. Close with risks.\n")
    page.new()
    link = page.page.get_by_role("link", name=re.compile("Skills.*suggested"))
    expect(link).to_be_visible()
    link.click()
    card = page.page.locator(".proposal", has_text="Accepted memo")
    expect(card).to_contain_text("you moved the decision to the top")
    expect(card.locator("ins").first).to_be_visible()
    checked(page, "a suggestion")
    card.get_by_role("button", name="Accept as version 2").press("Enter")
    expect(page.page.locator(".prose")).to_contain_text("The decision asked for")
    skills(page)
    expect(row(page, "accepted-memo")).to_contain_text("Version 2")
    expect(page.page.locator(".proposal")).to_have_count(0)


def test_a_suggestion_is_edited_and_another_rejected(offline_desk: Open, offline_house: House) -> None:
    page = offline_desk()
    propose(offline_house, "Edited memo", "1. Learned.\n")
    propose(offline_house, "Rejected memo", "1. Learned.\n")
    skills(page)
    page.page.locator(".proposal", has_text="Edited memo").get_by_role("link", name="Edit").click()
    page.page.get_by_label("What to do").fill("1. Mine.")
    page.page.get_by_role("button", name="Save and accept").click()
    expect(page.page.locator(".prose")).to_contain_text("Mine.")
    skills(page)
    page.page.locator(".proposal", has_text="Rejected memo").get_by_role("button", name=re.compile("^Reject")).click()
    expect(page.page.locator(".toast-text")).to_contain_text("Rejected.")
    expect(page.page.locator(".proposal")).to_have_count(0)
    page.page.reload()
    expect(row(page, "edited-memo")).to_be_visible()
    expect(row(page, "rejected-memo")).to_have_count(0)


def test_a_skill_is_written_changed_compared_and_brought_back(offline_desk: Open) -> None:
    page = offline_desk()
    write(page, "董事会 写作", "1. 先问。\n")
    page.page.get_by_role("link", name="Edit", exact=True).click()
    field = page.page.get_by_label("What to do")
    expect(field).to_have_value("1. 先问。")
    field.fill("1. 先决定。\n2. 再问。\n")
    page.page.get_by_role("button", name="Save as a new version").click()
    page.page.get_by_role("navigation", name="Views of this skill").get_by_role("link", name="Compare").click()
    expect(page.page.locator(".diff-new ins").first).to_be_visible()
    checked(page, "two versions")
    page.page.get_by_role("navigation", name="Views of this skill").get_by_role("link", name="Versions").click()
    page.page.get_by_role("button", name="Use this one again").click()
    expect(page.page.locator(".prose")).to_contain_text("先问")


def test_a_skill_is_switched_off_and_on_found_and_deleted_with_undo(offline_desk: Open) -> None:
    page = offline_desk()
    write(page, "Switched memo", "1. Ask.\n")
    skills(page)
    switch = row(page, "switched-memo").get_by_role("switch")
    with page.page.expect_response(re.compile("/switch/")):
        switch.press("Space")
    expect(row(page, "switched-memo")).to_have_attribute("data-state", "off")
    page.page.reload()
    expect(row(page, "switched-memo").get_by_role("switch")).not_to_be_checked()
    page.page.get_by_label("Search skills").fill("switched")
    expect(page.page.locator("#skills .skill")).to_have_count(1)
    expect(page.page).to_have_url(re.compile(r"q=switched"))
    row(page, "switched-memo").get_by_role("link").click()
    page.page.get_by_role("button", name="Delete").click()
    expect(row(page, "switched-memo")).to_have_count(0)
    page.page.get_by_role("button", name="Undo").click()
    expect(page.page.get_by_role("heading", level=1, name="Switched memo")).to_be_visible()


def test_archives_and_folders_are_imported_and_bad_ones_refused_with_the_reason(
    offline_desk: Open, tmp_path: Path
) -> None:
    page = offline_desk()
    page.open(f"{page.base}/skills/import/")
    choose = page.page.get_by_label("An archive or a SKILL.md")
    bad = zip_of(("SKILL.md", skill()), ("../x", "x"))
    choose.set_input_files({"name": "bad.zip", "mimeType": "", "buffer": bad})
    page.page.get_by_role("button", name="Import").click()
    expect(page.page.get_by_role("alert").last).to_contain_text("a path that is not allowed: “../x”")
    folder = tmp_path / "brought-folder"
    (folder / "docs").mkdir(parents=True)
    (folder / "SKILL.md").write_text(skill("brought-folder"))
    (folder / "docs" / "样式.md").write_text("# 短")
    page.page.get_by_label("Or a folder").set_input_files(folder)
    page.page.get_by_role("button", name="Import").click()
    expect(page.page.locator("#taken")).to_have_text("1 skill found")
    page.page.get_by_role("link", name="brought-folder").click()
    page.page.get_by_role("link", name="docs/样式.md").first.click()
    expect(page.page.locator(".prose")).to_contain_text("短")
    page.open(f"{page.base}/skills/import/")
    broken = zip_of(("a-broken-one/SKILL.md", "---\nname: a-broken-one\n---\nx"))
    choose.set_input_files({"name": "broken.zip", "mimeType": "", "buffer": broken})
    page.page.get_by_role("button", name="Import").click()
    expect(page.page.locator(".skill-note")).to_contain_text("It has no description")
    checked(page, "an import")
    skills(page)
    expect(row(page, "a-broken-one")).to_contain_text("Cannot be used")


@pytest.mark.parametrize(
    "how",
    [
        {"color_scheme": "dark"},
        {"viewport": {"width": 390, "height": 844}},
        {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark", "locale": "zh-CN"},
    ],
)
def test_the_pages_fit_and_are_accessible_everywhere(
    offline_desk: Open, offline_house: House, how: dict[str, Any]
) -> None:
    page = offline_desk(**how)
    propose(offline_house, "A memo with a long name that has to be broken somewhere", "1. Learned `something`.\n")
    for address in ("/skills/", "/skills/new/", "/skills/import/", "/skills/bundled/clean-csv/"):
        page.open(f"{page.base}{address}")
        checked(page, f"{address} {how}")
    page.open(f"{page.base}/skills/")
    page.page.locator(".proposal form").last.locator("button").click()  # rejected, so that other tests find none
    expect(page.page.locator(".toast")).to_be_visible()
