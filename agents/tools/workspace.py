"""Code that the model writes, as tools: run it in the conversation's workspace, keep a file that it made.

Which of them there are depends on the executor: one that only runs Python to its end takes `code`; a full one takes
`command` too, and commands may go on between two calls.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from agents.runtime.artifacts import ArtifactInvalid, ArtifactNotKept
from agents.runtime.code import (
    Command,
    Executed,
    ExecutorFailed,
    ExecutorInfo,
    Language,
    PathInvalid,
    Workspace,
)
from agents.runtime.context.guard import Family
from agents.runtime.errors import ToolFailed, ToolFailure
from agents.runtime.model import ToolSpec
from agents.runtime.tools import FunctionTool, Tool, ToolContext, ToolResult, Traits
from agents.tools import processes
from agents.tools.codeinputs import (
    as_data,
    changed,
    not_run,
    stage_attachments,
    stage_input,
    teller,
    told,
    workspace_of,
    wrong_path,
)
from agents.tools.commandpolicy import CommandPolicy
from agents.tools.knowledge import size_words

LONGEST_S: Final = 300
SAVE_BYTES: Final = 64 * 1024 * 1024
YIELD_MS: Final = 1_000
WRITE_YIELD_MS: Final = 200
LONGEST_YIELD_MS: Final = 30_000
TOPS: Final = ("", "skills", "work", "out", "runs")
OPEN: Final = CommandPolicy()
_PLACES: Final = (
    "It starts in the workspace's top directory: files of the conversation are in work/inputs/ (read only), scratch "
    "files go into work/, results into out/. Files stay for the next call, variables do not."
)


def tools(info: ExecutorInfo | None, policy: CommandPolicy = OPEN) -> tuple[Tool, ...]:
    """Return the tools of an executor; without one there are none, so that a model only knows how, and cannot do."""
    if info is None:
        return ()
    traits = Traits(destructive=False, family=Family.SHELL, timeout_s=LONGEST_S + 30.0)
    made: list[Tool] = [
        FunctionTool(spec=exec_spec(info), function=partial(workspace_exec, policy), traits=traits),
        FunctionTool(
            spec=SAVE, function=workspace_save_artifact, traits=Traits(destructive=False, family=Family.FILES)
        ),
    ]
    if info.interactive:
        made[1:1] = [
            FunctionTool(spec=WRITE, function=workspace_write_stdin, traits=traits),
            FunctionTool(spec=KILL, function=workspace_kill_session, traits=traits),
        ]
    return tuple(made)


def code_properties(info: ExecutorInfo) -> dict[str, Any]:
    """Return what says which code is to run, as properties of a schema."""
    properties: dict[str, Any] = {"code": {"type": "string", "description": "A Python program. Print what is wanted."}}
    if Language.SHELL in info.languages:
        properties["command"] = {"type": "string", "description": "A shell command, in place of code."}
        properties["stdin"] = {"type": "string", "description": "What it reads as its input."}
    properties["env"] = {"type": "object", "description": "More environment variables, as text."}
    return properties


def exec_spec(info: ExecutorInfo) -> ToolSpec:
    properties = {
        **code_properties(info),
        "inputs": {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": 20,
            "description": (
                'Documents of the person that it needs, by name or reference like "artifact://sales.csv@2". They are '
                "put into work/inputs/. Files of the conversation are there anyway."
            ),
        },
        "cwd": {"type": "string", "description": "Where it starts: work, out, runs or skills, or below one of them."},
        "timeout_sec": {"type": "integer", "minimum": 1, "maximum": LONGEST_S},
    }
    if info.interactive:
        properties["background"] = {"type": "boolean", "description": "Let it go on, and look at it later."}
        properties["yield_time_ms"] = {
            "type": "integer",
            "minimum": 0,
            "maximum": LONGEST_YIELD_MS,
            "description": "Wait so long for its end, then let it go on; for commands that ask questions.",
        }
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if Language.SHELL not in info.languages:
        schema["required"] = ["code"]
    return ToolSpec(
        name="workspace_exec",
        description=f"Run code to compute, to work on files, to draw charts. {info.guide} {_PLACES}",
        parameters=schema,
    )


WRITE = ToolSpec(
    name="workspace_write_stdin",
    description="Give input to a command that goes on, or only look at what it has printed since (without chars).",
    parameters={
        "type": "object",
        "properties": {
            "session_id": {"type": "string", "minLength": 1},
            "chars": {"type": "string", "description": "The input; empty = only look."},
            "append_newline": {"type": "boolean", "description": "Put a line break behind it."},
            "yield_time_ms": {"type": "integer", "minimum": 0, "maximum": LONGEST_YIELD_MS},
        },
        "required": ["session_id"],
    },
)
KILL = ToolSpec(
    name="workspace_kill_session",
    description="End a command that goes on. What it has written to files so far is not kept.",
    parameters={
        "type": "object",
        "properties": {"session_id": {"type": "string", "minLength": 1}},
        "required": ["session_id"],
    },
)
SAVE = ToolSpec(
    name="workspace_save_artifact",
    description=(
        "Keep a file that code made as a file of the conversation, for the person to see and download. Only what is "
        "kept so lasts. Saving under a name that exists makes its next version."
    ),
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "description": "One file, like out/chart.svg."},
            "name": {"type": "string", "description": "Its name for the person. Empty = that of the file."},
        },
        "required": ["path"],
    },
)


async def workspace_exec(policy: CommandPolicy, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    """Run code or a command, and say how it ended, what it printed and which files it wrote."""
    workspace = workspace_of(context)
    command = command_of(arguments, workspace.info, policy, cwd=str(arguments.get("cwd") or ""))
    if command.cwd.split("/")[0] not in TOPS:
        raise ToolFailed(f"cwd must be one of {', '.join(TOPS[1:])}, or below one.", ToolFailure.PLACE_INVALID)
    wall_s = arguments.get("timeout_sec")
    try:
        staged, warnings = await stage_attachments(workspace, context)
        for source in arguments.get("inputs") or ():
            if (path := await stage_input(str(source), workspace, context)) not in staged:
                staged.append(path)
        if workspace.info.interactive and (arguments.get("background") or arguments.get("yield_time_ms") is not None):
            return await _begun(workspace, command, arguments, context)
        before = await workspace.files()
        done = await workspace.run(command, wall_s=wall_s, output=teller(context))
        files = changed(before, await workspace.files())
    except ExecutorFailed as error:
        raise not_run(error) from error
    except PathInvalid as error:
        raise wrong_path(error) from error
    return ToolResult(
        content=told(done, files, staged, warnings),
        summary=_summary(done),
        data=as_data(done, files, workspace.info.name),
    )


def command_of(
    arguments: Mapping[str, Any], info: ExecutorInfo, policy: CommandPolicy, *, cwd: str, single: bool = False
) -> Command:
    """Return what a call wants to run. Raises ToolFailed for what may not, or cannot, be run."""
    code, shell = str(arguments.get("code") or ""), str(arguments.get("command") or "")
    if bool(code.strip()) == bool(shell.strip()):
        raise ToolFailed("Give either code or command.", ToolFailure.ARGUMENTS_INVALID)
    if shell and Language.SHELL not in info.languages:
        raise ToolFailed("There is no shell here; write Python as code.", ToolFailure.COMMAND_REFUSED)
    problem = policy.problem(shell, single=single) if shell else _python_problem(info, policy)
    if problem:
        raise ToolFailed(problem, ToolFailure.COMMAND_REFUSED)
    env = arguments.get("env") or {}
    return Command(
        language=Language.SHELL if shell else Language.PYTHON,
        code=shell or code,
        cwd=cwd.removeprefix("/workspace").strip("/"),
        stdin=str(arguments.get("stdin") or ""),
        env={str(name): str(value) for name, value in env.items()},
    )


def _python_problem(info: ExecutorInfo, policy: CommandPolicy) -> str:
    """Full Python can start programs; the restricted interpreter cannot."""
    return policy.denies_python() if Language.SHELL in info.languages else ""


async def _begun(
    workspace: Workspace, command: Command, arguments: Mapping[str, Any], context: ToolContext
) -> ToolResult:
    process = await workspace.start(command, wall_s=arguments.get("timeout_sec"))
    try:
        key = processes.add(process, context)
    except ToolFailed:
        await process.kill()
        raise
    entry = processes.find(key, context)
    waited = arguments.get("yield_time_ms")
    return await _looked(entry, key, YIELD_MS if waited is None else waited)


async def workspace_write_stdin(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    key = str(arguments["session_id"])
    entry = processes.find(key, context)
    chars = str(arguments.get("chars") or "") + ("\n" if arguments.get("append_newline") else "")
    if chars and not entry.process.over:
        await entry.process.write(chars)
    waited = arguments.get("yield_time_ms")
    return await _looked(entry, key, WRITE_YIELD_MS if waited is None else waited)


async def workspace_kill_session(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    key = str(arguments["session_id"])
    entry = processes.find(key, context)
    if not entry.process.over:
        await entry.process.kill()
    text, dropped = entry.process.output(entry.read)
    entry.read = entry.process.end
    return _shown("ended", key, text, dropped, None)


async def _looked(entry: processes.Entry, key: str, wait_ms: int) -> ToolResult:
    """Wait a little, and return what was printed since the last look."""
    try:
        done = await entry.process.wait(wait_ms / 1000)
    except ExecutorFailed as error:
        raise not_run(error) from error
    text, dropped = entry.process.output(entry.read)
    entry.read = entry.process.end
    return _shown("exited" if done else "running", key, text, dropped, done)


def _shown(status: str, key: str, text: str, dropped: int, done: Executed | None) -> ToolResult:
    head = {
        "running": f'It goes on as session "{key}". Look again with workspace_write_stdin.',
        "ended": "It was ended.",
        "exited": f"Exit status {done.exit_code}." if done else "",
    }[status]
    lost = [f"[{dropped} characters before this are not kept any more.]"] if dropped else []
    return ToolResult(
        content="\n\n".join([head, *lost, text.rstrip() or "It printed nothing new."]),
        summary=_summary(done) if done else "",
        data={"status": status, "session_id": key, "exit_code": done.exit_code if done else None},
    )


async def workspace_save_artifact(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    """Keep one file. Unlike what skill_run saves by the way, it is an error if that cannot be done."""
    workspace = workspace_of(context)
    path = str(arguments["path"])
    if any(mark in path for mark in "*?["):
        raise ToolFailed("Name one file, not a pattern.", ToolFailure.PLACE_INVALID)
    try:
        file = await workspace.read(path, most_bytes=SAVE_BYTES)
    except PathInvalid as error:
        raise wrong_path(error) from error
    except FileNotFoundError as error:
        raise ToolFailed(f'There is no file "{path[:200]}" in the workspace.', ToolFailure.FILE_NOT_FOUND) from error
    except ExecutorFailed as error:
        raise ToolFailed(str(error), ToolFailure.FILE_NOT_READ) from error
    if file.truncated:
        said = f"{file.path} has {size_words(file.size_bytes)}; files up to {size_words(SAVE_BYTES)} can be kept."
        raise ToolFailed(said, ToolFailure.CONTENT_TOO_LARGE)
    name = str(arguments.get("name") or file.path.rsplit("/", 1)[-1])
    origin = {"kind": "tool", "run_id": context.run_id, "tool_call_id": context.call_id}
    try:
        ref = await context.artifacts.save(name=name, data=file.data, mime=file.mime, origin=origin)
    except ArtifactInvalid as error:
        raise ToolFailed(str(error), error.code) from error
    except ArtifactNotKept as error:
        said = "The file could not be stored. Nothing was saved; try again later."
        raise ToolFailed(said, ToolFailure.FILE_NOT_KEPT) from error
    return ToolResult(
        content=f"Saved as {ref.uri} ({ref.mime}, {size_words(ref.size_bytes)}).",
        summary=f"{ref.name}, version {ref.version}",
        data={"path": file.path, "name": ref.name, "version": ref.version},
        artifacts=(ref,),
    )


def _summary(done: Executed) -> str:
    return done.stopped or ("" if done.exit_code == 0 else f"exit status {done.exit_code}")
