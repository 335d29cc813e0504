"""Request bodies as the web server takes them in: not parsed on the event loop, and never without an end.

Twisted, below Daphne, parses forms itself before Daphne sees them: an upload of 72 MB held the loop, and with it every
stream, for six seconds and several copies in memory. Django parses the same body again anyway, in a thread.
"""

from typing import Any, cast

import daphne.http_protocol
from daphne.http_protocol import WebRequest

READ_BYTES = 256 * 1024  # of a body, handed to the application at a time


class BoundedRequest(WebRequest):
    """A request whose body ends the connection once it is longer than `most_bytes`.

    The polite refusal is the application's: it answers bodies that are over its own limits. This one is for those
    that would fill the disk.
    """

    most_bytes = 1 << 30

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        cast(Any, super()).__init__(*args, **kwargs)
        self._parsePOSTFormSubmission = False
        self._refused = False

    def gotLength(self, length: int | None) -> None:
        cast(Any, super()).gotLength(length)
        if length is not None and length > self.most_bytes:
            self._refuse()

    def handleContentChunk(self, data: bytes) -> None:
        body: Any = self.content
        if not self._refused and body.tell() + len(data) > self.most_bytes:
            self._refuse()
        if not self._refused:
            cast(Any, super()).handleContentChunk(data)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        if not self._refused:
            cast(Any, super()).requestReceived(command, path, version)

    def _refuse(self) -> None:
        self._refused = True
        body: Any = self.content
        body.close()
        channel: Any = self.channel
        channel.transport.write(b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        channel.loseConnection()


def bound(most_bytes: int) -> None:
    """Let Daphne make bounded requests from now on. For the start of a web process."""
    BoundedRequest.most_bytes = most_bytes
    # Daphne's factory takes its request class by this name of its module
    setattr(daphne.http_protocol, "WebRequest", BoundedRequest)  # noqa: B010 - mypy: not exported
