"""Find in notes of a meeting what belongs into its minutes, and check minutes against the notes. Needs quotes.py."""

import re

DECIDED = r"(?i)\b(decided|decision:|agreed|approved|resolved|adopted|voted)|决定|同意|通过|批准|一致认为"
UNDECIDED = (
    r"(?i)\bno (decision|agreement)|not (yet )?(decided?|agreed?|approved?)|undecided|postponed"
    r"|未决定|没有决定|暂不|尚未|未能|没有通过|待定|推迟"
)
TODO = (
    r"(?i)^\W*(action|to[- ]?do|task)\b|\b[A-Z][\w'-]+ (will|shall|is to|takes|to) [a-z]|待办|负责|跟进|请[^。]{1,30}前"
)
OPEN = r"(?i)[?？]\s*$|\b(open|unclear|to be clarified|tbd)\b|待定|待确认|不清楚|未确定"
WHO = (
    r"\b([A-Z][\w'-]+(?: [A-Z][\w'-]+)?) (?:will|shall|is to|takes|to)\b"
    r"|(?:^|[，。、：:\s由请])([\u4e00-\u9fff]{2,3}?)(?:负责|跟进|于|在)"
)
WHEN = (
    r"\b(?:by|before|until) ((?:the )?(?:end of )?[A-Z0-9][\w]*(?: [A-Z0-9][\w]*){0,2})"
    r"|((?:\d{4}年)?\d{1,2}月\d{1,2}日|[本下]?周[一二三四五六日末]|[本下]?月底)(?:之?前|完成|交)"
)
FORMS = (
    ("Summary", "Decisions", "Action items", "Open questions"),
    ("摘要", "决定", "待办事项", "未决问题"),
)
UNSAID = ("not said", "未说明")
KINDS = {"en": ("Decisions", "Action items", "Open questions"), "zh": ("决定", "待办事项", "未决问题")}


def statements(notes: str) -> list[tuple[int, str]]:
    """Return the sentences of notes with the numbers of their lines."""
    made: list[tuple[int, str]] = []
    for number, line in enumerate(notes.splitlines(), 1):
        for part in re.split(r"(?<=[.!?])\s+(?=[A-Z])|(?<=[。！？；])", re.sub(r"^\s*[-*•]\s+", "", line)):
            if part.strip():
                made.append((number, part.strip()))
    return made


def kind(statement: str) -> int | None:
    """Return 0 for a decision, 1 for an action, 2 for an open question, None for the rest."""
    if re.search(OPEN, statement) or re.search(UNDECIDED, statement):
        return 2
    if re.search(DECIDED, statement):
        return 0
    return 1 if re.search(TODO, statement) else None


def first_group(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return first([group for group in found.groups() if group]) if found else ""


def collect(notes: str, lang: str = "en") -> str:
    """Return in Markdown what of the notes looks like a decision, an action, an open question, word for word.

    It goes by words: what it found must be read, what it missed must be looked for.
    """
    names = KINDS["zh" if lang == "zh" else "en"]
    unsaid = UNSAID[lang == "zh"]
    found: list[list[str]] = [[], [], []]
    for number, statement in statements(notes):
        which = kind(statement)
        if which is None:
            continue
        line = f"“{statement}” ({number})"
        if which == 1:
            line += f" | {first_group(WHO, statement) or unsaid} | {first_group(WHEN, statement) or unsaid}"
        found[which].append(line)
    return "\n\n".join(
        f"## {name}\n\n" + problem_list(lines, lang) for name, lines in zip(names, found, strict=True) if lines
    )


def check(minutes: str, notes: str, lang: str = "en") -> str:
    """Return the problems of minutes: sections, quotations, figures, actions, decisions left out."""
    zh = lang == "zh"
    problems = [f"缺少部分：{name}" if zh else f"section missing: {name}" for name in missing_sections(minutes, FORMS)]
    for quote in not_word_for_word(minutes, notes):
        problems.append(f"引文与记录不符：“{quote}”" if zh else f"not word for word in the notes: “{quote}”")
    for number in not_in_source(minutes, notes):
        problems.append(f"记录中没有这个数字：{number}" if zh else f"figure not in the notes: {number}")
    parts = sections(minutes)
    for heading, text in parts.items():
        rows = table_rows(text) if heading.casefold() in ("action items", "待办事项") else []
        for row in rows:
            if len(row) < 3 or not row[1] or not row[2]:
                problems.append(f"待办缺少负责人或期限：{row[0]}" if zh else f"action without owner or date: {row[0]}")
    decisions = first([flat(text) for heading, text in parts.items() if heading.casefold() in ("decisions", "决定")])
    for number, statement in statements(notes):
        if kind(statement) == 0 and not covered(statement, decisions):
            words = (
                f"第 {number} 行的决定没有写入：{statement}"
                if zh
                else f"decision of line {number} is not there: {statement}"
            )
            problems.append(words)
    return problem_list(problems, lang)


def covered(statement: str, text: str) -> bool:
    """Whether most of the telling words of a statement stand in a (flat) text."""
    words = re.findall(r"[a-z]{4,}|\d+", flat(statement))
    chars = re.findall(r"[\u4e00-\u9fff]", statement)
    words += [chars[n] + chars[n + 1] for n in range(len(chars) - 1)]
    return not words or sum(word in text for word in words) >= 0.6 * len(words)
