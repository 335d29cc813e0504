"""Terms of a glossary in a text, and a check that a translation keeps them, its figures and its form.

A glossary is a Markdown table, or lines of `term, translation, note` (comma, tab or |); see docs/glossary.md.
"""

import re
import unicodedata

MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
SCALES = (("亿", 100_000_000), ("万", 10_000), ("billion", 1_000_000_000), ("million", 1_000_000), ("thousand", 1_000))
HOLDERS = r"\{[\w.]*\}|%[sd]|%\(\w+\)s|</?[a-zA-Z][^<>]*>|`[^`\n]+`|[\w.+-]+@[\w-]+\.[\w.]+"


def entries(glossary: str) -> list[tuple[str, str, list[str]]]:
    """Return term, translation and the forbidden translations of every line."""
    made: list[tuple[str, str, list[str]]] = []
    for place, line in enumerate(glossary.splitlines()):
        line = line.strip()
        if not line or line.startswith("#") or re.fullmatch(r"[|:\- ]+", line):
            continue
        mark = "|" if "|" in line else "\t" if "\t" in line else ","
        cells = [cell.strip() for cell in line.strip("|").split(mark)]
        if len(cells) < 2 or not cells[0] or (place == 0 and cells[0].casefold() in ("term", "source", "术语", "原文")):
            continue
        note = " ".join(cells[2:])
        no = re.search(r"(?:not|不要|禁用)\s*[:：]\s*([^;；|]+)", note)
        made.append(
            (cells[0], cells[1] or cells[0], [w.strip() for w in re.split(r"[,，/、]", no.group(1))] if no else [])
        )
    return made


def pattern(term: str) -> str:
    """Return a regular expression for a term: any case; in English with plural and possessive; spaces may be breaks."""
    words = [re.escape(word) for word in unicodedata.normalize("NFKC", term).split()]
    if not words:
        return r"(?!)"
    body = r"\s+".join(words)
    if re.search(r"[A-Za-z]$", term):
        body = re.sub("y$", "(?:y|ies)", body) + r"(?:s|es|'s)?"
    return (
        "(?i)"
        + (r"(?<![A-Za-z])" if re.match(r"[A-Za-z]", term) else "")
        + body
        + (r"(?![A-Za-z])" if re.search(r"[A-Za-z]$", term) else "")
    )


def count(term: str, text: str) -> int:
    return len(re.findall(pattern(term), unicodedata.normalize("NFKC", text)))


def without(term: str, text: str) -> str:
    """Return text without a term, so that a shorter term inside it is not found again."""
    return re.sub(pattern(term), " ", unicodedata.normalize("NFKC", text))


def present(source: str, glossary: str) -> list[tuple[str, str, list[str], int]]:
    """Return the entries that stand in a text and how often, the longest first."""
    made = []
    rest = source
    for term, target, forbidden in sorted(entries(glossary), key=lambda entry: -len(entry[0])):
        often = count(term, rest)
        if often:
            made.append((term, target, forbidden, often))
            rest = without(term, rest)
    return made


def terms(source: str, glossary: str, lang: str = "en") -> str:
    """Return the terms of a text with their translations, as a Markdown table."""
    head = "| 术语 | 译法 | 禁用 | 次数 |" if lang == "zh" else "| Term | Translation | Never | Times |"
    rows = [
        f"| {term} | {target} | {', '.join(no) or '–'} | {often} |"
        for term, target, no, often in present(source, glossary)
    ]
    return "\n".join([head, "|---|---|---|---:|", *rows])


def values(text: str) -> list[str]:
    """Return the numbers of a text, sorted, so written that 3 million = 300万 and 5 March = 3月5日."""
    text = unicodedata.normalize("NFKC", re.sub(HOLDERS, " ", text))
    for place, month in enumerate(MONTHS, 1):
        text = re.sub(rf"\b{month}\b(?=\s*\d)|(?<=\d )\b{month}\b|(?<=\d)\s+{month}\b", f" {place} ", text, flags=re.I)
    made: list[str] = []
    for found in re.finditer(
        r"(\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)\s*(亿|万|billion|million|thousand)?", text, re.I
    ):
        scale = dict(SCALES).get((found.group(2) or "").lower(), 1)
        made.append(f"{float(found.group(1).replace(',', '')) * scale:.4f}".rstrip("0").rstrip("."))
    return sorted(made)


def paragraphs(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]


def fewer(wanted: list[str], given: list[str]) -> list[str]:
    """Return what of wanted is not in given, each as often as it is missing."""
    rest = list(given)
    made = []
    for value in wanted:
        if value in rest:
            rest.remove(value)
        else:
            made.append(value)
    return made


def check(source: str, target: str, glossary: str, lang: str = "en") -> str:
    """Return the problems of a translation as a list: terms, figures, placeholders, paragraphs, what stayed."""
    zh = lang == "zh"
    problems: list[str] = []
    for term, wanted, forbidden, often in present(source, glossary):
        given = count(wanted, target)
        if not given:
            problems.append(
                f"术语未按词汇表翻译：{term} → {wanted}" if zh else f"term not as in the glossary: {term} → {wanted}"
            )
        elif given < often:
            problems.append(
                f"术语次数较少：{term}（{often} → {given}）" if zh else f"term less often: {term} ({often} → {given})"
            )
        for word in forbidden:
            if count(word, target):
                problems.append(f"使用了禁用译法：{word}" if zh else f"forbidden translation: {word}")
    for missing, left in (
        (fewer(values(source), values(target)), True),
        (fewer(values(target), values(source)), False),
    ):
        for number in missing:
            words = (
                (f"缺少数字：{number}" if left else f"多出数字：{number}")
                if zh
                else (f"figure missing: {number}" if left else f"figure added: {number}")
            )
            problems.append(words)
    for holder in fewer(re.findall(HOLDERS, source), re.findall(HOLDERS, target)):
        problems.append(f"缺少占位符：{holder}" if zh else f"placeholder missing: {holder}")
    before, after = paragraphs(source), paragraphs(target)
    if len(before) != len(after):
        problems.append(
            f"段落数不同：{len(before)} → {len(after)}" if zh else f"paragraphs differ: {len(before)} → {len(after)}"
        )
    for part in before:
        if part in after and len(part) > 20 and re.search(r"[a-z\u4e00-\u9fff]{2}", part):
            problems.append(f"未翻译：{part[:40]}" if zh else f"not translated: {part[:40]}")
    none = "没有发现问题。" if zh else "No problem found."
    return "\n".join(f"- {line}" for line in problems) or none
