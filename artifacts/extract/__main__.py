"""The extracting process (see the package)."""

import errno
import logging
import os
import sys
import time
import warnings

from artifacts.extract.confine import confine
from artifacts.extract.outcome import PARSER_ERRORS, STATUS_TROUBLE, Tell, TimeUp, Trouble, Unreadable
from artifacts.extract.readers import extract, load
from artifacts.textfile import TextWriter

TELL_EVERY_S = 0.2


def _prepare(mime: str) -> None:
    """Import before the doors close what would be imported later; keep stderr for one word."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    for name in ("utf-16", "utf-16-le", "utf-16-be", "gb18030", "cp950", "shift_jis", "cp1252", "latin-1", "charmap"):
        "".encode(name)
    load(mime)


def _telling(descriptor: int) -> Tell:
    """Return what writes progress to a pipe, seldom. A pipe that is full or closed is no reason to stop."""
    if descriptor < 0:
        return lambda done, total: None
    os.set_blocking(descriptor, False)
    last = 0.0

    def tell(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= TELL_EVERY_S or done == total:
            last = now
            try:
                os.write(descriptor, b"%d %d\n" % (done, total))
            except OSError:
                return

    return tell


def main(argv: list[str]) -> int:
    mime, seconds, memory_bytes, descriptor = argv[0], int(argv[1]), int(argv[2]), int(argv[3])
    _prepare(mime)
    confine(seconds, memory_bytes)
    source = open(0, "rb", closefd=False)
    out = TextWriter(open(1, "wb", closefd=False))
    try:
        try:
            extract(source, mime, out, _telling(descriptor))
        except TimeUp:
            if not out.said:
                return _say(Trouble.TOO_SLOW)
            out.add("\n[Reading stopped here: the time was up.]\n")
        out.close()
    except Unreadable as e:
        return _say(e.trouble)
    except MemoryError:
        return _say(Trouble.TOO_LARGE)
    except OSError as e:
        return _say(Trouble.TOO_LARGE if e.errno == errno.EFBIG else Trouble.BROKEN)
    except PARSER_ERRORS as e:
        return _say(Trouble.BROKEN, type(e).__name__)
    return 0


def _say(trouble: Trouble, error: str = "") -> int:
    sys.stderr.write(f"{trouble.value} {error}".strip())
    sys.stderr.flush()
    return STATUS_TROUBLE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
