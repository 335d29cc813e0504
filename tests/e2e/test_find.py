"""The search over everything, and landing on a message: with the keyboard, far back, in another version, on a phone."""

import contextlib
import datetime as dt
import json
import os
import re
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Locator, Page, Route, expect

from agents.runtime import codec
from agents.runtime.events import RunStarted
from tests.e2e.browser import Desk
from tests.e2e.conftest import House, Open
from tests.e2e.test_keys import CHROME, ENTER, ENTER_COMPOSING, PLAY
from tests.e2e.test_library import bring
from tests.e2e.test_page import checked
from tests.modelserver import ModelServer, Reply, call, finish, text
from tests.workbench.conversations import answered, asked, ended
from workbench.embedded import Postgres

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

TURNS = 340
FIELD = "#find .palette-input"
STILL = """() => new Promise((done) => {
    const scroller = document.querySelector("#scroller");
    let last = -1, same = 0;
    const look = () => {
        same = scroller.scrollTop === last ? same + 1 : 0;
        last = scroller.scrollTop;
        if (same > 10) done(); else requestAnimationFrame(look);
    };
    look();
})"""
DARK_PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True, "color_scheme": "dark"
}  # fmt: skip


def long_conversation(house: House, thread_id: str, title: str, words: dict[int, str], turns: int = TURNS) -> str:
    """Store a conversation of so many turns and return its address. words: what is asked in some of them."""
    outside = os.environ.get("TEST_SERVERS") == "outside"
    address = os.environ["DATABASE_URL"] if outside else Postgres(data=house.up.data).url
    now = dt.datetime.now(dt.UTC)
    with psycopg.connect(address) as connection:
        row = connection.execute(
            """insert into agents_session (owner_id, thread_id, agent, title, title_by_person, head_fork, last_position,
                 state, seen_position, created_at, active_at)
               select id, %s, 'assistant', %s, true, 0, %s, '{}', %s, now(), now() from auth_user limit 1
               returning id, owner_id""",
            (thread_id, title, turns * 4, turns * 4),
        ).fetchone()
        assert row
        session, owner = row
        connection.execute(
            "insert into agents_fork (session_id, number, shared_position, created_at) values (%s, 0, 0, now())",
            (session,),
        )
        for n in range(turns):
            at = now - dt.timedelta(minutes=turns - n)
            said = words.get(n, f"Question number {n}, about nothing in particular.")
            run = connection.execute(
                """insert into agents_run (owner_id, session_id, client_id, parent_client_id, fork, agent, model,
                     status, epoch, lease_expires_at, render_html, origin, started_at, ended_at, prompt_tokens,
                     cached_tokens, completion_tokens, reasoning_tokens, model_calls, error_code, error_message)
                   values (%s, %s, %s, '', 0, 'assistant', 'test', 'finished', 1, %s, false, 'page', %s, %s, 0, 0, 0, 0,
                     0, '', '') returning id""",
                (owner, session, f"{thread_id}-r{n}", at, at, at),
            ).fetchone()
            assert run
            records = (
                RunStarted(agent="assistant", model="test"),
                asked(said, f"{thread_id}-u{n}"),
                answered(f"Answer number {n}. " + "It goes on for a line or two. " * 6, f"{thread_id}-a{n}"),
                ended(),
            )
            for place, record in enumerate(records, n * 4 + 1):
                connection.execute(
                    """insert into agents_event (owner_id, session_id, position, fork, run_id, event_id, type,
                         invocation_id, author, branch, filter_key, origin, payload, tokens, at)
                       values (%s, %s, %s, 0, %s, %s, %s, 'i', 'assistant', '', '', '{}', %s, 0, %s)""",
                    (
                        owner, session, place, run[0], f"{thread_id}-e{place}", record.type,
                        json.dumps(codec.dump(record)), at,
                    ),
                )  # fmt: skip
            connection.execute(
                """insert into agents_searchentry (owner_id, kind, ref, "offset", fork, group_id, position, length,
                     terms, created)
                   select %s, 'event', %s, 0, 0, %s, %s, length(t), t, %s from wb_index(%s, %s, '{}') t""",
                (owner, n * 4 + 2, session, n + 1, at, owner, said),
            )
        connection.execute("update agents_session set entries = %s where id = %s", (turns, session))
    return f"{house.base}/c/{thread_id}/"


def find(page: Desk, words: str) -> Locator:
    """Open the search, type, and return the results once they answer these words."""
    page.page.keyboard.press("Control+k")
    expect(page.page.locator(FIELD)).to_be_focused()
    with page.page.expect_response(lambda response: "/search/" in response.url and "q=" in response.url):
        page.page.keyboard.insert_text(words)
    return page.page.locator("#find [role=option]")


def landed(page: Desk) -> Locator:
    """The message that was landed on, once it is the one that is marked, in sight and focused."""
    found = page.page.locator("[data-landed]")
    expect(found).to_have_count(1)
    expect(found).to_be_in_viewport()
    return found


def marks(page: Page) -> str:
    """The colour behind the message landed on, while it is marked."""
    script = """() => { const it = document.querySelector('[data-landed]');
                        return getComputedStyle(it.querySelector('.msg-body') ?? it).animationName; }"""
    found: str = page.evaluate(script)
    return found


@pytest.fixture(scope="module")
def far_back(model_house: House) -> str:
    """A conversation whose 20th turn, 1,280 events back, is about a contract."""
    return long_conversation(model_house, "far-back", "Long one", {20: "这份合同什么时候到期？"})


def test_two_chinese_characters_and_enter_land_on_a_message_far_back(desk: Open, far_back: str) -> None:
    page = desk().new()
    results = find(page, "合同")
    expect(results.filter(has_text="Long one").locator("mark")).to_have_text("合同")
    expect(page.page.locator("#find [data-slot=count]")).to_have_text("1 result")
    checked(page, "the search")
    page.page.keyboard.press("Enter")
    expect(page.page).to_have_url(re.compile(r"/c/far-back/\?at=far-back-e82$"))
    found = landed(page)
    expect(found).to_contain_text("这份合同")
    expect(found).to_be_focused()
    assert marks(page.page) == "landed"
    checked(page, "a message landed on")
    page.page.go_back()  # to the results, as they were
    expect(page.page.locator(FIELD)).to_have_value("合同")
    expect(page.page.locator("#find [role=option]").first).to_contain_text("Long one")


def test_reader_goes_up_and_down_from_there_and_to_the_end(desk: Open, far_back: str) -> None:
    page = desk().open(f"{far_back}?at=far-back-u20")
    landed(page)
    shown = page.page.locator(".msg-user .msg-body")
    before = page.scrolled()
    expect(page.page.locator("#to-new")).to_contain_text("To the end")
    page.page.evaluate("document.querySelector('#scroller').scrollTop = 0")
    expect(shown.filter(has_text="Question number 0,")).to_have_count(1)
    gap = page.page.locator(".gap")
    gap.scroll_into_view_if_needed()
    expect(shown.filter(has_text="Question number 60,")).to_have_count(1)
    expect(gap).to_have_count(1)
    page.page.locator("#to-new").click()
    expect(shown.last).to_be_in_viewport()
    page.page.evaluate(STILL)  # scrolling may go on smoothly
    # upwards from the end: what comes before the newest messages is loaded above them, and nothing moves
    page.page.mouse.move(640, 300)
    first, newest = page.page.locator(".gap + .msg-user .msg-body"), re.compile(rf"number {TURNS - 15},")
    for _ in range(10):  # a person turns the wheel until something comes; the first turn leaves the end
        page.page.mouse.wheel(0, -200)
        gap.evaluate("(gap) => gap.nextElementSibling.scrollIntoView({ block: 'start' })")
        page.page.mouse.wheel(0, -200)
        with contextlib.suppress(AssertionError):
            expect(first).not_to_have_text(newest, timeout=1_500)
            break
    expect(first).not_to_have_text(newest)
    assert before > 0
    numbers = [int(re.findall(r"number (\d+),", words)[0]) for words in shown.all_inner_texts() if "number" in words]
    assert numbers == sorted(set(numbers)), "each message once, in order"


def test_link_to_a_message_on_the_page_needs_no_reload(desk: Open, model: ModelServer) -> None:
    model.script(*[Reply(steps=(*text("Word. " * 200), *finish())) for _ in range(3)])
    page = desk().new()
    for n in range(3):
        page.ask(f"Question {n}")
        expect(page.page.locator("#thread .msg-assistant")).to_have_count(n + 1)
        page.settles()
    page.page.evaluate("window.same = true")
    id = page.said.first.get_attribute("data-message")
    page.page.evaluate(
        """(id) => { const link = document.createElement('a'); link.href = `${location.pathname}?at=${id}`;
                     link.textContent = 'Up there';
                     document.querySelector('.msg-assistant:last-of-type .prose').append(link); }""",
        id,
    )
    page.page.get_by_role("link", name="Up there").last.click()
    expect(landed(page)).to_contain_text("Question 0")
    assert page.page.evaluate("window.same")
    results = find(page, "Question 1")
    expect(results.filter(has_text="Question 1").first).to_be_visible()


def test_result_of_a_step_is_unfolded(desk: Open, model: ModelServer) -> None:
    model.script(
        Reply(steps=(call('{"name": "nowhere.md"}', id="step-1", name="read_artifact"), *finish("tool_calls"))),
        Reply(steps=(*text("It is not there."), *finish())),
    )
    page = desk().new()
    page.ask("Read it")
    page.settles()
    page.open(f"{page.page.url}?at=step-1")
    found = landed(page)
    expect(found).to_have_attribute("data-call", "step-1")
    expect(found.locator(".step-more")).to_be_visible()
    checked(page, "a step landed on")


def test_message_of_another_version_is_a_press_away(desk: Open, model: ModelServer) -> None:
    model.script(*[Reply(steps=(*text(words), *finish())) for words in ("First swordfish.", "Second swordfish.")])
    page = desk().new()
    page.ask("Twice")
    page.settles()
    first = page.answer.get_attribute("data-message")
    page.answer.get_by_role("button", name="Answer again").click()
    expect(page.page.locator("#thread .prose")).to_have_text(["Second swordfish."])
    page.settles()
    page.open(f"{page.page.url}?at={first}")
    notice = page.page.locator("#landed")
    expect(notice).to_contain_text("another version of this conversation: 1 of 2")
    checked(page, "the notice")
    notice.get_by_role("button", name="Show that version").click()
    expect(landed(page)).to_have_text("First swordfish.")


def test_id_that_is_not_there_is_told_quietly(desk: Open, far_back: str) -> None:
    page = desk().open(f"{far_back}?at=nothing")
    expect(page.page.locator("#landed")).to_contain_text("not in this conversation any more")
    page.page.locator("#landed").get_by_role("button", name="Dismiss").click()
    expect(page.page.locator("#landed")).to_have_count(0)
    expect(page.field).to_be_focused()


def test_search_by_keyboard_alone(desk: Open, far_back: str) -> None:
    page = desk().new()
    page.field.fill("half a thought")
    page.page.keyboard.press("Control+k")
    field = page.page.locator(FIELD)
    options = page.page.locator("#find [role=option]")
    expect(options.first).to_have_attribute("aria-selected", "true")
    expect(field).to_have_attribute("aria-activedescendant", "find-option-0")
    page.page.keyboard.press("ArrowUp")
    expect(options.last).to_have_attribute("aria-selected", "true")
    page.page.keyboard.press("ArrowDown")
    expect(options.first).to_have_attribute("aria-selected", "true")
    page.page.keyboard.press("Escape")
    expect(page.page.locator("#find")).to_be_hidden()
    expect(page.field).to_be_focused()
    expect(page.field).to_have_value("half a thought")
    find(page, "合同")
    with page.page.context.expect_page() as other:
        page.page.keyboard.press("Control+Enter")
    expect(other.value.locator("[data-landed]")).to_contain_text("合同")
    other.value.close()
    page.page.keyboard.press("Control+k")
    expect(page.page.locator("#find")).to_be_hidden()


def test_enter_of_an_input_method_opens_nothing(desk: Open, far_back: str) -> None:
    page = desk().new()
    page.page.keyboard.press("Control+k")
    expect(page.page.locator("#find [role=option]").first).to_be_visible()
    page.page.evaluate(PLAY, [FIELD, CHROME])
    page.page.evaluate(PLAY, [FIELD, [ENTER_COMPOSING]])
    expect(page.page.locator("#find [role=option]").filter(has_text="Long one")).to_be_visible()
    assert page.page.url == f"{page.base}/"
    page.page.evaluate(PLAY, [FIELD, [ENTER]])
    expect(landed(page)).to_contain_text("合同")


def test_old_answers_never_overwrite_new_ones_and_a_failure_is_told(desk: Open, far_back: str) -> None:
    page = desk().new()
    slow: list[Route] = []

    def delayed(route: Route) -> None:
        if "q=nothing" in route.request.url:
            slow.append(route)
        elif "q=broken" in route.request.url:
            route.fulfill(status=500, body="")
        else:
            route.continue_()

    page.page.route("**/search/?*", delayed)
    page.page.keyboard.press("Control+k")
    field = page.page.locator(FIELD)
    field.fill("nothing")
    expect(page.page.locator("#find")).to_have_attribute("data-busy", "")
    field.fill("合同")
    expect(page.page.locator("#find [role=option]").filter(has_text="Long one")).to_be_visible()
    assert len(slow) == 1
    slow[0].fulfill(status=200, body="<p data-count='0'>late</p>")
    expect(page.page.locator("#find")).not_to_have_attribute("data-busy", "")
    expect(page.page.locator("#find [role=option]").filter(has_text="Long one")).to_be_visible()
    field.fill("broken")
    expect(page.page.locator("#find").get_by_role("alert")).to_contain_text("The search did not answer.")
    checked(page, "a failed search")
    page.page.unroute("**/search/?*")
    page.page.get_by_role("button", name="Try again").click()
    expect(page.page.locator("#find")).to_contain_text(re.compile(r"Nothing in \d+ conversations? and"))
    page.page.locator("#find").get_by_role("link", name="Ask the assistant about “broken”").click()
    expect(page.field).to_have_value("broken")


def test_filters_narrow_and_keep_the_focus(desk: Open, far_back: str) -> None:
    page = desk().open(far_back)
    options = find(page, "question")
    expect(options.filter(has_text="Show all")).to_have_count(1)
    page.page.locator("#find").get_by_text("Messages", exact=False).first.click()
    expect(options.nth(10)).to_be_attached()
    expect(page.page.locator("#find [name=kind]:checked")).to_have_value("messages")
    date = page.page.locator("#find").get_by_label("Date")
    date.focus()
    date.select_option("month")
    expect(page.page.locator("#find [data-slot=found]")).to_contain_text("60+")
    expect(date).to_have_value("month")
    expect(date).to_be_focused()
    page.page.locator("#find").get_by_text("This conversation").click()
    expect(page.page.locator("#find [name=in]")).to_be_checked()
    expect(options.first).to_contain_text("Long one")
    page.page.locator("#find").get_by_role("button", name="Show on a page").click()
    expect(page.page).to_have_url(re.compile(r"/search/\?.*kind=messages"))
    expect(page.page.locator(".find-page [name=in]")).to_be_checked()
    expect(page.page.locator(".find-page .palette-item").first).to_contain_text("Long one")
    checked(page, "the page of the search")


def test_passage_of_a_document_is_landed_on(desk: Open) -> None:
    page = desk()
    bring(page, "brass.md", "# Valves\n\n" + "Words and words. " * 300 + "\n\nThe quagga valve is of brass.\n")
    page.new()
    find(page, "quagga")
    page.page.keyboard.press("Enter")
    expect(page.page.locator(".hit")).to_contain_text("The quagga valve")
    expect(page.page.locator(".hit")).to_be_in_viewport()


def test_search_on_a_dark_phone(desk: Open, far_back: str) -> None:
    page = desk(**DARK_PHONE).new()
    page.page.get_by_role("link", name="Open sidebar").click()
    page.page.locator("#sidebar").get_by_role("link", name="Search").click()
    page.page.locator(FIELD).fill("合同")
    option = page.page.locator("#find [role=option]").filter(has=page.page.locator("mark", has_text="合同"))
    expect(option).to_be_visible()
    checked(page, "the search on a phone")
    option.click()
    expect(landed(page)).to_contain_text("合同")
    checked(page, "a message landed on, on a phone")


def test_reduced_motion_marks_without_moving(desk: Open, far_back: str) -> None:
    page = desk(reduced_motion="reduce").open(f"{far_back}?at=far-back-u20")
    landed(page)
    assert marks(page.page) == "none"
    body = page.page.locator("[data-landed] .msg-body")
    assert body.evaluate("(it) => getComputedStyle(it).backgroundColor") == "rgb(255, 240, 179)"
