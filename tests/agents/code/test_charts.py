"""Charts and tables, as code finds them."""

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from agents.providers.sandbox.charts import file_name, svg
from agents.providers.sandbox.tables import table

SVG = "{http://www.w3.org/2000/svg}"
SALES = [{"月份": "1月", "收入": 12000, "成本": -300.5}, {"月份": "2月", "收入": 15500, "成本": None}]


def parsed(drawn: str) -> ET.Element:
    return ET.fromstring(drawn)


def words(drawn: str) -> list[str]:
    return [text.text or "" for text in parsed(drawn).iter(f"{SVG}text")]


def test_bars_have_axes_labels_a_legend_and_words_for_who_cannot_see_them() -> None:
    drawn = svg("bar", SALES, "收入 & <成本>")
    root = parsed(drawn)
    assert root.find(f"{SVG}title").text == "收入 & <成本>"  # type: ignore[union-attr]  # there is one
    told = root.find(f"{SVG}desc").text or ""  # type: ignore[union-attr]  # there is one
    assert "lowest 12,000 (1月), highest 15,500 (2月)" in told
    assert len(root.findall(f"{SVG}rect[@class='bar']")) == 3
    assert {"0", "5,000", "1月", "2月", "收入", "成本", "月份"} <= set(words(drawn))
    assert root.get("role") == "img" and "Noto Sans CJK" in (root.get("font-family") or "")
    assert root.findall(f"{SVG}rect[@class='bar']/{SVG}title")[0].text == "1月, 收入: 12,000"


def test_bars_begin_at_zero_and_negative_ones_hang_from_it() -> None:
    drawn = parsed(svg("bar", [{"x": "a", "y": 100}, {"x": "b", "y": -50}]))
    up, down = drawn.findall(f"{SVG}rect[@class='bar']")
    foot = float(up.get("y") or 0) + float(up.get("height") or 0)
    assert foot == pytest.approx(float(down.get("y") or 0), abs=0.2)
    assert float(up.get("height") or 0) == pytest.approx(2 * float(down.get("height") or 0), abs=0.3)


def test_a_line_has_a_gap_where_a_value_is_missing() -> None:
    rows = [{"t": n, "v": None if n == 3 else n * 2} for n in range(7)]
    drawn = parsed(svg("line", rows, "T"))
    assert len(drawn.findall(f"{SVG}polyline")) == 2
    assert len(drawn.findall(f"{SVG}circle")) == 6


def test_points_of_a_scatter_lie_where_their_numbers_say() -> None:
    drawn = parsed(svg("scatter", [{"x": 0, "y": 0}, {"x": 10, "y": 10}, {"x": "", "y": 3}]))
    first, second = drawn.findall(f"{SVG}circle")
    assert float(first.get("cx") or 0) < float(second.get("cx") or 0)
    assert float(first.get("cy") or 0) > float(second.get("cy") or 0)


def test_slices_of_a_pie_say_their_share() -> None:
    drawn = svg("pie", [{"r": "North", "v": 3}, {"r": "南", "v": 1}, {"r": "none", "v": 0}])
    assert len(parsed(drawn).findall(f"{SVG}path[@class='slice']")) == 2
    assert {"North 75.0%", "南 25.0%"} <= set(words(drawn))


@pytest.mark.parametrize("count", [1, 12, 40, 500])
def test_labels_never_number_more_than_there_is_room_for(count: int) -> None:
    drawn = svg("bar", [{"d": f"Department number {n}", "v": n + 1} for n in range(count)])
    labels = [text for text in words(drawn) if re.match("Depart|D", text)]
    assert 1 <= len(labels) <= 45


def test_numbers_may_be_written_with_commas_and_any_size_is_drawn() -> None:
    for values in (["1,200", "3"], [0.0001, 0.0002], [1e12, 2e12], [5, 5], [0, 0], [-3, -1]):
        parsed(svg("line", [{"x": n, "y": value} for n, value in enumerate(values)]))


@pytest.mark.parametrize(
    ("kind", "rows", "said"),
    [
        ("radar", SALES, "kind must be one of"),
        ("bar", [], "at least one"),
        ("bar", [{"a": "x"}], "at least one of numbers"),
        ("bar", [{"a": "x", "b": "many"}], "'many' in column 'b' is no number"),
        ("bar", [{"a": "x", "b": None}], "no number to draw"),
        ("bar", [{"a": "x", **{f"s{n}": n for n in range(9)}}], "too many to tell apart"),
        ("bar", [{"a": n, "b": n} for n in range(2_001)], "too many to draw"),
        ("bar", [{"a": "x", "b": float("inf")}], "too large"),
        ("pie", SALES, "one series"),
        ("pie", [{"a": "x", "b": -1}], "negative"),
        ("pie", [{"a": n, "b": 1} for n in range(13)], "too many for a pie"),
        ("scatter", [{"a": None, "b": 1}], "has no number"),
    ],
)
def test_what_cannot_be_drawn_is_said(kind: str, rows: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        svg(kind, rows)


def test_a_file_is_named_after_the_title() -> None:
    assert file_name("Sales by region, 2025!") == "out/sales-by-region--2025.svg"
    assert file_name("…") == "out/chart.svg"


def test_a_long_text_is_cut_before_it_is_measured_and_has_no_characters_that_xml_has_not() -> None:
    drawn = svg("bar", [{"a": "\0<b>" + "x" * 500_000, "y" * 500_000: 1}], "\x1b" + "t" * 500_000)
    assert len(drawn) < 10_000 and "&lt;b&gt;" in drawn
    assert not {"\0", "\x1b"} & set(drawn)


def test_numbers_too_near_to_nothing_are_drawn_as_nothing() -> None:
    assert svg("line", [{"a": 1, "b": 5e-324}, {"a": 2, "b": 1e-323}]) == svg(
        "line", [{"a": 1, "b": 0}, {"a": 2, "b": 0}]
    )
    with pytest.raises(ValueError, match="too large"):
        svg("line", [{"a": 1, "b": 10**400}])


@pytest.mark.parametrize(
    ("name", "data", "rows"),
    [
        ("a.csv", "甲,乙\n1,\"x, y\"\n".encode(), [{"甲": "1", "乙": "x, y"}]),
        ("a.csv", "\ufeffa;b\n1,5;2\n".encode(), [{"a": "1,5", "b": "2"}]),
        ("a.csv", "名称,数\n苹果,1\n".encode("gb18030"), [{"名称": "苹果", "数": "1"}]),
        ("a.tsv", b"a\tb\n1\t2\n", [{"a": "1", "b": "2"}]),
        ("a.csv", b"a,b\n1\n1,2,3\n", [{"a": "1", "b": ""}, {"a": "1", "b": "2", "(more)": "3"}]),
        ("a.csv", b"a\n1\n", [{"a": "1"}]),
        ("a.csv", b"", []),
        ("a.json", b'[{"a": 1}]', [{"a": 1}]),
        ("a.json", b'{"a": [1, 2], "b": [3, 4]}', [{"a": 1, "b": 3}, {"a": 2, "b": 4}]),
        ("a.json", b'{"rows": [{"a": 1}], "n": 1}', [{"a": 1}]),
    ],
)  # fmt: skip
def test_tables_are_read(name: str, data: bytes, rows: list[dict[str, Any]]) -> None:
    assert table(data, name) == rows


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.csv", b"PK\x03\x04\x00\x00", "save the sheet as CSV"),
        ("a.json", b"[1, 2]", "no table"),
        ("a.json", b"{", "not JSON"),
        ("a.csv", b"\xff\xff\xff\xff\x81", "no text"),
        # a row has all columns, so few bytes make many cells
        ("a.csv", ",".join(map(str, range(20_000))).encode() + b"\nx" * 200_000, "too many"),
        ("a.json", b"[" + b"{}," * 1_500_000 + b"{}]", "more bytes"),
    ],
)
def test_what_is_no_table_is_said(name: str, data: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        table(data, name)
