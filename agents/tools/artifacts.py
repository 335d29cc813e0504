"""The files of a conversation, as tools: read what people attached or tools made, save what is worth keeping."""

import difflib
from collections.abc import Mapping
from typing import Any

from agents.runtime.artifacts import (
    ArtifactInvalid,
    ArtifactMissing,
    ArtifactNotKept,
    ArtifactRef,
    ArtifactUnreadable,
    TextPage,
    reference_candidates,
)
from agents.runtime.errors import ToolFailed
from agents.runtime.model import ToolSpec
from agents.runtime.tools import Family, FunctionTool, Tool, ToolContext, ToolResult, Traits

PAGE_CHARS = 12_000
# What one result may have: below the limit above which a result is cut at entry (Limits.tool_result_bytes), with room
# for the lines around the text
PAGE_BYTES = 14 * 1024
SAVE_BYTES = 2 * 1024 * 1024
MOST_LISTED = 100
# Endings of formats that are not text: writing text under such a name would make a file nobody can open
_NOT_TEXT = (
    ".pdf",
    ".doc",
    ".docx",
    ".xls",
    ".xlsx",
    ".ppt",
    ".pptx",
    ".png",
    ".jpg",
    ".jpeg",
    ".gif",
    ".webp",
    ".zip",
)

READ = ToolSpec(
    name="read_artifact",
    description=(
        "Read the text of a file of this conversation: attached by the person, or saved earlier. Long files come in "
        "pages; the end of each result says how to read on. Without a name it lists the files."
    ),
    parameters={
        "type": "object",
        "properties": {
            "name": {
                "type": "string",
                "description": 'The file: its name, or a reference like "artifact://report.pdf@2". Empty = list files.',
            },
            "cursor": {
                "type": "string",
                "description": 'Where to start: "page:3" (PDF), "line:120", "char:5000", or what the last result gave.',
            },
        },
    },
)
SAVE = ToolSpec(
    name="save_artifact",
    description=(
        "Save text as a file of this conversation, for the person to keep and download. Saving under a name that "
        "exists makes its next version; earlier ones stay. Write the whole content, not a change to it."
    ),
    parameters={
        "type": "object",
        "properties": {
            "name": {
                "type": "string",
                "description": 'A relative name with an ending that fits the content: "summary.md", "data/costs.csv".',
            },
            "content": {"type": "string", "description": "The text: Markdown, plain text, CSV, JSON, HTML, code."},
        },
        "required": ["name", "content"],
    },
)


def tools() -> tuple[Tool, ...]:
    """Return read_artifact and save_artifact. They reach files only through the call's context."""
    return (
        FunctionTool(
            spec=READ,
            function=read_artifact,
            traits=Traits(
                read_only=True, destructive=False, concurrency_safe=True, family=Family.FILES, timeout_s=120.0
            ),
        ),
        # not concurrency_safe: two saves of one name in a turn become versions in the order of the calls
        FunctionTool(spec=SAVE, function=save_artifact, traits=Traits(destructive=False, family=Family.FILES)),
    )


async def read_artifact(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    """Return a page of a file's text between a line that says where it is and one that says how to read on."""
    name = _text(arguments, "name").strip().strip("\"'`<>[]").strip()
    if not name:
        return await _listing(context)
    ref = await _find(name, context)
    try:
        page = await _fitting_page(ref, _text(arguments, "cursor"), context)
    except ArtifactMissing as e:
        raise ToolFailed(str(e) or f'The content of "{ref.name}" is unavailable.') from e
    except ArtifactUnreadable as e:
        raise ToolFailed(f"{e}\nThe file: {_described(ref)}") from e  # people see the first line
    return ToolResult(
        content=_shown(page),
        summary=f"{ref.name}, {page.anchor}",
        data={
            "name": ref.name,
            "version": ref.version,
            "anchor": page.anchor,
            "next_cursor": page.next_cursor,
            "total_chars": page.total_chars,
        },
    )


async def save_artifact(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    """Save the content and return the reference of the version it became."""
    name, content = _text(arguments, "name"), _text(arguments, "content")
    if name.strip().lower().endswith(_NOT_TEXT):
        raise ToolFailed(f'"{name}" is not a name for text. Use an ending like .md, .txt, .csv, .json or .html.')
    data = content.encode("utf-8", "replace")
    if len(data) > SAVE_BYTES:
        raise ToolFailed(f"The content has {len(data)} bytes; at most {SAVE_BYTES} fit. Save it in parts.")
    origin = {"kind": "tool", "run_id": context.run_id, "tool_call_id": context.call_id}
    try:
        ref = await context.artifacts.save(name=name, data=data, origin=origin)
    except ArtifactInvalid as e:
        raise ToolFailed(str(e)) from e
    except ArtifactNotKept as e:
        raise ToolFailed("The file could not be stored. Nothing was saved; try again later.") from e
    return ToolResult(
        content=f"Saved as {_described(ref)}.",
        summary=f"{ref.name}, version {ref.version}",
        data={"name": ref.name, "version": ref.version},
        artifacts=(ref,),
    )


async def _find(name: str, context: ToolContext) -> ArtifactRef:
    """Return what the name means. Raises ToolFailed with the names that there are."""
    complaints = []
    for candidate, version in reference_candidates(name):
        try:
            return await context.artifacts.find(candidate, version)
        except ArtifactMissing as e:
            complaints.append((version is not None, str(e)))
    # the complaint about a version says more than the one about a name that holds an "@"
    complaint = max(complaints, key=lambda item: item[0])[1] or f'There is no file "{name}".'
    raise ToolFailed(f"{complaint} {_alternatives(name, await context.artifacts.list())}")


def _alternatives(name: str, refs: tuple[ArtifactRef, ...]) -> str:
    if not refs:
        return "This conversation has no files."
    names = [ref.name for ref in refs]
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5) or names[:20]
    return "Files here: " + ", ".join(f'"{found}"' for found in close) + "."


async def _listing(context: ToolContext) -> ToolResult:
    refs = await context.artifacts.list()
    if not refs:
        return ToolResult(content="This conversation has no files.", summary="no files")
    lines = [f"- {_described(ref)}" for ref in refs[:MOST_LISTED]]
    if len(refs) > MOST_LISTED:
        lines.append(f"... and {len(refs) - MOST_LISTED} more")
    return ToolResult(content="\n".join(["Files of this conversation:", *lines]), summary=f"{len(refs)} files")


async def _fitting_page(ref: ArtifactRef, cursor: str, context: ToolContext) -> TextPage:
    """Return a page whose text fits into a result, whatever the script: Chinese takes three bytes a character."""
    chars = PAGE_CHARS
    page = await context.artifacts.read_text(ref, cursor=cursor, max_chars=chars)
    while (size := len(page.text.encode())) > PAGE_BYTES and chars > 500:
        chars = min(chars * 3 // 4, len(page.text) * PAGE_BYTES // size)
        page = await context.artifacts.read_text(ref, cursor=cursor, max_chars=chars)
    return page


def _shown(page: TextPage) -> str:
    of_all = f" of {page.pages}" if page.pages else ""
    head = f"{page.ref.uri}, {page.anchor}{of_all}, {page.total_chars} characters in all:"
    if page.next_cursor:
        tail = f'[More follows. Read on with read_artifact(name="{page.ref.uri}", cursor="{page.next_cursor}")]'
    else:
        tail = "[End of the file.]"
    return f"{head}\n{page.text.rstrip()}\n{tail}"


def _described(ref: ArtifactRef) -> str:
    return f"{ref.uri} ({ref.mime}, {_size(ref.size_bytes)})"


def _size(size_bytes: int) -> str:
    if size_bytes < 1024:
        return f"{size_bytes} bytes"
    return f"{size_bytes / 1024:.1f} KB" if size_bytes < 1024**2 else f"{size_bytes / 1024**2:.1f} MB"


def _text(arguments: Mapping[str, Any], key: str) -> str:
    value = arguments.get(key)
    return value if isinstance(value, str) else "" if value is None else str(value)
