"""skill_run: run the files of a skill that was read, over files of the person, and collect what it leaves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from agents.runtime.artifacts import ArtifactInvalid, ArtifactNotKept, ArtifactRef
from agents.runtime.code import (
    Collected,
    Collection,
    CollectLimits,
    Command,
    Executed,
    ExecutorFailed,
    ExecutorInfo,
    PathInvalid,
    Workspace,
)
from agents.runtime.context.guard import Family
from agents.runtime.errors import ToolFailed, ToolFailure
from agents.runtime.model import ToolSpec
from agents.runtime.skills.skill import SkillMissing, SkillUnavailable
from agents.runtime.tools import FunctionTool, Tool, ToolContext, ToolResult, Traits
from agents.tools.codeinputs import (
    as_data,
    changed,
    not_run,
    stage_attachments,
    stage_input,
    teller,
    told,
    workspace_of,
)
from agents.tools.codeinputs import wrong_path as wrong
from agents.tools.commandpolicy import CommandPolicy
from agents.tools.workspace import LONGEST_S, OPEN, code_properties, command_of

OUTPUT_BYTES: Final = 16 * 1024  # of stdout and stderr each
INLINE_CHARS: Final = 32 * 1024  # of the files whose text stands in the result
AUTO_FILES: Final = 20  # taken when nothing is asked for
AUTO: Final = "out/**"
_DEFAULT: Final = CollectLimits()
_CUT: Final = "\n[… cut]"


def tools(info: ExecutorInfo | None, policy: CommandPolicy = OPEN) -> tuple[Tool, ...]:
    """Return skill_run; without an executor there is none."""
    if info is None:
        return ()
    traits = Traits(destructive=False, family=Family.SHELL, timeout_s=LONGEST_S + 60.0, result_bytes=128 * 1024)
    return (FunctionTool(spec=spec(info), function=partial(skill_run, policy), traits=traits),)


def spec(info: ExecutorInfo) -> ToolSpec:
    whole = {"type": "integer", "minimum": 1}
    return ToolSpec(
        name="skill_run",
        description=(
            "Run code that belongs to a skill, in the skill's directory, where inputs/ (read only), work/ and out/ are "
            "too. Load the skill with skill_load first and follow it. What is written into out/ comes back; "
            f"save_as_artifacts keeps it for the person. {info.guide}"
        ),
        parameters={
            "type": "object",
            "properties": {
                "skill": {"type": "string", "minLength": 1},
                **code_properties(info),
                "inputs": {
                    "type": "array",
                    "maxItems": 20,
                    "items": {
                        "type": "object",
                        "properties": {
                            "from": {"type": "string", "description": '"artifact://sales.csv@2" or a name.'},
                            "pin": {"type": "boolean", "description": "The version that was taken first."},
                        },
                        "required": ["from"],
                    },
                },
                "outputs": {
                    "type": "object",
                    "properties": {
                        "globs": {"type": "array", "items": {"type": "string"}, "description": 'Like "out/**".'},
                        "inline": {"type": "boolean", "description": "Return their text."},
                        "save": {"type": "boolean", "description": "Keep them as files of the conversation."},
                        "max_files": whole,
                        "max_file_bytes": whole,
                        "max_total_bytes": whole,
                    },
                },
                "output_files": {"type": "array", "items": {"type": "string"}, "description": "Short for globs."},
                "save_as_artifacts": {"type": "boolean", "description": "Keep what is written for the person."},
                "artifact_prefix": {"type": "string", "description": 'Put before names, like "charts/".'},
                "omit_inline_content": {"type": "boolean", "description": "Names only, no text of files."},
                "timeout": {"type": "integer", "minimum": 1, "maximum": LONGEST_S, "description": "Seconds."},
            },
            "required": ["skill"],
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    """What is to come of the files that a run writes."""

    globs: tuple[str, ...]
    limits: CollectLimits
    asked: bool
    save: bool
    inline: bool
    prefix: str

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> "_Wish":
        outputs = arguments.get("outputs") or {}
        globs = tuple(str(glob) for glob in (outputs.get("globs") or arguments.get("output_files") or ()))
        files = int(outputs.get("max_files") or (_DEFAULT.files if globs else AUTO_FILES))
        return cls(
            globs=globs or (AUTO,),
            limits=CollectLimits(
                files=min(files, _DEFAULT.files),
                file_bytes=min(int(outputs.get("max_file_bytes") or _DEFAULT.file_bytes), _DEFAULT.file_bytes),
                total_bytes=min(int(outputs.get("max_total_bytes") or _DEFAULT.total_bytes), _DEFAULT.total_bytes),
            ),
            asked=bool(globs),
            save=bool(outputs.get("save") or arguments.get("save_as_artifacts")),
            inline=outputs.get("inline") is not False and not arguments.get("omit_inline_content"),
            prefix=str(arguments.get("artifact_prefix") or ""),
        )


async def skill_run(policy: CommandPolicy, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    """Stage the skill and its inputs, run, collect, and save if it is asked for. A failed program is a result."""
    workspace, wish, name = workspace_of(context), _Wish.of(arguments), str(arguments["skill"])
    _loaded(name, context)
    try:
        home = await _staged(name, workspace, context)
        cwd = home if not arguments.get("cwd") else f"{home}/{arguments['cwd']}"
        command = command_of(arguments, workspace.info, policy, cwd=cwd, single=True)
        command = _named(command, name)
        staged, warnings = await stage_attachments(workspace, context)
        for one in arguments.get("inputs") or ():
            path = await stage_input(str(one["from"]), workspace, context, pin=bool(one.get("pin")))
            staged = [*staged, *([path] if path not in staged else [])]
        before = await workspace.files()
        done = await workspace.run(command, wall_s=arguments.get("timeout"), output=teller(context))
        files = changed(before, await workspace.files())
        written = {info.path for info in files}
        found = await workspace.collect(wish.globs, wish.limits)
    except ExecutorFailed as error:
        raise not_run(error) from error
    except PathInvalid as error:
        raise wrong(error) from error
    taken = [file for file in found.files if wish.asked or file.path in written]
    taken, more = _worth(taken, done)
    saved, unsaved = await _saved(taken, wish, context) if wish.save else ((), ())
    warnings = [*warnings, *_limited(found, wish), *more, *unsaved]
    shown, cut = _printed(done)
    inline = wish.inline or bool(unsaved)
    parts = [told(shown, files, staged, [*warnings, *cut])]
    parts += [f"Saved as {ref.uri}." for ref in saved]
    parts += _inline(taken) if inline else []
    return ToolResult(
        content="\n\n".join(parts),
        summary=shown.stopped or (f"exit status {done.exit_code}" if done.exit_code else ""),
        data={
            **as_data(done, files, workspace.info.name),
            "skill": name,
            "output_files": [_described(file) for file in taken],
            "artifact_files": [{"name": ref.name, "version": ref.version} for ref in saved],
            "warnings": [*warnings, *cut],
        },
        artifacts=tuple(saved),
    )


def _loaded(name: str, context: ToolContext) -> None:
    """Refuse a skill that is not there for this person, or was not read: doing it begins with knowing how."""
    if context.skills is None or name not in context.skills.summaries:
        raise ToolFailed(f"unknown skill: {name}", ToolFailure.SKILL_NOT_FOUND)
    if not context.skills.was_loaded(context.state, name):
        said = f'The skill "{name}" was not loaded. Read it with skill_load first, then run what it says.'
        raise ToolFailed(said, ToolFailure.SKILL_NOT_LOADED)


async def _staged(name: str, workspace: Workspace, context: ToolContext) -> str:
    """Put the skill into the workspace as it is in this run, unless it is there, and return its directory."""
    assert context.skills is not None
    digest = context.skills.summaries[name].digest
    if await workspace.skill_digest(name) == digest:
        return await workspace.stage_skill(name, digest, ())
    try:
        files = await context.skills.store.files(name)
    except SkillMissing as error:
        raise ToolFailed(f"unknown skill: {name}", ToolFailure.SKILL_NOT_FOUND) from error
    except SkillUnavailable as error:
        raise ToolFailed("The skill cannot be read now. Try again.", ToolFailure.SKILL_NOT_READ) from error
    return await workspace.stage_skill(name, digest, files)


def _named(command: Command, skill: str) -> Command:
    return Command(
        language=command.language,
        code=command.code,
        cwd=command.cwd,
        stdin=command.stdin,
        env={**command.env, "SKILL_NAME": skill},
    )


def _worth(taken: Sequence[Collected], done: Executed) -> tuple[list[Collected], list[str]]:
    """Leave out empty files of a run that failed: they were opened, and never written."""
    if done.exit_code == 0:
        return list(taken), []
    kept = [file for file in taken if file.size_bytes]
    left = len(taken) - len(kept)
    return kept, [f"{left} empty files of the failed run were left out."] if left else []


def _limited(found: Collection, wish: _Wish) -> list[str]:
    said = [f"There is more than can be taken: at most {wish.limits.files} files."] if found.limits_hit else []
    return [*found.warnings, *said]


async def _saved(
    files: Sequence[Collected], wish: _Wish, context: ToolContext
) -> tuple[tuple[ArtifactRef, ...], tuple[str, ...]]:
    """Keep the files, as far as it goes, and say which could not be kept."""
    refs: list[ArtifactRef] = []
    warnings: list[str] = []
    for file in files:
        if file.truncated:
            warnings.append(f"{file.path} is too large and was not saved.")
            continue
        name = wish.prefix + file.path.removeprefix("out/")
        origin = {"kind": "tool", "run_id": context.run_id, "tool_call_id": context.call_id}
        try:
            refs.append(await context.artifacts.save(name=name, data=file.data, mime=file.mime, origin=origin))
        except (ArtifactInvalid, ArtifactNotKept) as error:
            said = str(error) if isinstance(error, ArtifactInvalid) else "it could not be stored"
            warnings.append(f"{file.path} was not saved: {said}")
    return tuple(refs), tuple(warnings)


def _printed(done: Executed) -> tuple[Executed, list[str]]:
    """Return the result with at most OUTPUT_BYTES of each output, and what was cut."""
    outs = {name: _shortened(getattr(done, name)) for name in ("stdout", "stderr")}
    cut = [f"{name} was cut to {OUTPUT_BYTES} bytes." for name, text in outs.items() if text != getattr(done, name)]
    return Executed(
        stdout=outs["stdout"],
        stderr=outs["stderr"],
        exit_code=done.exit_code,
        duration_ms=done.duration_ms,
        cut=done.cut or bool(cut),
        stopped=done.stopped,
        warnings=done.warnings,
        run_dir=done.run_dir,
    ), cut


def _shortened(text: str) -> str:
    data = text.encode()
    return text if len(data) <= OUTPUT_BYTES else data[:OUTPUT_BYTES].decode(errors="ignore")


def _inline(files: Sequence[Collected]) -> list[str]:
    """Return the text of files that are text, as much as fits in all."""
    parts, room = [], INLINE_CHARS
    for file in files:
        text = _text(file)
        if text is None or room <= 0:
            continue
        cut = text[:room]
        room -= len(cut)
        parts.append(f"[{file.path}]\n{cut}{_CUT if len(cut) < len(text) or file.truncated else ''}")
    return parts


def _text(file: Collected) -> str | None:
    """Return a file's text, None for one that is none: bytes of pictures and packed files are never shown."""
    mime = file.mime
    if not (
        mime.startswith("text/") or mime in ("application/json", "image/svg+xml") or mime.endswith(("+json", "+xml"))
    ):
        return None
    return file.data.decode(errors="ignore")


def _described(file: Collected) -> dict[str, Any]:
    return {
        "name": file.path,
        "mime_type": file.mime,
        "size_bytes": file.size_bytes,
        "truncated": file.truncated,
        "ref": f"workspace://{file.path}",
    }
