"""Office files are ZIP archives of XML parts. This opens one without trusting it.

Checked before anything is unpacked: number and size of entries, how much they swell, entries that share bytes,
passwords. A part with a document type is refused (Office writes none), so there are no entities to expand and nothing
outside to fetch. Macros and pictures are never opened.
"""

import posixpath
import re
import zipfile
from dataclasses import dataclass
from itertools import pairwise
from typing import IO
from xml.parsers import expat

from lxml import etree

from artifacts.extract.outcome import PARSER_ERRORS, Trouble, Unreadable

MOST_ENTRIES = 10_000
MOST_BYTES = 1024**3  # of all entries, unpacked
MOST_SWELLING = 300  # times its packed size; real parts stay below 100
SMALL_BYTES = 4 * 1024**2  # may swell as it likes
PART_BYTES = 64 * 1024**2  # of a part that is held as a whole
ZIP_ERRORS: tuple[type[Exception], ...] = (zipfile.BadZipFile, OSError, etree.XMLSyntaxError, *PARSER_ERRORS)
_PARSER = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False}


@dataclass(frozen=True, slots=True)
class Relation:
    """What a part refers to. kind: last word of the type's address, such as "slide"; target: name of a part."""

    kind: str
    target: str


class Package:
    """The parts of an Office file. Raises Unreadable."""

    def __init__(self, source: IO[bytes]) -> None:
        try:
            self._zip = zipfile.ZipFile(source)
        except ZIP_ERRORS as e:
            raise unreadable(e) from e
        self._names = {info.filename.replace("\\", "/").lower(): info for info in self._zip.infolist()}
        self._check(self._zip.infolist())

    def has(self, name: str) -> bool:
        return name.lower() in self._names

    def pictured(self) -> bool:
        """Return whether there are pictures in it."""
        return any("/media/" in name for name in self._names)

    def main(self) -> str:
        """Return the name of the part that the document begins with. Raises Unreadable if there is none."""
        for relation in self.relations("").values():
            if relation.kind == "officeDocument" and self.has(relation.target):
                return relation.target
        raise Unreadable(Trouble.BROKEN)

    def related(self, part: str, kind: str) -> list[str]:
        """Return the names of a part's existing relations of a kind, in order."""
        found = self.relations(part).values()
        return [relation.target for relation in found if relation.kind == kind and self.has(relation.target)]

    def relations(self, part: str) -> dict[str, Relation]:
        """Return what a part refers to, by id; without what lies outside of the package."""
        folder, name = posixpath.split(part)
        root = self.xml(posixpath.join(folder, "_rels", f"{name}.rels"))
        found = {}
        for entry in root if root is not None else ():
            target = entry.get("Target", "")
            if entry.get("TargetMode") != "External" and target:
                whole = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
                found[entry.get("Id", "")] = Relation(entry.get("Type", "").rpartition("/")[2], whole)
        return found

    def xml(self, name: str) -> etree._Element | None:
        """Return a part's root element; None if there is no such part."""
        info = self._names.get(name.lower())
        if info is None:
            return None
        if info.file_size > PART_BYTES:
            raise Unreadable(Trouble.TOO_LARGE)
        try:
            data = self._zip.read(info)
            refuse_document_type(data[: 1024 * 1024])
            return etree.fromstring(data, etree.XMLParser(**_PARSER))
        except ZIP_ERRORS as e:
            raise unreadable(e) from e

    def stream(self, name: str) -> IO[bytes]:
        """Return a part to be read piece by piece with `etree.iterparse(**STREAM)`; it was checked as `xml` does."""
        try:
            info = self._names[name.lower()]
            with self._zip.open(info) as start:
                refuse_document_type(start.read(1024 * 1024))
            return self._zip.open(info)
        except ZIP_ERRORS as e:
            raise unreadable(e) from e

    def _check(self, entries: list[zipfile.ZipInfo]) -> None:
        if len(entries) > MOST_ENTRIES or sum(info.file_size for info in entries) > MOST_BYTES:
            raise Unreadable(Trouble.TOO_LARGE)
        if any(info.file_size > max(SMALL_BYTES, MOST_SWELLING * info.compress_size) for info in entries):
            raise Unreadable(Trouble.TOO_LARGE)
        ordered = sorted(entries, key=lambda info: info.header_offset)
        if any(one.header_offset + one.compress_size > other.header_offset for one, other in pairwise(ordered)):
            raise Unreadable(Trouble.BROKEN)
        if any(info.flag_bits & 1 for info in entries):
            raise Unreadable(Trouble.ENCRYPTED)


STREAM = _PARSER


def unreadable(error: Exception) -> Unreadable:
    """Return what one of ZIP_ERRORS means: mostly a broken file; the parser names want of memory its own way."""
    no_memory = isinstance(error, etree.XMLSyntaxError) and error.code == etree.ErrorTypes.ERR_NO_MEMORY
    return Unreadable(Trouble.TOO_LARGE if no_memory else Trouble.BROKEN)


def refuse_document_type(start: bytes) -> None:
    """Raise Unreadable if the XML declares a document type before its first element."""
    parser = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise Unreadable(Trouble.BROKEN)

    def begun(*_: object) -> None:
        raise _Begun

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = begun
    try:
        parser.Parse(start)
    except _Begun:
        return
    except expat.ExpatError as e:
        raise Unreadable(Trouble.BROKEN) from e
    raise Unreadable(Trouble.BROKEN)  # a megabyte without an element


class _Begun(Exception):
    """The first element was reached."""


def local(element: etree._Element) -> str:
    """Return an element's name without its namespace, of which there are two for all of Office; "" for a comment."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def value(element: etree._Element | None, name: str = "val") -> str:
    """Return an attribute by its name without a namespace, "" if there is none."""
    if element is None:
        return ""
    return next((str(found) for key, found in element.attrib.items() if str(key).rpartition("}")[2] == name), "")


def child(element: etree._Element | None, *path: str) -> etree._Element | None:
    """Return the first child of a child ... of these names."""
    for name in path:
        element = next((inner for inner in element if local(inner) == name), None) if element is not None else None
    return element


def children(element: etree._Element | None, name: str) -> list[etree._Element]:
    """Return all children of a name."""
    return [] if element is None else [inner for inner in element if local(inner) == name]


_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


def unescaped(text: str) -> str:
    """Return the text with the characters that Office writes as _x000D_."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
