"""data-chart: the picture has the title, the labels and a mark for every value; the words have the figures."""

from pathlib import Path
from xml.etree import ElementTree

from tests.skills.running import Workshop, expected, graded, load

LOAD = load("draw.py")


@graded("data-chart")
def test_a_chart_shows_the_series_and_its_words_have_the_figures(case: Path, interpreter: str, tmp_path: Path) -> None:
    wanted = expected(case)
    shop = Workshop(tmp_path, "data-chart", case, interpreter)
    report = shop.run(*LOAD, f'print(draw("inputs/input.csv", {wanted["call"]}))')
    assert [words for words in wanted["report"] if words not in report] == [], report
    assert f"({wanted['kind']}), out/chart.svg" in report or f"（{wanted['kind']}），out/chart.svg" in report
    assert shop.out("chart.csv") == wanted["csv"]
    svg = ElementTree.fromstring(shop.out("chart.svg"))
    words = "\n".join("".join(node.itertext()) for node in svg.iter() if node.tag.endswith(("}text", "}title")))
    assert [label for label in wanted["svg"] if label not in words] == [], words
    mark = {"line": "series", "bar": "bar"}[wanted["kind"]]
    assert [node.get("class") for node in svg.iter()].count(mark) == wanted["marks"]
