"""Two real installations, one offline and one with a scripted model server, and a real Chromium."""

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.e2e.browser import CHROMIUM, FLAGS, Desk, window
from tests.modelserver import Data, ModelServer, Received, Reply, Steady, finish, text
from tests.workbench.installation import Up


@dataclass(slots=True, kw_only=True)
class House:
    """An installation and the cookies of its owner."""

    up: Up
    state: Any
    env: dict[str, str]

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.up.port}"


Open = Callable[..., Desk]
EXTRACTING = "memory_supersede"  # no run offers this tool


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


class Scripted(ModelServer):
    """Scripts are for conversations: the job that finds a title brings no tools and gets a title, and the one that
    looks for what to remember, alone with a tool of that name, finds nothing; a review finds nothing to learn."""

    def _accept(self, request: Received) -> Reply:
        if request.path.endswith("/chat/completions"):
            if not _tools(request) and request.body["messages"][0]["content"].startswith("You review how"):
                return Reply(steps=(*text('{"skip_reason": "nothing to learn"}'), *finish()))
            if not _tools(request):
                return Reply(steps=(*text("A fitting title"), *finish()))
            if EXTRACTING in _tools(request):
                return Reply(steps=(*text("Nothing to remember."), *finish()))
        return cited(super()._accept(request), request)

    @property
    def asked(self) -> list[Received]:
        """The requests for answers so far."""
        return [chat for chat in self.chats if (names := _tools(chat)) and EXTRACTING not in names]

    def forget(self) -> None:
        with self._changed:
            self._replies.clear()


def _tools(request: Received) -> list[str]:
    return [tool["function"]["name"] for tool in request.body.get("tools") or ()]


def cited(reply: Reply, request: Received) -> Reply:
    """Fill in what only the request knows: "[[c:{1}]]" becomes the marker of the first passage a tool brought."""
    told = "\n".join(m["content"] for m in (request.body or {}).get("messages", ()) if m["role"] == "tool")
    markers = re.findall(r"(?m)^\[\[c:([a-z2-7]{6})\]\]", told)
    steps = tuple(_filled(step, markers) if isinstance(step, Data) else step for step in reply.steps)
    return replace(reply, steps=steps)


def _filled(step: Data, markers: list[str]) -> Data:
    value = json.dumps(step.value)
    for number, marker in enumerate(markers, 1):
        value = value.replace(f"{{{number}}}", marker)
    return Data(json.loads(value))


@pytest.fixture(scope="package")
def model_server() -> Iterator[Scripted]:
    with Scripted(steady=Steady(tokens=8)) as server:
        yield server


@pytest.fixture
def model(model_server: Scripted) -> Scripted:
    """The scripted model, with nothing left over from the test before."""
    model_server.forget()
    return model_server


@pytest.fixture(scope="package")
def offline_house(browser: Browser) -> Iterator[House]:
    yield from _house(browser, {})


@pytest.fixture(scope="package")
def model_house(browser: Browser, model_server: Scripted) -> Iterator[House]:
    yield from _house(browser, _with_model(model_server))


@pytest.fixture
def fresh_desk(browser: Browser, model_server: Scripted, model: Scripted) -> Iterator[Open]:
    """Open windows on an installation with the scripted model that has learnt nothing yet of what its tokens cost."""
    for house in _house(browser, _with_model(model_server)):
        yield from _windows(browser, house)


def _with_model(server: Scripted) -> dict[str, str]:
    return {
        "OPENAI_BASE_URL": server.base_url,
        "OPENAI_API_KEY": "test",
        "OPENAI_MODEL": "test",
        "MODELS": '[{"name": "smaller", "window": 28000}]',
        "RUNS_PER_OWNER": "20",
    }


def sign_in(browser: Browser, link: str) -> Any:
    """Use a sign-in link and return the cookies of the session."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(link)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector("#composer-text")
    state = context.storage_state()
    context.close()
    return state


def _house(browser: Browser, env: dict[str, str]) -> Iterator[House]:
    data = Path(tempfile.mkdtemp(prefix="wb-e2e-"))  # short: a socket's path has at most 107 bytes
    data.chmod(0o711)
    up = Up(data, **env).ready()
    try:
        yield House(up=up, state=sign_in(browser, f"http://127.0.0.1:{up.port}{up.link}"), env=env)
    finally:
        up.stop()
        shutil.rmtree(data, ignore_errors=True)
        up.log.unlink(missing_ok=True)


@pytest.fixture
def desk(browser: Browser, model_house: House, model: Scripted) -> Iterator[Open]:
    """Open windows on the installation with the scripted model; fails if a page complained."""
    yield from _windows(browser, model_house)


@pytest.fixture
def offline_desk(browser: Browser, offline_house: House) -> Iterator[Open]:
    """Open windows on the installation without a model."""
    yield from _windows(browser, offline_house)


def _windows(browser: Browser, house: House) -> Iterator[Open]:
    contexts = []
    desks: list[Desk] = []

    def open_window(**how: Any) -> Desk:
        context, desk = window(browser, house.base, house.state, **how)
        contexts.append(context)
        desks.append(desk)
        return desk

    yield open_window
    complaints = [line for desk in desks for line in desk.complaints]
    for context in contexts:
        context.close()
    assert not complaints
