"""Who is let in, how much they may do, and what becomes of those who misbehave."""

import asyncio
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.contrib.sessions.models import Session
from django.test import Client

from agents import hints
from agents.runtime.testing import ScriptedModel, text, turn
from tests.agents.house import house
from tests.agents.wall import cutting_who_reads
from tests.protocols.checker import check
from tests.workbench.door import PATIENCE_S, Door, cookie_of, door, knock, question, token_of
from workbench import consumers
from workbench.limits import OwnerLimits
from workbench.models import ApiToken
from workbench.sinks import SocketSink

pytestmark = pytest.mark.django_db(transaction=True)


async def let_in(**how: Any) -> int | None:
    """Return the code a socket is turned away with; None if it is let in."""
    wire = knock(**how)
    accepted, code = await wire.connect(timeout=PATIENCE_S)
    if not accepted:
        return int(code or 403)
    opened = Door(wire)
    first = await opened.hear()
    if first["type"] == "hello":
        await wire.disconnect(timeout=PATIENCE_S)
        return None
    assert first["type"] == "closing"
    return await opened.closed()


async def test_a_cookie_opens_only_from_our_own_origin(alice: Any) -> None:
    cookie = await cookie_of(alice)
    host = "http://testserver"
    assert await let_in(cookie=cookie, origin=host) is None
    for origin in ("", "null", "http://evil.example", "http://testserver:81", "http://testserver.evil.example", "//x"):
        assert await let_in(cookie=cookie, origin=origin) == 4401, origin


async def test_without_a_sign_in_the_socket_says_why_it_closes(alice: Any) -> None:
    assert await let_in(origin="http://testserver") == 4401
    assert await let_in(cookie="x=1", origin="http://testserver") == 4401
    assert await let_in(token="wb_" + "x" * 43) == 4401
    assert await let_in(token="nonsense") == 4401


async def test_a_token_opens_from_anywhere_by_header_or_by_subprotocol(alice: Any) -> None:
    token = await token_of(alice)
    assert await let_in(token=token) is None
    assert await let_in(token=token, origin="http://other.example") is None
    wire = knock(protocols=("agui.v1", f"bearer.{token}"), origin="http://other.example")
    accepted, subprotocol = await wire.connect(timeout=PATIENCE_S)
    assert accepted
    assert subprotocol == "agui.v1"  # and never the token
    await wire.disconnect(timeout=PATIENCE_S)


async def test_a_revoked_token_and_an_inactive_person_stay_out(alice: Any, bob: Any) -> None:
    revoked, inactive = await token_of(alice), await token_of(bob)

    def change() -> None:
        row = ApiToken.objects.of(alice.pk).get()
        row.revoked_at = row.created_at
        row.save()
        bob.is_active = False
        bob.save()

    await database_sync_to_async(change)()
    assert await let_in(token=revoked) == 4401
    assert await let_in(token=inactive) == 4401


async def test_a_token_that_is_revoked_meanwhile_closes_the_socket(alice: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "TRUST_S", 0.0)
    async with house(ScriptedModel()), door(token=await token_of(alice)) as socket:
        await database_sync_to_async(lambda: ApiToken.objects.of(alice.pk).all().delete())()
        await socket.say(type="attach", threadId="t", after=0)
        assert await socket.closed() == 4401


async def test_no_frame_tells_whether_a_thread_of_another_exists(alice: Any, bob: Any) -> None:
    async with house(ScriptedModel(turn(text("Hi")))):
        async with door(token=await token_of(alice)) as socket:
            await socket.run(question(run="r"))
        async with door(token=await token_of(bob)) as socket:
            for thread in ("t", "nobodys"):
                for more in ({}, {"after": 0}, {"runId": "r", "after": 0}):
                    await socket.say(type="attach", threadId=thread, **more)
                    assert (await socket.until("rejected"))["code"] == "thread_not_found"


async def test_a_frame_that_cannot_be_read_is_answered_by_its_request_id(alice: Any) -> None:
    async with house(ScriptedModel()), door(token=await token_of(alice)) as socket:
        await socket.say(type="attach", threadId="t", after=-1, requestId="q1")
        refused = await socket.hear()
        assert (refused["what"], refused["requestId"], refused["threadId"]) == ("attach", "q1", "t")


async def test_a_socket_that_only_listens_is_closed_when_its_token_is_revoked(
    alice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pings must not keep it open, and silence must not either: it would hear every run for as long as it likes."""
    monkeypatch.setattr(consumers, "TRUST_S", 0.2)
    async with house(ScriptedModel()), door(token=await token_of(alice)) as socket:
        await database_sync_to_async(lambda: ApiToken.objects.of(alice.pk).all().delete())()
        await socket.say(type="ping")
        assert await socket.closed() == 4401
        assert socket.frames[-1]["reason"] == "auth"


async def test_a_sign_out_closes_the_sockets_of_that_browser(alice: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "TRUST_S", 0.2)
    async with house(ScriptedModel()), door(cookie=await cookie_of(alice), origin="http://testserver") as socket:
        await database_sync_to_async(lambda: Session.objects.all().delete())()
        assert await socket.closed() == 4401


async def test_a_database_that_is_away_closes_no_socket_and_says_come_back(
    alice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await token_of(alice)
    async with house(ScriptedModel()), door(token=token) as socket, cutting_who_reads("workbench_apitoken"):
        monkeypatch.setattr(consumers, "TRUST_S", -1.0)
        await socket.say(type="detach", threadId="t")
        assert (await socket.hear())["type"] == "accepted"
        assert await let_in(token=token) == 1012


async def test_the_token_is_neither_answered_nor_logged(alice: Any, caplog: pytest.LogCaptureFixture) -> None:
    token = await token_of(alice)
    caplog.set_level("DEBUG")
    async with house(ScriptedModel(turn(text("Hi")))), door(token=token) as socket:
        await socket.run(question())
        assert token not in b"".join(socket.raw).decode()
    assert await let_in(token=token + "x") == 4401
    assert token not in caplog.text


async def test_a_reading_token_reads_and_starts_nothing(alice: Any) -> None:
    async with house(ScriptedModel(turn(text("Hi")))):
        async with door(token=await token_of(alice)) as socket:
            await socket.run(question())
        async with door(token=await token_of(alice, scope="read")) as socket:
            for frame in (
                {"type": "run", "input": question()},
                {"type": "cancel", "threadId": "t", "runId": "r"},
                {
                    "type": "steer",
                    "threadId": "t",
                    "runId": "r",
                    "message": {"id": "u", "role": "user", "content": "x"},
                },
            ):
                await socket.say(**frame)
                assert (await socket.until("rejected"))["code"] == "forbidden"
            await socket.say(type="attach", threadId="t")
            await socket.until("RUN_FINISHED")


async def test_what_belongs_to_somebody_else_is_not_there(alice: Any, bob: Any) -> None:
    async with house(ScriptedModel(turn(text("secret")), turn(text("mine")))):
        async with door(token=await token_of(alice)) as socket:
            asked = question()
            await socket.run(asked)
        async with door(token=await token_of(bob)) as socket:
            message = {"id": "u", "role": "user", "content": "x"}
            for frame in (
                {"type": "attach", "threadId": "t"},
                {"type": "attach", "threadId": "t", "after": 0},
                {"type": "attach", "threadId": "unheard-of"},
                {"type": "cancel", "threadId": "t", "runId": asked["runId"]},
                {"type": "steer", "threadId": "t", "runId": asked["runId"], "message": message},
                {"type": "run", "input": question(run="x", forwardedProps={"workbench": {"action": "continue"}})},
            ):
                await socket.say(**frame)
                assert (await socket.until("rejected"))["code"] == "thread_not_found", frame
            # the same thread id is simply a thread of bob's own
            events = await socket.run(question())
            assert "secret" not in str(events)


async def test_an_unknown_agent_in_the_address_is_refused(alice: Any) -> None:
    async with house(ScriptedModel()), door(token=await token_of(alice), path="/ws/agui/nobody/") as socket:
        await socket.say(type="run", input=question())
        assert (await socket.until("rejected"))["code"] == "agent_unavailable"


async def test_any_other_address_is_refused(alice: Any) -> None:
    wire = knock(token=await token_of(alice), path="/ws/other/")
    accepted, _ = await wire.connect(timeout=PATIENCE_S)
    assert not accepted


async def test_garbage_is_refused_and_many_of_it_close_the_socket(alice: Any) -> None:
    async with door(token=await token_of(alice)) as socket:
        await socket.wire.send_to(text_data="{nonsense")
        assert (await socket.until("rejected"))["code"] == "invalid_input"
        await socket.wire.send_to(bytes_data=b"\x00\xff")
        assert (await socket.until("rejected"))["code"] == "invalid_input"
        for _ in range(consumers.BAD_FRAMES):
            await socket.wire.send_to(text_data="[]")
        assert await socket.closed() == 4400
        assert socket.frames[-1]["reason"] == "protocol"


async def test_a_megabyte_of_history_is_taken(alice: Any) -> None:
    async with house(ScriptedModel(turn(text("Hi")))), door(token=await token_of(alice)) as socket:
        asked = question()
        filler = {"id": "m-old", "role": "assistant", "content": "x" * 1_000_000}
        asked["messages"] = [filler, *asked["messages"]]
        await socket.run(asked)
        check(socket.raw_events(asked["runId"]))


async def test_frames_over_the_rate_are_refused_and_then_the_socket_closes(
    alice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(consumers, "_limits", OwnerLimits(sockets=1, frames_per_second=2, now=lambda: now))
    monkeypatch.setattr(consumers, "EXCESS_FRAMES", 3)
    async with door(token=await token_of(alice)) as socket:
        for _ in range(4):
            await socket.say(type="ping")
            await socket.until("pong")
        await socket.say(type="ping")
        assert (await socket.until("rejected"))["code"] == "rate_limited"
        now = 1.0
        await socket.say(type="ping")
        await socket.until("pong")
        for _ in range(6):
            await socket.say(type="ping")
        assert await socket.closed() == 4429


async def test_an_owner_has_so_many_sockets_and_no_more(alice: Any, bob: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "_limits", OwnerLimits(sockets=1, frames_per_second=9, now=lambda: 0.0))
    token = await token_of(alice)
    async with door(token=token):
        assert await let_in(token=token) == 4429
        assert await let_in(token=await token_of(bob)) is None
    assert await let_in(token=token) is None


async def test_a_hint_becomes_a_control_frame_of_its_owner_only(alice: Any, bob: Any) -> None:
    async with door(token=await token_of(alice)) as hers, door(token=await token_of(bob)) as his:
        async with asyncio.timeout(PATIENCE_S):
            heard = asyncio.ensure_future(hers.until("thread"))
            while not heard.done():  # joining the group takes a moment, and a hint that nobody hears is gone
                await hints.thread_changed(alice.pk, "t", "title")
                await asyncio.wait({heard}, timeout=0.05)
        assert heard.result() == {"type": "thread", "threadId": "t", "changed": "title"}
        await his.say(type="ping")
        await his.until("pong")
        assert [f["type"] for f in his.frames] == ["pong"]


async def test_documents_that_change_are_a_control_frame_of_their_owner_only(alice: Any, bob: Any) -> None:
    async with door(token=await token_of(alice)) as hers, door(token=await token_of(bob)) as his:
        async with asyncio.timeout(PATIENCE_S):
            heard = asyncio.ensure_future(hers.until("documents"))
            while not heard.done():
                await hints.documents_changed(alice.pk, ["a1", "a2"])
                await asyncio.wait({heard}, timeout=0.05)
        assert heard.result() == {"type": "documents", "ids": ["a1", "a2"]}
        await his.say(type="ping")
        await his.until("pong")
        assert [f["type"] for f in his.frames] == ["pong"]


async def test_a_server_that_stops_says_so_to_every_socket(alice: Any) -> None:
    async with door(token=await token_of(alice)) as socket:
        consumers.announce_shutdown()
        said = await socket.until("closing")
        assert (said["reason"], said["retry"]) == ("shutdown", True)


class SlowSocket:
    """A fast way that is open or shut."""

    def __init__(self) -> None:
        self.open = True
        self.sent: list[bytes] = []

    def quick_send(self, *payloads: bytes) -> bool:
        if self.open:
            self.sent += payloads
        return self.open


async def test_frames_keep_their_order_over_the_fast_way_and_the_slow_one() -> None:
    socket, paused = SlowSocket(), asyncio.Event()

    async def slowly(message: dict[str, Any]) -> None:
        await paused.wait()
        socket.sent.append(message["text"].encode())

    sink = SocketSink(slowly, socket)
    assert sink.try_send(b"1")
    socket.open = False
    assert not sink.try_send(b"lost if it said yes")
    waiting = asyncio.ensure_future(sink.send(b"2"))
    await asyncio.sleep(0)
    sink.run_started("t", "r")
    socket.open = True
    assert not sink.try_send(b"would overtake")
    paused.set()
    await waiting
    await sink.send(b"3")
    assert [frame[:1] for frame in socket.sent] == [b"1", b"2", b"{", b"3"]
    sink.close()
    assert not sink.try_send(b"4")
    await sink.send(b"5")
    assert len(socket.sent) == 4


async def test_signing_out_closes_the_browsers_sockets_at_once_and_leaves_the_others(alice: Any) -> None:
    mine = await cookie_of(alice)
    async with (
        house(ScriptedModel()),
        door(cookie=mine, origin="http://testserver") as tab,
        door(token=await token_of(alice)) as elsewhere,
    ):
        name, _, value = mine.partition("=")

        def sign_out() -> int:
            client = Client()
            client.cookies[name] = value
            return client.post("/signout/").status_code

        assert await database_sync_to_async(sign_out)() == 302
        assert await tab.closed() == 4401
        await elsewhere.say(type="ping")
        await elsewhere.until("pong")
