"""Names and references of files: the same rules in every store."""

import pytest

from agents.runtime.artifacts import ArtifactInvalid, clean_name, reference_candidates


@pytest.mark.parametrize(
    ("name", "clean"),
    [
        ("a.txt", "a.txt"),
        ("out/report.pdf", "out/report.pdf"),
        (" a b.txt ", "a b.txt"),
        ("user:logo.png", "user:logo.png"),
        ("user:art/logo.png", "user:art/logo.png"),
        ("e\u0301.txt", "é.txt"),
        ("表格（最终版）🎉.csv", "表格（最终版）🎉.csv"),
        ("me@home.txt", "me@home.txt"),
        (".hidden", ".hidden"),
        ("a..b", "a..b"),
        ("a" * 255, "a" * 255),
    ],
)
def test_clean_names_are_kept(name: str, clean: str) -> None:
    assert clean_name(name) == clean


@pytest.mark.parametrize(
    "name",
    [
        "",
        "  ",
        "/",
        "/a",
        "a/",
        "a//b",
        ".",
        "..",
        "../x",
        "a/../b",
        "a/./b",
        "a/ ../b",
        "a\\b",
        "a\0b",
        "a\nb",
        "\ud800",
        "a\u202eb",
        "a\u2028b",
        "user:",
        "user:/a",
        "user:..",
        "a" * 256,
        "报" * 86,
    ],
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ArtifactInvalid):
        clean_name(name)


@pytest.mark.parametrize(
    ("text", "candidates"),
    [
        ("a.txt", (("a.txt", None),)),
        ("artifact://a.txt", (("a.txt", None),)),
        ("artifact://a.txt@3", (("a.txt", 3), ("a.txt@3", None))),
        ("artifact://a@x", (("a@x", None), ("a", None))),
        ("artifact://me@home.txt@2", (("me@home.txt", 2), ("me@home.txt@2", None))),
        ("photo@2", (("photo@2", None), ("photo", 2))),
        ("@2", (("@2", None),)),
        ("a@９", (("a@９", None), ("a", None))),
        ("a@99999999999999999999", (("a@99999999999999999999", None), ("a", None))),
    ],
)
def test_a_reference_says_what_it_may_mean(text: str, candidates: tuple[tuple[str, int | None], ...]) -> None:
    assert reference_candidates(text) == candidates
