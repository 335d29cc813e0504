"""A browser's file name made fit to be an artifact's name."""

import unicodedata
from pathlib import PurePosixPath

from agents.runtime.artifacts import NAME_BYTES, NAME_CHARS, SHARED, ArtifactInvalid, clean_name

FALLBACK = "file"
PATH_CHARS = NAME_CHARS - len(SHARED)


def from_upload(raw: str) -> str:
    """Return a clean name that keeps as much of the person's file name as the rules allow.

    The folder a browser or an old Windows client sends along is dropped; what may not stand in a name becomes "_"; a
    name that is too long loses its middle, not its ending. A nameless file is called "file". "user:" has no meaning
    here: an upload belongs to its conversation.
    """
    name = unicodedata.normalize("NFC", raw).replace("\\", "/").rsplit("/", 1)[-1].strip().strip(".").strip()
    name = "".join(char if _allowed(char) else "_" for char in name).replace("user:", "user_")
    if not name.strip("_ "):
        return FALLBACK
    return clean_name(shorten(name, NAME_BYTES - 5))


def from_path(raw: str) -> str:
    """Return a clean name that keeps the folders of a path, as a folder's upload sends it.

    Each part is made fit as `from_upload` does; "..", "." and empty parts are dropped. Of a path that is too long the
    last part stays, and as many folders as fit, the nearest first.
    """
    parts = [part for part in raw.replace("\\", "/").split("/") if part.strip().strip(".").strip()]
    kept = from_upload(parts[-1] if parts else "")
    for part in reversed(parts[:-1]):
        longer = f"{from_upload(part)}/{kept}"
        if len(longer) > PATH_CHARS:
            break
        kept = longer
    return kept


def harmless(text: str) -> bool:
    """Return whether no character of the text is one that a name may not have."""
    return all(_allowed(char) or char == "/" for char in text)


def shorten(name: str, most_bytes: int) -> str:
    """Return the name cut to so many bytes of UTF-8, between characters, with its ending kept."""
    if len(name.encode()) <= most_bytes and len(name) <= NAME_CHARS:
        return name
    suffix = PurePosixPath(name).suffix
    if len(suffix.encode()) > 20:
        suffix = ""
    stem = name.removesuffix(suffix).encode()[: most_bytes - len(suffix.encode())].decode(errors="ignore")
    return stem.rstrip("\u200d\ufe0f ") + suffix


def _allowed(char: str) -> bool:
    try:
        clean_name(f"a{char}a")
    except ArtifactInvalid:
        return False
    return True
