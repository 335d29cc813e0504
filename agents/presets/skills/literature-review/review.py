"""Put sources side by side, and check a review against them. Needs quotes.py.

Sources are a Markdown text: each one under a heading `## [key] Author, year: title`, with lines `Field: text`.
"""

import re

FIELDS = {
    "en": ("Question", "Method", "Sample", "Finding", "Limits"),
    "zh": ("问题", "方法", "样本", "发现", "局限"),
}
FORMS = (
    ("Question", "Search", "Findings", "Disagreements", "Gaps", "Sources"),
    ("问题", "检索", "发现", "分歧", "空白", "来源"),
)
CLAIMS = ("findings", "disagreements", "发现", "分歧")
MARK = r"\[\[?(?:c:)?([A-Za-z][\w-]{0,30})\]\]?"


def sources(text: str) -> dict[str, tuple[str, str]]:
    """Return heading and text of every source, by key, in their order."""
    made: dict[str, tuple[str, str]] = {}
    for part in re.split(r"(?m)^##\s+", text)[1:]:
        heading, _, body = part.partition("\n")
        found = re.match(MARK + r"\s*(.*)", heading)
        if found:
            made[found.group(1)] = (found.group(2), body.strip())
    return made


def field(body: str, name: str) -> str:
    found = re.search(rf"(?m)^\s*[-*]?\s*{name}\s*[:：]\s*(.+)$", body)
    return found.group(1).strip() if found else ""


def matrix(text: str, lang: str = "en") -> str:
    """Return the sources as a table, one row each, and below it what the notes of each lack."""
    names = FIELDS["zh" if lang == "zh" else "en"]
    first, lacks = ("来源", "缺少") if lang == "zh" else ("Source", "lacks")
    lines = [f"| {first} | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    gaps: list[str] = []
    for key, (heading, body) in sources(text).items():
        cells = [field(body, name) for name in names]
        lines.append(f"| [{key}] {heading} | " + " | ".join(cell.replace("|", "/") or "–" for cell in cells) + " |")
        missing = [name for name, cell in zip(names, cells, strict=True) if not cell]
        if missing:
            gaps.append(f"- [{key}] {lacks}: " + ", ".join(missing))
    return "\n".join([*lines, "", *gaps] if gaps else lines)


def claims(review: str) -> list[str]:
    """Return the sentences of a review that claim something: those of its sections of findings and disagreements."""
    made: list[str] = []
    for heading, text in sections(review).items():
        if any(word in heading.casefold() for word in CLAIMS):
            text = re.sub(r"(?m)^(\s*[-*]\s+|#+.*$|\s*\|.*$)", "", text)
            # A marker that follows the full stop belongs to the sentence before it.
            parts = re.split(r"(?<=[.!?。！？\]])\s*\n+\s*|(?<=[.!?\]])\s+(?=[A-Z“])|(?<=[。！？])(?!\s*\[)", text)
            made += [part.strip() for part in parts if len(part.strip()) > 8]
    return made


def check(review: str, text: str, lang: str = "en") -> str:
    """Return the problems of a review: sections, claims, sources unknown or unused, quotations, figures."""
    zh = lang == "zh"
    known = sources(text)
    problems = [f"缺少部分：{name}" if zh else f"section missing: {name}" for name in missing_sections(review, FORMS)]
    for claim in claims(review):
        keys = [key for key in re.findall(MARK, claim) if key in known]
        if not re.findall(MARK, claim):
            problems.append(f"没有标注来源：{claim}" if zh else f"claim without a source: {claim}")
            continue
        cited = "\n".join(known[key][0] + "\n" + known[key][1] for key in keys)
        for quote in not_word_for_word(claim, cited) if keys else []:
            problems.append(
                f"引文与所标来源不符：“{quote}”" if zh else f"not word for word in the source it names: “{quote}”"
            )
        for number in not_in_source(claim, cited) if keys else []:
            problems.append(
                f"所标来源中没有这个数字：{number}" if zh else f"figure not in the source it names: {number}"
            )
    used = re.findall(MARK, review)
    for key in dict.fromkeys(used):
        if key not in known:
            problems.append(f"没有这个来源：[{key}]" if zh else f"no such source: [{key}]")
    for key in known:
        if key not in used:
            problems.append(f"来源未使用也未说明：[{key}]" if zh else f"source neither used nor set aside: [{key}]")
    return problem_list(problems, lang)
