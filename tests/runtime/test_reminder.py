"""What is put before the model unasked, for a question that refers back; and when the session tools are offered."""

from typing import Any

import orjson
import pytest

from agents.runtime import codec
from agents.runtime.context.overview import overview
from agents.runtime.events import AssistantMessage, Preloaded
from agents.runtime.llm import LLMAgent
from agents.runtime.memorystores import MemorySessionStore
from agents.runtime.model import Role
from agents.runtime.policy import LOAD_TOOL, SEARCH_TOOL, ContextPolicy
from agents.runtime.recall import NO_RECALL
from agents.runtime.reminder import Reminder, about, refers_back
from agents.runtime.session import Action
from agents.runtime.testing import ScriptedModel, collect, memory_runner, text, turn
from agents.runtime.tokens import estimate
from tests.runtime.samples import of, request, tool

ON, OFF = ContextPolicy(preload_recall=True), ContextPolicy(preload_recall=False)
BUDGET = "The budget of the harbour project is ninety thousand."


@pytest.mark.parametrize(
    "words",
    [
        "What did we decide about the budget?",
        "What was the number we agreed on last week?",
        "You mentioned a restaurant earlier, which one?",
        "Do you remember the name of my dentist?",
        "As I said, the deposit is too high.",
        "Which figure did I tell you two weeks ago?",
        "之前说的预算是多少？",
        "上次我们讨论的方案叫什么？",
        "你还记得我牙医的名字吗？",
        "三个月前定好的价格是多少？",
    ],
)
def test_a_question_that_refers_back_is_told(words: str) -> None:
    assert refers_back(words) and about(words)


@pytest.mark.parametrize(
    "words",
    [
        "What does a mooring cost?",
        "Write a report on the harbour.",
        "港口的泊位费是多少？",
        "总结这份文件。",
        "word " * 400,
    ],
)
def test_a_question_of_its_own_is_not(words: str) -> None:
    assert not refers_back(words)


def test_what_a_question_is_about_is_what_its_frame_leaves() -> None:
    assert about("What did we decide about the budget last week?") == ["budg"]
    assert about("之前说的预算是多少？") == ["预算"]


class Talks:
    """Conversations of one person with one agent."""

    def __init__(self, policy: ContextPolicy = ON, *, tools: Any = (), **more: Any) -> None:
        self.store = MemorySessionStore()
        self.agent = LLMAgent(
            name="assistant", instruction="Help.\n", tools=tools, policy=policy, preloads=(Reminder(policy),)
        )
        self.more = more
        self.runs = 0
        self.model = ScriptedModel()

    async def say(self, words: str, reply: str = "Noted.", thread: str = "t", **asked: Any) -> list[Any]:
        self.runs += 1
        self.model = ScriptedModel(turn(text(reply)))
        runner = memory_runner(self.model, agent=self.agent, store=self.store, **self.more)
        return await collect(runner, request(words, thread_id=thread, run_id=f"r{self.runs}", **asked))

    def sent(self) -> str:
        return "\n".join(m.text for m in self.model.requests[0].messages if m.role is Role.USER)


async def test_what_was_said_elsewhere_stands_before_the_question_and_can_be_cited() -> None:
    talks = Talks()
    await talks.say(BUDGET, thread="old")
    await talks.say("What did we say about the budget of the harbour?", thread="new")
    found = next(s.record for s in talks.store.stored(owner_id=1, thread_id="new") if isinstance(s.record, Preloaded))
    ((kind, block),) = found.blocks
    assert kind == "recall" and BUDGET in block and estimate(block) <= 650
    assert block in talks.sent()
    cited = next(c for c in found.citations if c.quote == BUDGET)
    emitted = await talks.say("And what did we say of the budget?", f"Ninety thousand [[c:{cited.id}]].", thread="new")
    (answer,) = of(emitted, AssistantMessage)
    assert answer.text == f"Ninety thousand [1](#c-{cited.id})."
    assert (answer.citations[0].citation.thread_id, answer.citations[0].citation.message_id) == ("old", "u-r1")


async def test_what_is_recalled_changes_nothing_before_the_question_and_is_stored_whole() -> None:
    sent: list[list[Any]] = []
    for policy in (OFF, ON):
        talks = Talks(policy)
        await talks.say(BUDGET, thread="old")
        await talks.say("Hello.", thread="new")
        await talks.say("What did we say about the budget of the harbour?", thread="new")
        sent.append(list(talks.model.requests[0].messages))
    without, recalled = sent
    assert recalled[:-1] == without[:-1] and len(recalled) == len(without)
    assert recalled[-1].text.endswith(without[-1].text) and BUDGET in recalled[-1].text
    await talks.say("Thanks.", thread="new")
    after = list(talks.model.requests[0].messages)
    assert after[: len(without) - 1] == without[:-1]
    record = next(s.record for s in talks.store.stored(owner_id=1, thread_id="new") if isinstance(s.record, Preloaded))
    assert codec.load("preloaded", orjson.loads(orjson.dumps(codec.dump(record)))) == record


async def test_a_retry_recalls_anew_so_that_nothing_deleted_is_shown_on() -> None:
    talks = Talks()
    await talks.say(BUDGET, thread="old")
    await talks.say("What did we say about the budget of the harbour?", thread="new")
    assert BUDGET in talks.sent()
    talks.store.forget(owner_id=1, thread_id="old")
    emitted = await talks.say("", thread="new", message=None, action=Action.RETRY)
    assert of(emitted, Preloaded) == [] and BUDGET not in talks.sent()


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (OFF, "What did we say about the budget of the harbour?"),
        (ON, "What is the budget of the harbour?"),  # refers to nothing
        (ON, "What did we say about the weather in Oslo?"),  # nobody said
    ],
)
async def test_nothing_is_recalled_without_need(policy: ContextPolicy, words: str) -> None:
    talks = Talks(policy)
    await talks.say(BUDGET, thread="old")
    emitted = await talks.say(words, thread="new")
    assert of(emitted, Preloaded) == [] and BUDGET not in talks.sent()


# Offering the tools


TOOLS = (tool("look"), tool(SEARCH_TOOL), tool(LOAD_TOOL))


def offered(talks: Talks) -> list[str]:
    return [spec.name for spec in talks.model.requests[0].tools]


async def test_the_session_tools_come_with_an_overview_in_the_system_text() -> None:
    talks = Talks(tools=TOOLS)
    await talks.say("Hello.")
    assert offered(talks) == ["look", SEARCH_TOOL, LOAD_TOOL]
    system = talks.model.requests[0].messages[0].text
    assert system == f"Help.\n\n{overview({SEARCH_TOOL, LOAD_TOOL})}"
    await talks.say("Hello again.")
    assert talks.model.requests[0].messages[0].text == system


@pytest.mark.parametrize("more", [{"policy": ContextPolicy(session_tools=False)}, {"recall": NO_RECALL}])
async def test_context_7_12_without_a_past_to_search_or_by_policy_they_are_absent(more: Any) -> None:
    talks = Talks(tools=TOOLS, **more)
    await talks.say("Hello.")
    assert offered(talks) == ["look"]
    assert talks.model.requests[0].messages[0].text == "Help.\n"


def test_the_overview_has_three_texts_and_speaks_of_no_tool_that_is_not_there() -> None:
    texts = [overview(names) for names in ({SEARCH_TOOL, LOAD_TOOL}, {SEARCH_TOOL}, {LOAD_TOOL}, {"look"})]
    assert len(set(texts)) == 4 and texts[3] == ""
    assert LOAD_TOOL not in texts[1] and SEARCH_TOOL not in texts[2]
    assert all("not instruction" in one for one in texts[:3])
