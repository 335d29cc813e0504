"""What the page says about steps."""

from django.utils.translation import override

from workbench.wording import tool_note


def test_the_place_that_was_read_is_told_in_the_persons_language() -> None:
    def note(anchor: str) -> str:
        return tool_note("read_artifact", f"a.md, {anchor}", {"anchor": anchor})

    with override("en"):
        assert note("page 3") == "page 3"
        assert note("lines 1-40") == "lines 1–40"
        assert note('lines 4-9, under "Costs"') == "lines 4–9, under “Costs”"
    with override("zh-hans"):
        assert note("pages 2-3") == "第 2–3 页"
        assert note("line 7") == "第 7 行"
        assert note('lines 4-9, under "费用"') == "第 4–9 行，“费用”一节"


def test_what_other_tools_say_stands_as_it_is() -> None:
    assert tool_note("search", "3 hits", {"anchor": "page 3"}) == "3 hits"
    assert tool_note("read_artifact", "2 files", {}) == "2 files"
    assert tool_note("read_artifact", "a.bin, byte 4", {"anchor": "byte 4"}) == "a.bin, byte 4"
