"""The figures and the lines of a weekly report from a log of work, and a check of a report. Needs quotes.py.

A log is a table with a column for the day, and columns for project, task, status, hours, note, as far as there are.
read_table is given by the executor.
"""

import re
from datetime import date, timedelta

COLUMNS = {
    "day": r"(?i)^(date|day|日期|时间)$",
    "project": r"(?i)^(project|client|area|项目|客户)$",
    "task": r"(?i)^(task|item|what|work|任务|事项|工作|工作内容)$",
    "status": r"(?i)^(status|state|状态|进度)$",
    "hours": r"(?i)^(hours|time spent|h|工时|小时)$",
    "note": r"(?i)^(note|notes|comment|remarks?|备注|说明)$",
}
STATES = (
    r"(?i)^(done|finished|completed?|closed|shipped|已?完成|结束|已上线)",
    r"(?i)^(blocked|waiting|stuck|on hold|受阻|阻塞|等待|暂停)",
    r"(?i)^(planned|next|to ?do|open|计划|待办|下周|未开始)",
)
FORMS = (
    ("In one sentence", "Done", "In progress", "Blocked", "Next week", "Figures"),
    ("一句话", "已完成", "进行中", "受阻", "下周计划", "数据"),
)
WORDS = {
    "en": {
        "title": "# Week {} to {}",
        "none": "Nothing in the log.",
        "hours": "| Project | Hours | Before | Entries |\n|---|---:|---:|---:|",
        "sum": "Total",
        "outside": "Not counted: {} entries of other days, {} without a day.",
        "still": "open since {}",
        "empty": "–",
    },
    "zh": {
        "title": "# {} 至 {} 周报",
        "none": "记录中没有。",
        "hours": "| 项目 | 工时 | 上周 | 条数 |\n|---|---:|---:|---:|",
        "sum": "合计",
        "outside": "未计入：其他日期的记录 {} 条，没有日期的 {} 条。",
        "still": "自 {} 起未完成",
        "empty": "–",
    },
}


def day_of(text: str) -> date | None:
    found = re.fullmatch(r"\s*(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})日?(?:[ T].*)?", text)
    try:
        return date(int(found.group(1)), int(found.group(2)), int(found.group(3))) if found else None
    except ValueError:
        return None


def entries(rows: list[dict]) -> list[dict]:
    """Return the rows with our names of columns; day is a date or None, hours a number."""
    names = {
        ours: first([name for name in (rows[0] if rows else ()) if re.search(form, str(name).strip())])
        for ours, form in COLUMNS.items()
    }
    made = []
    for row in rows:
        entry = {ours: str(row.get(name) or "").strip() if name else "" for ours, name in names.items()}
        hours = re.fullmatch(r"\d+(?:\.\d+)?", entry["hours"])
        made.append({**entry, "day": day_of(entry["day"]), "hours": float(entry["hours"]) if hours else 0.0})
    return made


def state(entry: dict) -> int:
    """Return 0 done, 1 in progress, 2 blocked, 3 planned."""
    for number, form in zip((0, 2, 3), STATES, strict=True):
        if re.search(form, entry["status"]):
            return number
    return 1


def key(entry: dict) -> tuple[str, str]:
    return entry["project"].casefold(), entry["task"].casefold()


def short(hours: float) -> str:
    return f"{hours:.2f}".rstrip("0").rstrip(".")


def line_of(entry: dict, since: date | None, words: dict) -> str:
    text = f"**{entry['project']}**: {entry['task']}" if entry["project"] else entry["task"]
    text += f" ({entry['note']})" if entry["note"] else ""
    return text + (f"; {words['still'].format(since.isoformat())}" if since else "")


def by_project(log: list[dict], before: list[dict], words: dict) -> str:
    """Return the table of hours: this week, the week before, entries."""
    names = list(dict.fromkeys(entry["project"] or words["empty"] for entry in [*log, *before]))
    lines = [words["hours"]]
    for name in names:
        mine = [e for e in log if (e["project"] or words["empty"]) == name]
        past = sum(e["hours"] for e in before if (e["project"] or words["empty"]) == name)
        lines.append(f"| {name} | {short(sum(e['hours'] for e in mine))} | {short(past)} | {len(mine)} |")
    total, past = sum(e["hours"] for e in log), sum(e["hours"] for e in before)
    return "\n".join([*lines, f"| {words['sum']} | {short(total)} | {short(past)} | {len(log)} |"])


def week(path: str, monday: str, lang: str = "en") -> str:
    """Return the draft of a report for the seven days from monday (year-month-day): the last state of each task counts.

    Tasks that are still open from before and were not touched stand with the day since when.
    """
    words = WORDS["zh" if lang == "zh" else "en"]
    form = FORMS[lang == "zh"]
    start = date.fromisoformat(monday)
    if start.weekday() != 0:
        raise ValueError(f"{monday} is no Monday")
    rows = entries(read_table(path))
    dated = sorted((e for e in rows if e["day"]), key=lambda e: e["day"].isoformat())
    end = start + timedelta(days=6)
    log = [e for e in dated if start <= e["day"] <= end]
    before = [e for e in dated if start - timedelta(days=7) <= e["day"] < start]
    last: dict[tuple[str, str], dict] = {}
    first: dict[tuple[str, str], date] = {}
    for entry in dated:
        if entry["day"] <= end:
            last[key(entry)] = entry
            first.setdefault(key(entry), entry["day"])
    found: list[list[str]] = [[], [], [], []]
    for task, entry in last.items():
        current = entry["day"] >= start
        if current or state(entry) != 0:
            since = first[task] if first[task] < start and state(entry) in (1, 2) else None
            found[state(entry)].append(line_of(entry, since, words))
    parts = [words["title"].format(start.isoformat(), end.isoformat()), f"## {form[0]}\n\n…"]
    for heading, lines in zip(form[1:5], found, strict=True):
        parts.append(f"## {heading}\n\n" + ("\n".join(f"- {line}" for line in lines) or words["none"]))
    outside = words["outside"].format(len(dated) - len(log), len(rows) - len(dated))
    return "\n\n".join([*parts, f"## {form[5]}\n\n{by_project(log, before, words)}\n\n{outside}"])


def check(report: str, draft: str, lang: str = "en") -> str:
    """Return the problems of a report beside its draft: sections, other figures, blocks left out."""
    zh = lang == "zh"
    problems = [f"缺少部分：{name}" if zh else f"section missing: {name}" for name in missing_sections(report, FORMS)]
    problems += [
        f"草稿中没有这个数字：{n}" if zh else f"figure not in the draft: {n}" for n in not_in_source(report, draft)
    ]
    for heading, text in sections(draft).items():
        if heading in (FORMS[0][3], FORMS[1][3]):
            for line in re.findall(r"(?m)^- (?:\*\*(.+?)\*\*: )?([^(;\n]+)", text):
                if flat(line[1]) not in flat(report):
                    problems.append(
                        f"受阻事项没有写入：{line[1].strip()}" if zh else f"blocked, but left out: {line[1].strip()}"
                    )
    if "…" in report:
        problems.append("还有未填写的“…”" if zh else "a “…” is still to be filled in")
    return problem_list(problems, lang)
