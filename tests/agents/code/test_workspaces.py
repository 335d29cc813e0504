"""The directory of a conversation: what is put there, what is taken out, what is swept."""

import os
import time
from pathlib import Path

import pytest

from agents.providers.monty import MontyExecutor
from agents.runtime.code import CodeLimits, CollectLimits, PathInvalid
from agents.runtime.skills.skill import SkillFile
from agents.workspaces import sweeping
from agents.workspaces.directory import DirectoryWorkspace, place
from agents.workspaces.names import fit, mime_of, pattern

LIMITS = CollectLimits()


def workspace(top: Path, *, owner_id: int = 1, session_id: int = 1) -> DirectoryWorkspace:
    return DirectoryWorkspace(
        top=top, owner_id=owner_id, session_id=session_id, executor=MontyExecutor(), limits=CodeLimits()
    )


@pytest.fixture
def here(tmp_path: Path) -> DirectoryWorkspace:
    return workspace(tmp_path)


@pytest.fixture
async def out(here: DirectoryWorkspace, tmp_path: Path) -> Path:
    await here.stage_skill("any", "d", [])  # it makes the directories
    return place(tmp_path, 1, 1) / "out"


async def test_an_input_is_put_there_once_under_a_name_that_fits(here: DirectoryWorkspace, tmp_path: Path) -> None:
    first = await here.put_input("Umsatz 2025 (neu).csv", b"a", key="artifact://Umsatz 2025 (neu).csv@1")
    assert first == "work/inputs/Umsatz_2025__neu_.csv"
    assert await here.put_input("other", b"b", key="artifact://Umsatz 2025 (neu).csv@1") == first
    assert (place(tmp_path, 1, 1) / "inputs" / "Umsatz_2025__neu_.csv").read_bytes() == b"a"


async def test_two_inputs_of_one_name_lie_beside_each_other(here: DirectoryWorkspace) -> None:
    assert await here.put_input("销售.csv", b"a", key="artifact://销售.csv@1") == "work/inputs/销售.csv"
    assert await here.put_input("销售.csv", b"b", key="artifact://销售.csv@2") == "work/inputs/销售_2.csv"
    assert await here.input_path("artifact://销售.csv@2") == "work/inputs/销售_2.csv"
    assert await here.pinned("销售.csv") == 1
    assert await here.input_path("artifact://none@1") == ""


@pytest.mark.parametrize(
    ("name", "fitting"),
    [
        ("../../etc/passwd", "passwd"),
        ("a\\b\\c.txt", "c.txt"),
        (".bashrc", "bashrc"),
        ("-rf", "rf"),
        ("a\0b\n.txt", "a_b_.txt"),
        ("…", "file"),
        ("x" * 300 + ".csv", "x" * 116 + ".csv"),
    ],
)
def test_names_are_made_fit(name: str, fitting: str) -> None:
    assert fit(name) == fitting


async def test_nothing_of_one_conversation_is_seen_in_another_nor_of_one_person_by_another(tmp_path: Path) -> None:
    mine = workspace(tmp_path, owner_id=1, session_id=1)
    await mine.put_input("a.csv", b"secret", key="artifact://a.csv@1")
    (place(tmp_path, 1, 1) / "out" / "r.txt").write_text("secret")
    for other in (workspace(tmp_path, owner_id=1, session_id=2), workspace(tmp_path, owner_id=2, session_id=1)):
        await other.put_input("b.csv", b"b", key="artifact://b.csv@1")
        assert await other.input_path("artifact://a.csv@1") == ""
        assert await other.files() == {}
        for glob in ("**", "../1/out/*", "/workspace/../../1/1/out/r.txt"):
            assert (await other.collect([glob], LIMITS)).files == ()
        with pytest.raises(PathInvalid):
            await other.read("../../1/1/out/r.txt", most_bytes=10)


async def test_a_skill_is_staged_anew_when_its_digest_is_another(here: DirectoryWorkspace, tmp_path: Path) -> None:
    home = place(tmp_path, 1, 1) / "skills" / "demo"
    files = [SkillFile(path="SKILL.md", data=b"1"), SkillFile(path="lib/tool.py", data=b"x = 1")]
    assert await here.stage_skill("demo", "one", files) == "skills/demo"
    (home / "lib" / "tool.py").write_text("changed")  # it is a copy that code may change
    await here.stage_skill("demo", "one", files)
    assert (home / "lib" / "tool.py").read_text() == "changed"
    await here.stage_skill("demo", "two", [SkillFile(path="SKILL.md", data=b"2")])
    assert [p.name for p in home.iterdir()] == ["SKILL.md"]
    assert await here.skill_digest("demo") == "two"


@pytest.mark.parametrize("name", ["../out", ".hidden", "a/b", ""])
async def test_a_skill_of_an_unsafe_name_is_not_staged(here: DirectoryWorkspace, name: str) -> None:
    with pytest.raises(PathInvalid):
        await here.stage_skill(name, "d", [])


async def test_a_file_of_a_skill_that_leads_out_is_not_written(here: DirectoryWorkspace, tmp_path: Path) -> None:
    with pytest.raises(PathInvalid):
        await here.stage_skill("demo", "d", [SkillFile(path="../../../x", data=b"x")])
    assert not (tmp_path / "x").exists()


async def test_code_3_4_at_most_so_many_files_are_taken_and_a_long_one_only_in_part(
    here: DirectoryWorkspace, out: Path
) -> None:
    for number in range(101):
        (out / f"{number:03}.txt").write_text("x")
    found = await here.collect(["out/**"], LIMITS)
    assert len(found.files) == 100
    assert found.limits_hit
    (out / "big.bin").write_bytes(bytes(5 * 1024 * 1024))
    big = await here.collect(["out/big.bin"], LIMITS)
    assert big.limits_hit
    assert (big.files[0].truncated, len(big.files[0].data), big.files[0].size_bytes) == (True, 4 << 20, 5 << 20)


async def test_code_3_5_patterns_and_links_that_lead_out_collect_nothing(
    here: DirectoryWorkspace, out: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.txt").write_text("hidden")
    os.symlink("/etc/passwd", out / "link")
    os.symlink(tmp_path, out / "dir")
    os.symlink("nowhere", out / "broken")
    found = await here.collect(["../*", "/etc/*", "out/**"], LIMITS)
    assert found.files == ()
    assert len([w for w in found.warnings if "leads out" in w]) == 2
    assert len([w for w in found.warnings if "is a link" in w]) == 3
    for path in ("out/link", "out/dir/secret.txt"):
        with pytest.raises(PathInvalid):
            await here.read(path, most_bytes=10)


@pytest.mark.parametrize(
    ("glob", "path", "fits"),
    [
        ("out/**", "out/a/b.txt", True),
        ("out/*", "out/a/b.txt", False),
        ("out/*.csv", "out/a.csv", True),
        ("**/*.csv", "work/a/b.csv", True),
        ("**/*.csv", "a.csv", True),
        ("out/?.txt", "out/ab.txt", False),
        ("out/a.txt", "out/axtxt", False),
    ],
)
def test_patterns(glob: str, path: str, fits: bool) -> None:
    assert bool(pattern(glob).fullmatch(path)) is fits


@pytest.mark.parametrize(
    ("path", "head", "mime"),
    [
        ("a.svg", b"<svg/>", "image/svg+xml"),
        ("a.csv", "甲,乙".encode(), "text/csv"),
        ("a.csv", b"\xff\x00\x01", "application/octet-stream"),
        ("noend", b"text", "text/plain"),
        ("noend", b"\x00\x01", "application/octet-stream"),
        ("a.png", b"\x89PNG", "image/png"),
    ],
)
def test_types_are_told_by_name_and_bytes(path: str, head: bytes, mime: str) -> None:
    assert mime_of(path, head) == mime


async def test_only_files_of_work_out_and_runs_can_be_read(here: DirectoryWorkspace, out: Path) -> None:
    (out / "a.txt").write_text("x")
    assert (await here.read("/workspace/out/a.txt", most_bytes=10)).data == b"x"
    await here.put_input("in.csv", b"y", key="k")
    assert (await here.read("work/inputs/in.csv", most_bytes=10)).data == b"y"
    for path in ("about.json", "inputs/in.csv", "skills/any", "out", ""):
        with pytest.raises(PathInvalid):
            await here.read(path, most_bytes=10)
    with pytest.raises(FileNotFoundError):
        await here.read("out/none.txt", most_bytes=10)


async def test_a_spoilt_note_is_made_anew(here: DirectoryWorkspace, out: Path) -> None:
    (out.parent / "about.json").write_text("{]")
    assert await here.put_input("a.csv", b"a", key="artifact://a.csv@1") == "work/inputs/a.csv"


async def test_workspaces_are_swept_when_unused_and_with_their_conversation(tmp_path: Path) -> None:
    for session_id in (1, 2, 3):
        await workspace(tmp_path, session_id=session_id).put_input("a", b"a", key="k")
    long_ago = time.time() - 1_000
    os.utime(place(tmp_path, 1, 2) / "about.json", (long_ago, long_ago))
    assert sweeping.sweep(tmp_path, keep_s=500) == 1
    sweeping.forget(tmp_path, 1, 3)
    sweeping.forget(tmp_path, 9, 9)
    assert [p.name for p in (tmp_path / "1").iterdir()] == ["1"]
    assert sweeping.sweep(tmp_path / "none", keep_s=1) == 0


def test_only_the_server_may_enter_a_workspace(out: Path) -> None:
    assert out.stat().st_mode & 0o077 == 0
