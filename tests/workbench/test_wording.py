"""What the page says about steps."""

import re

import pytest
from django.utils.translation import override

from agents.providers.offline.asking import report_topic
from agents.providers.offline.intent import Intent, intent_of, note_asked
from agents.runtime.errors import ToolFailure
from agents.runtime.policy import MEMORY_TOOLS
from workbench import failurewords, wording
from workbench.wording import language, phase_name, run_over, tool_note, tool_sentence


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


def test_what_a_search_found_is_told_in_the_persons_language() -> None:
    def note(hits: int, documents: int) -> str:
        return tool_note("search_knowledge", "as the tool says it", {"hits": [{}] * hits, "documents": documents})

    with override("en"):
        assert (note(12, 4), note(1, 1), note(0, 0)) == (
            "12 passages from 4 documents",
            "1 passage from 1 document",
            "nothing found",
        )
        assert tool_note("list_documents", "x", {"documents": 2}) == "2 documents"
        assert tool_note("read_document", "x", {"anchor": "sheet Costs, rows 4-9"}) == "sheet “Costs”, rows 4–9"
    with override("zh-hans"):
        assert note(12, 4) == "12 段，来自 4 个文档"
        assert note(0, 0) == "没有找到"
        assert tool_note("read_document", "x", {"anchor": "pages 2-3"}) == "第 2–3 页"


def test_what_was_found_in_the_past_is_told_in_the_persons_language() -> None:
    data = {"hits": [{}] * 3, "conversations": 1}
    with override("en"):
        assert tool_note("session_search", "3 hits in 1 conversation", data) == "3 messages from 1 conversation"
        assert tool_note("session_search", "x", {"hits": [], "conversations": 0}) == "nothing found"
        assert tool_note("session_load", "user, 2026-03-01", {"count": 1}) == "1 message"
        assert tool_sentence("session_search", '{"query": "paint"}', "done") == (
            "Looked for ",
            "paint",
            " in earlier messages",
        )
        assert tool_sentence("session_load", '{"event_id": "e1"}', "running") == ("Reading an earlier message", "", "")
    with override("zh-hans"):
        assert tool_note("session_search", "x", data) == "3 条消息，来自 1 个对话"
        assert "".join(tool_sentence("session_search", '{"query": "预算"}', "running")) == "正在以前的消息中查找 预算"
        assert tool_sentence("session_load", "{}", "failed") == ("无法读取以前的消息", "", "")


def test_what_the_memory_tools_did_is_told_in_the_persons_language() -> None:
    with override("en"):
        assert tool_note("memory_search", "2 memories", {"count": 2}) == "2 memories"
        assert tool_note("memory_load", "1 memory", {"count": 1}) == "1 memory"
        assert tool_note("memory_search", "x", {"count": 0}) == "nothing found"
        assert tool_sentence("memory_add", '{"memory": "I like tea"}', "done") == ("Remembered ", "I like tea", "")
        assert "".join(tool_sentence("memory_delete", '{"memory_id": "m1"}', "done")) == "Deleted a memory"
    with override("zh-hans"):
        assert tool_note("memory_load", "12 memories", {"count": 12}) == "12 条记忆"
        assert "".join(tool_sentence("memory_search", '{"query": "茶"}', "running")) == "正在你的记忆中查找 茶"
        assert "".join(tool_sentence("memory_add", "{}", "failed")) == "没能记住一条内容"
        sentences = [
            "".join(tool_sentence(name, arguments, state))
            for name in MEMORY_TOOLS
            for arguments in ("{}", '{"memory": "x", "query": "x"}')
            for state in ("running", "done", "failed")
        ]
        assert [one for one in sentences if not re.search("记忆|记住", one)] == []


def test_what_other_tools_say_stands_as_it_is() -> None:
    assert tool_note("search", "3 hits", {"anchor": "page 3"}) == "3 hits"
    assert tool_note("read_artifact", "2 files", {}) == "2 files"
    assert tool_note("read_artifact", "a.bin, byte 4", {"anchor": "byte 4"}) == "a.bin, byte 4"


def test_every_way_a_tool_can_fail_is_worded_in_both_languages() -> None:
    with override("en"):
        english = failurewords.tool_failures()
    with override("zh-hans"):
        chinese = failurewords.tool_failures()
    assert english.keys() == chinese.keys() == set(ToolFailure)
    untranslated = [code for code in english if not re.search("[\u4e00-\u9fff]", chinese[code])]
    assert untranslated == []


def test_a_failed_step_is_told_in_the_persons_language_whatever_the_model_was_told() -> None:
    said = "Error: report.pdf has no text: its pages are pictures (a scan)."
    with override("zh-hans"):
        assert failurewords.tool_failure("file_scanned", said).startswith("它没有可读文字")
        assert failurewords.tool_failure("tool_failed", "Error: Closed.\nmore") == "工具说：Closed."
        assert failurewords.tool_failure("code_of_a_newer_version", "Closed.") == "工具说：Closed."
    with override("en"):
        assert failurewords.tool_failure("file_scanned", said).startswith("It has no text: its pages are pictures")


@pytest.mark.parametrize(
    ("text", "lang"),
    [
        ("The term 合同 means contract.", "en"),
        ("使用 PostgreSQL 和 Valkey 存储", "zh-CN"),
        ("看这段：`SELECT every single column FROM the table` ```and all of this code```", "zh-CN"),
        ("これは日本語です", ""),
        ("42 + 1 = 43", ""),
        ("", ""),
    ],
)
def test_language_of_a_text_is_told_by_its_script(text: str, lang: str) -> None:
    assert language(text) == lang


def test_step_that_failed_does_not_claim_to_have_read() -> None:
    arguments = '{"name": "a.md"}'
    said = {
        state: "".join(tool_sentence("read_artifact", arguments, state)) for state in ("done", "failed", "cancelled")
    }
    assert said == {"done": "Read a.md", "failed": "Could not read a.md", "cancelled": "Reading a.md"}
    assert "".join(tool_sentence("weather", "{}", "failed")) == "weather did not work"
    assert phase_name([("read_artifact", "failed")]) == "Worked on it"
    assert phase_name([("read_artifact", "failed"), ("read_artifact", "done")]) == "Read the files"


def test_run_of_no_time_is_told_without_a_number() -> None:
    assert run_over("done", 40, 0) == "Done"
    assert run_over("done", 40, 2) == "Done, 2 steps"
    assert run_over("done", 100, 2) == "Done in 0.1\u00a0s, 2 steps"
    assert run_over("stopped", 0, 3) == "Stopped by you"


@pytest.mark.parametrize("lang", ["en", "zh-hans"])
def test_starters_are_things_that_also_the_offline_model_understands(lang: str) -> None:
    with override(lang):
        summary, find, report, write = (starter.text for starter in wording.starters())
    assert intent_of(summary) is Intent.SUMMARY
    assert intent_of(f"{find}lighthouse 灯塔") is Intent.QUESTION
    assert report_topic(f"{report}lighthouse 灯塔") == "lighthouse 灯塔"
    written = note_asked(f"{write}Buy paint. 买油漆。")
    assert written is not None and written.content == "Buy paint. 买油漆。"
