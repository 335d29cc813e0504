"""What the end-to-end tests do with a page: words for it, so that the tests read like what a person does."""

import re
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
PATIENCE_MS = 15_000  # for everything a page is expected to show: a loaded machine is slow, not wrong
STANDS_STILL = """() => {
  const box = document.querySelector('#scroller');
  const top = box.scrollTop;
  return new Promise((done) => setTimeout(() => done(box.scrollTop === top), 200));
}"""

expect.set_options(timeout=PATIENCE_MS)


class Desk:
    """One window of a signed-in person."""

    def __init__(self, page: Page, base: str) -> None:
        self.page = page
        self.base = base
        self.complaints: list[str] = []
        self.examined = False  # by axe, which tries inline styles that the page's policy stops
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda m: self.complaints.append(m.text) if self.is_complaint(m) else None)

    def is_complaint(self, message: Any) -> bool:
        """What the network says when a test cuts it is no complaint; a broken rule of the page is."""
        expected = r"net::ERR|WebSocket connection|status of (4|5)\d\d" + (
            "|Applying inline style" if self.examined else ""
        )
        return message.type == "error" and not re.search(expected, message.text)

    def new(self) -> "Desk":
        self.page.goto(f"{self.base}/")
        expect(self.page.locator("#main[data-ready]")).to_be_visible()
        return self

    def open(self, address: str) -> "Desk":
        self.page.goto(address)
        expect(self.page.locator("#main[data-ready]")).to_be_visible()
        return self

    def ask(self, text: str) -> None:
        self.field.fill(text)
        self.field.press("Enter")

    @property
    def field(self) -> Locator:
        return self.page.locator("#composer-text")

    @property
    def answer(self) -> Locator:
        """The last answer, live or stored."""
        return self.page.locator("#thread .msg-assistant").last

    @property
    def said(self) -> Locator:
        return self.page.locator("#thread .msg-user")

    def order(self) -> list[str]:
        """Who speaks, from above to below."""
        articles = self.page.locator("#thread article.msg").all()
        return ["user" if "msg-user" in (a.get_attribute("class") or "") else "assistant" for a in articles]

    def settles(self, state: str = "done") -> Locator:
        """Wait until the last answer is over in this state, and return it."""
        expect(self.answer).to_have_attribute("data-state", state, timeout=40_000)
        return self.answer

    def scrolled(self) -> float:
        """Where the conversation stands once nothing moves it any more, in pixels from its top."""
        self.page.wait_for_function(STANDS_STILL)
        top: float = self.page.evaluate("document.querySelector('#scroller').scrollTop")
        return top

    def phase(self, phase: str) -> None:
        expect(self.page.locator("#main")).to_have_attribute("data-phase", phase)

    def text(self) -> str:
        """The words of the last answer, without what only moves: times and the caret."""
        return "\n".join(self.answer.locator(".prose").all_inner_texts())


def window(browser: Browser, base: str, state: Any, **how: Any) -> tuple[BrowserContext, Desk]:
    """Open a window of its own, signed in, 1280 by 800 unless told otherwise."""
    context = browser.new_context(storage_state=state, **{"viewport": {"width": 1280, "height": 800}, **how})
    return context, Desk(context.new_page(), base)
