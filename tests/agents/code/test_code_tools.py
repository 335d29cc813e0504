"""The tools that run code: what they take, what they answer, what they refuse."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from agents.providers import monty
from agents.providers.bubblewrap import Bubblewrap
from agents.providers.monty import MontyExecutor
from agents.runtime.artifacts import ArtifactMissing, ArtifactNotKept, ArtifactRef
from agents.runtime.code import CodeLimits, Executor, ExecutorFailed
from agents.runtime.errors import ToolFailed, ToolFailure
from agents.runtime.memorystores import MemoryArtifactStore
from agents.runtime.session import CancelReason
from agents.runtime.skills.loaded import RunSkills
from agents.runtime.skills.memoryskills import MemorySkills
from agents.runtime.skills.skill import SKILL_FILE, SkillFile
from agents.runtime.tools import Tool, ToolContext, ToolResult
from agents.tools import processes, skillrun, workspace
from agents.tools.commandpolicy import CommandPolicy
from agents.workspaces.directory import DirectoryWorkspace, place
from tests.agents.code.executors import ended, needs_bubblewrap
from tests.agents.toolcontext import tool_context

BOTH = [pytest.param("monty"), pytest.param("bubblewrap", marks=needs_bubblewrap)]
LIMITS = CodeLimits(wall_s=20.0, cpu_s=20.0, memory_bytes=256 << 20, disk_bytes=32 << 20, files=500)
CSV = b"Region,Amount\nNorth,10\nSouth,32\n"


@pytest_asyncio.fixture(params=BOTH)
async def executor(request: pytest.FixtureRequest) -> AsyncIterator[Executor]:
    yield MontyExecutor() if request.param == "monty" else Bubblewrap()
    await monty.close()


@pytest.fixture
def library() -> MemorySkills:
    skills = MemorySkills()
    skills.put(
        "adder",
        [
            SkillFile(path=SKILL_FILE, data=b"---\nname: adder\ndescription: Adds.\n---\nRun add.py."),
            SkillFile(
                path="add.py", data=b"def add(path):\n    return sum(int(r['Amount']) for r in read_table(path))\n"
            ),
        ],
    )
    return skills


class Setting:
    """A conversation with files, skills and an executor. loaded: names of skills that were read."""

    def __init__(self, executor: Executor, tmp_path: Path, library: MemorySkills) -> None:
        self.executor, self.root = executor, place(tmp_path, 1, 1)
        self.artifacts = MemoryArtifactStore()
        self.place = DirectoryWorkspace(top=tmp_path, owner_id=1, session_id=1, executor=executor, limits=LIMITS)
        self.library, self.policy = library, CommandPolicy()
        self.told: list[str] = []
        self.state: dict[str, Any] = {}

    async def context(self, *, load: bool = True, **more: Any) -> ToolContext:
        summaries = {summary.name: summary for summary in await self.library.summaries()}
        skills = RunSkills(store=self.library, summaries=summaries, agent="assistant", turn="e1")
        if load:
            for name in summaries:
                self.state |= skills.load(
                    self.state, await self.library.skill(name), docs=(), every=False, held={"": "call"}
                )
        made = tool_context(
            self.artifacts,
            workspace=self.place,
            skills=skills,
            progress=lambda text, done, total: self.told.append(text),
            **more,
        )
        object.__setattr__(made, "state", self.state)
        return made

    async def call(self, name: str, **arguments: Any) -> ToolResult:
        return await self.tool(name).call(arguments, await self.context())

    def tool(self, name: str) -> Tool:
        info = self.executor.info
        made = (*workspace.tools(info, self.policy), *skillrun.tools(info, self.policy))
        return next(tool for tool in made if tool.spec.name == name)


@pytest.fixture
def setting(executor: Executor, tmp_path: Path, library: MemorySkills) -> Setting:
    return Setting(executor, tmp_path, library)


@pytest.fixture
def full(tmp_path: Path, library: MemorySkills) -> Setting:
    return Setting(Bubblewrap(), tmp_path, library)


def test_skills_2_7_without_an_executor_there_is_no_tool_that_does_anything() -> None:
    assert workspace.tools(None) == () and skillrun.tools(None) == ()


async def test_skills_2_7_a_call_without_an_executor_is_refused() -> None:
    tool = workspace.tools(MontyExecutor().info)[0]
    with pytest.raises(ToolFailed) as refused:
        await tool.call({"code": "print(1)"}, tool_context(MemoryArtifactStore()))
    assert refused.value.code is ToolFailure.CODE_UNAVAILABLE


def test_which_tools_there_are_and_what_they_take_depends_on_the_executor() -> None:
    plain, full = (workspace.tools(executor.info) for executor in (MontyExecutor(), Bubblewrap()))
    assert [tool.spec.name for tool in plain] == ["workspace_exec", "workspace_save_artifact"]
    assert [tool.spec.name for tool in full] == [
        "workspace_exec",
        "workspace_write_stdin",
        "workspace_kill_session",
        "workspace_save_artifact",
    ]
    assert "command" not in plain[0].spec.parameters["properties"]
    assert {"code", "command", "stdin"} <= set(full[0].spec.parameters["properties"])
    assert "no class inheritance" in plain[0].spec.description and "full Python" in full[0].spec.description
    for tool in (*plain, *full, *skillrun.tools(Bubblewrap().info)):
        assert not tool.traits.read_only and not tool.traits.destructive and not tool.traits.concurrency_safe


async def test_files_of_the_conversation_are_there_and_what_is_written_is_told(setting: Setting) -> None:
    await setting.artifacts.save(name="sales.csv", data=CSV)
    done = await setting.call(
        "workspace_exec",
        code=(
            "rows = read_table('work/inputs/sales.csv')\nprint(sum(int(row['Amount']) for row in rows))\n"
            "bars = [{'Region': row['Region'], 'Amount': int(row['Amount'])} for row in rows]\n"
            "chart('bar', bars, 'Sales', 'out/sales.svg')"
        ),
    )
    assert re.match(r"Exit status 0, \d", done.content)
    assert "[stdout]\n42" in done.content and "- out/sales.svg (" in done.content
    assert "- work/inputs/sales.csv" in done.content
    assert done.data["exit_code"] == 0 and done.data["executor"] == setting.executor.info.name
    assert [file["path"] for file in done.data["files"]] == ["out/sales.svg"]
    assert json.loads(json.dumps(dict(done.data))) == done.data
    assert setting.told == ["42"]
    again = await setting.call("workspace_exec", code="print(1)")
    assert "work/inputs" not in again.content and again.data["files"] == []


async def test_a_document_of_the_person_is_an_input_when_it_is_named(setting: Setting) -> None:
    await setting.artifacts.save(name="user:library.csv", data=CSV)
    done = await setting.call(
        "workspace_exec", code="print(len(read_table('work/inputs/library.csv')))", inputs=["artifact://library.csv@1"]
    )
    assert "[stdout]\n2" in done.content
    with pytest.raises(ToolFailed) as missing:
        await setting.call("workspace_exec", code="1", inputs=["none.csv"])
    assert missing.value.code is ToolFailure.FILE_NOT_FOUND
    with pytest.raises(ToolFailed):
        await setting.call("workspace_exec", code="1", inputs=["host:///etc/passwd"])


async def test_what_code_made_is_kept_when_it_is_asked_for(setting: Setting) -> None:
    await setting.call("workspace_exec", code="write_text('out/note.md', '# 笔记')")
    saved = await setting.call("workspace_save_artifact", path="out/note.md")
    (ref,) = saved.artifacts
    assert (ref.name, ref.version, ref.mime) == ("note.md", 1, "text/markdown")
    assert await setting.artifacts.load(ref) == "# 笔记".encode()
    assert setting.artifacts.origins["note.md", 1]["kind"] == "tool"
    for path, code in (
        ("out/none.md", ToolFailure.FILE_NOT_FOUND),
        ("out/*.md", ToolFailure.PLACE_INVALID),
        ("../../about.json", ToolFailure.PLACE_INVALID),
        ("skills/adder/SKILL.md", ToolFailure.PLACE_INVALID),
    ):
        with pytest.raises(ToolFailed) as refused:
            await setting.call("workspace_save_artifact", path=path)
        assert refused.value.code is code


async def test_code_3_4_a_file_that_is_too_large_to_be_kept_whole_is_not_kept(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "SAVE_BYTES", 1_000)
    await setting.call("workspace_exec", code="write_text('out/big.txt', 'x' * 1_001)")
    with pytest.raises(ToolFailed) as refused:
        await setting.call("workspace_save_artifact", path="out/big.txt")
    assert refused.value.code is ToolFailure.CONTENT_TOO_LARGE
    assert await setting.artifacts.list() == ()


async def test_skill_run_wants_the_skill_to_be_read_first(setting: Setting) -> None:
    tool = setting.tool("skill_run")
    with pytest.raises(ToolFailed) as unread:
        await tool.call({"skill": "adder", "code": "1"}, await setting.context(load=False))
    assert unread.value.code is ToolFailure.SKILL_NOT_LOADED and "skill_load" in unread.value.message
    with pytest.raises(ToolFailed) as unknown:
        await setting.call("skill_run", skill="other", code="1")
    assert unknown.value.code is ToolFailure.SKILL_NOT_FOUND


async def test_skill_run_works_in_the_skills_directory_and_returns_what_it_leaves(setting: Setting) -> None:
    await setting.artifacts.save(name="sales.csv", data=CSV)
    done = await setting.call(
        "skill_run",
        skill="adder",
        code=(
            "exec(open('add.py').read())\nimport os\nwrite_text('out/sum.txt', str(add('inputs/sales.csv')))\n"
            "print(os.environ['SKILL_NAME'])"
        ),
        save_as_artifacts=True,
        artifact_prefix="sums/",
    )
    assert "[stdout]\nadder" in done.content and "[out/sum.txt]\n42" in done.content
    assert [ref.name for ref in done.artifacts] == ["sums/sum.txt"]
    assert done.data["artifact_files"] == [{"name": "sums/sum.txt", "version": 1}]
    assert done.data["output_files"][0]["ref"] == "workspace://out/sum.txt"


async def test_skills_2_8_a_program_that_fails_is_a_result_and_its_empty_files_are_left_out(setting: Setting) -> None:
    code = "import sys\nopen('out/empty.txt', 'w').close()\nprint('wrong', file=sys.stderr)\nexit(3)"
    done = await setting.call("skill_run", skill="adder", code=code)
    assert done.data["exit_code"] == 3 and "[stderr]\nwrong" in done.content
    assert done.data["output_files"] == []
    assert any("empty files" in warning for warning in done.data["warnings"])


async def test_skills_2_8_a_program_past_its_time_is_stopped_and_said_so(setting: Setting) -> None:
    done = await setting.call("skill_run", skill="adder", code="while True:\n    pass", timeout=1)
    assert done.data["timed_out"] is True and done.data["exit_code"] == -1
    assert "its time was over" in done.content and done.summary == "time"


async def test_skills_2_9_long_output_many_files_and_links(setting: Setting) -> None:
    done = await setting.call(
        "skill_run",
        skill="adder",
        code="print('中' * 7_000)\nfor n in range(25):\n    write_text(f'out/{n:02}.txt', 'x')",
    )
    printed = done.content.split("[stdout]\n")[1].split("\n\n")[0]
    assert 16_380 <= len(printed.encode()) <= 16_384 and set(printed) == {"中"}
    assert any("stdout was cut" in warning for warning in done.data["warnings"])
    assert len(done.data["output_files"]) == 20
    assert any("at most 20 files" in warning for warning in done.data["warnings"])


@needs_bubblewrap
async def test_skills_2_9_a_link_to_a_file_of_the_machine_is_not_collected(full: Setting) -> None:
    done = await full.call("skill_run", skill="adder", code="import os\nos.symlink('/etc/passwd', 'out/link')")
    assert done.data["output_files"] == []
    assert "is a link" in done.content


class Full(MemoryArtifactStore):
    """A store with no room."""

    async def save(self, **more: Any) -> ArtifactRef:
        raise ArtifactNotKept

    async def list(self) -> tuple[ArtifactRef, ...]:
        return ()

    async def find(self, name_or_id: str, version: int | None = None) -> ArtifactRef:
        raise ArtifactMissing(name_or_id)


async def test_skills_2_10_what_cannot_be_saved_is_shown_instead_and_an_explicit_wish_fails(setting: Setting) -> None:
    setting.artifacts = Full()
    done = await setting.call(
        "skill_run",
        skill="adder",
        code="write_text('out/a.txt', 'content')",
        save_as_artifacts=True,
        omit_inline_content=True,
    )
    assert "[out/a.txt]\ncontent" in done.content and done.artifacts == ()
    assert any("not saved" in warning for warning in done.data["warnings"])
    with pytest.raises(ToolFailed) as refused:
        await setting.call("workspace_save_artifact", path="out/a.txt")
    assert refused.value.code is ToolFailure.FILE_NOT_KEPT


@pytest.mark.parametrize("command", ["ls; cat a | wc", "ls && wc 'a b' || cat \"c;d\"", "ls;"])
def test_skills_2_11_listed_commands_may_be_joined(command: str) -> None:
    assert CommandPolicy(allowed=frozenset({"ls", "cat", "wc"})).problem(command) == ""


@pytest.mark.parametrize(
    "command",
    ["ls $(x)", "ls `x`", "ls a > b", "ls < a", "env sh", "BASH -c ls", "ls & ls", "A=1 ls", "ls $HOME", "(ls)",
     "ls\nrm a", "{ ls; }", "eval ls", "xargs ls", "cd /", "/bin/sh -c ls", "ls | ",
      "ls 'a", "rm a", "ls \\; rm a", "'s'h -c ls",
     "\"env\" ls", "ls \"$(x)\"", "./ls", "ls\v/../evil", "ls\xa0/../evil", "'ls\x1c/../evil'", "\0010\2/../x 'ls'"],
)  # fmt: skip
def test_skills_2_11_whatever_could_become_another_command_is_refused(command: str) -> None:
    assert CommandPolicy(allowed=frozenset({"ls", "cat", "wc"})).problem(command) != ""


def test_skills_2_11_denying_looks_at_the_base_name_in_any_case_and_allowing_is_exact() -> None:
    denying = CommandPolicy(denied=frozenset({"rm"}))
    assert denying.problem("ls | wc") == ""
    assert denying.problem("/usr/bin/RM a") != ""
    for hidden in (
        "/bin/r? a",
        "/bin/[r]m a",
        "! rm a",
        "if rm a; then ls; fi",
        "/lib64/ld-linux-x86-64.so.2 /bin/rm a",
    ):
        assert denying.problem(hidden) != ""
    assert denying.problem("ls *.csv") == ""
    assert CommandPolicy(allowed=frozenset({"ls"})).problem("LS") != ""
    assert CommandPolicy(allowed=frozenset({"sh"})).problem("sh -c ls") != ""
    assert CommandPolicy(allowed=frozenset({"ls"})).problem("ls; ls", single=True) != ""
    assert CommandPolicy().problem("ls > $(a)") == ""


@needs_bubblewrap
async def test_skills_2_11_the_policy_holds_for_the_tools(full: Setting) -> None:
    full.policy = CommandPolicy(allowed=frozenset({"echo"}))
    assert "[stdout]\nhello" in (await full.call("workspace_exec", command="echo hello")).content
    for arguments in ({"command": "ls"}, {"command": "echo $(ls)"}, {"code": "import os; os.system('ls')"}):
        with pytest.raises(ToolFailed) as refused:
            await full.call("workspace_exec", **arguments)
        assert refused.value.code is ToolFailure.COMMAND_REFUSED
    with pytest.raises(ToolFailed):
        await full.call("skill_run", skill="adder", command="echo a; echo b")


async def test_a_shell_is_refused_where_there_is_none(tmp_path: Path, library: MemorySkills) -> None:
    setting = Setting(MontyExecutor(), tmp_path, library)
    for arguments in ({"command": "ls"}, {}, {"code": "1", "command": "ls"}):
        with pytest.raises(ToolFailed):
            await setting.call("workspace_exec", **arguments)


async def test_a_cwd_outside_is_refused(setting: Setting) -> None:
    for cwd in ("../..", "inputs", "/etc", "work/\ud800", "work/" + "x" * 256):
        with pytest.raises(ToolFailed) as refused:
            await setting.call("workspace_exec", code="1", cwd=cwd)
        assert refused.value.code is ToolFailure.PLACE_INVALID


@needs_bubblewrap
async def test_a_command_that_asks_goes_on_between_calls(full: Setting) -> None:
    begun = await full.call(
        "workspace_exec", code="print('name?')\nprint('hello', input())", yield_time_ms=500, timeout_sec=20
    )
    assert begun.data["status"] == "running" and "name?" in begun.content
    key = begun.data["session_id"]
    looked = await full.call("workspace_write_stdin", session_id=key, yield_time_ms=100)
    assert looked.data["status"] == "running" and "nothing new" in looked.content
    ended = await full.call(
        "workspace_write_stdin", session_id=key, chars="Ada", append_newline=True, yield_time_ms=10_000
    )
    assert ended.data["status"] == "exited" and "hello Ada" in ended.content


@needs_bubblewrap
async def test_a_command_too_many_is_ended_at_once(full: Setting) -> None:
    context = await full.context()
    for _ in range(processes.MOST):
        await full.tool("workspace_exec").call({"command": "sleep 30", "background": True, "yield_time_ms": 0}, context)
    with pytest.raises(ToolFailed) as refused:
        await full.tool("workspace_exec").call({"command": "sleep 31.5", "background": True}, context)
    assert refused.value.code is ToolFailure.CODE_NOT_RUN
    assert ended("sleep 31.5")
    context.cancel.cancel(CancelReason.USER)


@needs_bubblewrap
async def test_a_command_of_another_conversation_or_person_cannot_be_reached(full: Setting) -> None:
    begun = await full.call("workspace_exec", command="sleep 30", background=True, yield_time_ms=0)
    key = begun.data["session_id"]
    for other in ({"session_id": "2"}, {"owner_id": 2}):
        context = await full.context()
        for name, value in other.items():
            object.__setattr__(context, name, value)
        for tool in ("workspace_write_stdin", "workspace_kill_session"):
            with pytest.raises(ToolFailed) as refused:
                await full.tool(tool).call({"session_id": key}, context)
            assert refused.value.code is ToolFailure.PROCESS_NOT_FOUND
    ended = await full.call("workspace_kill_session", session_id=key)
    assert ended.data["status"] == "ended"
    assert processes.find(key, await full.context()).process.over


@needs_bubblewrap
async def test_code_3_10_stopping_the_run_ends_what_it_left_running(full: Setting) -> None:
    context = await full.context()
    begun = await full.tool("workspace_exec").call({"command": "sleep 30", "yield_time_ms": 0}, context)
    process = processes.find(begun.data["session_id"], context).process
    assert not process.over
    context.cancel.cancel(CancelReason.USER)
    with pytest.raises(ExecutorFailed, match="ended"):
        await process.wait(5)


async def test_a_pinned_input_stays_the_first_version(setting: Setting) -> None:
    await setting.artifacts.save(name="user:n.csv", data=b"n\n1\n")
    code = "print(read_table('inputs/n.csv')[0]['n'])"
    await setting.call("skill_run", skill="adder", code=code, inputs=[{"from": "n.csv", "pin": True}])
    await setting.artifacts.save(name="user:n.csv", data=b"n\n2\n")
    pinned = await setting.call("skill_run", skill="adder", code=code, inputs=[{"from": "n.csv", "pin": True}])
    assert "[stdout]\n1" in pinned.content and "n_2.csv" not in pinned.content
    newest = await setting.call("skill_run", skill="adder", code=code, inputs=[{"from": "n.csv"}])
    assert "work/inputs/n_2.csv" in newest.content
