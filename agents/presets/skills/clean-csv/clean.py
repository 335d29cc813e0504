"""Clean a table: what is safe is done, what would be a guess is reported and left as it was.

clean(path, out, plan, lang) is the door; docs/plan.md says what a plan may hold. read_table and write_text are given
by the executor.
"""

import re
import unicodedata
from datetime import date
from decimal import Decimal

MISSING = ("", "-", "--", "—", "n/a", "#n/a", "null", "nan", "暂无", "无数据")
CODES = (
    r"(?i)(^|[^a-z])(id|no|nr|code|sku|phone|mobile|tel|fax|zip|postcode|postal|account|iban)([^a-z]|$)"
    r"|编号|编码|代码|单号|序号|电话|手机|邮编|身份证|工号|账号|卡号"
)
MONEY = r"¥|￥|\$|€|£|\b(?:RMB|CNY|USD|EUR|GBP|HKD)\b|元$"
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
UNITS = {"万": 10_000, "亿": 100_000_000}
MOST = 0.8  # of a column's values: with so many of one kind the others are named as problems

WORDS = {
    "en": {
        "title": "# Cleaning report",
        "size": "{} rows and {} columns read, {} rows written.",
        "done": "## Changed",
        "open": "## Left as it was, for a person to decide",
        "nothing": "Nothing.",
        "headers": "Column names tidied: {}.",
        "spaces": "`{}`: spaces and invisible characters tidied in {} cells.",
        "missing": "`{}`: {} cells that only meant “missing” are empty now.",
        "mapped": "`{}`: {} values replaced as the plan says.",
        "empty": "{} empty rows dropped: {}.",
        "double": "{} rows dropped that repeat another one exactly: {}.",
        "number": "`{}`: {} numbers written plainly{}.",
        "unit": ", the unit {} is gone from the cells: put it into the column's name",
        "date": "`{}`: {} dates written as year-month-day.",
        "order": "`{}`: day and month cannot be told apart ({}). Say the order: dmy or mdy.",
        "mixed": "`{}`: day-month and month-day are mixed ({}).",
        "style": "`{}`: decimal comma and decimal point are mixed ({}).",
        "money": "`{}`: several currencies ({}); nothing was converted.",
        "odd": "`{}`: {} values do not fit the others: {}.",
        "alike": "`{}`: perhaps the same: {}.",
        "key": "{} rows share a key that should be unique: {}.",
        "formula": "`{}`: {} cells begin with = + - or @ and could run in a spreadsheet: {}.",
        "row": "row {}",
    },
    "zh": {
        "title": "# 清洗报告",
        "size": "读入 {} 行、{} 列，写出 {} 行。",
        "done": "## 已修改",
        "open": "## 保持原样，需要人来决定",
        "nothing": "无。",
        "headers": "整理了列名：{}。",
        "spaces": "`{}`：整理了 {} 个单元格中的空格和不可见字符。",
        "missing": "`{}`：{} 个只表示“缺失”的单元格改为空。",
        "mapped": "`{}`：按方案替换了 {} 个值。",
        "empty": "删除 {} 个空行：{}。",
        "double": "删除 {} 个完全重复的行：{}。",
        "number": "`{}`：{} 个数字改为普通写法{}。",
        "unit": "，单元格中已去掉单位 {}，请写到列名里",
        "date": "`{}`：{} 个日期改为“年-月-日”。",
        "order": "`{}`：分不清日和月（{}）。请说明顺序：dmy 或 mdy。",
        "mixed": "`{}`：日-月与月-日两种写法混用（{}）。",
        "style": "`{}`：小数点和小数逗号混用（{}）。",
        "money": "`{}`：有多种货币（{}），没有转换。",
        "odd": "`{}`：{} 个值与其他值不一致：{}。",
        "alike": "`{}`：可能是同一个值：{}。",
        "key": "{} 行的键重复，而键应当唯一：{}。",
        "formula": "`{}`：{} 个单元格以 = + - @ 开头，可能被电子表格执行：{}。",
        "row": "第 {} 行",
    },
}


def tidy(text: str) -> str:
    """Return text without invisible characters, with single plain spaces."""
    return re.sub(r"[\s\u00a0\u3000]+", " ", re.sub("[\u200b-\u200d\u2060\ufeff]", "", text)).strip()


def plain(text: str) -> str:
    """Return text with full-width digits, letters and signs as half-width ones."""
    return unicodedata.normalize("NFKC", text)


def headers(names: list[str]) -> list[str]:
    """Return tidy names in the same order, none empty, none twice."""
    made: list[str] = []
    for place, name in enumerate(names, 1):
        wanted = tidy(name) or f"column_{place}"
        count = 1
        unique = wanted
        while unique in made:
            count += 1
            unique = f"{wanted}_{count}"
        made.append(unique)
    return made


def number_parts(value: str) -> tuple[str, str, int] | None:
    """Return sign and digits (with their separators), the currency and the factor of a number; None: it is none."""
    text = plain(value)
    money = re.findall(MONEY, text)
    text = re.sub(r"\s+", "", re.sub(MONEY, "", text))
    factor = 1
    if text[-1:] in UNITS:
        factor = UNITS[text[-1]]
        text = text[:-1]
    if text[:1] == "(" and text[-1:] == ")":
        text = "-" + text[1:-1]
    text = text.replace("−", "-").removeprefix("+")
    if not re.fullmatch(r"-?\d[\d.,']*", text) or not text[-1].isdigit():
        return None
    return text, "".join(money).replace("￥", "¥"), factor


def decimal_sign(digits: list[str]) -> str:
    """Return what separates decimals in a column: "." or ",", or "" if both kinds are there."""
    comma = [d for d in digits if re.search(r",\d{1,2}$|,\d{4,}$|\.\d{3},|\.\d{3}\.\d{3}", d)]
    point = [d for d in digits if re.search(r"\.\d{1,2}$|\.\d{4,}$|,\d{3}\.|,\d{3},\d{3}", d)]
    if comma and point:
        return ""
    return "," if comma else "."


def as_number(digits: str, factor: int, sign: str) -> str | None:
    """Return the number plainly: no grouping, a decimal point, no exponent; None: its grouping is wrong."""
    group = "[.']" if sign == "," else "[,']"
    whole, _, rest = digits.partition(sign)
    if not re.fullmatch(rf"-?(\d+|\d{{1,3}}({group}\d{{3}})+)", whole) or (rest and not rest.isdigit()):
        return None
    text = re.sub(group, "", whole) + ("." + rest if rest else "")
    if factor == 1:
        return text
    scaled = format(Decimal(text) * factor, "f")
    return scaled.rstrip("0").rstrip(".") if "." in scaled else scaled


def date_parts(value: str) -> tuple[str, int, int, int, str] | None:
    """Return how a date is written (ymd or two), its three numbers in their order, and its time; None: no date.

    "two" stands for two numbers of which either may be the day, then the year.
    """
    text = plain(value).replace(",", " ")
    clock = re.search(r"[ T](\d{1,2}:\d{2}(?::\d{2})?)$", text)
    time = (" " + clock[1].zfill(5)) if clock else ""
    text = (text[: clock.start()] if clock else text).strip()
    found = re.fullmatch(r"(\d{4})\s*[-/.年]\s*(\d{1,2})\s*[-/.月]\s*(\d{1,2})\s*日?", text)
    if found:
        return "ymd", int(found[1]), int(found[2]), int(found[3]), time
    found = re.fullmatch(r"(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})", text)
    if found:
        return "two", int(found[1]), int(found[2]), int(found[3]), time
    words = re.split(r"[\s.-]+", text.lower())
    month = [w for w in words if w[:3] in MONTHS and w.isalpha()]
    rest = [re.sub(r"(st|nd|rd|th)$", "", w) for w in words if w not in month]
    if len(month) == 1 and len(rest) == 2 and rest[0].isdigit() and re.fullmatch(r"\d{4}", rest[1]):
        return "ymd", int(rest[1]), MONTHS.index(month[0][:3]) + 1, int(rest[0]), time
    return None


def as_date(parts: tuple[str, int, int, int, str], order: str) -> str | None:
    """Return year-month-day with the time, if any; None: there is no such day."""
    how, first, second, third, time = parts
    if how == "ymd":
        year, month, day = first, second, third
    else:
        year = third
        day, month = (first, second) if order == "dmy" else (second, first)
    try:
        return date(year, month, day).isoformat() + time
    except ValueError:
        return None


def date_order(parts: list[tuple[str, int, int, int, str]]) -> str:
    """Return dmy or mdy, as the values of a column show; mixed; or "" if they do not show it."""
    two = [p for p in parts if p[0] == "two"]
    day_first = [p for p in two if p[1] > 12]
    month_first = [p for p in two if p[2] > 12]
    if day_first and month_first:
        return "mixed"
    if day_first or not two:
        return "dmy"
    if month_first:
        return "mdy"
    return "dmy" if all(p[1] == p[2] for p in two) else ""


class Notes:
    """What was done and what is open, as sentences in one language."""

    def __init__(self, lang: str) -> None:
        self.words = WORDS["zh" if lang == "zh" else "en"]
        self.comma = "、" if lang == "zh" else ", "
        self.done: list[str] = []
        self.open: list[str] = []

    def did(self, kind: str, *values: object) -> None:
        self.done.append(self.words[kind].format(*values))

    def ask(self, kind: str, *values: object) -> None:
        self.open.append(self.words[kind].format(*values))

    def some(self, values: list[str]) -> str:
        """Return the first five of the values."""
        return self.comma.join(values[:5]) + (" …" if len(values) > 5 else "")

    def lines(self, numbers: list[int]) -> str:
        return self.some([self.words["row"].format(n) for n in numbers])


def numbers_of(name: str, cells: dict[int, str], notes: Notes, forced: bool) -> dict[int, str]:
    """Return the new text of those cells of a column (by row) that are numbers; nothing if it is no number column."""
    found = {row: parts for row, text in cells.items() if (parts := number_parts(text))}
    if len(found) < len(cells) * MOST and not forced:
        return {}
    units = sorted({parts[1] for parts in found.values() if parts[1]})
    if len(units) > 1:
        notes.ask("money", name, notes.some(units))
        return {}
    sign = decimal_sign([parts[0] for parts in found.values()])
    if not sign:
        notes.ask("style", name, notes.some(list(cells.values())))
        return {}
    made = {row: text for row, parts in found.items() if (text := as_number(parts[0], parts[2], sign)) is not None}
    if len(made) < len(cells) and not forced:
        odd = [f"{notes.lines([row])} “{text}”" for row, text in cells.items() if row not in made]
        notes.ask("odd", name, len(odd), notes.some(odd))
        return {}
    if any(made[row] != cells[row] for row in made):
        count = len([row for row in made if made[row] != cells[row]])
        notes.did("number", name, count, notes.words["unit"].format(units[0]) if units else "")
    return made


def dates_of(name: str, cells: dict[int, str], notes: Notes, order: str, forced: bool) -> dict[int, str]:
    """Return the new text of those cells of a column (by row) that are dates; nothing if it is no date column."""
    found = {row: parts for row, text in cells.items() if (parts := date_parts(text))}
    if not found or (len(found) < len(cells) * MOST and not forced):
        return {}
    order = order or date_order(list(found.values()))
    if order in ("", "mixed"):
        two = [cells[row] for row, parts in found.items() if parts[0] == "two"]
        notes.ask("mixed" if order else "order", name, notes.some(two))
        return {}
    made = {row: text for row, parts in found.items() if (text := as_date(parts, order)) is not None}
    odd = [f"{notes.lines([row])} “{text}”" for row, text in cells.items() if row not in made]
    if odd:
        notes.ask("odd", name, len(odd), notes.some(odd))
        if not forced:
            return {}
    count = len([row for row in made if made[row] != cells[row]])
    if count:
        notes.did("date", name, count)
    return made


def is_code(name: str, values: list[str]) -> bool:
    """Whether a column holds numbers that count nothing: their zeros and their length matter."""
    return bool(re.search(CODES, name)) or any(re.fullmatch(r"0\d+|\d{12,}", plain(v)) for v in values)


def clean_column(name: str, rows: list[dict[str, str]], wish: dict, missing: tuple[str, ...], notes: Notes) -> None:
    """Clean one column of the rows in place."""
    spaces = blanks = mapped = 0
    for row in rows:
        text = tidy(row[name])
        spaces += text != row[name]
        if text and text.lower() in missing:
            text = ""
            blanks += 1
        swap = wish.get("map", {}).get(text, text)
        mapped += swap != text
        row[name] = swap
    for kind, count in (("spaces", spaces), ("missing", blanks), ("mapped", mapped)):
        if count:
            notes.did(kind, name, count)
    cells = {place: row[name] for place, row in enumerate(rows, 2) if row[name]}
    kind = wish.get("type", "text" if is_code(name, list(cells.values())) else "")
    made: dict[int, str] = {}
    if cells and kind in ("", "date"):
        made = dates_of(name, cells, notes, wish.get("order", ""), kind == "date")
    if cells and not made and kind in ("", "number"):
        made = numbers_of(name, cells, notes, kind == "number")
    for place, text in made.items():
        rows[place - 2][name] = text
    if not made:
        look_at_text(name, {place: row[name] for place, row in enumerate(rows, 2) if row[name]}, notes)


def look_at_text(name: str, cells: dict[int, str], notes: Notes) -> None:
    """Report values that differ in case or width only, and cells that a spreadsheet would take for a formula."""
    forms: dict[str, list[str]] = {}
    for text in cells.values():
        same = forms.setdefault(plain(text).casefold().replace(" ", ""), [])
        if text not in same:
            same.append(text)
    alike = [" = ".join(same) for same in forms.values() if len(same) > 1]
    if alike:
        notes.ask("alike", name, notes.some(alike))
    risky = [place for place, text in cells.items() if text[0] in "=+-@" and not number_parts(text)]
    if risky:
        notes.ask("formula", name, len(risky), notes.lines(risky))


def drop_rows(names: list[str], rows: list[dict[str, str]], key: list[str], notes: Notes) -> list[dict[str, str]]:
    """Return the rows without empty ones and exact repeats; report keys that are there twice."""
    kept: list[dict[str, str]] = []
    empty: list[int] = []
    double: list[int] = []
    seen: dict[tuple[str, ...], int] = {}
    keys: dict[tuple[str, ...], list[int]] = {}
    for place, row in enumerate(rows, 2):
        values = tuple(row[name] for name in names)
        if not any(values):
            empty.append(place)
        elif values in seen:
            double.append(place)
        else:
            seen[values] = place
            kept.append(row)
            if key:
                keys.setdefault(tuple(row[name] for name in key), []).append(place)
    if empty:
        notes.did("empty", len(empty), notes.lines(empty))
    if double:
        notes.did("double", len(double), notes.lines(double))
    clash = [place for places in keys.values() if len(places) > 1 for place in places]
    if clash:
        notes.ask("key", len(clash), notes.lines(clash))
    return kept


def csv_text(names: list[str], rows: list[dict[str, str]]) -> str:
    """Return the table as CSV: commas, quotes only where they are needed, one line feed per row."""
    lines = [names] + [[row[name] for name in names] for row in rows]
    return "".join(",".join(quoted(cell) for cell in line) + "\n" for line in lines)


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if re.search(r'[",\r\n]', cell) else cell


def clean(path: str, out: str, plan: dict | None = None, lang: str = "en") -> str:
    """Clean the table at path, write it to out as CSV, and return a report in Markdown (lang: en or zh)."""
    plan = plan or {}
    notes = Notes(lang)
    raw = read_table(path)
    old = [str(name) for name in raw[0]] if raw else []
    names = headers(old)
    rows = [
        {new: "" if row.get(was) is None else str(row[was]) for was, new in zip(old, names, strict=True)} for row in raw
    ]
    renamed = [f"“{was}” → `{new}`" for was, new in zip(old, names, strict=True) if was != new]
    if renamed:
        notes.did("headers", notes.some(renamed))
    missing = tuple(word.lower() for word in (*MISSING, *plan.get("missing", ())))
    for name in names:
        clean_column(name, rows, plan.get("columns", {}).get(name, {}), missing, notes)
    kept = drop_rows(names, rows, plan.get("key", []), notes)
    write_text(out, csv_text(names, kept))
    words = notes.words
    return "\n".join(
        [words["title"], "", words["size"].format(len(raw), len(names), len(kept)), "", words["done"], ""]
        + [f"- {line}" for line in notes.done or [words["nothing"]]]
        + ["", words["open"], ""]
        + [f"- {line}" for line in notes.open or [words["nothing"]]]
    )
