"""The web server itself: backpressure, message limits, order, stopping. Real processes, real sockets."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from workbench.serve import text_frame

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 20.0


class Server:
    """The process of tests/workbench/socketserver.py."""

    def __init__(self) -> None:
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen(64)
            self.port = listening.getsockname()[1]
            self.process = subprocess.Popen(
                [sys.executable, "-u", "-m", "tests.workbench.socketserver", str(listening.fileno())],
                cwd=ROOT,
                env=os.environ,
                pass_fds=[listening.fileno()],
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self.line() == "up"

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def client(self) -> connect:
        return connect(f"ws://127.0.0.1:{self.port}/", max_size=None, max_queue=1, compression=None)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


async def read(client: ClientConnection) -> str:
    async with asyncio.timeout(PATIENCE_S):
        message = await client.recv()
    assert isinstance(message, str)
    return message


async def memory_kib(client: ClientConnection) -> int:
    await client.send("memory")
    return int(await read(client))


async def test_a_client_that_reads_nothing_costs_no_memory(server: Server) -> None:
    async with server.client() as deaf, server.client() as other:
        before = await memory_kib(other)
        await deaf.send("flood 2000 100000")  # 200 MB
        for _ in range(20):  # the other socket is served meanwhile
            after = await memory_kib(other)
        assert after - before < 20_000
        for n in range(2000):
            assert (await read(deaf)).startswith(f"{n} ")


async def test_quick_send_refuses_while_the_client_does_not_read(server: Server) -> None:
    async with server.client() as client:
        await client.send("quick 1000 100000")
        async with asyncio.timeout(PATIENCE_S):
            line = await asyncio.to_thread(server.line)
        taken = int(line.split()[1])
        assert 0 < taken < 1000 and line.endswith("ready False")
        for n in range(taken):
            assert (await read(client)).startswith(f"{n} ")
        assert await read(client) == f"taken {taken}"


async def test_frames_of_every_length_arrive_whole_and_in_order(server: Server) -> None:
    async with server.client() as client:
        for size in (2, 125, 126, 127, 65_535, 65_536, 70_000, 3_000_000):
            await client.send(f"quick 1 {size}")
            assert len(await read(client)) == size
            assert await read(client) == "taken 1"


@pytest.mark.parametrize("size", [1_000_000, 15 * 1024 * 1024])
async def test_messages_up_to_16_mib_are_taken(server: Server, size: int) -> None:
    async with server.client() as client:
        await client.send("size ".ljust(size, "x"))
        assert await read(client) == str(size)


async def test_a_larger_message_closes_the_socket_and_nothing_else(server: Server) -> None:
    async with server.client() as client, server.client() as other:
        with pytest.raises(ConnectionClosed) as closed:
            await client.send("size ".ljust(17 * 1024 * 1024, "x"))
            await read(client)
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009
        assert await memory_kib(other) > 0


async def test_a_client_that_sends_faster_than_it_is_served_is_not_read_without_bound(server: Server) -> None:
    async with server.client() as client, server.client() as other:
        before = await memory_kib(other)
        await client.send("flood 200 1000000")  # served only once it is read: what follows waits in the kernel

        async def push() -> None:
            for _ in range(400):
                await client.send("size ".ljust(1_000_000, "x"))

        pushing = asyncio.create_task(push())
        for _ in range(20):
            after = await memory_kib(other)
        assert after - before < 150_000
        for n in range(200):
            assert (await read(client)).startswith(f"{n} ")
        for _ in range(400):
            assert await read(client) == "1000000"
        await pushing


async def test_a_streaming_response_waits_for_its_client(server: Server) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
    writer.write(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
    await writer.drain()
    async with server.client() as other:
        before = await memory_kib(other)
        for _ in range(50):
            after = await memory_kib(other)
        assert after - before < 40_000
        writer.transport.abort()
        assert await memory_kib(other) > 0  # and a client that goes in the middle is no trouble


async def test_a_streaming_response_ends(server: Server) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    async with asyncio.timeout(PATIENCE_S):
        body = await reader.read(-1)
    assert body.count(b"x") >= 3_000_000
    writer.close()
    await writer.wait_closed()


async def test_sigterm_announces_drains_closes_and_ends(server: Server) -> None:
    async with server.client() as client:
        assert await memory_kib(client) > 0
        server.process.send_signal(signal.SIGTERM)
        with pytest.raises(ConnectionClosed) as closed:
            await read(client)
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1012
    assert await asyncio.to_thread(server.process.wait, PATIENCE_S) == 0
    assert [server.line(), server.line()] == ["announced", "drained 5.0"]
    with pytest.raises(OSError):
        await asyncio.open_connection("127.0.0.1", server.port)


def test_a_text_frame_is_what_rfc_6455_says() -> None:
    assert text_frame(b"Hello") == bytes([0x81, 0x05]) + b"Hello"
    assert text_frame(b"x" * 256)[:4] == bytes([0x81, 0x7E, 0x01, 0x00])
    assert text_frame(b"x" * 65536)[:10] == bytes([0x81, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0])
