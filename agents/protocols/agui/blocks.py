"""Markdown to HTML, a block at a time: the same result live and in history.

A text is cut into blocks (paragraph, list, table, fence, heading) as soon as each is finished; every block is rendered
on its own. `render` of a whole text is the join of its blocks, so a page that saw them live shows the same after a
reload. The HTML holds no script, no style, no image, and no id but those of footnotes; it is cleaned once more by nh3
on the way out.
"""

import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Protocol

import nh3
from markdown_it import MarkdownIt
from markdown_it.common.utils import isMdAsciiPunct, isPunctChar, isWhiteSpace
from markdown_it.parser_inline import ParserInline
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Scanned
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Number, String
from pygments.util import ClassNotFound

from agents.protocols.agui import footnotes
from agents.protocols.agui.footnotes import Footnotes
from agents.runtime.surrogates import mended

INLINE_CHARS = 10_000  # of a paragraph or cell; a longer one is plain text, as some texts take the square of it
HIGHLIGHT_CHARS = 20_000  # a lexer takes about 1 ms per 2,000 characters, on the event loop
WORD_JOINER = "\u2060"
HEADING_SHIFT = 2  # the page owns h1, each message an unseen h2

_CITATION = re.compile(r"#c-[a-z2-7]{6}")  # as agents.runtime.knowledge makes ids
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_INTERRUPTING_ITEM = re.compile(r" {0,3}(?:[-*+]|1[.)])[ \t]+\S")
_QUOTE = re.compile(r" {0,3}>")


class BlockSplitter:
    """Cuts a growing Markdown text into finished blocks.

    Only complete lines are looked at, so a block is never given out too early. The blocks joined are the text.
    `end` counts the UTF-16 units (what JavaScript counts) of the text in the blocks given out so far.
    """

    __slots__ = ("_block", "_fence", "_kind", "_line", "_spaced", "end")

    def __init__(self) -> None:
        self.end = 0
        self._block: list[str] = []  # complete lines of the block that is open
        self._line: list[str] = []  # pieces of the line that is not complete
        self._kind = ""  # "", text, list, code (indented), fence
        self._fence = ""
        self._spaced = False  # a blank line came inside a list or indented code

    def feed(self, text: str) -> list[str]:
        """Take more of the text and return the sources of the blocks that are finished now, in order."""
        if "\n" not in text:
            self._line.append(text)
            return []
        *lines, rest = ("".join(self._line) + text).split("\n")
        self._line = [rest] if rest else []
        done: list[str] = []
        for line in lines:
            self._take(line + "\n", done)
        return done

    def finish(self) -> list[str]:
        """Return what is left as the last blocks, at most two. The splitter then starts afresh, `end` goes on."""
        done: list[str] = []
        if self._line:
            line = "".join(self._line)
            self._line = []
            self._take(line, done)
        self._close(done)
        return done

    def _take(self, line: str, done: list[str]) -> None:
        bare = line.rstrip("\r\n")
        if self._kind == "fence":
            self._block.append(line)
            if bare.strip().startswith(self._fence) and not bare.strip(" \t" + self._fence[0]):
                self._close(done)
        elif not bare.strip():
            self._blank(line, done)
        elif self._goes_on(bare):
            self._spaced = False
            self._block.append(line)
        else:
            if self._kind:
                self._close(done)
            self._start(line, bare, done)

    def _blank(self, line: str, done: list[str]) -> None:
        self._block.append(line)
        if self._kind in ("list", "code"):
            self._spaced = True
        elif self._kind == "text":
            self._close(done)

    def _goes_on(self, bare: str) -> bool:
        """Return whether a line with text belongs to the block that is open."""
        indent = len(bare) - len(bare.lstrip(" \t"))
        match self._kind:
            case "text":
                return not (_FENCE.match(bare) or _HEADING.match(bare) or _INTERRUPTING_ITEM.match(bare))
            case "code":
                return indent >= 4 or bare.startswith("\t")
            case "list":
                if indent >= 2 or bare.startswith("\t"):
                    return True
                if _RULE.match(bare):
                    return False
                if _ITEM.match(bare):
                    return True
                # a paragraph of an item may go on without indentation, but not after a blank line
                return not (self._spaced or _FENCE.match(bare) or _HEADING.match(bare) or _QUOTE.match(bare))
        return False

    def _start(self, line: str, bare: str, done: list[str]) -> None:
        self._block.append(line)
        if fence := _FENCE.match(bare):
            self._kind, self._fence = "fence", fence[1]
        elif _HEADING.match(bare) or _RULE.match(bare):
            self._close(done)
        elif _ITEM.match(bare):
            self._kind = "list"
        elif bare.startswith(("    ", "\t")):
            self._kind = "code"
        else:
            self._kind = "text"

    def _close(self, done: list[str]) -> None:
        source = "".join(self._block)
        self._block, self._kind, self._fence, self._spaced = [], "", "", False
        if source:
            self.end += len(source) + sum(c > "\uffff" for c in source)
            if source.strip():
                done.append(source)


def split(markdown: str) -> Iterator[str]:
    """Yield the blocks of a whole text in order."""
    splitter = BlockSplitter()
    yield from splitter.feed(markdown)
    yield from splitter.finish()


def render(markdown: str) -> str:
    """Return a whole text as sanitised HTML."""
    return "".join(render_block(block) for block in split(markdown))


def render_block(source: str, notes: Footnotes | None = None) -> str:
    """Return one block, as BlockSplitter gives it, as sanitised HTML. notes: of the document, if it has footnotes."""
    return nh3.clean(
        _markdown().render(mended(source), notes.env if notes else {}),
        tags=_TAGS,
        clean_content_tags=set(),
        attributes=_ATTRIBUTES,
        allowed_classes=_CLASSES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )


_TAGS = set(
    "a blockquote br code del div em h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead tr ul".split()
)
_ATTRIBUTES = {
    "a": {"href", "id", "title", "target"},
    "ol": {"start"},
    "pre": {"tabindex"},
    "div": {"tabindex", "role"},
    "th": {"scope"},
}
_CLASSES = {
    "a": {"cite-chip", "note-mark"},
    "div": {"code", "code-head", "table-scroll"},
    "p": {"note"},
    "span": {"tok-c", "tok-k", "tok-s", "tok-n"},
    "table": {"table"},
    "td": {"num-cell"},
    "th": {"num-cell"},
}


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    md = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer).enable(["table", "strikethrough"])
    footnotes.add(md)
    md.inline = _CjkInline(md.inline)
    md.core.ruler.push("page", _fit_to_page)
    return md


def _fit_to_page(state: StateCore) -> None:
    """Shift headings, turn alignment into classes, make citations chips, open other links in a new tab."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + HEADING_SHIFT)}"
        elif token.type in ("th_open", "td_open"):
            style = token.attrs.pop("style", "")
            if style == "text-align:right":
                token.attrSet("class", "num-cell")
            if token.type == "th_open":
                token.attrSet("scope", "col")
        for at, child in enumerate(token.children or ()):
            if child.type != "link_open":
                continue
            if _is_citation(token, at):
                child.attrSet("class", "cite-chip")
                _keep_to_the_word_before(token.children or [], at)
            elif child.attrGet("class") == "note-mark":
                _keep_to_the_word_before(token.children or [], at)
            else:
                child.attrSet("target", "_blank")


def _is_citation(inline: Token, at: int) -> bool:
    """Return whether a link stands there as the server writes citations, and not in one of Markdown's other ways."""
    link, label = (inline.children or [])[at : at + 2]
    href = str(link.attrGet("href"))
    return bool(_CITATION.fullmatch(href)) and f"[{label.content}]({href})" in inline.content


def _keep_to_the_word_before(children: list[Token], at: int) -> None:
    """See that no line breaks in front of a citation: a word joiner goes to the end of the text before it."""
    if at and children[at - 1].type == "text" and children[at - 1].content.strip():
        children[at - 1].content = children[at - 1].content.rstrip(" ") + WORD_JOINER


class _Renderer(RendererHTML):
    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return '<div class="table-scroll" role="region" tabindex="0"><table class="table">'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</table></div>\n"

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        info = tokens[idx].info.strip().split(maxsplit=1)
        return _code(tokens[idx].content, info[0] if info else "")

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return _code(tokens[idx].content, "")

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        # An image would be fetched as soon as it is shown, with whatever the model put into its address.
        token = tokens[idx]
        href = html.escape(str(token.attrs.get("src", "")))
        label = html.escape(token.content or str(token.attrs.get("src", "")))
        return f'<a href="{href}" target="_blank">{label}</a>'


def _code(source: str, language: str) -> str:
    label = html.escape(language[:32])
    head = f'<div class="code-head"><span>{label}</span></div>'
    return f'<div class="code">{head}<pre tabindex="0"><code>{_highlight(source, language)}</code></pre></div>\n'


def _highlight(source: str, language: str) -> str:
    lexer = _lexer(language.lower()[:32]) if language and len(source) <= HIGHLIGHT_CHARS else None
    if lexer is None:
        return html.escape(source, quote=False)
    out: list[str] = []
    for kind, text in lexer.get_tokens(source):
        name = _token_class(kind)
        escaped = html.escape(text, quote=False)
        out.append(f'<span class="{name}">{escaped}</span>' if name and text.strip() else escaped)
    return "".join(out)


class _Lexer(Protocol):
    """What we use of a pygments lexer; pygments has no types."""

    def get_tokens(self, text: str) -> Iterable[tuple[Any, str]]: ...


_find_lexer: Callable[..., _Lexer] = get_lexer_by_name


@lru_cache(maxsize=64)
def _lexer(language: str) -> _Lexer | None:
    try:
        return _find_lexer(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _token_class(kind: Any) -> str:
    for parent, name in ((Comment, "tok-c"), (Keyword, "tok-k"), (String, "tok-s"), (Number, "tok-n")):
        if kind in parent:
            return name
    return ""


class _CjkInline(ParserInline):
    """Emphasis that also works beside Chinese and Japanese punctuation, where there are no spaces."""

    def __init__(self, plain: ParserInline) -> None:
        super().__init__()
        self.ruler = plain.ruler
        self.ruler2 = plain.ruler2

    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        if len(src) > INLINE_CHARS:
            tokens.append(Token("text", "", 0, content=src))
            return tokens
        state = _CjkState(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


class _CjkState(StateInline):
    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:
        """Return whether a run of delimiters opens or closes, by the CommonMark rule amended for CJK neighbours.

        The amendment: https://github.com/tats-u/markdown-cjk-friendly (a CJK neighbour counts like a space).
        """
        plain = super().scanDelims(start, canSplitWord)
        last = self.src[start - 1] if start > 0 else " "
        pos = start + plain.length
        following = self.src[pos] if pos < self.posMax else " "
        if not canSplitWord or not (_cjk(last) or _cjk(following)):
            return plain
        opens = not _space(following) and (not _punctuation(following) or _edge(last))
        closes = not _space(last) and (not _punctuation(last) or _edge(following))
        return Scanned(opens, closes, plain.length)


def _space(char: str) -> bool:
    return isWhiteSpace(ord(char))


def _punctuation(char: str) -> bool:
    return not _cjk(char) and (isMdAsciiPunct(ord(char)) or isPunctChar(char))


def _edge(char: str) -> bool:
    return _space(char) or _punctuation(char) or _cjk(char)


@lru_cache(maxsize=4096)
def _cjk(char: str) -> bool:
    return char >= "\u1100" and unicodedata.east_asian_width(char) in "WF"
