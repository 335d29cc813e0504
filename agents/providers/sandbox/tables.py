"""Tables for code: CSV, TSV and JSON as rows by column name. Standard library only: it also runs inside a sandbox."""

import csv
import io
import json
from typing import Any

MOST_BYTES = 16 * 1024 * 1024
MOST_JSON_BYTES = 4 * 1024 * 1024  # it is read in one step, in which the host can do nothing else
MOST_ROWS = 200_000
MOST_CELLS = 2_000_000
SNIFFED = 64 * 1024
EXTRA = "(more)"  # the column of what a row has too much


def table(data: bytes, name: str) -> list[dict[str, Any]]:
    """Return the rows of a table. Values of CSV and TSV are text, those of JSON are what they are.

    name: its ending decides; anything but .json is text with a separator that is found out. UTF-8, else GB 18030.
    JSON: a list of objects, an object of lists, or an object that holds one such list. Raises ValueError.
    """
    most = MOST_JSON_BYTES if name.lower().endswith(".json") else MOST_BYTES
    if len(data) > most:
        raise ValueError(f"{name} has more bytes than a table may have, {most}.")
    text = _decoded(data, name)
    rows = _json_rows(text, name) if name.lower().endswith(".json") else _text_rows(text, name)
    if len(rows) > MOST_ROWS or sum(map(len, rows)) > MOST_CELLS:
        raise _too_many(name)
    return rows


def _too_many(name: str) -> ValueError:
    return ValueError(f"{name} has too many rows: at most {MOST_ROWS}, with {MOST_CELLS} cells.")


def _decoded(data: bytes, name: str) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16")
    for encoding in ("utf-8-sig", "gb18030"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise ValueError(f"{name} is no text.")


def _text_rows(text: str, name: str) -> list[dict[str, Any]]:
    if "\0" in text:
        raise ValueError(f"{name} is no text. Of a spreadsheet, save the sheet as CSV.")
    separator = "\t" if name.lower().endswith((".tsv", ".tab")) else _separator(text)
    csv.field_size_limit(MOST_BYTES)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator, restkey=EXTRA, restval="")
    rows: list[dict[str, Any]] = []
    try:
        # before the rows are made: each has all columns, so a short file could be a large table
        most_rows = min(MOST_ROWS, MOST_CELLS // max(1, len(reader.fieldnames or ())))
        for row in reader:
            extra = row.get(EXTRA)
            rows.append({**row, EXTRA: separator.join(extra)} if isinstance(extra, list) else row)
            if len(rows) > most_rows:
                raise _too_many(name)
    except csv.Error as error:
        raise ValueError(f"{name}, line {reader.line_num}: {error}") from error
    return rows


def _separator(text: str) -> str:
    """Return what the first lines agree on: the one of , ; tab | that is in each of them equally often, most often."""
    lines = [line for line in text[:SNIFFED].splitlines()[:20] if line.strip()]
    if not lines:
        return ","

    def weight(separator: str) -> tuple[int, int]:
        counts = [len(next(csv.reader([line], delimiter=separator), [])) - 1 for line in lines]
        return (sum(count == counts[0] for count in counts) if counts[0] else 0, counts[0])

    return max(",;\t|", key=weight)


def _json_rows(text: str, name: str) -> list[dict[str, Any]]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is not JSON: {error}") from error
    if isinstance(value, dict):
        lists = [inner for inner in value.values() if isinstance(inner, list)]
        if lists and len(lists) == len(value) and len({len(inner) for inner in lists}) == 1:
            if not all(isinstance(item, dict) for item in lists[0]):
                return [dict(zip(value, items, strict=True)) for items in zip(*lists, strict=True)]
        value = next((inner for inner in lists if inner and isinstance(inner[0], dict)), value)
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise ValueError(f"{name} holds no table: a list of objects is one.")
    return value
