"""Translations: .po text files to the .mo files that Django reads, without gettext's programs.

The format of .mo is in https://www.gnu.org/software/gettext/manual/html_node/MO-Files.html.
"""

import ast
import re
import struct
import sys
from pathlib import Path

_LINE = re.compile(r'(?:(msgctxt|msgid_plural|msgid|msgstr)(?:\[(\d+)\])?\s+)?("(?:[^"\\]|\\.)*")$')
MAGIC = 0x950412DE


class BadMessages(ValueError):
    """A .po file cannot be read; the message names the file and the line."""


def compile_all(locale: Path) -> list[Path]:
    """Compile every .po under the directory whose .mo is missing or older, and return those that were."""
    done = []
    for po in sorted(locale.glob("*/LC_MESSAGES/*.po")):
        mo = po.with_suffix(".mo")
        if not mo.exists() or mo.stat().st_mtime < po.stat().st_mtime:
            fresh = mo.with_suffix(".mo.new")
            fresh.write_bytes(binary(read(po)))
            fresh.replace(mo)
            done.append(po)
    return done


def read(po: Path) -> dict[str, str]:
    """Return the catalogue as gettext keys it: "context\\4id\\0plural" to the forms joined by \\0.

    Fuzzy, obsolete and untranslated entries are left out. Raises BadMessages.
    """
    catalogue: dict[str, str] = {}
    entry: dict[str, str] = {}
    fuzzy = marked = False
    field = ""

    def close() -> None:
        forms = [v for k, v in sorted(entry.items()) if k.startswith("msgstr")]
        if "msgid" in entry and not fuzzy and all(forms) and forms:
            context = f"{entry['msgctxt']}\4" if "msgctxt" in entry else ""
            plural = f"\0{entry['msgid_plural']}" if "msgid_plural" in entry else ""
            catalogue[context + entry["msgid"] + plural] = "\0".join(forms)
        entry.clear()

    for number, line in enumerate(po.read_text(encoding="utf-8").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            marked = marked or (text.startswith("#,") and "fuzzy" in text)
            continue
        found = _LINE.match(text)
        if not found:
            raise BadMessages(f"{po}, line {number}: {text[:80]}")
        word, index, quoted = found.groups()
        if word == "msgctxt" or (word == "msgid" and field != "msgctxt"):
            close()
            fuzzy, marked = marked, False
        if word:
            field = f"{word}{int(index):03d}" if index else word
            if field in entry:
                raise BadMessages(f"{po}, line {number}: a second {word} in one entry")
            entry[field] = ""
        entry[field] += ast.literal_eval(quoted)
    close()
    return catalogue


def binary(catalogue: dict[str, str]) -> bytes:
    """Return the .mo file of a catalogue: keys sorted, no hash table, as msgfmt --no-hash writes it."""
    pairs = sorted((k.encode(), v.encode()) for k, v in catalogue.items())
    keys_at = 28
    values_at = keys_at + 8 * len(pairs)
    offset = values_at + 8 * len(pairs)
    tables: list[list[int]] = [[], []]
    texts = b""
    for side in (0, 1):
        for pair in pairs:
            tables[side] += [len(pair[side]), offset + len(texts)]
            texts += pair[side] + b"\0"
    head = struct.pack("<7I", MAGIC, 0, len(pairs), keys_at, values_at, 0, offset)
    return head + struct.pack(f"<{4 * len(pairs)}I", *tables[0], *tables[1]) + texts


def untranslated(po: Path) -> list[str]:
    """Return the texts of a .po file that have no translation, or only a guessed one."""
    done = read(po)
    wanted = [ast.literal_eval(m) for m in re.findall(r'^msgid ("(?:[^"\\]|\\.)+")$', po.read_text("utf-8"), re.M)]
    keys = {key.rpartition("\4")[2].partition("\0")[0] for key in done}
    return [text for text in wanted if text not in keys]


def main() -> int:
    """Compile what changed and name what is missing; the exit code is for `make check`."""
    locale = Path(__file__).resolve().parent / "locale"
    compile_all(locale)
    missing = [(po, text) for po in sorted(locale.glob("*/LC_MESSAGES/*.po")) for text in untranslated(po)]
    for po, text in missing:
        sys.stderr.write(f"{po}: no translation of {text!r}\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
