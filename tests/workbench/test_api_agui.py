"""The HTTP doors: a run as server-sent events, history, cancel, capabilities."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from ag_ui.core.capabilities import AgentCapabilities
from django.conf import settings
from django.test import AsyncClient

from agents.runtime.testing import ScriptedModel, WaitFor, text, turn
from tests.agents.house import house, until
from tests.protocols.checker import apply, check
from tests.workbench.door import PATIENCE_S, cookie_of, question, token_of
from workbench import sinks
from workbench.api import STATUS

pytestmark = pytest.mark.django_db(transaction=True)

JSON = "application/json"


class Caller:
    """A client with a token, or with cookies (given as headers, two of them would be joined wrongly)."""

    def __init__(self, token: str = "", cookies: str = "", **headers: str) -> None:
        self.client = AsyncClient(enforce_csrf_checks=True)
        self.client.cookies.load(cookies)
        self.headers = {**({"authorization": f"Bearer {token}"} if token else {}), **headers}

    async def post(self, path: str, value: Any, **headers: str) -> Any:
        body = value if isinstance(value, bytes) else orjson.dumps(value)
        return await self.client.post(path, body, content_type=JSON, headers={**self.headers, **headers})

    async def get(self, path: str) -> Any:
        return await self.client.get(path, headers=self.headers)


async def caller(user: Any, scope: str = "run") -> Caller:
    return Caller(await token_of(user, scope))


def frames_of(body: bytes) -> list[bytes]:
    return [part[6:] for part in body.split(b"\n\n") if part.startswith(b"data: ")]


async def read(response: Any) -> list[bytes]:
    assert response.status_code == 200, response.content
    assert response["Content-Type"] == "text/event-stream"
    if not response.streaming:
        return frames_of(response.content)
    async with asyncio.timeout(PATIENCE_S):
        return frames_of(b"".join([part async for part in response.streaming_content]))


async def parts(response: Any) -> AsyncIterator[bytes]:
    async for part in response.streaming_content:
        yield part


async def test_a_run_streams_to_its_end(alice: Any) -> None:
    async with house(ScriptedModel(turn(text("Hello ", "you.")))):
        response = await (await caller(alice)).post("/agui/", question())
        events = check(await read(response))
        assert apply(events)[-1]["content"] == "Hello you."
        assert response["Access-Control-Allow-Origin"] == "*"
        assert response["Cache-Control"] == "no-store"


async def test_a_client_that_leaves_stops_nothing_and_may_come_back(alice: Any) -> None:
    go, reached = asyncio.Event(), asyncio.Event()
    async with house(ScriptedModel(turn(text("a "), WaitFor(go, reached), text("b")))) as live:
        who = await caller(alice)
        asked = question()
        response = await who.post("/agui/", asked)
        stream = parts(response)
        await anext(stream)
        await reached.wait()
        await stream.aclose()
        await response.streaming_content.aclose()
        go.set()
        await until(lambda: not live.runs)
        again = check(await read(await who.post("/agui/", asked)))
        assert apply(again)[-1]["content"] == "a b"


async def test_a_silent_run_sends_comments(alice: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinks, "HEARTBEAT_S", 0.01)
    go, reached = asyncio.Event(), asyncio.Event()
    async with house(ScriptedModel(turn(WaitFor(go, reached), text("Hi")))):
        response = await (await caller(alice)).post("/agui/", question())
        got = b""
        async for part in response.streaming_content:
            got += part
            if part.startswith(b":"):
                go.set()
        assert b": still here\n\n" in got
        check(frames_of(got))


async def test_the_address_names_the_agent(alice: Any) -> None:
    async with house(ScriptedModel(turn(text("Hi")))):
        who = await caller(alice)
        check(await read(await who.post("/agui/assistant/", question())))
        refused = await who.post("/agui/nobody/", question(thread="t2"))
        assert (refused.status_code, refused.json()["code"]) == (404, "agent_unavailable")


async def test_a_request_that_cannot_become_a_run_is_no_stream(alice: Any) -> None:
    async with house(ScriptedModel()):
        who = await caller(alice)
        for body, status, code in (
            (b"{", 400, "invalid_input"),
            ({**question(), "messages": []}, 400, "invalid_input"),
            ({**question(), "messages": [{"id": "m", "role": "assistant"}]}, 400, "unsupported_role"),
            (question(forwardedProps={"workbench": {"action": "continue"}}), 404, "thread_not_found"),
        ):
            response = await who.post("/agui/", body)
            assert (response.status_code, response.json()["code"]) == (status, code)
            assert response["Content-Type"] == JSON


async def test_a_busy_thread_is_409_and_cancel_frees_it(alice: Any) -> None:
    go, reached = asyncio.Event(), asyncio.Event()
    async with house(ScriptedModel(turn(text("a"), WaitFor(go, reached)))):
        who = await caller(alice)
        asked = question()
        response = await who.post("/agui/", asked)
        await reached.wait()
        assert (await who.post("/agui/", question())).status_code == 409
        ids = {"threadId": "t", "runId": asked["runId"]}
        assert (await who.post("/agui/cancel/", ids)).status_code == 200
        assert check(await read(response))[-1]["outcome"] == {"type": "cancelled"}
        assert (await who.post("/agui/cancel/", ids)).status_code == 404
        assert (await who.post("/agui/cancel/", {"threadId": "t"})).status_code == 400


async def test_history_comes_as_a_closed_run_or_in_pages(alice: Any) -> None:
    async with house(ScriptedModel(turn(text("one")), turn(text("two")))):
        who = await caller(alice)
        for words in ("One", "Two"):
            await read(await who.post("/agui/", question(words)))
        run = check(await read(await who.post("/agui/history/", {"threadId": "t"})), first_seq=None)
        assert [m["content"] for m in run[1]["messages"]] == ["One", "one", "Two", "two"]
        page = (await who.post("/agui/history/", {"threadId": "t", "limit": 3}, accept=JSON)).json()
        assert page["truncated"] is True
        found = page["messages"]
        while page["truncated"]:
            asked = {"threadId": "t", "limit": 3, "before": page["before"]}
            page = (await who.post("/agui/history/", asked, accept=JSON)).json()
            found = page["messages"] + found
        assert [m["content"] for m in found] == ["One", "one", "Two", "two"]


async def test_what_belongs_to_somebody_else_is_not_found(alice: Any, bob: Any) -> None:
    async with house(ScriptedModel(turn(text("secret")))):
        asked = question()
        await read(await (await caller(alice)).post("/agui/", asked))
        his = await caller(bob)
        for path, value in (("history", {"threadId": "t"}), ("cancel", {"threadId": "t", "runId": asked["runId"]})):
            response = await his.post(f"/agui/{path}/", value)
            assert (response.status_code, response.json()["code"]) == (404, "thread_not_found")


async def test_who_is_not_known_gets_401_and_who_may_not_403(alice: Any) -> None:
    for who in (Caller(), Caller("wb_" + "x" * 43), Caller(authorization="Basic abc")):
        response = await who.post("/agui/", question())
        assert (response.status_code, response["WWW-Authenticate"]) == (401, "Bearer")
    reader = await caller(alice, "read")
    assert (await reader.post("/agui/", question())).status_code == 403
    async with house(ScriptedModel()):
        assert (await reader.get("/agui/capabilities/")).status_code == 200


async def test_a_cookie_needs_the_csrf_header(alice: Any) -> None:
    cookie = await cookie_of(alice)

    token = "a" * 32
    async with house(ScriptedModel(turn(text("Hi")))):
        cookies = f"{cookie}; {settings.CSRF_COOKIE_NAME}={token}"
        refused = await Caller(cookies=cookies).post("/agui/", question())
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        response = await Caller(cookies=cookies, **{"x-csrftoken": token}).post("/agui/", question())
        check(await read(response))
        assert "Access-Control-Allow-Origin" not in response


async def test_other_methods_and_preflights() -> None:
    assert (await Caller().get("/agui/")).status_code == 405
    answer = await AsyncClient().options("/agui/", headers={"origin": "http://other.example"})
    assert answer.status_code == 204
    assert "authorization" in answer["Access-Control-Allow-Headers"]
    assert "Access-Control-Allow-Credentials" not in answer


async def test_a_body_over_the_limit_is_413(alice: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "DATA_UPLOAD_MAX_MEMORY_SIZE", 1000)
    response = await (await caller(alice)).post("/agui/", {"x": "y" * 2000})
    assert (response.status_code, response.json()["code"]) == (413, "payload_too_large")


async def test_capabilities_name_agents_and_models(alice: Any) -> None:
    async with house(ScriptedModel()):
        found = (await (await caller(alice)).get("/agui/capabilities/")).json()
        AgentCapabilities.model_validate(found)
        assert found["custom"]["workbench"]["agents"] == ["assistant"]
        assert found["custom"]["workbench"]["models"] == ["offline"]


def test_every_code_has_one_status() -> None:
    assert {code for code, status in STATUS.items() if status == 404} >= {"thread_not_found", "message_not_found"}
    assert all(400 <= status < 600 for status in STATUS.values())
