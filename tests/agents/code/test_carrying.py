"""What comes back from a sandbox is not trusted: whatever ran in there may have written it."""

import io
from pathlib import Path
from typing import Any

import pytest

from agents.providers.sandbox.carrying import MOST_DEEP, NotTrusted, inventory, receive, send_orders
from agents.workspaces.directory import prepare


def line(kind: str, path: str, *more: object) -> bytes:
    return " ".join([kind, path.encode().hex(), *map(str, more)]).encode() + b"\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "w").mkdir()
    prepare(tmp_path / "w")
    return tmp_path / "w"


def come(root: Path, report: bytes, **limits: int) -> object:
    return receive(io.BytesIO(report), root, **{"most_bytes": 1_000, "most_files": 10, **limits})


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "out/../../x",
        "/etc/x",
        "about.json",
        "out",
        "inputs/x",
        "work/inputs/x",
        "out//x",
        "out/./x",
        "out/a\0b",
    ],
)
def test_a_path_that_is_no_result_ends_it(root: Path, path: str) -> None:
    with pytest.raises(NotTrusted):
        come(root, line("F", path, 1, 0) + b"x" + b"E 0 -\n")
    assert not (root.parent / "x").exists()
    assert (root / "about.json").read_text().startswith("{")


@pytest.mark.parametrize(
    "report",
    [
        b"",
        b"nonsense\n",
        b"E\n",
        b"E zero -\n",
        b"F zz 1 0\nx",
        line("F", "out/x", 5, 0) + b"ab",
        line("F", "out/x", -5, 0),
        line("F", "out/x", 5_000, 0),
        line("X", "out/x"),
        b"F " + b"6f" * 20_000,
    ],
    ids=range(10),
)
def test_a_report_that_is_none_ends_it(root: Path, report: bytes) -> None:
    with pytest.raises(NotTrusted):
        come(root, report)


def test_sizes_are_counted_together_and_files_with_those_that_are_there(root: Path) -> None:
    with pytest.raises(NotTrusted):
        come(root, b"".join(line("F", f"out/{n}", 400, 0) + b"x" * 400 for n in range(3)) + b"E 0 -\n")
    for path in (root / "out").iterdir():
        path.unlink()
    report = b"".join(line("F", f"out/{n}", 1, 0) + b"x" for n in range(5)) + b"E 0 -\n"
    came = come(root, report, most_files=3)
    assert sorted(p.name for p in (root / "out").iterdir()) == ["0", "1", "2"]
    assert came.left == ["out/3", "out/4"]  # type: ignore[attr-defined]  # it is a Report
    again = line("F", "out/0", 1, 1) + b"y" + line("D", "out/1") + line("F", "out/9", 1, 0) + b"z" + b"E 7 time\n"
    came = come(root, again, most_files=3)
    assert sorted(p.name for p in (root / "out").iterdir()) == ["0", "2", "9"]
    assert (came.exit_code, came.stopped) == (7, "time")  # type: ignore[attr-defined]  # as above


def test_a_name_that_is_not_text_stays_behind(root: Path) -> None:
    came = come(root, b"F " + b"out/\xff".hex().encode() + b" 1 0\nx" + b"E 0 nonsense\n")
    assert len(came.left) == 1 and came.stopped == ""  # type: ignore[attr-defined]  # as above
    assert list((root / "out").iterdir()) == []


def test_directories_neither_pile_up_nor_lie_deep(root: Path) -> None:
    come(root, line("F", "out/a/b/x", 1, 0) + b"x" + line("F", "out/a/y", 1, 0) + b"y" + b"E 0 -\n")
    deep = "out/" + "d/" * MOST_DEEP + "x"
    came = come(root, line("D", "out/a/b/x") + line("F", deep, 1, 0) + b"x" + b"E 0 -\n")
    assert len(came.left) == 1  # type: ignore[attr-defined]  # as above
    assert [p.name for p in (root / "out").rglob("*")] == ["a", "y"]
    come(root, line("D", "out/a/y") + b"E 0 -\n")
    assert list((root / "out").iterdir()) == []


class Disturbed(io.BytesIO):
    """Takes a file away when another one is sent."""

    def __init__(self, victim: Path) -> None:
        super().__init__()
        self.victim = victim
        self.sent = b""

    def write(self, data: Any, /) -> int:
        if b"out/a" in bytes(data):
            self.victim.unlink()
        return super().write(data)

    def close(self) -> None:
        self.sent = self.getvalue()
        super().close()


def test_a_file_that_goes_while_files_are_sent_is_left_out(root: Path) -> None:
    for name in ("a", "b", "c"):
        (root / "out" / name).write_text(name)
    orders = Disturbed(root / "out" / "b")
    send_orders(orders, root, {}, [], most_bytes=3)
    assert orders.sent == b"{}\n('out/a', 1, 384)\na('out/c', 1, 384)\nc('', 0, 0)\n"


def test_nothing_in_the_place_of_inputs_is_an_input(root: Path) -> None:
    (root / "inputs" / "a").write_text("right")
    (root / "work" / "inputs").mkdir()
    (root / "work" / "inputs" / "a").write_text("forged")
    assert inventory(root) == [("work/inputs/a", 5, 0o444)]
