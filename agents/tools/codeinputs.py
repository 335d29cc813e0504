"""What code works with and what it leaves: files of the conversation put into the workspace, results told."""

from collections.abc import Callable, Iterable, Mapping
from time import monotonic
from typing import Any, Final

from agents.runtime.artifacts import SHARED, ArtifactMissing, ArtifactRef, reference_candidates
from agents.runtime.code import Executed, ExecutorFailed, FileInfo, PathInvalid, Workspace
from agents.runtime.errors import ToolFailed, ToolFailure
from agents.runtime.tools import ToolContext
from agents.tools.knowledge import size_words

INPUT_BYTES: Final = 64 * 1024 * 1024  # of one file, and of all that are put there at once
STAGED: Final = 50  # files of the conversation that are put there unasked
LINE_CHARS: Final = 200
LOOKED_AT: Final = 4_096  # characters in which the last line is looked for
TOLD_S: Final = 0.1
LISTED: Final = 30
OFF: Final = "No code can be run here: no executor is set up."
_GUARDED: Final = "results/"  # results of tools that were too long (context/guard.py)


def workspace_of(context: ToolContext) -> Workspace:
    """Return the workspace of the call. Raises ToolFailed."""
    if context.workspace is None:
        raise ToolFailed(OFF, ToolFailure.CODE_UNAVAILABLE)
    return context.workspace


def not_run(error: ExecutorFailed) -> ToolFailed:
    return ToolFailed(f"Nothing was run. {error}", ToolFailure.CODE_NOT_RUN)


def wrong_path(error: PathInvalid) -> ToolFailed:
    return ToolFailed(str(error), ToolFailure.PLACE_INVALID)


async def stage_attachments(workspace: Workspace, context: ToolContext) -> tuple[list[str], list[str]]:
    """Put the conversation's own files into the workspace, each version once. Returns paths of new ones, warnings."""
    refs = [ref for ref in await context.artifacts.list() if not ref.name.startswith((SHARED, _GUARDED))]
    staged: list[str] = []
    warnings: list[str] = []
    room = INPUT_BYTES
    for ref in refs[:STAGED]:
        if await workspace.input_path(ref.uri):
            continue
        if ref.size_bytes > room:
            warnings.append(f"{ref.name} ({size_words(ref.size_bytes)}) is too large to be put into the workspace.")
            continue
        room -= ref.size_bytes
        try:
            staged.append(await workspace.put_input(ref.name, await context.artifacts.load(ref), key=ref.uri))
        except ArtifactMissing:
            warnings.append(f"{ref.name} is not there any more.")
    if len(refs) > STAGED:
        warnings.append(f"Only {STAGED} of {len(refs)} files were put into the workspace; name others as inputs.")
    return staged, warnings


async def stage_input(source: str, workspace: Workspace, context: ToolContext, *, pin: bool = False) -> str:
    """Put one file that the model names into the workspace and return its path. Raises ToolFailed.

    source: "artifact://name@version", or the name of a file of the conversation or of the person's documents. pin: the
    version that was taken first, whatever came since.
    """
    if source.startswith(("host://", "file://", "http://", "https://")):
        raise ToolFailed(
            f'"{source[:200]}" cannot be an input: only files of the person can.', ToolFailure.NAME_INVALID
        )
    if source.startswith("workspace://"):
        return source.removeprefix("workspace://")
    ref = await _find(source, context)
    if pin and (first := await workspace.pinned(ref.name)):
        ref = await context.artifacts.find(ref.artifact_id, first)
    if path := await workspace.input_path(ref.uri):
        return path
    if ref.size_bytes > INPUT_BYTES:
        said = f"{ref.name} has {size_words(ref.size_bytes)}; an input may have {size_words(INPUT_BYTES)}."
        raise ToolFailed(said, ToolFailure.CONTENT_TOO_LARGE)
    try:
        name = ref.name.removeprefix(SHARED)
        return await workspace.put_input(name, await context.artifacts.load(ref), key=ref.uri)
    except ArtifactMissing as error:
        raise ToolFailed(str(error), error.code) from error


async def _find(source: str, context: ToolContext) -> ArtifactRef:
    for name, version in reference_candidates(source):
        for candidate in (name, f"{SHARED}{name}"):
            try:
                return await context.artifacts.find(candidate, version)
            except ArtifactMissing:
                continue
    raise ToolFailed(f'There is no file "{source[:200]}".', ToolFailure.FILE_NOT_FOUND)


def changed(before: Mapping[str, FileInfo], after: Mapping[str, FileInfo]) -> list[FileInfo]:
    """Return the files that are new or were written since, by path."""
    return [info for path, info in sorted(after.items()) if before.get(path) != info]


def teller(context: ToolContext) -> Callable[[str], None]:
    """Return what shows the last line that code printed, now and then."""
    told = 0.0

    def tell(text: str) -> None:
        nonlocal told
        if monotonic() - told < TOLD_S:
            return
        lines = text[-LOOKED_AT:].splitlines()
        if line := next((line.strip() for line in reversed(lines) if line.strip()), ""):
            told = monotonic()
            context.progress(line[:LINE_CHARS], None, None)

    return tell


def status_line(done: Executed) -> str:
    """Return how a command ended, for the model."""
    took = f"{done.duration_ms / 1000:.1f} s"
    if done.stopped == "time":
        return f"Stopped after {took}: its time was over. What it had started was ended too."
    if done.stopped == "memory":
        return f"Stopped after {took}: it used more memory than it may."
    if done.stopped == "disk":
        return f"Stopped after {took}: it wrote more than it may, or too many files."
    return f"Exit status {done.exit_code}, {took}."


def told(done: Executed, files: Iterable[FileInfo], staged: Iterable[str], warnings: Iterable[str]) -> str:
    """Return a result as the model reads it: how it ended, what it printed, which files it left."""
    parts = [status_line(done)]
    for name, text in (("stdout", done.stdout), ("stderr", done.stderr)):
        if text.strip():
            parts.append(f"[{name}]\n{text.rstrip()}")
    if not done.stdout.strip() and not done.stderr.strip():
        parts.append("It printed nothing.")
    listed = [f"- {info.path} ({size_words(info.size_bytes)})" for info in files]
    if listed:
        more = [f"... and {len(listed) - LISTED} more"] if len(listed) > LISTED else []
        parts.append("\n".join(["Files written:", *listed[:LISTED], *more]))
    if new := list(staged):
        parts.append("\n".join(["Files of the conversation, put there for reading:", *(f"- {path}" for path in new)]))
    parts += [f"Note: {warning}" for warning in (*warnings, *done.warnings)]
    return "\n\n".join(parts)


def as_data(done: Executed, files: Iterable[FileInfo], name: str) -> dict[str, Any]:
    """Return a result as the page reads it."""
    return {
        "status": "exited",
        "exit_code": done.exit_code,
        "timed_out": done.timed_out,
        "stopped": done.stopped,
        "duration_ms": done.duration_ms,
        "executor": name,
        "files": [{"path": info.path, "size_bytes": info.size_bytes} for info in files][:LISTED],
    }
