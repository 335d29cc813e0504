"""Compare two versions of a contract clause by clause: what is the same, moved, changed, new, gone."""

import re
import unicodedata

HEAD = (
    r"(?m)^[ \t#*]*(?:(?:Article|Section|Clause|§)\s*)?(\d+(?:\.\d+)*)[.)、．]?[ \t]+(?=\S)"
    r"|^[ \t#*]*(第[一二三四五六七八九十百零〇\d]+条)[ \t\u3000：:、]*"
)
FIGURE = (
    r"(?:[¥$€£]|(?:EUR|USD|CNY|RMB|GBP)\s)?\s?\d[\d,.]*\d*\s*"
    r"(?:%|‰|percent|(?:business |working |calendar )?(?:days?|weeks?|months?|years?|hours?)|EUR|USD|CNY|RMB"
    r"|个?工作日|日|天|个月|月|年|万元|元)?"
)
DUTY = (
    r"(?i)\b(shall not|must not|may not|shall|must|may|will|is not|not|sole discretion|without|unless|except|only"
    r"|exclusive(?:ly)?|unlimited|best efforts|reasonable)\b"
    r"|不得|不可|应当|必须|可以|有权|无权|无需|除非|仅|独家|无限|尽力|合理|连带"
)
WORDS = {
    "en": {
        "title": "# Comparison",
        "sums": "{} clauses before, {} after: {} the same, {} moved, {} changed, {} new, {} gone.",
        "head": "| Before | After | What | Figures | Duties |\n|---|---|---|---|---|",
        "changed": "changed",
        "new": "new",
        "gone": "gone",
        "before": "Before",
        "after": "After",
        "moved": "Moved without a change",
    },
    "zh": {
        "title": "# 合同对比",
        "sums": "原 {} 条，新 {} 条：{} 条相同，{} 条移动，{} 条修改，{} 条新增，{} 条删除。",
        "head": "| 原条款 | 新条款 | 变化 | 数字 | 义务用语 |\n|---|---|---|---|---|",
        "changed": "修改",
        "new": "新增",
        "gone": "删除",
        "before": "原文",
        "after": "新文",
        "moved": "仅移动、未修改",
    },
}


def clauses(text: str) -> list[tuple[str, str]]:
    """Return number and text of the clauses in their order; what stands before the first one has the number "0"."""
    marks = list(re.finditer(HEAD, text))
    made = [("0", text[: marks[0].start()] if marks else text)]
    for place, mark in enumerate(marks):
        end = marks[place + 1].start() if place + 1 < len(marks) else len(text)
        made.append((mark.group(1) or mark.group(2), text[mark.end() : end]))
    return [(number, re.sub(r"\s+", " ", body).strip(" #*")) for number, body in made if body.strip(" \n#*")]


def same_form(text: str) -> str:
    """Return a text as clauses are compared: width, case, spaces and references to other clauses do not matter."""
    text = unicodedata.normalize("NFKC", text).casefold()
    return re.sub(
        r"\s+", "", re.sub(r"(clause|section|article)\s*\d+(\.\d+)*|第[一二三四五六七八九十百\d]+条", "clause", text)
    )


def pieces(text: str) -> set[str]:
    """Return the words of a text; of Chinese every pair of neighbours."""
    text = unicodedata.normalize("NFKC", text).casefold()
    chars = re.findall(r"[\u4e00-\u9fff]", text)
    return set(re.findall(r"[a-z]{3,}", text)) | {chars[n] + chars[n + 1] for n in range(len(chars) - 1)}


def likeness(first: str, second: str) -> float:
    a, b = pieces(first), pieces(second)
    return len(a & b) / (len(a | b) or 1)


def pairs(old: list[tuple[str, str]], new: list[tuple[str, str]]) -> list[tuple[int, int]]:
    """Return which clause of old became which of new, by place; each at most once, the most alike first."""
    scored = []
    for a, (number, text) in enumerate(old):
        for b, (other, words) in enumerate(new):
            score = 2.0 if same_form(text) == same_form(words) else likeness(text, words)
            if score >= 0.3:
                scored.append((-score - (0.1 if number == other else 0.0), abs(a - b), a, b))
    taken: list[tuple[int, int]] = []
    for _, _, a, b in sorted(scored):
        if all(a != x and b != y for x, y in taken):
            taken.append((a, b))
    return sorted(taken)


def difference(pattern: str, before: str, after: str) -> str:
    """Return what of a pattern left and what came, as "30 days → 60 days"; "" if nothing did."""
    a = [
        re.sub(r"\s+", " ", m.group(0)).strip(" .,").casefold()
        for m in re.finditer(pattern, unicodedata.normalize("NFKC", before))
    ]
    b = [
        re.sub(r"\s+", " ", m.group(0)).strip(" .,").casefold()
        for m in re.finditer(pattern, unicodedata.normalize("NFKC", after))
    ]
    left, came = less(a, b), less(b, a)
    return f"{', '.join(left) or '–'} → {', '.join(came) or '–'}" if left or came else ""


def less(values: list[str], others: list[str]) -> list[str]:
    rest = list(others)
    made = []
    for value in values:
        if value in rest:
            rest.remove(value)
        else:
            made.append(value)
    return made


def sentences(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"(?<=[.;!?])\s+(?=[A-Z(])|(?<=[。；！？])", text) if part.strip()]


def changed_words(before: str, after: str) -> tuple[str, str]:
    """Return the sentences of each side that the other one does not have."""
    a, b = sentences(before), sentences(after)
    keys = ({same_form(s) for s in a}, {same_form(s) for s in b})
    return " ".join(s for s in a if same_form(s) not in keys[1]), " ".join(s for s in b if same_form(s) not in keys[0])


def compare(old_text: str, new_text: str, lang: str = "en") -> str:
    """Return the comparison in Markdown: sums, a table (figures and duties first), and both wordings of each change."""
    words = WORDS["zh" if lang == "zh" else "en"]
    old, new = clauses(old_text), clauses(new_text)
    found = pairs(old, new)
    rows: list[tuple[int, int, str, str]] = []
    same = 0
    moved: list[str] = []
    for a, b in found:
        number, before = old[a]
        other, after = new[b]
        if same_form(before) == same_form(after):
            same += number == other
            moved += [f"{number} → {other}"] if number != other else []
            continue
        figures, duties = difference(FIGURE, before, after), difference(DUTY, before, after)
        left, came = changed_words(before, after)
        line = f"| {number} | {other} | {words['changed']} | {figures or '–'} | {duties or '–'} |"
        text = f"**{number} → {other}**\n\n- {words['before']}: “{left or '–'}”\n- {words['after']}: “{came or '–'}”"
        rows.append((0 if figures else 1 if duties else 3, b, line, text))
    gone = [old[a] for a in range(len(old)) if all(a != x for x, _ in found)]
    fresh = [(b, new[b]) for b in range(len(new)) if all(b != y for _, y in found)]
    for number, text in gone:
        rows.append(
            (2, 0, f"| {number} | – | {words['gone']} | – | – |", f"**{number} → –**\n\n- {words['before']}: “{text}”")
        )
    for place, (number, text) in fresh:
        rows.append(
            (
                2,
                place,
                f"| – | {number} | {words['new']} | – | – |",
                f"**– → {number}**\n\n- {words['after']}: “{text}”",
            )
        )
    rows.sort(key=lambda row: (row[0], row[1]))
    changed = len(rows) - len(gone) - len(fresh)
    sums = words["sums"].format(len(old), len(new), same, len(moved), changed, len(fresh), len(gone))
    parts = [words["title"], sums]
    if rows:
        parts.append(words["head"] + "\n" + "\n".join(row[2] for row in rows))
    if moved:
        parts.append(f"{words['moved']}: " + ", ".join(moved))
    return "\n\n".join([*parts, *(row[3] for row in rows)])
