"""The files of a conversation, as tools: read what people attached or tools made, save and change what is kept."""

import difflib
from collections.abc import Mapping
from typing import Any

from agents.runtime.artifacts import (
    ArtifactConflict,
    ArtifactInvalid,
    ArtifactMissing,
    ArtifactNotKept,
    ArtifactRef,
    ArtifactUnreadable,
    TextPage,
    reference_candidates,
)
from agents.runtime.context.guard import Family
from agents.runtime.errors import ToolFailed, ToolFailure
from agents.runtime.knowledge import DocumentMissing, DocumentUnread
from agents.runtime.model import ToolSpec
from agents.runtime.tools import FunctionTool, Tool, ToolContext, ToolResult, Traits
from agents.tools.editing import changes, edited
from agents.tools.footnotes import with_sources
from agents.tools.knowledge import MOST_LISTED, READ_CHARS, RESULT_BYTES, Stretch, bare, size_words

SAVE_BYTES = 2 * 1024 * 1024
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
        "exists makes its next version; earlier ones stay. Write the whole content, not a change to it. In .md and "
        ".txt files the markers of passages become footnotes, with a list of the sources at the end."
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

EDIT = ToolSpec(
    name="edit_artifact",
    description=(
        "Change a text file of this conversation by replacing exact text; it becomes the next version. For small "
        "changes to a file that exists; all edits are made, in order, or none. If somebody saved a newer version "
        "meanwhile, nothing is changed and the result shows what is new."
    ),
    parameters={
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "description": "The file: its name, or its reference."},
            "base_version": {"type": "integer", "minimum": 1, "description": "The version the edits were made for."},
            "edits": {
                "type": "array",
                "minItems": 1,
                "maxItems": 50,
                "items": {
                    "type": "object",
                    "properties": {
                        "old": {
                            "type": "string",
                            "minLength": 1,
                            "description": "Text of the file, exactly, with enough around it to occur only once.",
                        },
                        "new": {"type": "string", "description": "What stands there then. Empty = nothing."},
                        "all": {"type": "boolean", "description": "Replace it wherever it occurs."},
                    },
                    "required": ["old", "new"],
                },
            },
        },
        "required": ["name", "base_version", "edits"],
    },
)


def tools() -> tuple[Tool, ...]:
    """Return read_artifact, save_artifact and edit_artifact. They reach files only through the call's context."""
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
        FunctionTool(spec=EDIT, function=edit_artifact, traits=Traits(destructive=False, family=Family.FILES)),
    )


async def read_artifact(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    """Return a page of a file's text between a line that says where it is and one that says how to read on."""
    name = bare(_text(arguments, "name"))
    if not name:
        return await _listing(context)
    ref = await _find(name, context)
    cursor = _text(arguments, "cursor")
    if (passages := await _passages(ref, cursor, context)) is not None:
        return passages
    try:
        page = await _fitting_page(ref, cursor, context)
    except ArtifactMissing as e:
        raise ToolFailed(str(e), e.code) from e
    except ArtifactUnreadable as e:
        raise ToolFailed(f"{e}\nThe file: {_described(ref)}", e.code) from e
    # reading it may have made its passages
    if (passages := await _passages(ref, cursor, context)) is not None:
        return passages
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
        said = f'"{name}" is not a name for text. Use an ending like .md, .txt, .csv, .json or .html.'
        raise ToolFailed(said, ToolFailure.NAME_NOT_TEXT)
    sourced = with_sources(name, content, context.citations)
    ref = await _save(name, sourced.content, context)
    return ToolResult(
        content=f"Saved as {_described(ref)}.{sourced.words}",
        summary=f"{ref.name}, version {ref.version}",
        data={"name": ref.name, "version": ref.version},
        artifacts=(ref,),
    )


async def edit_artifact(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    """Replace passages of a text file, all or none, and return the reference of the new version."""
    ref, base = await _find(bare(_text(arguments, "name")), context), arguments["base_version"]
    latest = await context.artifacts.find(ref.artifact_id)
    if latest.version != base:
        raise await _conflict(base, latest, context)
    content = edited(await _whole(latest, context), arguments["edits"])
    sourced = with_sources(latest.name, content, context.citations)
    try:
        saved = await _save(latest.name, sourced.content, context, base=base)
    except ArtifactConflict as e:
        raise await _conflict(base, e.newer, context) from e
    return ToolResult(
        content=f"Saved as {_described(saved)}.{sourced.words}",
        summary=f"{saved.name}, version {saved.version}",
        data={"name": saved.name, "version": saved.version, "base": base},
        artifacts=(saved,),
    )


async def _save(name: str, content: str, context: ToolContext, *, base: int | None = None) -> ArtifactRef:
    data = content.encode("utf-8", "replace")
    if len(data) > SAVE_BYTES:
        said = f"The content has {len(data)} bytes; at most {SAVE_BYTES} fit. Save it in parts."
        raise ToolFailed(said, ToolFailure.CONTENT_TOO_LARGE)
    origin = {"kind": "tool", "run_id": context.run_id, "tool_call_id": context.call_id}
    try:
        return await context.artifacts.save(name=name, data=data, origin=origin, base=base)
    except (ArtifactInvalid, ArtifactMissing) as e:
        raise ToolFailed(str(e), e.code) from e
    except ArtifactNotKept as e:
        said = "The file could not be stored. Nothing was saved; try again later."
        raise ToolFailed(said, ToolFailure.FILE_NOT_KEPT) from e


async def _whole(ref: ArtifactRef, context: ToolContext) -> str:
    """Return the whole text of a file that is text itself. Raises ToolFailed."""
    if ref.size_bytes > SAVE_BYTES:
        said = f"{ref.name} has {size_words(ref.size_bytes)}; files up to {size_words(SAVE_BYTES)} can be edited."
        raise ToolFailed(said, ToolFailure.CONTENT_TOO_LARGE)
    try:
        text = None if ref.name.lower().endswith(_NOT_TEXT) else (await context.artifacts.load(ref)).decode()
    except UnicodeDecodeError:
        text = None
    except ArtifactMissing as e:
        raise ToolFailed(str(e), e.code) from e
    if text is None:
        said = f"{ref.name} is not a text file, so it cannot be edited. Save a new file instead."
        raise ToolFailed(said, ToolFailure.NAME_NOT_TEXT)
    return text


async def _conflict(base: int, latest: ArtifactRef, context: ToolContext) -> ToolFailed:
    """Return what stands in the way of an edit of `base`: what was changed since."""
    said = f"{latest.name} is at version {latest.version} now, not {base}; nothing was changed."
    try:
        before = await _whole(await context.artifacts.find(latest.artifact_id, base), context)
        changed = changes(before, await _whole(latest, context))
        said += f" Changed since version {base}:\n{changed}\nEdit version {latest.version}."
    except (ArtifactMissing, ToolFailed):
        said += " Read it again and edit that version."
    return ToolFailed(said, ToolFailure.VERSION_CONFLICT)


async def _find(name: str, context: ToolContext) -> ArtifactRef:
    """Return what the name means. Raises ToolFailed with the names that there are."""
    complaints: list[ArtifactMissing] = []
    for candidate, version in reference_candidates(name):
        try:
            return await context.artifacts.find(candidate, version)
        except ArtifactMissing as e:
            complaints.append(e)
    # the complaint about a version says more than the one about a name that holds an "@"
    worst = max(complaints, key=lambda e: e.code is ToolFailure.VERSION_NOT_FOUND)
    raise ToolFailed(f"{worst} {_alternatives(name, await context.artifacts.list())}", worst.code)


def _alternatives(name: str, refs: tuple[ArtifactRef, ...]) -> str:
    if not refs:
        return "This conversation has no files."
    names = [ref.name for ref in refs]
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5) or names[:20]
    return "Files here: " + ", ".join(f'"{found}"' for found in close) + "."


async def _passages(ref: ArtifactRef, cursor: str, context: ToolContext) -> ToolResult | None:
    """Return a stretch with the markers to cite it by; None if the file has no passages, or not that place."""
    try:
        reading = await context.knowledge.read(
            f"artifact://{ref.artifact_id}@{ref.version}", at=bare(cursor), max_chars=READ_CHARS
        )
    except (DocumentMissing, DocumentUnread):
        return None
    part = Stretch.of(reading)
    more = f'[More follows. Read on with read_artifact(name="{ref.uri}", cursor="{part.next_at}")]'
    return ToolResult(
        content=part.shown(more if part.next_at else "[End of the file.]"),
        summary=part.summary,
        data={
            "name": ref.name,
            "version": ref.version,
            "anchor": part.anchor,
            "next_cursor": part.next_at,
            "total_chars": reading.document.total_chars,
        },
        citations=part.citations,
    )


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
    chars = READ_CHARS
    page = await context.artifacts.read_text(ref, cursor=cursor, max_chars=chars)
    while (size := len(page.text.encode())) > RESULT_BYTES and chars > 500:
        chars = min(chars * 3 // 4, len(page.text) * RESULT_BYTES // size)
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
    return f"{ref.uri} ({ref.mime}, {size_words(ref.size_bytes)})"


def _text(arguments: Mapping[str, Any], key: str) -> str:
    value = arguments.get(key)
    return value if isinstance(value, str) else "" if value is None else str(value)
