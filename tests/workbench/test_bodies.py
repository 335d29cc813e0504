"""Bodies as the web server takes them in, on Twisted's own channel with a transport in memory."""

from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet.testing import StringTransport
from twisted.web import http

from workbench.bodies import BoundedRequest

FORM = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nvalue\r\n--b--\r\n'


class Arrived(BoundedRequest):  # type: ignore[misc]  # Daphne is not typed
    """A request that keeps what arrived instead of asking an application."""

    most_bytes = 1000
    seen: list[tuple[bytes, dict[bytes, Any]]]

    def process(self) -> None:
        self.content.seek(0)
        self.seen.append((self.content.read(), self.args))


@pytest.fixture
def channel() -> Any:
    Arrived.seen = []
    daphne = SimpleNamespace(protocol_connected=lambda request: None, protocol_disconnected=lambda request: None)
    made = http.HTTPChannel()
    made.requestFactory = Arrived
    made.factory = SimpleNamespace(server=daphne, log=lambda request: None)
    made.timeOut = None
    made.callLater = lambda *args: SimpleNamespace(cancel=lambda: None, active=lambda: False)
    made.makeConnection(StringTransport())
    return made


def head(**headers: str) -> bytes:
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(["POST /files/ HTTP/1.1", "Host: localhost", *lines, "", ""]).encode()


def test_a_form_arrives_whole_and_unparsed(channel: Any) -> None:
    channel.dataReceived(head(Content_Type="multipart/form-data; boundary=b", Content_Length=str(len(FORM))) + FORM)
    assert Arrived.seen == [(FORM, {})]


def test_a_body_that_declares_too_much_is_refused_at_its_head(channel: Any) -> None:
    channel.dataReceived(head(Content_Length="1001"))
    assert channel.transport.value().startswith(b"HTTP/1.1 413 ")
    channel.dataReceived(b"x" * 1001)
    assert Arrived.seen == [] and channel.transport.disconnecting


def test_a_body_without_a_length_is_refused_once_it_is_too_long(channel: Any) -> None:
    channel.dataReceived(head(Transfer_Encoding="chunked"))
    channel.dataReceived(b"258\r\n" + b"x" * 600 + b"\r\n")
    assert channel.transport.value() == b""
    channel.dataReceived(b"258\r\n" + b"x" * 600 + b"\r\n0\r\n\r\n")
    assert channel.transport.value().startswith(b"HTTP/1.1 413 ")
    assert Arrived.seen == [] and channel.transport.disconnecting
