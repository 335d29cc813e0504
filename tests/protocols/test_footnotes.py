"""Footnotes of a document: marks and notes lead to each other, and what is none stays as it is written."""

import re

import pytest

from agents.protocols.agui import blocks
from agents.protocols.agui.footnotes import Footnotes

REPORT = """# Rent

It is 7,450 euros. [^1] It rises.[^2][^1]

- a point[^2]

## Sources

[^1]: Lease.pdf
[^2]: *Lease*, page 1:
“2 percent”
"""


def drawn(markdown: str) -> str:
    notes = Footnotes(markdown)
    return "".join(blocks.render_block(block, notes) for block in blocks.split(markdown))


def links(html: str) -> list[tuple[str, str, str]]:
    """Every footnote's link in order: where it leads, its id, its label."""
    found = re.findall(r'<a class="note-mark" href="#([^"]*)"(?: id="([^"]*)")? rel="[^"]*">([^<]*)</a>', html)
    return [(to, own, label) for to, own, label in found]


def test_marks_lead_to_their_notes_and_notes_back_to_the_first_mark() -> None:
    assert links(drawn(REPORT)) == [
        ("note-1", "marked-1", "1"),
        ("note-2", "marked-2", "2"),
        ("note-1", "", "1"),
        ("note-2", "", "2"),
        ("marked-1", "note-1", "1"),
        ("marked-2", "note-2", "2"),
    ]


def test_each_note_is_a_paragraph_with_all_of_its_lines() -> None:
    html = drawn(REPORT)
    assert html.count('<p class="note">') == 2
    assert "</a> Lease.pdf</p>" in html
    assert "</a> <em>Lease</em>, page 1:\n“2 percent”</p>" in html
    assert "[^" not in html


def test_a_mark_keeps_to_the_word_before_and_opens_nothing() -> None:
    html = drawn(REPORT)
    assert f"euros.{blocks.WORD_JOINER}<a" in html
    assert "target" not in html


@pytest.mark.parametrize(
    ("markdown", "kept"),
    [
        ("No note.[^1]\n", "No note.[^1]"),
        ("`[^1]`\n\n[^1]: note\n", "<code>[^1]</code>"),
        ('Odd.[^a"b]\n\n[^a"b]: note\n', 'Odd.[^a"b]'),
        ("[^1](http://example.org)\n", '<a href="http://example.org"'),
    ],
)
def test_what_is_no_footnote_stays_as_it_is(markdown: str, kept: str) -> None:
    assert kept in drawn(markdown)


def test_a_label_twice_gives_an_id_once() -> None:
    html = drawn("A.[^x]\n\n[^x]: one\n[^x]: two\n")
    assert re.findall(r'id="([^"]*)"', html) == ["marked-x", "note-x"]


def test_a_note_brings_no_html_in() -> None:
    html = drawn("A.[^1]\n\n[^1]: <img src=x onerror=alert(1)> [b](javascript:alert(1))\n")
    assert "<img" not in html
    assert 'href="javascript' not in html


def test_an_answer_has_none() -> None:
    assert "note-mark" not in blocks.render(REPORT)
