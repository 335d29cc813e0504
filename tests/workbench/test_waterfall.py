"""Bars, parts and differences of the inspector, without a database."""

from django.utils import translation

from agents.runtime.session import PartRef
from workbench.inspector import parts as inspectedparts
from workbench.inspector import words as inspectorwords
from workbench.inspector.partdiff import MOST_COMPARED, difference
from workbench.inspector.waterfall import LEFT, RIGHT, WIDTH, Span, draw


def span(kind: str = "tool", start_s: float = 0.0, seconds: float | None = 1.0, **more: object) -> Span:
    return Span(kind=kind, name="x", words=kind, start_s=start_s, seconds=seconds, **more)  # type: ignore[arg-type]  # of one test


def part(ref: str, kind: str = "event", tokens: int = 10, tag: str = "", **params: object) -> PartRef:
    return PartRef(kind=kind, ref=ref, tokens=tokens, tag=tag, params=params)


def test_bars_stand_where_the_times_are() -> None:
    drawn = draw([span("run", 0, 10), span("model", 2, 4, first_s=1.0), span("tool", 6, 2), span(failed=True)], 10)
    scale = (WIDTH - LEFT - RIGHT) / 10
    run, model, tool, failed = (row.bars for row in drawn.rows)
    assert [bar.kind for bar in (*run, *model, *tool, *failed)] == ["run", "wait", "model", "tool", "fail"]
    assert float(model[0].x) == round(LEFT + 2 * scale, 1)
    assert float(model[1].x) == round(LEFT + 3 * scale, 1)
    assert float(model[1].width) == round(3 * scale, 1)
    assert drawn.height == 32 * 5
    assert [row.bar_y for row in drawn.rows] == [43, 73, 105, 137]


def test_what_is_short_late_or_goes_on_is_still_seen() -> None:
    drawn = draw([span("tool", 0, 0.0), span("job", 900, 5), span("model", 5, None)], 10)
    short, late, on = (row.bars[0] for row in drawn.rows)
    assert float(short.width) == 3
    assert float(late.x) == WIDTH - RIGHT
    assert (on.kind, float(on.x) + float(on.width)) == ("wait", WIDTH - RIGHT)
    assert 2 < len(drawn.ticks) <= 9
    assert len(draw([span()], 0).rows) == 1


def test_part_says_what_it_is_by_its_tag() -> None:
    found = [
        inspectedparts.tag_of(one)
        for one in (
            part("a", "system"),
            part("a", "tools"),
            part("a", "block", tag="memory"),
            part("a", "block", tag="recall"),
            part("a", "summary"),
            part("a", tag="user"),
            part("a", tag="tool"),
            part("a", tag="tool", restored="call"),
            part("a", "placeholder", tag="tool", restored="tail"),
            part("a", "context", tag="open"),
            part("a", "instruction", tag="tail"),
            part("a", "dropped", tag="user", was="event"),
        )
    ]
    assert found == [
        "system", "tools", "memory", "recall", "summary", "history", "results", "restored", "placeholder", "open",
        "system", "dropped",
    ]  # fmt: skip
    assert set(found) <= set(inspectorwords.tags())


def test_difference_names_what_came_what_went_and_what_changed_its_form() -> None:
    old = [part("s1", "system", 5), part("a"), part("b", tag="tool", tokens=90), part("gone"), part("c")]
    new = [
        part("s2", "system", 7),
        part("a"),
        part("b", "placeholder", 12, "tool", why="earlier_request"),
        part("c", "dropped", was="event"),
        part("d", tokens=3),
    ]
    said = {"s1": "old words", "s2": "new words", "b": "long\n" * 700}
    found = difference(
        old, new, lambda p: said.get(p.ref, "x"), lambda p: "short" if p.ref == "b" else said.get(p.ref, "x")
    )
    assert [(c.op, c.part.ref, c.tokens) for c in found.changes] == [
        ("change", "s2", 2),
        ("change", "b", -78),
        ("change", "c", -10),
        ("add", "d", 3),
        ("del", "gone", -10),
    ]
    assert (found.same, found.shared, found.before, found.after) == (1, 0, 125, 32)
    system, result, left_out, *_ = (change.text for change in found.changes)
    assert system is not None and (system.added, system.removed) == (1, 1)
    assert result is not None and (result.removed_lines[0], result.more_removed) == ("long", 696)
    assert result.added_lines == ("short",)
    assert left_out is None


def test_same_thing_met_twice_is_matched_in_order_and_params_count() -> None:
    once = [part("x", "instruction", tag="continue"), part("a", calls=["1"])]
    twice = [part("x", "instruction", tag="continue"), part("a", calls=["1", "2"]), part("x", "instruction")]
    found = difference(once, twice, lambda p: "same", lambda p: "same")
    assert [(c.op, c.part.ref, c.text) for c in found.changes] == [("change", "a", None), ("add", "x", None)]
    assert (found.shared, found.shared_tokens) == (1, 10)


def test_only_some_texts_are_compared_word_by_word() -> None:
    old = [part(f"{n}") for n in range(MOST_COMPARED + 2)]
    new = [part(f"{n}", bare=True) for n in range(MOST_COMPARED + 2)]
    found = difference(old, new, lambda p: "一二三", lambda p: "一二四")
    closely = [bool(change.text and change.text.stretches) for change in found.changes]
    assert closely == [True] * MOST_COMPARED + [False] * 2


def test_times_and_shares_are_told_in_both_languages() -> None:
    assert inspectorwords.duration(42) == "42\u00a0ms"
    assert inspectorwords.duration(1_240) == "1.2\u00a0s"
    assert inspectorwords.usage(2_000, 1_500, 30) == "2,000 in, 30 out, 75\u00a0% cached"
    assert inspectorwords.usage(0, 0, 0) == ""
    assert inspectorwords.percent(1, 1_000) == "0.1\u00a0%"
    assert inspectorwords.signed(-1_204) == "−1,204"
    with translation.override("zh-hans"):
        assert inspectorwords.duration(42) == "42\u00a0毫秒"
        assert inspectorwords.usage(2_000, 1_500, 30) == "输入 2,000，输出 30，75% 来自缓存"
        assert not [word for word in inspectorwords.tags().values() if word.isascii()]
