"""What people bring as skills: every guard, and that a refusal leaves nothing behind."""

import gzip
import hashlib
import io
import os
import stat
import struct
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile

from agents.models.skill import Skill, SkillAudit, SkillRevision
from agents.stores import skillfiles, skillimport, skillpacks
from agents.stores.skillfiles import FOLDER, desk
from agents.stores.skillpacks import Brought, PackRefused, Packs, Refusal, unpack
from artifacts import blobs
from tests.agents.skillpacking import brought, encrypted, skill, tar_of, unmarked, zip_of

MAIN = ("SKILL.md", skill())
MIB = 1024 * 1024


def unpacked(*files: Brought) -> tuple[Packs, dict[str, bytes]]:
    """Return the skills, and the bytes of the files of the first."""
    with desk() as on:
        packs = unpack(files, on)
        return packs, {entry.path: entry.at.read_bytes() for entry in packs.packs[0].entries}


def refused(*files: Brought) -> PackRefused:
    with pytest.raises(PackRefused) as error:
        unpacked(*files)
    return error.value


def zeros_in_zip(size: int, **more: Any) -> bytes:
    """Return a zip with SKILL.md and files of so many zeros that its size says little about them."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(*MAIN)
        for name in more.get("names", ("zeros.bin",)):
            with archive.open(name, "w") as file:
                for _ in range(size // MIB):
                    file.write(bytes(MIB))
    return out.getvalue()


# What is fine


def test_a_zip_a_tar_a_packed_tar_and_one_file_all_bring_the_same_skill() -> None:
    files = (MAIN, ("docs/style.md", "short"), ("run.py", "print(1)"))
    for name, data in (
        ("memo.zip", zip_of(*files)),
        ("memo.tar", tar_of(*files)),
        ("memo.tar.gz", tar_of(*files, packed=True)),
    ):
        packs, read = unpacked(brought(name, data))
        assert packs.packs[0].directory == "memo", name
        assert read == {"SKILL.md": MAIN[1].encode(), "docs/style.md": b"short", "run.py": b"print(1)"}, name
    packs, read = unpacked(brought("SKILL.md", skill()))
    assert (packs.packs[0].directory, list(read)) == ("skill", ["SKILL.md"])
    packs, read = unpacked(brought("会议纪要.md", skill()))
    assert (packs.packs[0].directory, list(read)) == ("会议纪要", ["SKILL.md"])


def test_a_folder_is_brought_with_the_paths_of_its_files() -> None:
    packs, read = unpacked(
        brought("memo/SKILL.md", skill()), brought("memo/资料/样式.md", "短"), brought("memo/.DS_Store", "x")
    )
    assert packs.packs[0].directory == "memo"
    assert read == {"SKILL.md": skill().encode(), "资料/样式.md": "短".encode()}


def test_an_archive_may_hold_several_skills_and_says_what_belongs_to_none() -> None:
    data = zip_of(
        ("all/one/SKILL.md", skill("one")),
        ("all/one/inner/SKILL.md", skill("not-one-of-its-own")),
        ("all/two/SKILL.md", skill("two")),
        ("all/README.md", "hello"),
        ("__MACOSX/all/._one", "junk"),
    )
    packs, read = unpacked(brought("all.zip", data))
    assert [pack.directory for pack in packs.packs] == ["one", "two"]
    assert set(read) == {"SKILL.md", "inner/SKILL.md"}
    assert packs.beside == ("all/README.md",)


def test_chinese_names_are_read_also_from_archives_of_old_programs() -> None:
    data = zip_of(MAIN, ("资料/样式.md", "短"))
    assert "资料/样式.md" in unpacked(brought("技能.zip", data))[1]
    gbk = "样式.md".encode("gb18030")
    assert "样式.md" in unpacked(brought("a.zip", unmarked(zip_of(MAIN, ("ABCD.md", "x")), gbk, b"ABCD.md")))[1]


# What is not


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "a/../../x",
        "/etc/passwd",
        "C:/x",
        "C:x",
        "a\\..\\x",
        "./x",
        "a//x",
        "a/./x",
        "a/ /x",
        " x",
        "x\x07",
        "x\u202ey",
        "x" * 256,
        "a/" * 17 + "x",
    ],
)
@pytest.mark.parametrize("kind", ["zip", "tar", "folder"])
def test_a_path_that_leads_out_or_is_none_refuses_the_whole(path: str, kind: str) -> None:
    if kind == "folder":
        found = refused(brought("memo/SKILL.md", skill()), brought(path, "x"))
    elif kind == "zip":
        found = refused(brought("memo.zip", zip_of(MAIN, (path, "x"))))
    elif path == "./x":
        return  # tars made of a directory write all their names so
    else:
        found = refused(brought("memo.tar", tar_of(MAIN, (path, "x"))))
    assert found.reason is Refusal.PATH


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: zip_of(MAIN, ("l", "/etc/passwd"), mode=stat.S_IFLNK | 0o777), Refusal.LINK),
        (lambda: zip_of(MAIN, ("d", ""), mode=stat.S_IFCHR | 0o666), Refusal.DEVICE),
        (lambda: tar_of(MAIN, ("l", ""), type=tarfile.SYMTYPE, linkname="/etc/passwd"), Refusal.LINK),
        (lambda: tar_of(MAIN, ("l", ""), type=tarfile.LNKTYPE, linkname="SKILL.md"), Refusal.LINK),
        (lambda: tar_of(MAIN, ("d", ""), type=tarfile.CHRTYPE), Refusal.DEVICE),
        (lambda: tar_of(MAIN, ("d", ""), type=tarfile.FIFOTYPE), Refusal.DEVICE),
        (lambda: tar_of(MAIN, ("d", ""), type=tarfile.GNUTYPE_SPARSE), Refusal.DEVICE),
        (lambda: zip_of(MAIN, ("a", "1"), ("a", "2")), Refusal.TWICE),
        (lambda: zip_of(MAIN, ("A", "1"), ("a", "2")), Refusal.TWICE),
        (lambda: zip_of(MAIN, ("a", "1"), ("a/b", "2")), Refusal.TWICE),
        (lambda: zip_of(MAIN, ("a/b", "1"), ("a", "2")), Refusal.TWICE),
        (lambda: tar_of(MAIN, ("e\u0301", "1"), ("\u00e9", "2")), Refusal.TWICE),
        (lambda: encrypted(zip_of(MAIN)), Refusal.ENCRYPTED),
        (lambda: zip_of(MAIN, *((f"f{n}", "") for n in range(skillpacks.MOST_FILES))), Refusal.COUNT),
        (lambda: zip_of(("README.md", "no skill here")), Refusal.NO_SKILL),
        (lambda: zip_of(("skill.md", skill())), Refusal.NO_SKILL),
        (lambda: zip_of(), Refusal.EMPTY),
        (lambda: zip_of(MAIN)[:-30], Refusal.DAMAGED),
        (lambda: zip_of(MAIN).replace(b"PK\x01\x02", b"PK\x01\x03"), Refusal.DAMAGED),
        (lambda: tar_of(MAIN, packed=True)[:-9], Refusal.DAMAGED),
        (lambda: gzip.compress(b"no tar"), Refusal.DAMAGED),
        (lambda: b"\x7fELF" + bytes(600), Refusal.KIND),
    ],
)
def test_an_archive_that_breaks_a_rule_is_refused_with_its_reason(make: Callable[[], bytes], reason: Refusal) -> None:
    assert refused(brought("memo.bin", make())).reason is reason


def test_a_bomb_is_refused_by_what_comes_out_of_it_whatever_it_says_of_itself() -> None:
    assert refused(brought("b.zip", zeros_in_zip(65 * MIB))).reason is Refusal.FILE_SIZE
    many = zeros_in_zip(60 * MIB, names=[f"{n}.bin" for n in range(5)])
    assert len(many) < 3 * MIB
    assert refused(brought("b.zip", many)).reason is Refusal.TOTAL_SIZE
    members = ((f"{n}.bin", bytes(60 * MIB)) for n in range(5))
    assert refused(brought("b.tar.gz", tar_of(MAIN, *members, packed=True))).reason is Refusal.TOTAL_SIZE


def header(kind: bytes, size: int) -> bytes:
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


def sparse() -> bytes:
    """Return the header of a file with holes that goes on listing them without an end."""
    raw = bytearray(header(tarfile.GNUTYPE_SPARSE, 10))
    raw[482], raw[148:156] = 1, b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw)
    return bytes(raw) + (b"00000000001\0" * 42 + b"\1".ljust(8, b"\0")) * 10_000


def zip_of_a_million() -> bytes:
    entry = b"PK\1\2" + bytes(24) + struct.pack("<HHH", 1, 0, 0) + bytes(12) + b"a"
    listed = entry * 1_000_000
    ends = struct.pack("<HHHHIIH", 0, 0, 65_535, 65_535, len(listed), 64, 0)
    return b"PK\3\4" + bytes(60) + listed + b"PK\5\6" + ends


def zip_that_points_before_itself() -> bytes:
    data = bytearray(zip_of(MAIN))
    at = data.rfind(b"PK\5\6")
    data[at + 16 : at + 20] = struct.pack("<I", 1_000)  # where the list begins; so all offsets are moved
    return bytes(data)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: header(tarfile.GNUTYPE_LONGNAME, 60 * MIB) + b"a" * 60 * MIB, Refusal.TOTAL_SIZE),
        (lambda: header(tarfile.XHDTYPE, 60 * MIB) + b"11 ab=cdef\n" * 5 * MIB, Refusal.TOTAL_SIZE),
        (lambda: (header(tarfile.GNUTYPE_LONGNAME, 5) + b"abcd".ljust(512, b"\0")) * 3_000, Refusal.DAMAGED),
        (sparse, Refusal.TOTAL_SIZE),
        (lambda: tar_of(MAIN, ("x" * 100_000, "")), Refusal.PATH),
        (lambda: tar_of(MAIN, ("d/" * 16 + "x", "")), Refusal.PATH),
    ],
)
def test_what_stands_around_the_files_of_a_tar_is_bounded_too(make: Callable[[], bytes], reason: Refusal) -> None:
    began = time.process_time()
    assert refused(brought("memo.tar.gz", gzip.compress(make(), 1))).reason is reason
    assert time.process_time() - began < 10  # one long name took minutes


def test_the_list_of_entries_of_a_zip_is_bounded_before_it_is_read() -> None:
    assert refused(brought("memo.zip", zip_of_a_million())).reason is Refusal.COUNT


def test_a_zip_whose_offsets_lead_out_of_it_is_damaged() -> None:
    with tempfile.TemporaryFile() as file:  # unlike bytes in memory, a file answers with an error of the system
        data = zip_that_points_before_itself()
        file.write(data)
        assert refused(Brought(path="memo.zip", file=file, size=len(data))).reason is Refusal.DAMAGED


def test_a_file_that_is_too_large_as_it_is_brought_is_not_even_opened() -> None:
    closed = Brought(path="a.zip", file=None, size=64 * MIB + 1)  # type: ignore[arg-type]
    assert refused(closed).reason is Refusal.FILE_SIZE


def test_a_desk_is_cleared_also_after_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with desk() as on:
        unpack([brought("a.zip", zip_of(MAIN))], on)
        assert os.listdir(tmp_path)
    refused(brought("a.zip", zip_of(MAIN, ("../x", "x"))))
    assert not os.listdir(tmp_path)


# Into the library


def stored_bytes() -> list[str]:
    """Return the names of everything that is stored of skills."""
    try:
        folders = blobs.storage().listdir(FOLDER)[0]
    except FileNotFoundError:
        return []
    return [name for folder in folders for name in blobs.storage().listdir(f"{FOLDER}/{folder}")[1]]


@pytest.mark.parametrize(
    "bad",
    [
        lambda: zip_of(("good/SKILL.md", skill("good")), ("bad/SKILL.md", skill("bad")), ("../x", "x")),
        lambda: tar_of(("good/SKILL.md", skill("good")), ("/abs", "x")),
        lambda: tar_of(("good/SKILL.md", skill("good")), ("l", ""), type=tarfile.SYMTYPE, linkname="/etc"),
        lambda: zeros_in_zip(60 * MIB, names=[f"{n}.bin" for n in range(5)]),
    ],
)
def test_skills_2_15_a_refused_archive_leaves_nothing_behind(alice: Any, bad: Callable[[], bytes]) -> None:
    before = stored_bytes()
    with pytest.raises(PackRefused):
        skillimport.bring([brought("a.zip", bad())], owner_id=alice.pk, actor_id=alice.pk)
    assert stored_bytes() == before
    for table in (Skill, SkillRevision, SkillAudit):
        assert not table.objects.of_everyone().exists()


def test_a_failure_in_the_middle_of_an_import_leaves_nothing_behind(
    alice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stored_bytes()
    data = zip_of(("a/SKILL.md", skill("a")), ("b/SKILL.md", skill("b")))
    add, added = blobs.storage().save, []

    def full(name: str, content: Any, max_length: int | None = None) -> str:
        added.append(name)
        if len(added) > 1:
            raise OSError("the disk is full")
        return str(add(name, content, max_length))

    monkeypatch.setattr(blobs.storage(), "save", full)
    with pytest.raises(OSError, match="full"):
        skillimport.bring([brought("a.zip", data)], owner_id=alice.pk, actor_id=alice.pk)
    assert len(added) == 2
    assert not Skill.objects.of_everyone().exists()
    assert stored_bytes() == before


def test_two_skills_of_one_name_in_an_archive_are_refused(alice: Any) -> None:
    data = zip_of(("a/SKILL.md", skill("memo")), ("b/SKILL.md", skill("memo")))
    with pytest.raises(PackRefused) as error:
        skillimport.bring([brought("a.zip", data)], owner_id=alice.pk, actor_id=alice.pk)
    assert (error.value.reason, error.value.about) == (Refusal.NAME, "memo")
    assert not Skill.objects.of_everyone().exists()


def test_bytes_that_a_crash_cut_off_are_written_again(alice: Any) -> None:
    def bring(text: str) -> SkillRevision:
        files = (MAIN, ("docs/style.md", text))
        found = skillimport.bring([brought("a.zip", zip_of(*files))], owner_id=alice.pk, actor_id=alice.pk)
        return found.skills[0].revision

    first = bring("one")
    sha256 = hashlib.sha256(b"a long second text").hexdigest()
    blobs.storage().save(f"{FOLDER}/{first.skill.key.hex}/{sha256}", ContentFile(b"a long"))
    second = bring("a long second text")
    style = next(file for file in second.files if file["path"] == "docs/style.md")
    assert skillfiles.read(second.skill.key, style) == b"a long second text"
