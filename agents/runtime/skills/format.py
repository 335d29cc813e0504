"""SKILL.md as in the public Agent Skills format, read without a YAML library.

    ---
    name: meeting-minutes
    description: Use when: someone has notes # taken raw, to the end of the line
    ---
    What to do, for the model.

The front matter stands between `---` lines and begins with the first character; without its end everything is body.
Only name and description are used. A plain value is taken as it stands, so that ": " and "#" in it do no harm; quotes
around a whole value, and block texts (`|`, `>`), are read as YAML reads them. Other keys may hold anything.
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from agents.runtime.skills.skill import (
    BODY_CHARS,
    DESCRIPTION_CHARS,
    NAME_CHARS,
    SKILL_FILE,
    Doc,
    Skill,
    SkillFile,
    SkillScope,
)

DOC_ENDINGS: Final = (".md", ".txt")
_FENCE: Final = "---"
_KEY: Final = re.compile(r"(?P<key>[A-Za-z0-9_][\w.-]*)[ \t]*:(?:[ \t]+(?P<value>.*)|[ \t]*)")
_BLOCK: Final = re.compile(r"(?P<style>[|>])(?:(?P<indent>[1-9])(?P<chomp>[+-])?|(?P<chomp2>[+-])[1-9]?)?(?:\s+#.*)?")
_ESCAPES: Final = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip


class Problem(StrEnum):
    """Why a skill cannot be used."""

    NO_FILE = "no_file"  # there is no SKILL.md
    NOT_TEXT = "not_text"  # SKILL.md is not UTF-8
    NO_NAME = "no_name"  # neither the front matter nor the directory gives one
    NAME = "name"  # it breaks the rules for names
    NO_DESCRIPTION = "no_description"  # nobody could tell when to use it
    DESCRIPTION = "description"  # it is too long
    NO_BODY = "no_body"  # there is nothing to do
    BODY = "body"  # it is too long
    FRONT_MATTER = "front_matter"  # a value cannot be read


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What SKILL.md says. name "" = it gives none: the directory's stands in. problem "" = fine; words say it, with the
    line, in English. What could be read is there even so.
    """

    name: str = ""
    description: str = ""
    body: str = ""
    problem: Problem | str = ""
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A skill that cannot be used, with the reason, and with what could be read of it."""

    name: str
    scope: SkillScope
    problem: Problem
    words: str
    description: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class _Unreadable(Exception):
    line: int
    words: str


def parse(text: str) -> Parsed:
    """Return what a SKILL.md says, line ends made "\\n"; never fails.

    The name is checked where there is one; whether there has to be one is for whoever knows the directory.
    """
    if "\0" in text:
        return Parsed(problem=Problem.NOT_TEXT, words=f"{SKILL_FILE} holds characters that no text has.")
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    end = next((n for n, line in enumerate(lines) if n and line.rstrip() == _FENCE), 0)
    if lines[0].rstrip() != _FENCE or not end:
        return _checked(Parsed(body="\n".join(lines).strip()))
    body = "\n".join(lines[end + 1 :]).strip()
    try:
        values = _values(lines[1:end])
    except _Unreadable as error:
        words = f"SKILL.md, line {error.line}: {error.words}"
        return Parsed(body=body, problem=Problem.FRONT_MATTER, words=words)
    # both are shown on one line
    name, description = (" ".join(values.get(key, "").split()) for key in ("name", "description"))
    return _checked(Parsed(name=name, description=description, body=body))


def check_name(name: str) -> str:
    """Return what is wrong with the name of a skill, in English, "" = nothing.

    Lower-case letters (of any script, since some have no case), digits and single hyphens inside, as in the public
    format. So it is also a clean name of a directory.
    """
    if not name:
        return "it has no name."
    if len(name) > NAME_CHARS:
        return f"its name has more than {NAME_CHARS} characters."
    if unicodedata.normalize("NFC", name) != name:
        return "its name holds characters in an unusual form."
    if (
        any(char != "-" and not (char.isalnum() or unicodedata.combining(char)) for char in name)
        or name != name.lower()
    ):
        return f'its name "{name}" may hold lower-case letters, digits and hyphens only.'
    if name.startswith("-") or name.endswith("-") or "--" in name:
        return f'its name "{name}" may have single hyphens inside only.'
    return ""


def slug(name: str) -> str:
    """Return a name that check_name takes: its letters and digits, hyphens between them; "" if it has none.

    One that is too long is cut and told apart by the hash of all of it.
    """
    plain = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", name).lower())
    kept = "".join(char if char.isalnum() or unicodedata.combining(char) else "-" for char in plain)
    out = re.sub("-+", "-", kept).strip("-")
    return out if len(out) <= NAME_CHARS else f"{out[: NAME_CHARS - 9].strip('-')}-{name_hash(name)}"


def name_hash(name: str) -> str:
    """Return eight characters that tell names apart which would come to the same."""
    return hashlib.sha256(name.encode()).hexdigest()[:8]


def is_doc(path: str) -> bool:
    """Return whether the file is one to read on demand."""
    return path != SKILL_FILE and path.lower().endswith(DOC_ENDINGS)


def digest(files: Iterable[SkillFile]) -> str:
    """Return SHA-256, in hex, over paths and contents, whatever the order."""
    return digest_of((file.path, hashlib.sha256(file.data).hexdigest()) for file in files)


def digest_of(hashed: Iterable[tuple[str, str]]) -> str:
    """Return the same of (path, SHA-256 of the content in hex)."""
    return hashlib.sha256(json.dumps(sorted(hashed), ensure_ascii=False).encode()).hexdigest()


def skill_of(files: Sequence[SkillFile], *, directory: str, scope: SkillScope) -> Skill | Broken:
    """Return the skill that a directory holds. directory: its name, for a SKILL.md that gives none."""
    hashed = digest(files)
    main = next((file for file in files if file.path == SKILL_FILE), None)
    if main is None:
        words = f"there is no {SKILL_FILE}."
        return Broken(name=directory, scope=scope, problem=Problem.NO_FILE, words=words, digest=hashed)
    try:
        parsed = parse(main.data.decode())
    except UnicodeDecodeError:
        parsed = Parsed(problem=Problem.NOT_TEXT, words=f"{SKILL_FILE} is not text in UTF-8.")
    name = parsed.name or directory
    problem, words = parsed.problem, parsed.words
    if not problem and (wrong := check_name(name)):
        problem, words = Problem.NAME if name else Problem.NO_NAME, wrong
    if problem:
        return Broken(
            name=name,
            scope=scope,
            problem=Problem(problem),
            words=words,
            description=parsed.description,
            digest=hashed,
        )
    docs = sorted((file for file in files if is_doc(file.path)), key=lambda file: file.path)
    return Skill(
        name=name,
        description=parsed.description,
        scope=scope,
        digest=hashed,
        docs=tuple(file.path for file in docs),
        runs=any(file.path != SKILL_FILE and not is_doc(file.path) for file in files),
        body=parsed.body,
        texts=tuple(Doc(path=file.path, text=_text(file.data)) for file in docs),
    )


def _text(data: bytes) -> str:
    return data.decode(errors="replace").replace("\0", "\ufffd")


def written(name: str, description: str, body: str) -> str:
    """Return a SKILL.md that says this; `parse` reads the same out of it."""
    quoted = description.startswith(("'", '"', "|", ">")) or description in ("null", "~")
    value = json.dumps(description, ensure_ascii=False) if quoted else description
    return f"{_FENCE}\nname: {name}\ndescription: {value}\n{_FENCE}\n\n{body.strip()}\n"


def _checked(parsed: Parsed) -> Parsed:
    problem: Problem | str = ""
    words = ""
    if parsed.name and (words := check_name(parsed.name)):
        problem = Problem.NAME
    elif not parsed.description:
        problem, words = Problem.NO_DESCRIPTION, "it has no description, so nobody can tell when to use it."
    elif len(parsed.description) > DESCRIPTION_CHARS:
        problem, words = Problem.DESCRIPTION, f"its description has more than {DESCRIPTION_CHARS} characters."
    elif not parsed.body:
        problem, words = Problem.NO_BODY, "it does not say what to do."
    elif len(parsed.body) > BODY_CHARS:
        problem, words = Problem.BODY, f"its text has more than {BODY_CHARS} characters."
    return Parsed(name=parsed.name, description=parsed.description, body=parsed.body, problem=problem, words=words)


def _values(lines: Sequence[str]) -> dict[str, str]:
    """Return the texts of the keys that stand at the beginning of a line; the first of a name counts."""
    found: dict[str, str] = {}
    at = 0
    while at < len(lines):
        match = _KEY.fullmatch(lines[at])
        number, at = at, at + 1
        if match is None:
            continue  # a comment, an item of a list, or what belongs to a key we do not use
        below = at
        while at < len(lines) and (not lines[at].strip() or lines[at][0] in " \t"):
            at += 1
        if match["key"] in ("name", "description"):
            value = _value((match["value"] or "").strip(), lines[below:at], number + 2)
            found.setdefault(match["key"], value)
    return found


def _value(first: str, below: Sequence[str], number: int) -> str:
    """Return a value. below: the indented lines under it. number: of its line in the file. Raises _Unreadable."""
    if block := _BLOCK.fullmatch(first):
        return _block(block, below)
    if first[:1] in ("'", '"'):
        if (quoted := _quoted(" ".join([first, *(line.strip() for line in below)]).strip())) is not None:
            return quoted
        # not one quoted text but words, some of them quoted: "'a' or 'b'"
        if first.count(first[0]) < 2:
            raise _Unreadable(number, f"the text that begins with {first[0]} has no end.")
    if first in ("~", "null"):
        return ""
    return " ".join([first, *(line.strip() for line in below)]).strip()


def _block(style: re.Match[str], below: Sequence[str]) -> str:
    """Return a block text: `|` keeps line ends, `>` folds them. How it ends does not matter: ends are cut."""
    filled = [line for line in below if line.strip()]
    own = min((len(line) - len(line.lstrip(" \t")) for line in filled), default=0)
    indent = int(style["indent"] or 0) or own
    lines = [line[indent:].rstrip() if line.strip() else "" for line in below]
    if style["style"] == "|":
        return "\n".join(lines).strip("\n")
    paragraphs: list[list[str]] = [[]]
    for line in lines:
        if line:
            paragraphs[-1].append(line)
        elif paragraphs[-1]:
            paragraphs.append([])
    return "\n".join(" ".join(lines) for lines in paragraphs if lines)


def _quoted(text: str) -> str | None:
    """Return what stands in the quotes around the whole text, None if these are no such quotes."""
    if text[0] == "'":
        found = re.fullmatch(r"'((?:[^']|'')*)'(?:\s+#.*)?", text)
        return found[1].replace("''", "'") if found else None
    found = re.fullmatch(r'"((?:[^"\\]|\\.)*)"(?:\s+#.*)?', text)
    return re.sub(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", _unescaped, found[1]) if found else None


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 1:
        return _ESCAPES.get(code, match[0])
    number = int(code[1:], 16)
    return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
