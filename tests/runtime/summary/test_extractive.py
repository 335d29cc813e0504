"""Summaries without a model: what stands in them, and what they leave alone."""

import json
from dataclasses import replace

from agents.runtime.events import ToolStatus
from agents.runtime.memorysummaries import MemorySummaries
from agents.runtime.policy import ContextPolicy
from agents.runtime.summaries import Summary
from agents.runtime.summary.extractive import ExtractiveSummarizer, shortened
from agents.runtime.summary.sentences import sentences
from agents.runtime.summary.templates import HEADINGS
from agents.runtime.summary.text import count_words
from tests.runtime.summary.cited import citation
from tests.runtime.summary.talks import LONG, LONG_ZH, POLICY, Desk, Talk, call

POLICY_500 = replace(POLICY, template="materials", summary_words=500)


async def summarised(talk: Talk, policy: ContextPolicy = POLICY_500, store: MemorySummaries | None = None) -> Summary:
    desk = Desk(policy=policy)
    made = await desk.update(talk, summarizer=ExtractiveSummarizer(), store=store or desk.store)
    assert made.advanced is not None, made.reason
    assert desk.calls == [] and made.report.call.mode == "extractive" and made.advanced.summarizer == "extractive"
    return made.advanced


def memo() -> Talk:
    talk = Talk()
    talk.begin("I need a memo on moving the Basel warehouse before the lease ends. Use only the library. " + LONG * 2)
    talk.answer("I look for the lease first.", call("c1", "search_knowledge", '{"query": "lease"}'))
    result = "lease.pdf p. 4\nThe lease ends on 30 June 2027. [[c:aaaaaa]]\n" + LONG * 10
    talk.result("c1", result, "search_knowledge", citations=(citation("aaaaaa"),))
    talk.answer(
        "The lease ends on 30 June 2027 [[c:aaaaaa]]. Notice must be given 12 months before.\n\n"
        "- Rent is CHF 412,000 per year.\n- It is not yet clear who pays for the move.\n\n" + LONG * 6
        + "\n\nWould you like a table?"
    )  # fmt: skip
    talk.end()
    talk.exchange(
        "No, the budget is CHF 1.2 million, not 1 million. We decided to keep the tone sober.",
        "Understood. I have updated the outline.",
    )
    talk.begin("Save the draft as memo.md")
    talk.answer("", call("c2", "save_artifact", '{"name": "memo.md"}'))
    talk.result("c2", "The name is taken.", "save_artifact", status=ToolStatus.ERROR)
    talk.answer("", call("c3", "run_shell", json.dumps({"command": "ls -l drafts"})))
    talk.result("c3", "memo.md\nexit status 0", "run_shell")
    talk.answer("The draft is saved as memo-v2.md. It recommends the move. " + LONG * 4)
    talk.end()
    talk.exchange("thanks", "You're welcome!")
    return talk


def under(text: str, heading: str) -> str:
    return text.partition(f"## {heading}\n")[2].partition("\n\n## ")[0]


async def test_the_headings_are_filled_with_what_was_said() -> None:
    text = (await summarised(memo())).text
    assert "moving the Basel warehouse" in under(text, "Topic and needs")
    facts = under(text, "Research points and conclusions")
    assert "- The lease ends on 30 June 2027 [[c:aaaaaa]]." in facts and "CHF 412,000" in facts
    assert "memo-v2.md" in under(text, "Materials used") and "ls -l drafts" in under(text, "Materials used")
    assert "save_artifact: The name is taken." in under(text, "Errors and corrections")
    assert "saved as memo-v2.md" in under(text, "Confirmed")
    statement = "No, the budget is CHF 1.2 million, not 1 million. We decided to keep the tone sober."
    assert f"- {statement}" in under(text, "User statements")
    assert "not yet clear who pays" in under(text, "Open questions")
    assert "Save the draft as memo.md" in under(text, "Next step")
    assert "search_knowledge ×1" in under(text, "Feedback, tools and procedure")
    assert "thanks" not in text and "welcome" not in text and "Would you like" not in text


async def test_citations_stay_with_their_sentences() -> None:
    summary = await summarised(memo())
    assert [c.id for c in summary.citations] == ["aaaaaa"]


async def test_counts_of_hits_and_words_that_only_lead_to_a_quotation_are_no_points() -> None:
    talk = Talk()
    talk.begin("What does a mooring cost? " + LONG * 2)
    talk.answer("", call("c1", "search_knowledge", '{"query": "mooring"}'))
    talk.result("c1", "2 passages from 1 of 2 documents, best first:\n" + LONG * 10, "search_knowledge")
    talk.answer(
        "This is what harbour.md says:\n\n> A mooring costs 900 crowns a year.\n\n港口.md 中是这样写的：\n\n" + LONG * 3
    )
    talk.end()
    text = (await summarised(talk)).text
    assert "A mooring costs 900 crowns a year." in text
    assert not any(lead in text for lead in ("best first", "harbour.md says", "这样写的"))


async def test_chinese_is_summarised_in_chinese() -> None:
    talk = Talk()
    talk.begin("请写一份云南咖啡出口的报告，截止日期是3月15日。" + LONG_ZH * 3)
    talk.answer("", call("c1", "search_knowledge"))
    talk.result("c1", "出口量为3.2万吨。" + LONG_ZH * 20, "search_knowledge")
    talk.answer("2025年出口量为3.2万吨，同比增长18%。物流成本的数据尚未找到。需要我继续查找吗？" + LONG_ZH * 6)
    talk.end()
    talk.exchange(
        "不对，主要买家应该是德国和美国。我们决定只写精品咖啡。",
        "好的。已更新提纲，并已保存为 report.md。" + LONG_ZH * 8,
    )
    text = (await summarised(talk)).text
    assert set(line[3:] for line in text.splitlines() if line.startswith("## ")) <= set(HEADINGS["materials"]["zh"])
    assert "2025年出口量为3.2万吨，同比增长18%。" in under(text, "研究要点与结论")
    assert "不对，主要买家应该是德国和美国。我们决定只写精品咖啡。" in text
    assert "尚未找到" in under(text, "未决问题") and "report.md" in under(text, "使用的材料")
    assert "需要我继续" not in text


async def test_the_next_summary_takes_the_one_before_apart_and_never_nests() -> None:
    talk, store = memo(), MemorySummaries()
    first = await summarised(talk, store=store)
    talk.exchange("Assume 0.95 for the euro. " + LONG * 3, "At 0.95 the savings are CHF 96,000 per year. " + LONG * 12)
    second = await summarised(talk, store=store)
    headings = [line for line in second.text.splitlines() if line.startswith("## ")]
    assert len(headings) == len(set(headings)) <= 10 and second.base == first.id
    assert "The lease ends on 30 June 2027 [[c:aaaaaa]]." in second.text and [c.id for c in second.citations] == [
        "aaaaaa"
    ]
    assert "CHF 96,000" in second.text and "We decided to keep the tone sober." in second.text
    assert "Assume 0.95" in under(second.text, "Next step") and "Save the draft" not in under(second.text, "Next step")
    assert "search_knowledge ×1" in second.text


async def test_a_summary_that_a_model_wrote_is_taken_over_as_it_is() -> None:
    talk, desk = (
        memo(),
        Desk("The person wants a memo. Rent is CHF 412,000.\n\n**Next step:**\n- Send it.", policy=POLICY_500),
    )
    await desk.update(talk)
    talk.exchange("Go on. " + LONG * 6, "More follows. " + LONG * 12)
    text = (await summarised(talk, store=desk.store)).text
    assert "The person wants a memo. Rent is CHF 412,000." in text and "Send it." not in text


async def test_the_limit_of_words_is_kept_for_both_languages_and_over_many_makings() -> None:
    for words, said in ((120, LONG), (200, LONG_ZH)):
        talk, store = Talk(), MemorySummaries()
        for i in range(12):
            talk.exchange(
                f"Item {i}: decided 第{i}项。" + said * 3, f"Result {i} is {i * 7}. 结果{i}为{i * 7}。" + said * 9
            )
            summary = await summarised(talk, replace(POLICY_500, summary_words=words, summary_least=0), store)
            assert count_words(summary.text) <= words
        assert "Item 11" in summary.text  # the newest is there, and so is what it began with
        assert "Item 0" in summary.text


async def test_the_same_conversation_gives_the_same_text() -> None:
    assert (await summarised(memo())).text == (await summarised(memo())).text


def test_sentences_keep_numbers_abbreviated_lists_and_markers_together() -> None:
    text = "It grew by 3.5 % [[c:aaaaaa]]. Next. [[c:bbbbbb]] Then:\n\n```\nx = 1.\n```\n"
    text += "1. First point\n2) Second point!\n| a | b |"
    assert sentences(text) == [
        "It grew by 3.5 % [[c:aaaaaa]].",
        "Next. [[c:bbbbbb]]",
        "Then:",
        "First point",
        "Second point!",
        "| a | b |",
    ]
    assert sentences("增长18%。[[c:aaaaaa]]其次，下降。") == ["增长18%。[[c:aaaaaa]]", "其次，下降。"]
    assert sentences("The outline has 1. Situation, 2. Options.") == ["The outline has 1. Situation, 2. Options."]


def test_a_long_statement_keeps_its_first_sentences_or_words() -> None:
    assert shortened("One two three. Four five six.", 4) == "One two three. [...]"
    assert shortened("one two three four five", 3) == "one two three [...]"
    assert shortened("一二三四五六七", 5) == "一二三四五 [...]"
    assert shortened("short", 5) == "short"
