"""In which encoding a text is written: UTF-8 first, then GB 18030, Big5 and Windows-1252 if they fit, then a detector.

Works on files of any size: the certain answers look at all bytes, in pieces; the guesses look at a sample. The
detector is imported only when it is asked.
"""

import codecs
from collections.abc import Iterator
from typing import IO

CHUNK_BYTES = 256 * 1024
SAMPLE_BYTES = 256 * 1024
# The most frequent Chinese characters: a fifth of nearly every Chinese text, almost none of anything misread as one
_FREQUENT = frozenset(
    "的一是不了在人有我他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后"
)
_FREQUENT_TRADITIONAL = frozenset(
    "的一是不了在人有我他這中大來上國個到說們為子和你地出道也時年得就那要下以生會自著去之過家學對可她裡後"
)


def encoding_of(file: IO[bytes]) -> tuple[str, str]:
    """Return (encoding, error handler) to decode the file with. Leaves the file at its beginning."""
    head = _from_start(file, 4)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16", "replace"
    if unmarked := unmarked_utf16(_from_start(file, SAMPLE_BYTES)):
        return unmarked, "replace"
    if _decodes(file, "utf-8"):
        return ("utf-8-sig" if head.startswith(codecs.BOM_UTF8) else "utf-8"), "strict"
    sample = _from_start(file, SAMPLE_BYTES)
    file.seek(0)
    if _nearly_utf8(sample):
        return "utf-8", "replace"
    if _looks_chinese(sample) and _decodes(file, "gb18030"):
        return "gb18030", "strict"
    if _looks_traditional(sample) and _decodes(file, "cp950"):
        return "cp950", "strict"
    high = sum(byte >= 0x80 for byte in sample)
    western = high * 5 < len(sample) * 2 or len(sample) < 16  # Cyrillic, Greek, Japanese: nearly all letters are high
    if western and _decodes(file, "cp1252"):
        return "cp1252", "strict"
    return _detected(sample), "replace"


def unmarked_utf16(sample: bytes) -> str:
    """Return "utf-16-le" or "utf-16-be" if the bytes are a text in it without its mark, else "".

    A Latin text has a zero in every other byte; a Chinese one, read so, is made of frequent characters.
    """
    sample = sample[: min(len(sample), 4096) // 2 * 2]
    if len(sample) < 4 or not any(byte < 9 for byte in sample):  # what is text in other encodings is none of ours
        return ""
    for encoding in ("utf-16-le", "utf-16-be"):
        text = sample.decode(encoding, "ignore")
        if any(char < " " and char not in "\t\n\r\f" for char in text) or len(text) < len(sample) // 2 - 1:
            continue
        latin = sum(char < "\u0100" for char in text)
        han = [char for char in text if "\u4e00" <= char <= "\u9fff"]
        if latin * 10 > len(text) * 7 or (len(han) > 20 and sum(char in _FREQUENT for char in han) * 20 > len(han)):
            return encoding
    return ""


def _from_start(file: IO[bytes], size: int) -> bytes:
    file.seek(0)
    data = file.read(size)
    file.seek(0)
    return data


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while data := file.read(CHUNK_BYTES):
        yield data


def _decodes(file: IO[bytes], encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    try:
        for piece in _pieces(file):
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    finally:
        file.seek(0)
    return True


def _nearly_utf8(sample: bytes) -> bool:
    """Return whether this is UTF-8 with a few broken bytes: valid sequences outweigh broken ones ten to one."""
    text = sample.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    good = sum(char > "\x7f" for char in text) - broken
    return good > 10 * broken


def _looks_chinese(sample: bytes) -> bool:
    """Return whether the bytes above 127 come in pairs as GB 2312 writes Chinese, and say something in it."""
    pairs, odd, at = 0, 0, 0
    while at < len(sample) - 1:
        if sample[at] < 0x80:
            at += 1
        elif 0xA1 <= sample[at] <= 0xF7 and 0xA1 <= sample[at + 1] <= 0xFE:
            pairs, at = pairs + 1, at + 2
        else:
            odd, at = odd + 1, at + 2
    if not pairs or odd * 4 > pairs:
        return False
    text = sample.decode("gb18030", "ignore")
    han = [char for char in text if "\u4e00" <= char <= "\u9fff"]
    if len(han) < 30:  # too few to count
        return bool(han)
    return sum(char in _FREQUENT for char in han) * 33 > len(han)


def _looks_traditional(sample: bytes) -> bool:
    """Return whether the bytes say something in Big5, as Windows writes it (code page 950)."""
    text = sample.decode("cp950", "ignore")
    han = [char for char in text if "\u4e00" <= char <= "\u9fff"]
    return sum(char in _FREQUENT_TRADITIONAL for char in han) * 33 > max(len(han), 33)


def _detected(sample: bytes) -> str:
    from charset_normalizer import from_bytes  # noqa: PLC0415 - costs 60 ms, needed for few files

    best = from_bytes(sample[: 64 * 1024]).best()
    return best.encoding if best else "cp1252"
