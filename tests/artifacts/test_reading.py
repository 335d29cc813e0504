"""Text out of files, through the store: the child process, its limits, pages and anchors."""

import asyncio
import gzip
import io
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.runtime.artifacts import ArtifactRef, ArtifactUnreadable, TextPage
from artifacts import reading
from artifacts.models import Version
from artifacts.store import DjangoArtifactStore, in_thread
from artifacts.textfile import TextReader, TextWriter
from tests.artifacts.pdfs import PICTURE, encrypted, pdf
from tests.artifacts.test_store import blobs_in


async def saved(store: DjangoArtifactStore, name: str, data: bytes) -> ArtifactRef:
    return await store.save(name=name, data=data)


async def all_pages(store: DjangoArtifactStore, ref: ArtifactRef, max_chars: int) -> list[TextPage]:
    pages = [await store.read_text(ref, max_chars=max_chars)]
    while pages[-1].next_cursor:
        pages.append(await store.read_text(ref, cursor=pages[-1].next_cursor, max_chars=max_chars))
    return pages


async def test_text_comes_back_in_pages_that_join_to_the_whole(store: DjangoArtifactStore) -> None:
    text = "".join(f"Line {n}: 中文 and 👩‍👩‍👧 and 🇩🇪🇫🇷 e\u0301\n" for n in range(1, 3001))
    ref = await saved(store, "a.txt", text.encode())
    pages = await all_pages(store, ref, 7_000)
    assert "".join(page.text for page in pages) == text
    assert len(pages) > 5 and pages[0].total_chars == len(text) and pages[0].pages is None
    assert pages[0].anchor.startswith("lines 1-")
    assert pages[-1].anchor.endswith("-3000")
    last_line = int(pages[0].anchor.split("-")[1])
    assert pages[1].anchor.startswith(f"lines {last_line + 1}-")


async def test_a_page_never_ends_inside_of_what_a_reader_sees_as_one_character(store: DjangoArtifactStore) -> None:
    one = "👩‍👩‍👧‍👦"
    text = one * 500
    ref = await saved(store, "a.txt", text.encode())
    pages = await all_pages(store, ref, 1_000)
    assert "".join(page.text for page in pages) == text
    assert all(len(page.text) % len(one) == 0 for page in pages)


async def test_a_line_or_a_character_can_be_asked_for(store: DjangoArtifactStore) -> None:
    ref = await saved(store, "a.csv", "".join(f"{n},x\r\n" for n in range(1, 20_001)).encode())
    assert (await store.read_text(ref, cursor="line:15000", max_chars=100)).text.startswith("15000,x\n15001,x")
    assert (await store.read_text(ref, cursor="char:4", max_chars=100)).text.startswith("2,x\n")
    assert (await store.read_text(ref, cursor="4", max_chars=100)).text.startswith("2,x\n")
    with pytest.raises(ArtifactUnreadable, match="the file has 2000"):
        await store.read_text(ref, cursor="line:99999")
    with pytest.raises(ArtifactUnreadable, match="ends at character"):
        await store.read_text(ref, cursor="char:999999999")
    with pytest.raises(ArtifactUnreadable, match="has no pages"):
        await store.read_text(ref, cursor="page:1")
    with pytest.raises(ArtifactUnreadable, match="no place in a file"):
        await store.read_text(ref, cursor="somewhere")


async def test_markdown_is_anchored_by_its_headings(store: DjangoArtifactStore) -> None:
    text = "# Plan\n\n" + "a b c\n" * 50 + "## Budget\n```\n# not a heading\n```\n" + "d e f\n" * 50
    ref = await saved(store, "plan.md", text.encode())
    assert (await store.read_text(ref, max_chars=200)).anchor.endswith('under "Plan"')
    assert (await store.read_text(ref, cursor="line:80", max_chars=200)).anchor.endswith('under "Budget"')


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-8", "Grüße, 世界"),
        ("utf-8-sig", "Grüße, 世界"),
        ("utf-16", "Grüße, 世界"),
        ("gb18030", "会议纪要：我们明天去北京开会，请大家准备好材料。"),
        ("gb18030", "名称,数量\n苹果,3\n"),
        ("big5", "會議紀錄：我們明天去臺北開會。"),
        ("big5", "名稱,數量\n這個,3\n"),
        ("cp1252", "naïve café – “déjà vu”, 5 €"),
        ("cp1252", "ï"),
        ("cp1251", "Это обычный русский текст, который написан в старой кодировке. Он достаточно длинный." * 3),
        ("shift_jis", "これは日本語の文章です。文字コードはシフトJISで、十分に長い文章になっています。" * 3),
    ],
)
async def test_a_text_is_read_in_its_own_encoding(store: DjangoArtifactStore, encoding: str, text: str) -> None:
    ref = await saved(store, "a.txt", text.encode(encoding))
    assert (await store.read_text(ref)).text == text


async def test_one_broken_byte_does_not_turn_utf8_into_something_else(store: DjangoArtifactStore) -> None:
    ref = await saved(store, "a.txt", "世界和平".encode() * 50 + b"\xff" + " Grüße".encode())
    assert (await store.read_text(ref)).text == "世界和平" * 50 + "\ufffd Grüße"


async def test_a_pdf_is_read_with_its_pages(store: DjangoArtifactStore) -> None:
    data = pdf(*(f"Page text {n}\nBudget of year {2000 + n}: {n} € (about)" for n in range(1, 31)))
    ref = await saved(store, "report.pdf", data)
    first = await store.read_text(ref, max_chars=200)
    assert first.text.startswith("[page 1]\nPage text 1\nBudget of year 2001: 1 € (about)\n[page 2]\n")
    assert first.pages == 30 and first.anchor.startswith("pages 1-")
    third = await store.read_text(ref, cursor="page:30")
    assert third.text.startswith("[page 30]\nPage text 30") and third.anchor == "page 30" and third.next_cursor == ""
    with pytest.raises(ArtifactUnreadable, match="no page 31; the file has 30"):
        await store.read_text(ref, cursor="page:31")
    pages = await all_pages(store, ref, 300)
    assert "".join(page.text for page in pages).count("[page ") == 30


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-256"])
async def test_a_pdf_with_a_password_says_so_and_one_without_is_read(
    store: DjangoArtifactStore, algorithm: str
) -> None:
    data = pdf("Hidden words")
    locked = await saved(store, "locked.pdf", encrypted(data, user_password="secret", algorithm=algorithm))
    with pytest.raises(ArtifactUnreadable, match="protected by a password"):
        await store.read_text(locked)
    opened = await saved(store, "open.pdf", encrypted(data, user_password="", algorithm=algorithm))
    assert "Hidden words" in (await store.read_text(opened)).text


async def test_a_scan_says_that_it_has_no_text(store: DjangoArtifactStore) -> None:
    with pytest.raises(ArtifactUnreadable, match="pages are pictures"):
        await store.read_text(await saved(store, "scan.pdf", pdf(PICTURE, PICTURE)))
    mixed = await store.read_text(await saved(store, "mixed.pdf", pdf("Words", PICTURE)))
    assert mixed.text == "[page 1]\nWords\n[page 2]\n[Page 2 has no text; it may be a scan.]\n"
    with pytest.raises(ArtifactUnreadable, match="holds no text"):
        await store.read_text(await saved(store, "blank.pdf", pdf(b"", b"")))


@pytest.mark.parametrize("data", [b"%PDF-1.7\n", b"%PDF-1.4\n" + b"garbage " * 300, pdf("x")[:-200][40:]])
async def test_a_broken_pdf_says_so(store: DjangoArtifactStore, data: bytes) -> None:
    ref = await store.save(name="broken.pdf", data=data, mime="application/pdf")
    with pytest.raises(ArtifactUnreadable, match=r"is broken|holds no text"):
        await store.read_text(ref)


async def test_a_page_that_unpacks_to_too_much_is_left_out_and_said(store: DjangoArtifactStore) -> None:
    bomb = b"BT " + b"(aaaaaaaaaaaaaaaa) Tj " * 2_000_000  # 44 MB, packed to 100 KB
    only = await saved(store, "bomb.pdf", pdf(bomb))
    assert only.size_bytes < 300_000
    with pytest.raises(ArtifactUnreadable, match="unpacks to more"):
        await store.read_text(only)
    page = await store.read_text(await saved(store, "part.pdf", pdf("Before", bomb, "After")))
    assert "Before" in page.text and "After" in page.text and "[Page 2 unpacks to more than can be read.]" in page.text


async def test_a_file_that_takes_too_long_is_given_up(store: DjangoArtifactStore, settings: Any) -> None:
    settings.EXTRACT_TIMEOUT_S = 1
    slow = b"BT /F1 12 Tf " + b"(aaaa) Tj " * 900_000 + b"ET"
    with pytest.raises(ArtifactUnreadable, match="too long to read"):
        await store.read_text(await saved(store, "slow.pdf", pdf(slow)))


async def test_a_file_that_takes_too_much_memory_is_given_up(store: DjangoArtifactStore, settings: Any) -> None:
    settings.EXTRACT_MEMORY_BYTES = 100 * 1024 * 1024
    heavy = b"BT /F1 12 Tf " + b"(aaaa) Tj " * 900_000 + b"ET"
    with pytest.raises(ArtifactUnreadable, match=r"unpacks to more|too long"):
        await store.read_text(await saved(store, "heavy.pdf", pdf(heavy)))


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.png", b"\x89PNG\r\n\x1a\n" + bytes(50)), ("a.gz", gzip.compress(b"text", mtime=0)), ("b", bytes(9))],
)
async def test_what_is_not_text_says_so(store: DjangoArtifactStore, name: str, data: bytes) -> None:
    with pytest.raises(ArtifactUnreadable, match="no text can be read"):
        await store.read_text(await saved(store, name, data))


async def test_an_empty_file_says_so(store: DjangoArtifactStore) -> None:
    with pytest.raises(ArtifactUnreadable, match="holds no text"):
        await store.read_text(await saved(store, "empty.txt", b""))


async def test_the_text_is_extracted_once_and_again_when_it_is_lost(
    store: DjangoArtifactStore, files: Path, session: Any
) -> None:
    ref = await saved(store, "a.txt", b"words")
    await asyncio.gather(*(store.read_text(ref) for _ in range(5)))
    assert len(blobs_in(files)) == 2
    version = await in_thread(_version)(session.owner_id)
    assert version.text_status == "ready"
    (files / version.text_blob).write_bytes(b"rubbish")
    assert (await store.read_text(ref)).text == "words"
    (files / (await in_thread(_version)(session.owner_id)).text_blob).unlink()
    assert (await store.read_text(ref)).text == "words"


async def test_stop_ends_the_process_and_the_next_read_starts_anew(store: DjangoArtifactStore, session: Any) -> None:
    ref = await saved(store, "slow.pdf", pdf(b"BT /F1 12 Tf " + b"(aaaa) Tj " * 80_000 + b"ET"))
    reader = asyncio.create_task(store.read_text(ref))
    await asyncio.to_thread(until, lambda: bool(extracting()))
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    await asyncio.to_thread(until, lambda: not extracting())
    assert (await in_thread(_version)(session.owner_id)).text_status == "waiting"
    assert "aaaa" in (await store.read_text(ref)).text


def test_a_stopped_extraction_does_not_start() -> None:
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out:
        extraction = reading.Extraction(source, "text/plain")
        extraction.stop()
        with pytest.raises(reading.ExtractionFailed):
            extraction.run(out)


CONFINED = """
import os, socket, subprocess, sys
from artifacts.extract.confine import confine
confine(30, 1024 ** 3)
try:
    {attempt}
except (PermissionError, OSError, MemoryError) as e:
    print("refused", type(e).__name__)
else:
    print("done")
"""


@pytest.mark.parametrize(
    "attempt",
    [
        'socket.create_connection(("127.0.0.1", 5433))',
        "socket.socket(socket.AF_UNIX)",
        'subprocess.run(["true"])',
        'os.system("true")',
        "os.fork()",
        'open("/etc/passwd")',
        'open("/tmp/workbench-must-not-exist", "w")',
        "bytes(2 * 1024 ** 3)",
    ],
)
def test_the_extracting_process_can_do_nothing_but_read_its_file(attempt: str) -> None:
    command = [sys.executable, "-c", CONFINED.format(attempt=attempt)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.startswith("refused"), done


def test_the_extracting_process_dies_with_its_parent() -> None:
    waits = (
        "import time; from artifacts.extract.confine import confine\n"
        "confine(30, 2**30); print('up', flush=True); time.sleep(60)"
    )
    parent = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {waits!r}], stdout=subprocess.PIPE)\n"
        "child.stdout.readline(); print(child.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        pid = int(started.stdout.readline())
        started.send_signal(signal.SIGKILL)
    until(lambda: not _runs(pid))


def test_an_extracted_text_of_many_characters_is_read_at_any_place() -> None:
    out = io.BytesIO()
    writer = TextWriter(out)
    text = "".join(f"{n} 中🙂\n" for n in range(60_000))
    writer.add(text)
    writer.close()
    reader = TextReader(out)
    assert reader.index.total_chars == len(text)
    for start in (0, 1, 16_383, 16_384, 16_385, 100_000, len(text) - 5):
        assert reader.exactly(start, 50) == text[start : start + 50]
        assert reader.line_at(start) == text[:start].count("\n") + 1
    for line in (1, 2, 777, 30_000, 60_000):
        assert reader.exactly(reader.position_of_line(line), 6).startswith(f"{line - 1} ")
    assert reader.position_of_line(99_999) == len(text)


def until(condition: Callable[[], bool], timeout_s: float = 15.0) -> None:
    """Return once the condition holds. Other processes tell nobody when they change, so it is asked again and again."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        threading.Event().wait(0.02)


def extracting() -> list[int]:
    """Return the living extracting processes that this process started."""
    children = []
    for task in Path("/proc/self/task").iterdir():
        children += [int(pid) for pid in (task / "children").read_text().split()]
    return [pid for pid in children if b"artifacts.extract" in _command_line(pid)]


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _version(owner_id: int) -> Version:
    return Version.objects.of(owner_id).get()
