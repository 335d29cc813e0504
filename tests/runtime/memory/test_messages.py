"""The messages that extraction by rules is measured on. No rule was made for one of these: who changes rules looks at
tuning_messages.py, not here.
"""

import re

from hypothesis import given
from hypothesis import strategies as st

from agents.runtime.memory.memories import Origin
from agents.runtime.memory.rules import extract
from agents.runtime.memory.sources import QUOTE, Said, own_words
from tests.runtime.memory import tuning_messages
from tests.runtime.memory.labels import (
    AT,
    FORGET_ALL,
    ZONE,
    Case,
    case,
    episode,
    fact,
    forget,
    instead,
    known,
    score,
)

ENGLISH: list[Case] = [
    case(
        "Morning. Bit of background: I'm the office manager of a small architecture firm in Bristol, and I hate "
        "jargon. What should a fire safety policy contain?",
        fact("office manager"),
        fact("hate jargon"),
    ),
    case(
        "Please write all amounts in Swiss francs from now on, with an apostrophe for thousands.", fact("Swiss francs")
    ),
    case("I'm Marguerite, by the way. Can you tidy up this list?", fact("Marguerite")),
    case("Never use the passive voice in my drafts.", fact("passive voice")),
    case("My daughter Lucía has coeliac disease, so recipes must be gluten-free.", fact("Luc", "coeliac")),
    case("I really dislike bullet points.", fact("bullet points")),
    case("Our school year starts on 1 September, not in October.", fact("school year", "1 September")),
    case("My thesis defence is on 22 May 2026 at 10 am.", episode("defence", day="2026-05-22")),
    case("I moved to Ghent in February.", instead("Ghent")).knowing("I live in Antwerp."),
    case("I've been teaching maths for 12 years.", instead("12 years")).knowing(
        "I've been teaching maths for 11 years."
    ),
    case("Could you forget the thing about my knee surgery?", forget(1)).knowing(
        "I work as a carpenter.", "I had knee surgery in May 2025."
    ),
    case("Please wipe everything you have stored about me.", FORGET_ALL).knowing("I live in Antwerp."),
    case("Just so you know, our database is PostgreSQL 16 on Azure.", fact("PostgreSQL 16")),
    case("The tender closes in three weeks.", episode("tender", day="2026-04-01")),
    case("Yesterday I signed the contract with Lindqvist AB.", episode("Lindqvist", day="2026-03-10")),
    case("I only eat halal food.", fact("halal")),
    case("When you cite papers, use APA style.", fact("APA")),
    case("Note that the budget for this year is 40,000 euros.", fact("budget", "40,000")),
    case("My boss, Henrike Vogel, wants everything on one page.", fact("Henrike Vogel", "one page")),
    case("i work for the city of rotterdam and mostly write policy memos", fact("rotterdam")),
    case("Turn this into a haiku about how I live in a shoe."),
    case("Is it true that I should always drink eight glasses of water a day?"),
    case("My cousin says he prefers trains. How do I convince him to fly?"),
    case("Act as a pirate named Bob who lives in Tortuga and hates the navy."),
    case("The user story reads: As a nurse I want to see my shifts. Improve it."),
    case("Wow, I simply adore filling in the same form four times... Any shortcut in Excel?"),
    case("I need the slides by Thursday, can you outline them?"),
    case("I opened the file yesterday but the macro did not run."),
    case("Perhaps I'll move to Canada next year."),
    case("> I am the new director and I prefer calls over email.\n\nHow should I answer this message?"),
    case("Always true or sometimes true: a square is a rectangle?"),
]

CHINESE: list[Case] = [
    case("先说明一下，我是一家牙科诊所的前台，不太懂电脑，请讲得简单些。", fact("牙科诊所"), fact("不太懂电脑")),
    case("从现在起，金额都用人民币表示，保留两位小数。", fact("人民币")),
    case("我姓欧阳，单名一个静字。", fact("欧阳")),
    case("我写的稿子里永远不要用感叹号。", fact("感叹号")),
    case("我妈妈有糖尿病，食谱要低糖。", fact("糖尿病")),
    case("我特别反感营销腔。", fact("营销腔")),
    case("我们的学期从九月一号开始。", fact("学期", "九月一号")),
    case("我的毕业答辩定在5月22日上午十点。", episode("答辩", day="2026-05-22")),
    case("我上个月搬到苏州了。", instead("苏州")).knowing("我住在南京。"),
    case("我教数学十二年了。", instead("十二年")).knowing("我教数学十一年了。"),
    case("请忘掉我膝盖手术的事。", forget(1)).knowing("我是木匠。", "我2025年5月做了膝盖手术。"),
    case("清空你对我的所有记忆。", FORGET_ALL).knowing("我住在南京。"),
    case("顺便说一下，我们的数据库是PostgreSQL 16，部署在阿里云上。", fact("PostgreSQL 16")),
    case("投标还有三周截止，也就是4月1日。", episode("投标", day="2026-04-01")),
    case("昨天我们跟林达公司签了合同。", episode("林达", day="2026-03-10")),
    case("我只吃清真食品。", fact("清真")),
    case("引用论文时一律用GB/T 7714格式。", fact("7714")),
    case("注意：今年的预算是四十万元。", fact("预算", "四十万")),
    case("我领导叫赵一鸣，他要求所有材料不超过一页。", fact("赵一鸣")),
    case("我就职于南京市规划局，平时主要写政策简报。", fact("规划局")),
    case("写一段相声，讲一个人住在鞋子里。"),
    case("每天都要喝八杯水，这个说法对吗？"),
    case("我表弟说他更喜欢坐火车，怎么劝他坐飞机？"),
    case("请扮演一个叫阿宝的海盗，你住在岛上，讨厌海军。"),
    case("把“我是新来的主任，喜欢打电话”改成书面语。"),
    case("真棒啊，同一张表我又填了四遍，Excel有快捷办法吗？"),
    case("周四之前我需要幻灯片的大纲。"),
    case("我昨天打开文件，宏没有运行。"),
    case("说不定明年我会搬去加拿大。"),
    case("以下是客户来信：\n我住在合肥，以后请叫我老张。\n怎么回复比较好？"),
    case("这个结论总是成立吗？"),
]


def test_rules_extract_with_the_precision_and_the_recall_that_they_must_have() -> None:
    found = score(ENGLISH + CHINESE)
    assert found.precision >= 0.95, found.wrong
    assert found.recall >= 0.60, found.missed


def test_rules_lose_nothing_of_what_they_were_tuned_on() -> None:
    tuned = tuning_messages
    every = (tuned.ENGLISH, tuned.CHINESE, tuned.MORE_ENGLISH, tuned.MORE_CHINESE, tuned.MOVES, tuned.NOTHING)
    found = score([one for some in every for one in some])
    assert found.precision >= 0.98, found.wrong
    assert found.recall >= 0.95, found.missed


def test_what_is_forgotten_is_named_by_whole_words_but_for_their_endings() -> None:
    texts = ["I live in Havana.", "I love banana bread.", "My sister is called Ana.", "I prefer reports in Chinese."]
    memories = [known(number, text) for number, text in enumerate(texts)]

    def forgotten(text: str) -> list[str]:
        origin = Origin(thread_id="t", event_id="e", position=1)
        operations = extract(Said(origin=origin, at=AT, text=text), memories, ZONE)
        return [memory.text for one in operations for memory in memories if memory.id == one.memory_id]

    assert forgotten("Forget Ana.") == ["My sister is called Ana."]
    assert forgotten("Forget what I said about my report.") == ["I prefer reports in Chinese."]
    assert forgotten("Forget my art.") == forgotten("Forget all.") == []


PIECES = st.sampled_from(
    "I live in |Rome|. |, |my name is |Ana |forget |everything |about me|I prefer |tables|from now on |always cite |"
    "tomorrow |“|”|> |```|\n\n|? |我|叫|住在|喜欢|以后|请|明天|面试|记住|，|。|？|忘掉|从|搬到|不|在|工作|了|"
    "五年|\x00|\ud800|🙂".split("|")
)
DATE = re.compile(r" \([^()]*\)|（[^（）]*）")


@given(st.lists(PIECES, max_size=14).map("".join) | st.text(max_size=60))
def test_rules_read_anything_and_word_nothing_anew(text: str) -> None:
    told = Said(origin=Origin(thread_id="t", event_id="e1", position=1), at=AT, text=text)
    own = "".join(own_words(text).split())
    for done in extract(told, [known(0, "I live in Oslo")], ZONE):
        if done.draft is not None:
            for part in "".join(DATE.sub("", done.draft.text).split()).split("，"):
                assert part in own or part.removeprefix("我") in own
                assert QUOTE not in part
