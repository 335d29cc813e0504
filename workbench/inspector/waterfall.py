"""Where the bars of a run's waterfall stand: times in, pixels out. Pure.

Labels are an HTML list beside the drawing, with rows of the same height; the table behind has the same numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from workbench import wording
from workbench.contextwords import number
from workbench.inspector import words as inspectorwords

ROW: Final = 32
HEAD: Final = 32
WIDTH: Final = 690
LEFT: Final = 12
RIGHT: Final = 214  # for the words behind the last bar
LEAST_WIDTH: Final = 3.0
MOST_TICKS: Final = 8
STEPS_S: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600)
NOTE_CHARS: Final = 34


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What took time. kind: run, model, tool or job; start_s: after the run began; seconds: None = it goes on.

    first_s: until the first token of a model call, of `seconds`; None = none came. call: id of the model call to open.
    depth: of its label. failed: it ended with an error. note: what stands behind the bar. words: of its kind.
    """

    kind: str
    name: str
    words: str
    start_s: float
    seconds: float | None
    note: str = ""
    first_s: float | None = None
    call: str = ""
    depth: int = 1
    icon: str = "code"
    failed: bool = False
    current: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One piece of a row. kind: run, wait, model, tool, job or fail. x, width: in pixels, as SVG writes them."""

    kind: str
    x: str
    width: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the waterfall. band, bar, text: its places from above, in pixels. start, time: for the table."""

    span: Span
    bars: tuple[Bar, ...]
    band_y: int
    bar_y: int
    text_y: int
    text_x: str
    text: str
    start: str
    time: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    x: str
    label_x: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waterfall:
    """A drawing of rows, to be drawn at one unit per pixel."""

    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]
    width: int
    height: int


def draw(spans: Sequence[Span], total_s: float) -> Waterfall:
    """Return the drawing of the spans, in their order. total_s: what the width stands for; what lies beyond is cut."""
    total_s = max(total_s, 0.001)
    scale = (WIDTH - LEFT - RIGHT) / total_s
    step = next((s for s in STEPS_S if total_s / s <= MOST_TICKS), STEPS_S[-1])
    ticks = []
    for n in range(min(int(total_s / step), 10 * MOST_TICKS) + 1):
        x = LEFT + n * step * scale
        ticks.append(Tick(x=_px(x), label_x=_px(x + 4), label=_tick(n * step)))
    rows = tuple(_row(span, place, scale, total_s) for place, span in enumerate(spans))
    return Waterfall(rows=rows, ticks=tuple(ticks), width=WIDTH, height=HEAD + ROW * len(rows))


def _row(span: Span, place: int, scale: float, total_s: float) -> Row:
    top = HEAD + ROW * place
    start = min(max(span.start_s, 0.0), total_s)
    seconds = total_s - start if span.seconds is None else max(span.seconds, 0.0)
    end = min(start + seconds, total_s)
    x, width = LEFT + start * scale, max((end - start) * scale, LEAST_WIDTH)
    bars = _bars(span, x, width, scale)
    time = "" if span.seconds is None else inspectorwords.duration(span.seconds * 1000)
    text = inspectorwords.listed(time, _cut(span.note))
    return Row(
        span=span,
        bars=bars,
        band_y=top,
        bar_y=top + (11 if span.kind == "run" else 9),
        text_y=top + 20,
        text_x=_px(x + width + 6),
        text=text,
        start=inspectorwords.duration(span.start_s * 1000),
        time=time,
    )


def _bars(span: Span, x: float, width: float, scale: float) -> tuple[Bar, ...]:
    if span.failed and span.kind != "run":
        return (Bar(kind="fail", x=_px(x), width=_px(width)),)
    if span.kind == "model" and span.first_s is not None:
        waited = min(max(span.first_s, 0.0) * scale, width)
        return (
            Bar(kind="wait", x=_px(x), width=_px(waited)),
            Bar(kind="model", x=_px(x + waited), width=_px(width - waited)),
        )
    return (Bar(kind="wait" if span.kind == "model" else span.kind, x=_px(x), width=_px(width)),)


def _cut(text: str) -> str:
    return text if len(text) <= NOTE_CHARS else text[: NOTE_CHARS - 1].rstrip() + "…"


def _tick(seconds: float) -> str:
    shown = number(int(seconds)) if seconds == int(seconds) else f"{seconds:.2f}".rstrip("0")
    return wording.run_words()["seconds"].format(n=shown)


def _px(value: float) -> str:
    return f"{value:.1f}"
