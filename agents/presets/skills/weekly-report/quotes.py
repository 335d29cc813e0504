"""Whether a text keeps to its sources: its quotations word for word, its figures."""

import re
import unicodedata

# List numbers, markers of sources and references to lines say nothing about the matter.
ASIDE = (
    r"(?m)^\s*(?:#+\s*)?\d+[.)、]\s|\[\[?[^\]\n]{1,40}\]\]?"
    r"|\b(?:lines?|rows?|step)\s+\d+(?:[-–, ]+\d+)*|第\s*\d+\s*[行页]|Q[1-4]\b"
)


def flat(text: str) -> str:
    """Return text as it is compared: half-width, lower case, single spaces, no Markdown emphasis."""
    text = re.sub(r"[*_`>|]", " ", unicodedata.normalize("NFKC", text).replace("’", "'"))
    return re.sub(r"\s+", " ", text).strip().casefold()


def quotations(text: str) -> list[str]:
    """Return what stands in quotation marks, from four characters on."""
    found = [m.group(1) for m in re.finditer(r"[“「]([^”」\n]{4,})[”」]", text)]
    return found + [m.group(1) for m in re.finditer(r'(?<![\w"])"([^"\n]{4,})"', text)]


def not_word_for_word(text: str, source: str) -> list[str]:
    """Return the quotations of a text that its source does not hold. “…” inside one stands for words left out."""
    whole = flat(source)
    return [
        q
        for q in quotations(text)
        if any(flat(part) not in whole for part in re.split(r"…+|\.\.\.", q) if part.strip())
    ]


def figures(text: str) -> list[str]:
    """Return the numbers of a text, plainly written, each once, in their order."""
    text = unicodedata.normalize("NFKC", re.sub(ASIDE, " ", text))
    made: list[str] = []
    for found in re.finditer(r"\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?", text):
        number = found.group(0).replace(",", "")
        number = (number.rstrip("0").rstrip(".") if "." in number else number).lstrip("0") or "0"
        if number not in made:
            made.append(number)
    return made


def not_in_source(text: str, source: str) -> list[str]:
    """Return the figures of a text that its source does not hold."""
    known = figures(source)
    return [number for number in figures(text) if number not in known]


def sections(text: str) -> dict[str, str]:
    """Return what stands under each heading of the second level, by heading; before the first one: ""."""
    parts = re.split(r"(?m)^##\s+", text)
    made = {"": parts[0]}
    for part in parts[1:]:
        heading, _, rest = part.partition("\n")
        made[heading.strip()] = rest.strip()
    return made


def missing_sections(text: str, forms: tuple[tuple[str, ...], ...]) -> list[str]:
    """Return the headings that are missing, in the language whose form fits best. forms: one row per language."""
    found = sections(text)
    missing = [
        [wanted for wanted in form if not any(wanted.casefold() in heading.casefold() for heading in found)]
        for form in forms
    ]
    return min(missing, key=len)


def first(values: list[str]) -> str:
    """Return the first value, or "". (The restricted interpreter has no lazy generators for next.)"""
    return values[0] if values else ""


def table_rows(text: str) -> list[list[str]]:
    """Return the cells of all rows of Markdown tables, without their heads and rules."""
    made: list[list[str]] = []
    lines = [line.strip() for line in text.splitlines()]
    for place, line in enumerate(lines):
        below = lines[place + 1] if place + 1 < len(lines) else ""
        if line.startswith("|") and not re.fullmatch(r"[|:\- ]+", line) and not re.fullmatch(r"\|[|:\- ]+", below):
            made.append([part.strip() for part in line.strip("|").split("|")])
    return made


def problem_list(problems: list[str], lang: str) -> str:
    """Return problems as a Markdown list, or one sentence that there are none."""
    none = "没有发现问题。" if lang == "zh" else "No problem found."
    return "\n".join(f"- {line}" for line in problems) or none
