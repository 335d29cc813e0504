"""Files as a run sees them: references and the store protocol."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


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


class ArtifactInvalid(ValueError):
    """The name or the content cannot be stored. The message is safe to show."""


class ArtifactUnreadable(ValueError):
    """No text could be read from the artifact. The message says why and is safe to show."""


class ArtifactStore(Protocol):
    """Files of one owner, as seen from one session. Bound to both at construction; nothing here takes an owner."""

    async def save(
        self, *, name: str, data: bytes, mime: str = "", origin: Mapping[str, Any] | None = None
    ) -> ArtifactRef:
        """Store data as the next version of `name` in this session and return its reference.

        name: "/"-separated clean relative name; "user:..." is shared by all sessions of the owner.
        origin: {"tool_call_id", "run_id"}. Safe from several processes at once: versions never collide.
        Raises ArtifactInvalid.
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
