"""Draw one chart of a table, and say in figures what it shows.

draw(path, x, y, out, ...) is the door. read_table, write_text and chart are given by the executor.
"""

import re
import unicodedata

SLICES = 6  # more of them nobody can compare
DAYS = 40  # more days than these are drawn as months

WORDS = {
    "en": {
        "other": "Other",
        "by": "{} by {}",
        "how": {"sum": "{}", "mean": "Mean of {}", "count": "Number of rows", "max": "Highest {}", "min": "Lowest {}"},
        "drawn": "Chart: {} ({}), {}.",
        "rows": "{} of {} rows used.",
        "left": "Left out: {} rows without a usable value in `{}` ({}).",
        "row": "row {}",
        "months": "Days were put together into months.",
        "top": "{} smaller groups are put together as “{}”.",
        "hidden": "{} smaller groups are not shown.",
        "gap": "Not drawn, because a series has no value there: {}.",
        "pie": "A bar chart instead of a pie: {}.",
        "slices": "more than 6 parts",
        "negative": "there are negative values",
        "series": "there is more than one series",
        "parts": "these are no parts of a whole",
        "few": "A bar chart instead of a line: fewer than 3 points in time.",
        "high": "`{}`: highest {} ({}), lowest {} ({}), total {}.",
        "flat": "`{}`: highest {} ({}), lowest {} ({}).",
        "none": "Nothing to draw: no row has a usable value.",
    },
    "zh": {
        "other": "其他",
        "by": "{}（按{}）",
        "how": {"sum": "{}", "mean": "{}均值", "count": "行数", "max": "{}最大值", "min": "{}最小值"},
        "drawn": "图表：{}（{}），{}。",
        "rows": "{1} 行中使用了 {0} 行。",
        "left": "未使用：{} 行的 `{}` 没有可用的值（{}）。",
        "row": "第 {} 行",
        "months": "按日的数据已合并为按月。",
        "top": "{} 个较小的类别合并为“{}”。",
        "hidden": "{} 个较小的类别没有显示。",
        "gap": "以下位置缺少某个系列的值，没有画出：{}。",
        "pie": "改用柱形图，不用饼图：{}。",
        "slices": "超过 6 个部分",
        "negative": "有负值",
        "series": "不止一个系列",
        "parts": "这些值不是整体的各部分",
        "few": "改用柱形图，不用折线图：时间点少于 3 个。",
        "high": "`{}`：最高 {}（{}），最低 {}（{}），合计 {}。",
        "flat": "`{}`：最高 {}（{}），最低 {}（{}）。",
        "none": "没有可画的内容：没有一行有可用的值。",
    },
}


def number(value: object) -> float | None:
    """Return the number that a cell says (1,234.5, ¥5, (3)); None: it says none."""
    text = unicodedata.normalize("NFKC", str(value)).strip()
    text = re.sub(r"^[¥$€£]\s*|\s*元$|(?<=\d),(?=\d{3}(\D|$))", "", text)
    if text[:1] == "(" and text[-1:] == ")":
        text = "-" + text[1:-1]
    return float(text) if re.fullmatch(r"[-+]?\d+(\.\d+)?", text) else None


def said(value: float) -> str:
    """Return a number for people: at most two decimals, thousands set apart."""
    text = f"{value:,.2f}"
    return text.rstrip("0").rstrip(".")


def together(values: list[float], how: str) -> float:
    if how == "count":
        return len(values)
    if how in ("max", "min"):
        return max(values) if how == "max" else min(values)
    return round(sum(values) / (len(values) if how == "mean" else 1), 6)


def period(label: str) -> str:
    """Return a time label (2024-03-05, 2024-03, 2024, 2024/3, 2024年3月) in a form that sorts; "" if it is none."""
    found = re.fullmatch(r"(\d{4})(?:[-/.年](\d{1,2})(?:[-/.月](\d{1,2})日?|月)?|年)?", label)
    if not found:
        return ""
    return "-".join(part.zfill(2) for part in (found[1], found[2], found[3]) if part)


def gather(rows: list[dict], names: tuple[str, str, str], how: str) -> tuple[dict, list[str], list[int]]:
    """Return values by label and series, the series in the order they appear, and the rows that cannot be used.

    names: the columns for x, y and by; by may be "".
    """
    x, y, by = names
    cells: dict[str, dict[str, list[float]]] = {}
    order: list[str] = []
    left: list[int] = []
    for place, row in enumerate(rows, 2):
        label = str(row.get(x) or "").strip()
        value = 1.0 if how == "count" else number(row.get(y, ""))
        if not label or value is None:
            left.append(place)
            continue
        series = str(row.get(by) or "–").strip() if by else y
        if series not in order:
            order.append(series)
        cells.setdefault(label, {}).setdefault(series, []).append(value)
    return cells, order, left


def months(cells: dict[str, dict[str, list[float]]]) -> dict[str, dict[str, list[float]]]:
    made: dict[str, dict[str, list[float]]] = {}
    for label, by_series in cells.items():
        month = made.setdefault(label[:7], {})
        for series, values in by_series.items():
            month.setdefault(series, []).extend(values)
    return made


def shorten(table: list[dict], series: list[str], top: int, how: str, words: dict) -> tuple[list[dict], str]:
    """Return the largest rows first, at most top of them, the rest put together where that makes sense, and a note."""
    ordered = sorted(table, key=lambda row: -sum(row[name] for name in series))
    rest = ordered[top:]
    if not rest:
        return ordered, ""
    if how not in ("sum", "count"):
        return ordered[:top], words["hidden"].format(len(rest))
    label = next(iter(ordered[0]))
    other = {label: words["other"], **{name: sum(row[name] for row in rest) for name in series}}
    return [*ordered[:top], other], words["top"].format(len(rest), words["other"])


def choose(kind: str, timed: bool, table: list[dict], series: list[str], how: str) -> tuple[str, str, str]:
    """Return the kind of chart that is drawn, and, if it is not the wished one, the words for why."""
    if kind == "pie":
        values = [row[name] for row in table for name in series]
        for wrong, why in (
            (len(series) > 1, "series"),
            (how not in ("sum", "count"), "parts"),
            (min(values) < 0, "negative"),
            (len(table) > SLICES, "slices"),
        ):
            if wrong:
                return "bar", "pie", why
        return "pie", "", ""
    if kind == "auto":
        kind = "line" if timed else "bar"
    if kind == "line" and timed and len(table) < 3:
        return "bar", "few", ""
    return kind, "", ""


def summary(table: list[dict], series: list[str], how: str, words: dict) -> list[str]:
    """Return the table in Markdown, and highest, lowest and total of each series."""
    label = next(iter(table[0]))
    lines = [f"| {label} | " + " | ".join(series) + " |", "|---|" + "---:|" * len(series)]
    lines += [f"| {row[label]} | " + " | ".join(said(row[name]) for name in series) + " |" for row in table]
    lines.append("")
    for name in series:
        high = max(table, key=lambda row: row[name])
        low = min(table, key=lambda row: row[name])
        values = [name, said(high[name]), high[label], said(low[name]), low[label]]
        total = said(sum(row[name] for row in table))
        lines.append(
            "- " + (words["high"].format(*values, total) if how in ("sum", "count") else words["flat"].format(*values))
        )
    return lines


def points(rows: list[dict], x: str, y: str) -> tuple[list[dict], list[int]]:
    """Return the pairs of numbers of two columns, and the rows that have none."""
    made: list[dict] = []
    left: list[int] = []
    for place, row in enumerate(rows, 2):
        first, second = number(row.get(x, "")), number(row.get(y, ""))
        if first is None or second is None:
            left.append(place)
        else:
            made.append({x: first, y: second})
    return made, left


def table_of(rows: list[dict], names: tuple[str, str, str], how: str, top: int, words: dict) -> tuple:
    """Return rows of label and one number per series, the series, whether it is time, rows left out, and notes."""
    x, y, by = names
    cells, series, left = gather(rows, names, how)
    notes: list[str] = []
    timed = bool(cells) and all(period(label) for label in cells)
    if timed:
        cells = {period(label): by_series for label, by_series in cells.items()}
        if len(cells) > DAYS and all(len(label) == 10 for label in cells):
            cells = months(cells)
            notes.append(words["months"])
    if not by:
        shown = words["how"][how].format(y)
        cells = {label: {shown: by_series[y]} for label, by_series in cells.items()}
        series = [shown] if cells else []
    full = cells if how in ("sum", "count") else {k: v for k, v in cells.items() if len(v) == len(series)}
    if len(full) < len(cells):
        notes.append(words["gap"].format(", ".join(label for label in cells if label not in full)))
    table = [
        {x: label, **{name: together(found[name], how) if name in found else 0 for name in series}}
        for label, found in full.items()
    ]
    if timed:
        table.sort(key=lambda row: row[x])
    elif table:
        table, note = shorten(table, series, top, how, words)
        notes += [note] if note else []
    return table, series, timed, left, notes


def draw(
    path: str, x: str, y: str, out: str, how: str = "sum", by: str = "", kind: str = "auto", **more: object
) -> str:
    """Draw out (an SVG) of the table at path and return in Markdown what it shows.

    x: the column of labels. y: the column of numbers. how: sum, mean, count, max, min. by: a column whose values become
    series. kind: auto, line, bar, pie, scatter. more: top (12 groups), title, lang (en, zh).
    """
    words = WORDS["zh" if more.get("lang") == "zh" else "en"]
    rows = read_table(path)
    for name in (x, y, by):
        if name and rows and name not in rows[0] and not (name == y and how == "count"):
            raise ValueError(f"no column {name!r}; there are: {', '.join(rows[0])}")
    if kind == "scatter":
        table, left = points(rows, x, y)
        series, notes, timed = [y], [], False
    else:
        table, series, timed, left, notes = table_of(rows, (x, y, by), how, int(more.get("top", 12)), words)
    if not table:
        return words["none"]
    kind, told, why = choose(kind, timed, table, series, how)
    if told:
        notes.append(words[told].format(words.get(why, "")))
    title = str(more.get("title") or words["by"].format(words["how"][how].format(y), x))
    chart(kind, table, title, out)
    header = list(table[0])
    write_text(
        out.removesuffix(".svg") + ".csv",
        "".join(
            ",".join(cell(row[n]) for n in header) + "\n" for row in [dict(zip(header, header, strict=True)), *table]
        ),
    )
    lines = [words["drawn"].format(title, kind, out), words["rows"].format(len(rows) - len(left), len(rows))]
    if left:
        shown = ", ".join(words["row"].format(n) for n in left[:5]) + (" …" if len(left) > 5 else "")
        lines.append(words["left"].format(len(left), y, shown))
    lines += notes
    return "\n".join([*lines, "", *summary(table, series, "mean" if kind == "scatter" else how, words)])


def cell(value: object) -> str:
    text = f"{value:.6f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return '"' + text.replace('"', '""') + '"' if re.search(r'[",\n]', text) else text
