"""Which sentences the offline provider takes for an answer, and how it cuts a text into sentences and rows."""

import pytest

from agents.providers.offline.judging import judge
from agents.providers.offline.model import OfflineModel
from agents.providers.offline.results import excerpts_of
from agents.providers.offline.units import units_of, units_of_excerpts
from agents.runtime.context.words import CONTINUE
from agents.runtime.model import Message, ModelRequest, Role, TextChunk, TextPart, ToolCall, ToolSpec, text_message

PIER = """\
Opening
The pier opens on 2 May and closes at 21:00.
Tickets
A ticket costs 12 crowns. Children under six need none. Anna Lindh sells them.
The walk along the pier takes forty minutes; boats leave every hour.
"""
ZH_PIER = """\
# 码头

码头五月二日开放，晚上九点关闭。

门票每张十二元，由林安娜出售。栈道全程步行约四十分钟，游船每小时一班。
"""
LEASE = """\
# 合同

押金为两个月租金，合同终止后十五日内退还。

The deposit is three months' rent.
"""
TABLE = """\
# Boats

| Boat | Seats | Built |
|------|------:|-------|
| Svea | 40 | 1998 |
| Birka | 64 | 2011 |
"""
STOCK = """\
| Item | Quantity | Shelf |
|---|---|---|
| Screwdrivers | 340 | A-12 |
| Drills | 25 | B-03 |
"""
ZH_STOCK = """\
| 品名 | 数量 | 库位 |
|---|---|---|
| 螺丝刀 | 340 | A-12 |
| 电钻 | 25 | B-03 |
"""


@pytest.mark.parametrize(
    ("text", "question", "answer"),
    [
        (PIER, "When does the pier open?", "2 May"),
        (PIER, "How much is a ticket?", "12 crowns"),
        (PIER, "Who sells tickets?", "Anna Lindh"),
        (PIER, "How long does the walk take?", "forty minutes"),
        (PIER, "How often do boats leave?", "every hour"),
        (ZH_PIER, "码头什么时候开放？", "五月二日"),
        (ZH_PIER, "门票多少钱？", "十二元"),
        (ZH_PIER, "门票由谁出售？", "林安娜"),
        (ZH_PIER, "步行要多久？", "四十分钟"),
        (LEASE, "押金是多少？", "两个月租金"),
        (LEASE, "押金什么时候退还？", "十五日"),
        (LEASE, "How much is the deposit?", "three months' rent"),
        (TABLE, "How many seats does the Birka have?", "Seats: 64"),
        (TABLE, "When was the Svea built?", "Built: 1998"),
        (STOCK, "How many drills are there?", "Quantity: 25"),
        (ZH_STOCK, "电钻有多少个？", "数量: 25"),
        ("去年冷库泄漏制冷剂四十三公斤。", "冷库泄漏了多少制冷剂？", "四十三公斤"),
    ],
)
def test_a_sentence_that_holds_the_words_and_the_kind_answers(text: str, question: str, answer: str) -> None:
    judged = judge(units_of("pier.md", text), question)
    assert judged.answers
    assert answer in judged.passages[0].text


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (PIER, "How much is a ticket for the Svea?"),  # a name that is not there
        (PIER, "How many tickets were sold?"),  # a number, of something else
        (PIER, "What colour is the pier?"),  # what is asked of it is not there
        (PIER, "When was the pier built?"),
        (PIER, "How much does Anna Lindh earn?"),
        (ZH_PIER, "码头的设计师是谁？"),
        (ZH_PIER, "码头有多少个泊位？"),
        (ZH_PIER, "栈道是什么材料的？"),
        (TABLE, "How many seats does the Petrel have?"),
        (TABLE, "What is the length of the Svea?"),
        (STOCK, "How many saws are there?"),
        (ZH_STOCK, "扳手有多少个？"),
    ],
)
def test_words_in_common_alone_do_not_answer(text: str, question: str) -> None:
    assert not judge(units_of("pier.md", text), question).answers


def test_a_row_of_a_drawn_table_says_its_columns() -> None:
    rows = [unit.text for unit in units_of("boats.md", TABLE) if unit.row]
    assert rows == ["Boat: Svea; Seats: 40; Built: 1998", "Boat: Birka; Seats: 64; Built: 2011"]


def test_a_short_open_line_above_text_is_a_heading() -> None:
    assert [unit.text for unit in units_of("pier.txt", PIER) if unit.is_heading] == ["Opening", "Tickets"]


def test_a_clause_of_a_contract_is_text_and_its_title_a_heading() -> None:
    text = "第一章 总则\n\n第一条 租赁期为两年，自2026年3月1日起算。\n\n第二条 押金\n\n押金为九千元。\n"
    assert [(unit.text, unit.is_heading) for unit in units_of("合同.txt", text)] == [
        ("第一章 总则", True),
        ("第一条 租赁期为两年，自2026年3月1日起算。", False),
        ("第二条 押金", True),
        ("押金为九千元。", False),
    ]


def test_rows_of_a_cited_table_have_its_header_and_its_citation() -> None:
    text = (
        "1 passage from 1 of 1 document, best first:\n\n"
        "[[c:abcdef]] boats.csv (artifact://boats.csv@2), sheet Fleet, rows 1-3, Boat | Seats\n"
        "Boat,Seats\nSvea,40\n\n[A line that ends the result.]"
    )
    (unit,) = units_of_excerpts(excerpts_of(text))
    assert (unit.text, unit.cite, unit.document) == ("Boat: Svea; Seats: 40", "abcdef", "boats.csv")


async def test_an_answer_that_is_not_in_the_documents_goes_on_where_it_stopped() -> None:
    call = ToolCall(id="c1", name="search_knowledge", arguments='{"query": "colour pier"}')
    asked = (
        text_message(Role.USER, "What colour is the pier?"),
        Message(role=Role.ASSISTANT, tool_calls=(call,)),
        Message(
            role=Role.TOOL,
            parts=(TextPart(text="Nothing in 3 documents matches."),),
            tool_call_id="c1",
            name="search_knowledge",
        ),
    )
    tools = (ToolSpec(name="search_knowledge", description=""),)
    whole = await _text(ModelRequest(messages=asked, tools=tools))
    kept = whole.replace(" [[c:none]]", "")
    partial = (text_message(Role.ASSISTANT, kept[:40]), text_message(Role.USER, CONTINUE))
    assert await _text(ModelRequest(messages=(*asked, *partial), tools=tools)) == kept[40:]


async def _text(request: ModelRequest) -> str:
    return "".join([chunk.text async for chunk in OfflineModel().stream(request) if isinstance(chunk, TextChunk)])
