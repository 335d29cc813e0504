"""A file through the door and the extracting process, without a database."""

import io
import tempfile
from dataclasses import dataclass

from agents.runtime.artifacts import ArtifactInvalid
from agents.runtime.errors import ToolFailure
from artifacts import sniff
from artifacts.extract.outcome import Tell, Trouble
from artifacts.passages import NewPassage, split
from artifacts.reading import Extraction
from artifacts.textfile import TextReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """What the door said."""

    code: ToolFailure
    said: str


def brought(data: bytes, name: str, progress: Tell | None = None) -> Refused | Trouble | TextReader:
    """Return what becomes of a file that a person brings."""
    try:
        mime = sniff.admit(data[: sniff.HEAD_BYTES], name, len(data))
    except ArtifactInvalid as e:
        return Refused(code=e.code, said=str(e))
    return extracted(data, mime, progress)


def extracted(data: bytes, mime: str, progress: Tell | None = None) -> Trouble | TextReader:
    """Return the text, or why there is none."""
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out:
        source.write(data)
        source.seek(0)
        trouble = Extraction(source, mime).run(out, progress)
        if trouble is not None:
            return trouble
        out.seek(0)
        return TextReader(io.BytesIO(out.read()))


def read(data: bytes, name: str) -> TextReader:
    """Return the text of a file that has one."""
    found = brought(data, name)
    assert isinstance(found, TextReader), found
    return found


def text_of(reader: TextReader) -> str:
    return reader.exactly(0, reader.index.total_chars)


def passages_of(reader: TextReader) -> list[NewPassage]:
    return list(split(reader, reader.index))
