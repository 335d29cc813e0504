"""The tools that reach files, over the real store."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.models.session import Session
from agents.runtime.artifacts import ArtifactRef
from agents.runtime.errors import ToolFailed, ToolFailure
from agents.runtime.invocation import Limits
from agents.runtime.tools import Tool, ToolContext, ToolResult
from agents.tools import artifacts
from artifacts.extract.outcome import Trouble
from artifacts.models import Version
from artifacts.reading import unreadable
from artifacts.store import DjangoArtifactStore, in_thread
from tests.agents.toolcontext import tool_context
from tests.artifacts.pdfs import encrypted, pdf


@pytest.fixture
def store(transactional_db: Any, settings: Any, tmp_path: Path) -> Iterator[DjangoArtifactStore]:
    backend = "django.core.files.storage.FileSystemStorage"
    settings.STORAGES = {
        **settings.STORAGES,
        "artifacts": {"BACKEND": backend, "OPTIONS": {"location": str(tmp_path / "files")}},
    }
    anna = User.objects.create_user("anna")
    session = Session.objects.of(anna.pk).create(owner=anna, thread_id="t1", agent="assistant")
    yield DjangoArtifactStore(owner_id=anna.pk, session_id=str(session.pk))


@pytest.fixture
def context(store: DjangoArtifactStore) -> ToolContext:
    return tool_context(store)


def tool(name: str) -> Tool:
    return next(tool for tool in artifacts.tools() if tool.spec.name == name)


async def read(context: ToolContext, **arguments: str) -> ToolResult:
    return await tool("read_artifact").call(arguments, context)


async def save(context: ToolContext, name: str, content: str) -> ArtifactRef:
    result = await tool("save_artifact").call({"name": name, "content": content}, context)
    (ref,) = result.artifacts
    return ref


async def test_what_is_saved_can_be_read_by_name_and_by_reference(context: ToolContext) -> None:
    result = await tool("save_artifact").call({"name": "notes/plan.md", "content": "# Plan\n内容"}, context)
    assert result.content == "Saved as artifact://notes/plan.md@1 (text/markdown, 13 bytes)."
    assert result.artifacts[0].uri == "artifact://notes/plan.md@1"
    assert result.data == {"name": "notes/plan.md", "version": 1}
    await save(context, "notes/plan.md", "# Plan B")
    assert "# Plan B" in (await read(context, name="notes/plan.md")).content
    assert "内容" in (await read(context, name="artifact://notes/plan.md@1")).content
    assert "内容" in (await read(context, name='"`artifact://notes/plan.md@1`"')).content


async def test_4_3_7_the_result_of_a_save_holds_the_reference_and_no_bytes(context: ToolContext) -> None:
    result = await tool("save_artifact").call({"name": "a.txt", "content": "precious words"}, context)
    assert "precious" not in repr(result)
    (ref,) = result.artifacts
    assert await context.artifacts.load(await context.artifacts.find(ref.name, ref.version)) == b"precious words"


async def test_4_3_8_no_number_means_the_latest_and_an_unknown_one_is_explained(context: ToolContext) -> None:
    await save(context, "a", "first")
    await save(context, "a", "second")
    assert "second" in (await read(context, name="artifact://a@x")).content
    assert "second" in (await read(context, name="artifact://a")).content
    with pytest.raises(ToolFailed, match=r'There is no version 99 of "a"; the latest is 2\. Files here: "a"'):
        await read(context, name="artifact://a@99")


async def test_a_wrong_name_is_answered_with_the_names_that_are_close(context: ToolContext) -> None:
    with pytest.raises(ToolFailed, match="This conversation has no files"):
        await read(context, name="raport.md")
    await save(context, "report.md", "x")
    await save(context, "zebra.csv", "x")
    with pytest.raises(ToolFailed, match=r'There is no file "raport\.md"\. Files here: "report\.md"\.'):
        await read(context, name="raport.md")
    with pytest.raises(ToolFailed, match="There is no such file"):
        await read(context, name="../../etc/passwd")


async def test_without_a_name_the_files_are_listed(context: ToolContext) -> None:
    assert (await read(context)).content == "This conversation has no files."
    await save(context, "b.csv", "1,2\n")
    await save(context, "a.md", "x")
    await save(context, "a.md", "xy")
    assert (await read(context, name=" ")).content == (
        "Files of this conversation:\n- artifact://a.md@2 (text/markdown, 2 bytes)\n"
        "- artifact://b.csv@1 (text/csv, 4 bytes)"
    )


@pytest.mark.parametrize("line", ["A line of English words, number {n}.\n", "这是第{n}行中文，内容很重要。\n"])
async def test_a_long_file_is_read_on_by_what_each_result_says(context: ToolContext, line: str) -> None:
    whole = "".join(line.format(n=n) for n in range(1, 2001))
    ref = await save(context, "long.txt", whole)
    cursor, seen = "", ""
    for _ in range(100):
        result = await read(context, name=ref.uri, cursor=cursor)
        assert len(result.content.encode()) <= Limits().tool_result_bytes  # never cut at entry
        head, rest = result.content.split("\n", 1)
        body, tail = rest.rsplit("\n", 1)
        assert head.startswith("artifact://long.txt@1, lines ") and f"{len(whole)} characters in all" in head
        seen += body + "\n"
        cursor = str(result.data["next_cursor"])
        if not cursor:
            assert tail == "[End of the file.]"
            break
        assert tail == f'[More follows. Read on with read_artifact(name="{ref.uri}", cursor="{cursor}")]'
    assert seen == whole


async def test_a_pdf_is_read_with_page_anchors(context: ToolContext) -> None:
    data = pdf("First page", "Second page", "Third page")
    ref = await context.artifacts.save(name="report.pdf", data=data, origin={"kind": "upload"})
    result = await read(context, name="report.pdf")
    assert result.content.startswith(f"{ref.uri}, pages 1-3 of 3, ")
    assert "[page 2]\nSecond page" in result.content
    assert result.summary == "report.pdf, pages 1-3"
    assert "Second" not in (await read(context, name="report.pdf", cursor="page:3")).content


async def test_a_file_without_readable_text_says_what_to_do(context: ToolContext) -> None:
    locked = encrypted(pdf("x"), user_password="secret")
    await context.artifacts.save(name="locked.pdf", data=locked)
    with pytest.raises(ToolFailed, match="protected by a password"):
        await read(context, name="locked.pdf")
    await context.artifacts.save(name="photo.png", data=b"\x89PNG\r\n\x1a\n")
    with pytest.raises(ToolFailed, match=r"(?s)no text can be read from.*image/png"):
        await read(context, name="photo.png")
    await save(context, "a.txt", "x")
    with pytest.raises(ToolFailed, match="no place in a file"):
        await read(context, name="a.txt", cursor="the end")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("", "needs a name"), ("../a.md", "relative"), ("a\\b.md", "not allowed"), ("report.pdf", "not a name for text")],
)
async def test_a_name_that_cannot_be_saved_says_why(context: ToolContext, name: str, sentence: str) -> None:
    with pytest.raises(ToolFailed, match=sentence):
        await save(context, name, "x")
    assert await context.artifacts.list() == ()


async def test_too_much_content_is_refused(context: ToolContext) -> None:
    with pytest.raises(ToolFailed, match="Save it in parts"):
        await save(context, "a.txt", "x" * (artifacts.SAVE_BYTES + 1))


async def test_a_save_remembers_run_and_call(context: ToolContext, store: DjangoArtifactStore) -> None:
    await save(replace(context, run_id="r7", call_id="c9"), "a.txt", "x")
    version = await in_thread(lambda: Version.objects.of_everyone().get())()
    assert (version.origin, version.run_id, version.tool_call_id) == ("tool", "r7", "c9")


def test_the_traits_say_what_may_run_at_once() -> None:
    read_tool, *writing = artifacts.tools()
    assert read_tool.traits.read_only and read_tool.traits.concurrency_safe and not read_tool.traits.destructive
    for tool in writing:
        assert not tool.traits.read_only and not tool.traits.concurrency_safe and not tool.traits.destructive


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"name": "none.md"}, ToolFailure.FILE_NOT_FOUND),
        ({"name": "../etc"}, ToolFailure.FILE_NOT_FOUND),
        ({"name": "artifact://a.txt@9"}, ToolFailure.VERSION_NOT_FOUND),
        ({"name": "a.txt", "cursor": "the end"}, ToolFailure.PLACE_INVALID),
        ({"name": "a.txt", "cursor": "page:2"}, ToolFailure.PLACE_NOT_FOUND),
        ({"name": "a.txt", "cursor": "line:2000"}, ToolFailure.PLACE_NOT_FOUND),
        ({"name": "locked.pdf"}, ToolFailure.FILE_ENCRYPTED),
        ({"name": "photo.png"}, ToolFailure.FILE_PICTURE),
        ({"name": "empty.txt"}, ToolFailure.FILE_EMPTY),
        ({"name": "report.docx.pdf"}, ToolFailure.FILE_BROKEN),
        ({"name": "a.md", "content": "x" * (artifacts.SAVE_BYTES + 1)}, ToolFailure.CONTENT_TOO_LARGE),
        ({"name": "a.pdf", "content": "x"}, ToolFailure.NAME_NOT_TEXT),
        ({"name": "../a.md", "content": "x"}, ToolFailure.NAME_INVALID),
    ],
)
async def test_each_failure_carries_its_code(
    context: ToolContext, arguments: dict[str, str], code: ToolFailure
) -> None:
    await save(context, "a.txt", "x")
    for name, data in (
        ("locked.pdf", encrypted(pdf("x"), user_password="secret")),
        ("photo.png", b"\x89PNG\r\n\x1a\n"),
        ("empty.txt", b""),
        ("report.docx.pdf", b"%PDF-1.7 not at all"),
    ):
        await context.artifacts.save(name=name, data=data)
    with pytest.raises(ToolFailed) as failed:
        await tool("save_artifact" if "content" in arguments else "read_artifact").call(arguments, context)
    assert failed.value.code is code


@pytest.mark.parametrize("trouble", Trouble)
def test_each_trouble_of_a_file_has_its_code_and_its_sentence(trouble: Trouble) -> None:
    error = unreadable(trouble, "a.pdf")
    assert error.code.value == f"file_{trouble}" and str(error).startswith("a.pdf ")
