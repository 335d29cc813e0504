"""What a revision says, made of files, and SKILL.md made of what somebody typed."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from agents.models.skill import SkillRevision
from agents.runtime.skills import format as skillformat
from agents.runtime.skills.format import Broken, Problem
from agents.runtime.skills.skill import DESCRIPTION_CHARS, SKILL_FILE, SkillFile, SkillScope
from agents.stores.skillfiles import Desk, Entry

DOC_BYTES: Final = 1024 * 1024  # a longer text is a file like any other
NAME_LIMIT: Final = 200  # of the name as people write it
_OURS: Final = re.compile(r"(name|description)[ \t]*:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The part of a revision that never changes. entries: its files, as far as they are not in storage yet.

    slug: what it is called in a run; name: as people write it. Other fields: see SkillRevision.
    """

    slug: str
    name: str
    description: str
    body: str
    docs: tuple[Mapping[str, Any], ...]
    files: tuple[Mapping[str, Any], ...]
    digest: str
    entries: tuple[Entry, ...] = ()
    problem: str = ""
    words: str = ""


def slug_of(name: str) -> str:
    """Return what runs and addresses may call a skill of this name, made up if it has no letters and digits."""
    return skillformat.slug(name) or f"skill-{skillformat.name_hash(name)}"


def docs(files: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the paths of what is read on demand, of SkillRevision.files."""
    return tuple(sorted(file["path"] for file in files if _is_doc(file["path"], file["size"])))


def runs(files: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether there are files that code can use."""
    return any(file["path"] != SKILL_FILE and not skillformat.is_doc(file["path"]) for file in files)


def _is_doc(path: str, size: int) -> bool:
    return skillformat.is_doc(path) and size <= DOC_BYTES


def of_files(entries: Sequence[Entry], directory: str, name: str = "") -> Content:
    """Return what files say. directory: what they are called if SKILL.md does not; name: as people write it."""
    read = {
        entry.path: entry.at.read_bytes()
        for entry in entries
        if entry.path == SKILL_FILE or _is_doc(entry.path, entry.size)
    }
    files = [SkillFile(path=entry.path, data=read.get(entry.path, b"")) for entry in entries]
    found = skillformat.skill_of(files, directory=directory, scope=SkillScope.MINE)
    blank = Content(
        slug=slug_of(found.name),
        name=(name or found.name)[:NAME_LIMIT],
        description=_stored(found.description)[:DESCRIPTION_CHARS],
        body="",
        docs=(),
        files=tuple(entry.listed() for entry in entries),
        digest=skillformat.digest_of((entry.path, entry.sha256) for entry in entries),
        entries=tuple(entries),
    )
    if isinstance(found, Broken):
        raw = read.get(SKILL_FILE, b"").decode(errors="replace")
        return replace(blank, body=_stored(raw), problem=found.problem.value, words=found.words[:300])
    if "\0" in found.body or "\0" in found.description:
        words = f"{SKILL_FILE} holds characters that no text has."
        return replace(blank, body=_stored(found.body), problem=Problem.NOT_TEXT.value, words=words)
    texts = tuple({"path": doc.path, "text": _stored(doc.text)} for doc in found.texts if doc.path in read)
    return replace(blank, body=found.body, docs=texts)


def _stored(text: str) -> str:
    """Return a text as the database takes it."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def of_text(name: str, description: str, body: str, desk: Desk, before: tuple[SkillRevision, bytes] | None) -> Content:
    """Return what somebody typed. before: the revision that was edited, with its SKILL.md; its other files stay.

    Whether it can be used is said in `problem`, as for files.
    """
    slug = before[0].skill.slug if before else slug_of(name)
    description = " ".join(description.split())
    text = rewritten(before[1] if before else b"", slug, description, body)
    main = desk.lay(SKILL_FILE, [text.encode()])
    made = of_files([main], directory=slug, name=name)
    if before is None:
        return made
    others = [file for file in before[0].files if file["path"] != SKILL_FILE]
    files = sorted([*others, main.listed()], key=lambda file: str(file["path"]))
    digest = skillformat.digest_of((file["path"], file["sha256"]) for file in files)
    return replace(made, slug=slug, docs=tuple(before[0].docs), files=tuple(files), digest=digest)


def of_revision(revision: SkillRevision, entries: Iterable[Entry]) -> Content:
    """Return what a revision says, for another skill that is to say the same. entries: its files."""
    return Content(
        slug=revision.skill.slug,
        name=revision.name,
        description=revision.description,
        body=revision.body,
        docs=tuple(revision.docs),
        files=tuple(revision.files),
        digest=revision.digest,
        entries=tuple(entries),
        problem=revision.problem,
        words=revision.words,
    )


def rewritten(before: bytes, name: str, description: str, body: str) -> str:
    """Return SKILL.md with this name, description and body, and the other keys of the one before."""
    text = skillformat.written(name, description, body)
    head, kept = text.split("\n---\n", 1), _other_lines(before.decode(errors="replace"))
    return "\n".join([head[0], *kept, "---", head[1]]) if kept else text


def _other_lines(text: str) -> list[str]:
    """Return the lines of the front matter that say neither name nor description."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    end = next((n for n, line in enumerate(lines) if n and line.rstrip() == "---"), 0)
    if lines[0].rstrip() != "---" or not end:
        return []
    kept, ours = [], False
    for line in lines[1:end]:
        if line.strip() and line[0] not in " \t":
            ours = _OURS.match(line) is not None
        if not ours:
            kept.append(line)
    return kept
