"""Charts as SVG, drawn from rows: lines, bars, points, a pie. Standard library only: it also runs inside a sandbox.

The first column of the rows is the label (in a scatter the number across), the others are numbers, a series each.
"""

from __future__ import annotations

import math
from html import escape

TYPE_CHECKING = False
if TYPE_CHECKING:  # inside a sandbox it would take as long to import as all the rest
    from typing import Any

KINDS = ("line", "bar", "scatter", "pie")
MOST_ROWS, MOST_SERIES, MOST_SLICES = 2_000, 8, 12
WIDTH, HEIGHT = 760, 460
LEFT, RIGHT, TOP, BOTTOM = 76, 24, 84, 96
MOST_CHARS = 200  # of a label, a name, the title
SMALLEST = 1e-290  # nearer to nothing there is no room for steps
SLANTED = 106  # pixels of a label that does not fit level
FONT = (
    "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', "
    "'Hiragino Sans', 'Source Han Sans SC', sans-serif"
)
# Okabe and Ito's, darkened where they were too light on white: told apart also by the colour-blind
COLOURS = ("#0b6aa8", "#c4510a", "#007f5c", "#a8467f", "#8a6d00", "#3a8fc7", "#5b5b5b", "#7a3fb0")
INK, SOFT, GRID = "#1f2328", "#59636e", "#d9dee3"
STEPS = (1, 2, 2.5, 5, 10)


def svg(kind: str, rows: list[dict[str, Any]], title: str = "") -> str:
    """Return the drawing. A value that is missing (None, "") is a gap. Raises ValueError, TypeError."""
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {kind!r}.")
    label, names, labels, values = _read(kind, rows)
    title = _words(title) or f"{', '.join(names)} / {label}"
    if kind == "pie":
        body = _pie(labels, values[0])
    elif kind == "scatter":
        body = _scatter(label, names, labels, values)
    else:
        body = _columns(kind, label, names, labels, values)
    legend = _legend(names, "line" if kind == "line" else "") if len(names) > 1 else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" aria-labelledby="title desc" font-family="{escape(FONT)}" font-size="12" fill="{INK}">'
        f'<title id="title">{escape(title)}</title><desc id="desc">{escape(_told(kind, label, names, labels, values))}'
        f'</desc><rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>{_heading(title)}{legend}{body}</svg>\n'
    )


def file_name(title: str) -> str:
    """Return where a chart of this title is kept if its path is not said."""
    kept = "".join(c if c.isalnum() else "-" for c in title.lower()).strip("-")[:60]
    return f"out/{kept or 'chart'}.svg"


def _read(kind: str, rows: Any) -> tuple[str, list[str], list[Any], list[list[float | None]]]:
    """Return the label's column, the names of the series, the labels, and each series' values."""
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) and row for row in rows):
        raise ValueError("data must be a list of rows, each a dict of columns; it has at least one.")
    if len(rows) > MOST_ROWS:
        raise ValueError(f"{len(rows)} rows are too many to draw; at most {MOST_ROWS}. Put some together first.")
    label, *names = map(_words, rows[0])
    if not names:
        raise ValueError("data needs a column of labels and at least one of numbers.")
    if len(names) > MOST_SERIES:
        raise ValueError(f"{len(names)} series are too many to tell apart; at most {MOST_SERIES}.")
    keys = list(rows[0])
    values = [[_number(row.get(key), key) for row in rows] for key in keys[1:]]
    if not any(value is not None for series in values for value in series):
        raise ValueError("There is no number to draw.")
    labels: list[Any] = [row.get(keys[0]) for row in rows]
    labels = [_number(value, label) for value in labels] if kind == "scatter" else [*map(_label, labels)]
    if kind == "scatter":
        if all(value is None for value in labels):
            raise ValueError(f'"{label}" has no number: in a scatter the first column is the one across.')
    if kind == "pie":
        labels, values, names = *_slices(labels, values), names[:1]
    return label, names, labels, values


def _words(value: Any) -> str:
    """Return what is drawn as text, without the characters that no XML may have."""
    text = value[:MOST_CHARS] if isinstance(value, str) else str(value)[:MOST_CHARS]
    return "".join(c for c in text if c >= " " and c not in "\ufffe\uffff" and not "\ud800" <= c <= "\udfff")


def _label(value: Any) -> str | None:
    return None if value is None else _words(value)


def _slices(labels: list[Any], values: list[list[float | None]]) -> tuple[list[Any], list[list[float | None]]]:
    if len(values) > 1:
        raise ValueError("A pie shows one series; draw bars instead.")
    if any(value is not None and value < 0 for value in values[0]):
        raise ValueError("A pie cannot show negative numbers; draw bars instead.")
    if len(labels) > MOST_SLICES:
        raise ValueError(f"{len(labels)} parts are too many for a pie; at most {MOST_SLICES}.")
    if not sum(value or 0 for value in values[0]) > 0:
        raise ValueError("The parts of this pie add up to nothing.")
    return labels, values


def _number(value: Any, column: Any) -> float | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    try:
        number = float(value.replace(",", "").replace("\u2212", "-") if isinstance(value, str) else value)
    except OverflowError:
        raise ValueError(f"A number in column {str(column)[:40]!r} is too large to draw.") from None
    except (TypeError, ValueError):
        raise ValueError(f"{str(value)[:40]!r} in column {str(column)!r} is no number.") from None
    if math.isnan(number):
        return None
    if math.isinf(number) or abs(number) > 1e300:
        raise ValueError(f"{number} in column {str(column)!r} is too large to draw.")
    return number if abs(number) >= SMALLEST else 0.0


# Scales


def _ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers at equal steps that begin at or below low and end at or above high."""
    if low == high:
        low, high = (low - abs(low) / 2 or -1.0, high + abs(high) / 2 or 1.0) if low else (0.0, 1.0)
    rough = (high - low) / max(1, most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in STEPS if power * factor >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [n * step for n in range(first, last + 1)]


def _said(value: float, step: float = 0.0) -> str:
    """Return a number as it stands at an axis: thousands apart, no more decimals than its neighbours need."""
    if value and (abs(value) >= 1e15 or abs(value) < 1e-6):
        return f"{value:.3g}"
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step else 2
    if step and abs(round(step, decimals) - step) > step * 1e-6:
        decimals += 1
    text = f"{value:,.{min(decimals, 6)}f}"
    text = text.rstrip("0").rstrip(".") if not step and "." in text else text
    return text if text != "-0" else "0"


def _wide(text: str) -> float:
    """Return about how many pixels a text of 12 px takes: a Chinese character twice a Latin one."""
    return sum(12.0 if ord(c) >= 0x2E80 else 6.6 for c in text)


def _cut(text: str, room: float) -> str:
    """Return the text, shortened in the middle: ends tell labels apart as often as beginnings."""
    if _wide(text) <= room:
        return text
    kept = len(text)
    while kept > 1 and _wide(text[: kept - kept // 3] + text[len(text) - kept // 3 :]) + 10 > room:
        kept -= 1
    return f"{text[: kept - kept // 3]}…{text[len(text) - kept // 3 :]}"


# Parts


def _text(x: float, y: float, words: object, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(str(words))}</text>'


def _heading(title: str) -> str:
    return _text(LEFT, 30, _cut(title, (WIDTH - LEFT - RIGHT) * 0.72), "start", ' font-size="16" font-weight="600"')


def _legend(names: list[str], kind: str) -> str:
    parts, x = [], float(LEFT)
    room = (WIDTH - LEFT - RIGHT) / len(names)
    for place, name in enumerate(names):
        shown = _cut(name, max(40.0, min(180.0, room - 26)))
        colour = COLOURS[place % len(COLOURS)]
        y, high = (49, 4) if kind == "line" else (46, 10)
        parts.append(f'<rect x="{x:.1f}" y="{y}" width="12" height="{high}" rx="2" fill="{colour}"/>')
        parts.append(_text(x + 17, 56, shown, "start"))
        x += 17 + _wide(shown) + 18
    return "".join(parts)


class _Across:
    """The vertical axis: ticks, and the height of a value."""

    def __init__(self, values: list[list[float | None]], *, zero: bool) -> None:
        flat = [value for series in values for value in series if value is not None]
        low, high = min(flat), max(flat)
        near = 0 <= low < high * 0.5 or 0 >= high > low * 0.5
        if zero or near:
            low, high = min(low, 0.0), max(high, 0.0)
        self.ticks = _ticks(low, high)
        self.low, self.high = self.ticks[0], self.ticks[-1]

    def place(self, value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - self.low) / (self.high - self.low))

    def drawn(self) -> str:
        step = self.ticks[1] - self.ticks[0]
        parts = []
        for tick in self.ticks:
            y = self.place(tick)
            colour = SOFT if abs(tick) < step * 1e-6 else GRID
            parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}"/>')
            parts.append(_text(LEFT - 8, y + 4, _said(tick, step), "end", f' fill="{SOFT}"'))
        return "".join(parts)


def _columns(kind: str, label: str, names: list[str], labels: list[Any], values: list[list[float | None]]) -> str:
    axis = _Across(values, zero=kind == "bar")
    room = (WIDTH - LEFT - RIGHT) / len(labels)
    centres = [LEFT + room * (n + 0.5) for n in range(len(labels))]
    parts = [axis.drawn()]
    for place, series in enumerate(values):
        colour = COLOURS[place % len(COLOURS)]
        if kind == "line":
            parts.append(_line(axis, centres, series, colour, labels, names[place]))
        else:
            parts.append(_bars(axis, room, place, len(values), series, colour, labels, names[place]))
    below, y = _labels(labels, centres, room)
    parts += [below, _text((LEFT + WIDTH - RIGHT) / 2, y, label, more=f' fill="{SOFT}"')]
    if len(names) == 1:
        parts.append(_text(LEFT, TOP - 16, names[0], "start", f' fill="{SOFT}"'))
    return "".join(parts)


def _bars(  # noqa: PLR0913  # one bar's surroundings
    axis: _Across,
    room: float,
    place: int,
    count: int,
    series: list[float | None],
    colour: str,
    labels: list[Any],
    name: str,
) -> str:
    wide = min(room * 0.76 / count, 64.0)
    parts = []
    for n, value in enumerate(series):
        if value is None:
            continue
        top, foot = sorted((axis.place(value), axis.place(0.0)))
        x = LEFT + room * (n + 0.5) - wide * count / 2 + wide * place
        parts.append(
            f'<rect class="bar" x="{x:.1f}" y="{top:.1f}" width="{max(0.5, wide - 1):.1f}" height="{foot - top:.1f}" '
            f'fill="{colour}"><title>{escape(f"{labels[n]}, {name}: {_said(value)}")}</title></rect>'
        )
        if count == 1 and len(series) <= 12:
            y = top - 5 if value >= 0 else foot + 14
            parts.append(_text(x + wide / 2, y, _said(value), more=' font-size="11"'))
    return "".join(parts)


def _line(
    axis: _Across, centres: list[float], series: list[float | None], colour: str, labels: list[Any], name: str
) -> str:
    runs: list[list[tuple[float, float]]] = [[]]
    dots = []
    for n, value in enumerate(series):
        if value is None:
            runs.append([])
            continue
        x, y = centres[n], axis.place(value)
        runs[-1].append((x, y))
        if len(series) <= 60:
            told = escape(f"{labels[n]}, {name}: {_said(value)}")
            dots.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"><title>{told}</title></circle>')
    lines = [
        f'<polyline class="series" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in run)}" fill="none" '
        f'stroke="{colour}" stroke-width="2" stroke-linejoin="round" stroke-linecap="round"/>'
        for run in runs
        if len(run) > 1
    ]
    return "".join(lines + dots)


def _labels(labels: list[Any], centres: list[float], room: float) -> tuple[str, float]:
    """Return the labels below the axis, all if they fit level, else slanted, else some; and where room is left."""
    words = ["" if label is None else str(label) for label in labels]
    longest = max(map(_wide, words), default=0.0)
    y = HEIGHT - BOTTOM + 18
    if longest <= room - 6:
        return "".join(_text(x, y, word) for x, word in zip(centres, words, strict=True)), y + 26
    if room >= 16:
        slanted = [
            _text(x + 4, y - 4, _cut(word, SLANTED), "end", f' transform="rotate(-35 {x + 4:.1f} {y - 4:.1f})"')
            for x, word in zip(centres, words, strict=True)
        ]
        return "".join(slanted), HEIGHT - 10
    every = math.ceil(min(longest + 8, 90) / room)
    some = [_text(centres[n], y, _cut(words[n], every * room - 4)) for n in range(0, len(words), every)]
    return "".join(some), y + 26


def _scatter(label: str, names: list[str], across: list[Any], values: list[list[float | None]]) -> str:
    axis = _Across(values, zero=False)
    known = [x for x in across if x is not None]
    ticks = _ticks(min(known), max(known), 8)
    step = ticks[1] - ticks[0]
    wide = WIDTH - LEFT - RIGHT

    def place(x: float) -> float:
        return LEFT + wide * (x - ticks[0]) / (ticks[-1] - ticks[0])

    parts = [axis.drawn()]
    for tick in ticks:
        x = place(tick)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="{GRID}"/>')
        parts.append(_text(x, HEIGHT - BOTTOM + 18, _said(tick, step), more=f' fill="{SOFT}"'))
    for series, name, colour in zip(values, names, COLOURS, strict=False):
        parts += [
            f'<circle class="point" cx="{place(x):.1f}" cy="{axis.place(y):.1f}" r="4" fill="{colour}" '
            f'fill-opacity="0.75"><title>{escape(f"{_said(x)}, {name}: {_said(y)}")}</title></circle>'
            for x, y in zip(across, series, strict=True)
            if x is not None and y is not None
        ]
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 44, label, more=f' fill="{SOFT}"'))
    if len(names) == 1:
        parts.append(_text(LEFT, TOP - 16, names[0], "start", f' fill="{SOFT}"'))
    return "".join(parts)


def _pie(labels: list[Any], values: list[float | None]) -> str:
    total = sum(value or 0 for value in values)
    x0, y0, radius = WIDTH / 2, (HEIGHT + TOP - 24) / 2, 150
    parts, start = [], -math.pi / 2
    for place, (label, value) in enumerate(zip(labels, values, strict=True)):
        if not value:
            continue
        turn = 2 * math.pi * min(value / total, 0.999999)
        ends = [(x0 + radius * math.cos(a), y0 + radius * math.sin(a)) for a in (start, start + turn)]
        path = (
            f"M{x0:.1f},{y0:.1f} L{ends[0][0]:.2f},{ends[0][1]:.2f} "
            f"A{radius},{radius} 0 {int(turn > math.pi)} 1 {ends[1][0]:.2f},{ends[1][1]:.2f} Z"
        )
        said = f"{label} {value / total:.1%}"
        colour = COLOURS[place % len(COLOURS)]
        told = escape(f"{label}: {_said(value)} ({value / total:.1%})")
        shade = "" if place < len(COLOURS) else ' fill-opacity="0.6"'
        parts.append(
            f'<path class="slice" d="{path}" fill="{colour}"{shade} stroke="#fff"><title>{told}</title></path>'
        )
        middle = start + turn / 2
        side = math.cos(middle)
        parts.append(
            _text(
                x0 + (radius + 14) * side,
                y0 + (radius + 14) * math.sin(middle) + 4,
                _cut(said, 190),
                "start" if side >= 0 else "end",
            )
        )
        start += turn
    return "".join(parts)


def _told(kind: str, label: str, names: list[str], labels: list[Any], values: list[list[float | None]]) -> str:
    """Return what the chart shows in words, for whoever cannot see it."""
    parts = [f"{kind} chart, {len(labels)} points, by {label}."]
    for name, series in zip(names, values, strict=True):
        known = [(value, labels[n]) for n, value in enumerate(series) if value is not None]
        if known:
            low, high = min(known, key=lambda one: one[0]), max(known, key=lambda one: one[0])
            parts.append(f"{name}: lowest {_said(low[0])} ({low[1]}), highest {_said(high[0])} ({high[1]}).")
    return " ".join(parts)
