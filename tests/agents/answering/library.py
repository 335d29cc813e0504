"""Two libraries of eight documents each, with forty questions: `tuning` is what the rules were made on, `held` what is
reported. A document is written as text beside this module and built as the file its name says."""

import csv
import html
import io
import re
from dataclasses import dataclass
from pathlib import Path

from tests.artifacts.office import docx, xlsx
from tests.artifacts.pdfs import pdf

ROOT = Path(__file__).parent
LINE_CHARS = 84  # of a PDF's page


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """document, says: where the answer stands and words of it; "" = the documents do not say."""

    text: str
    document: str
    says: str


def documents(library: str) -> dict[str, bytes]:
    """Return the library's files by name."""
    written = {path.stem: path.read_text() for path in sorted((ROOT / library).glob("*.md"))}
    return {_name(stem): _built(_name(stem), text) for stem, text in written.items()} | {
        path.name: path.read_bytes() for path in sorted((ROOT / library).glob("*.csv"))
    }


def questions(library: str) -> tuple[Question, ...]:
    lines = (ROOT / library / "questions.tsv").read_text().splitlines()
    return tuple(Question(text=t, document=d, says=s) for t, d, s in (line.split("\t") for line in lines))


def _name(stem: str) -> str:
    return stem if re.search(r"\.\w+$", stem) else f"{stem}.md"


def _built(name: str, text: str) -> bytes:
    match name.rpartition(".")[2]:
        case "pdf":
            return pdf(*("\n".join(_wrapped(line) for line in page.split("\n")) for page in text.split("\\f\n")))
        case "docx":
            return docx(*(block for block in text.split("\n") if block))
        case "xlsx":
            return xlsx(**{"Sheet1": csv.reader(io.StringIO(text))})
        case "html":
            return _page(text).encode()
        case _:
            return text.encode()


def _wrapped(line: str) -> str:
    return re.sub(rf"(.{{1,{LINE_CHARS}}})(?: |$)", r"\1\n", line.lstrip("# ")).rstrip("\n")


def _page(text: str) -> str:
    tags = {"# ": "h1", "##": "h2", "- ": "li"}
    blocks = ((tags.get(line[:2], "p"), html.escape(line.lstrip("#- "))) for line in text.split("\n") if line)
    return "<html><body>" + "".join(f"<{tag}>{block}</{tag}>" for tag, block in blocks) + "</body></html>"
