"""Files as a run sees them: names, references and the store protocol."""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from agents.runtime.errors import ToolFailure

SCHEME = "artifact://"
SHARED = "user:"  # names that start so belong to the owner, not to one session
NAME_CHARS = 255
NAME_BYTES = 255  # of one segment, in UTF-8: what file systems take at download
_BIDI_CONTROLS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactRef:
    """One version of one artifact. version: from 1. sha256: hex digest of the bytes."""

    artifact_id: str
    name: str
    version: int
    mime: str
    size_bytes: int
    sha256: str

    @property
    def uri(self) -> str:
        return f"artifact://{self.name}@{self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPage:
    """A stretch of an artifact's text.

    anchor: where it is, in words a person understands ("page 3", "lines 1-200"). next_cursor: "" = the end.
    """

    ref: ArtifactRef
    text: str
    anchor: str
    next_cursor: str
    total_chars: int
    pages: int | None = None


class ArtifactMissing(LookupError):
    """There is no such artifact, or it belongs to somebody else."""

    def __init__(self, message: str = "", code: ToolFailure = ToolFailure.FILE_NOT_FOUND) -> None:
        super().__init__(message)
        self.code = code


class ArtifactInvalid(ValueError):
    """The name or the content cannot be stored. The message is safe to show."""

    def __init__(self, message: str, code: ToolFailure = ToolFailure.NAME_INVALID) -> None:
        super().__init__(message)
        self.code = code


class ArtifactUnreadable(ValueError):
    """No text could be read from the artifact. The message says why, in English for a model; the code for people."""

    def __init__(self, message: str, code: ToolFailure) -> None:
        super().__init__(message)
        self.code = code


class ArtifactConflict(ValueError):
    """A change was made to a version that is not the latest any more. Nothing was saved. newer: the one that is."""

    code = ToolFailure.VERSION_CONFLICT

    def __init__(self, base: int, newer: ArtifactRef) -> None:
        super().__init__(f'"{newer.name}" was changed meanwhile: version {newer.version} is newer than {base}.')
        self.newer = newer

    @property
    def latest(self) -> int:
        return self.newer.version


class ArtifactNotKept(OSError):
    """The file could not be stored: the disk is full, or the store or its database is away."""


class ArtifactStore(Protocol):
    """Files of one owner, as seen from one session. Bound to both at construction; nothing here takes an owner."""

    async def save(
        self,
        *,
        name: str,
        data: bytes,
        mime: str = "",
        origin: Mapping[str, Any] | None = None,
        base: int | None = None,
    ) -> ArtifactRef:
        """Store data as the next version of `name` in this session and return its reference.

        name: "/"-separated clean relative name; "user:..." is shared by all sessions of the owner.
        origin: {"tool_call_id", "run_id"}. base: the version that was changed; None = it replaces whatever is there.
        Safe from several processes at once: versions never collide.
        Raises ArtifactInvalid, ArtifactNotKept; with a base ArtifactMissing, ArtifactConflict.
        """
        ...

    async def find(self, name_or_id: str, version: int | None = None) -> ArtifactRef:
        """Return the reference of a version (None = latest) by name or artifact id. Raises ArtifactMissing."""
        ...

    async def load(self, ref: ArtifactRef) -> bytes:
        """Return the bytes of a version, checked against size and sha256. Raises ArtifactMissing."""
        ...

    async def read_text(self, ref: ArtifactRef, *, cursor: str = "", max_chars: int = 12_000) -> TextPage:
        """Return a page of the artifact's text, starting at `cursor` ("" = the beginning, "page:3" = page 3).

        Never splits a character. Raises ArtifactMissing, ArtifactUnreadable.
        """
        ...

    async def list(self) -> tuple[ArtifactRef, ...]:
        """Return the latest version of every artifact this session may see, sorted by name."""
        ...

    async def versions(self, name_or_id: str) -> tuple[ArtifactRef, ...]:
        """Return every version, ascending; () if there is none."""
        ...

    async def delete(self, name_or_id: str) -> None:
        """Delete all versions. Deleting what is not there does nothing. Numbers are never given again."""
        ...


def clean_name(name: str) -> str:
    """Return the name as every store keeps it: NFC, without blanks at both ends.

    A name is one or more segments joined by "/", at most 255 characters, each segment at most 255 bytes of UTF-8. Any
    script and emoji are fine. Raises ArtifactInvalid for an empty name or segment, "." and "..", a backslash, control
    characters (NUL too) and marks that turn the writing direction, which make a name look like another.
    """
    name = unicodedata.normalize("NFC", name).strip()
    path = name.removeprefix(SHARED)
    if not path:
        raise ArtifactInvalid("A file needs a name.")
    if len(name) > NAME_CHARS:
        raise ArtifactInvalid(f"The file name has {len(name)} characters; at most {NAME_CHARS} are allowed.")
    for char in name:
        if char == "\\" or char in _BIDI_CONTROLS or unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp"):
            raise ArtifactInvalid(f"The file name holds a character that is not allowed: {char!r}.")
    for segment in path.split("/"):
        if segment.strip() in ("", ".", ".."):
            raise ArtifactInvalid('A file name is relative, like "notes/plan.md": no empty part, no "." or "..".')
        if len(segment.encode()) > NAME_BYTES:
            raise ArtifactInvalid(f"One part of the file name has more than {NAME_BYTES} bytes.")
    return name


def reference_candidates(text: str) -> tuple[tuple[str, int | None], ...]:
    """Return what `text` may mean, the likeliest first, as (name or id, version or None for the latest).

    text: a plain name, or "artifact://name@version". What follows the last "@" is a version if it is a number; if it
    is not, the whole may be a name that holds an "@", and else the latest version is meant.
    """
    is_reference = text.startswith(SCHEME)
    whole = text.removeprefix(SCHEME)
    name, at, version = whole.rpartition("@")
    if not at or not name:
        return ((whole, None),)
    if not (version.isascii() and version.isdigit() and len(version) < 10):
        return ((whole, None), (name, None))
    if is_reference:
        return ((name, int(version)), (whole, None))
    return ((whole, None), (name, int(version)))
