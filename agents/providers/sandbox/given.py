"""What code finds there without importing it: read_table, write_text, chart. Inside a sandbox this also starts it.

Standard library only. In the restricted interpreter the same three are functions of the host (monty.py).
"""

from __future__ import annotations

import builtins
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes as long to import as all the rest
    from typing import Any


def read_table(path: str) -> list[dict[str, Any]]:
    """Return the rows of a CSV, TSV or JSON file by column name; values of CSV and TSV are text."""
    import tables  # type: ignore[import-not-found]  # noqa: PLC0415  # beside it, in the sandbox; most code needs none

    with open(path, "rb") as file:
        return tables.table(file.read(tables.MOST_BYTES + 1), os.path.basename(path))  # type: ignore[no-any-return]  # as above


def write_text(path: str, text: str) -> int:
    """Write text as UTF-8, with the directories it needs, and return its size in bytes."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    data = text.encode("utf-8")
    with open(path, "wb") as file:
        return file.write(data)


def chart(kind: str, data: list[dict[str, Any]], title: str = "", path: str = "") -> str:
    """Draw rows as SVG into a file and return its path. The first column is the label, the others are numbers."""
    import charts  # type: ignore[import-not-found]  # noqa: PLC0415  # as above

    drawn, path = charts.svg(kind, data, title), path or charts.file_name(title)
    write_text(path, drawn)
    return path


def main(path: str) -> None:
    """Run a file as the program, with the three at hand."""
    for function in (read_table, write_text, chart):
        setattr(builtins, function.__name__, function)
    given, sys.argv = sys.path[0], [path]
    sys.path[0:1] = [os.getcwd()]
    sys.path.append(given)
    with open(path, encoding="utf-8") as file:
        code = compile(file.read(), path, "exec")
    sys.excepthook = complain
    space = {"__name__": "__main__", "__file__": path, "__builtins__": builtins}
    sys.modules["__main__"].__dict__.update(space)
    exec(code, sys.modules["__main__"].__dict__)


def complain(kind: type[BaseException], error: BaseException, at: Any) -> None:
    """Print a traceback that begins with the code's own lines."""
    own = at and at.tb_next and at.tb_next.tb_next
    sys.__excepthook__(kind, error.with_traceback(own), own)


if __name__ == "__main__":
    main(sys.argv[1])
