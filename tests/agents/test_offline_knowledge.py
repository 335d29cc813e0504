"""The offline provider and a person's documents: it searches, reads on, answers with sources or says there are none."""

from typing import Any

import pytest

from agents.presets import assistant
from agents.providers.offline.asking import Comparison, comparison, replacement, report_topic
from agents.providers.offline.model import OfflineModel
from agents.providers.offline.words import CHINESE, ENGLISH
from agents.runtime.events import AssistantMessage, Emitted, UserMessage
from agents.runtime.invocation import Limits
from agents.runtime.knowledge import DocumentState, Found, Reading
from agents.runtime.memoryknowledge import MemoryKnowledge
from agents.runtime.memorystores import MemoryArtifactStore, MemorySessionStore
from agents.runtime.model import TextPart
from agents.runtime.session import RunRequest
from agents.runtime.testing import collect, memory_runner
from agents.tools import artifacts as artifact_tools
from agents.tools import knowledge as knowledge_tools
from tests.agents.test_offline_provider import calls, part_of, quoted, said

HARBOUR = """\
# Harbour rules

## Moorings

A mooring for boats of up to ten metres costs 900 crowns a season; the season begins on 2 May.

## Fuel

The fuel pier is open from 7:00 to 19:00.

These sell fuel:

- Arvid Lund
- Siri Moen
"""
CLUB = """\
# Sailing club

The sailing club was made by its members.

## Members

The club has 210 members. A junior pays 300 crowns a year, an adult 1,100 crowns.

## Races

The autumn race is sailed on 14 September. Its winner gets the Lindgren cup.
"""
RULES = """\
# 港口管理规定

## 泊位

十米以内船只的泊位费为每季九百元，航季自五月二日开始。

## 安全

码头上禁止吸烟。违者罚款二百元。
"""


class Desk:
    """A conversation of somebody who has documents."""

    def __init__(self, **documents: str) -> None:
        self.knowledge = MemoryKnowledge()
        self.files = MemoryArtifactStore()
        self.sessions = MemorySessionStore()
        self.runs = 0
        for name, text in documents.items():
            self.knowledge.add(f"{name}.md", text)

    async def say(self, words: str, *, sources: tuple[str, ...] | None = None, **more: Any) -> list[Emitted]:
        self.runs += 1
        agent = assistant.build((*knowledge_tools.tools(), *artifact_tools.tools()))
        runner = memory_runner(
            OfflineModel(),
            agent=agent,
            knowledge=self.knowledge,
            artifacts=self.files,
            store=self.sessions,
            limits=more.get("limits", Limits()),
        )
        message = UserMessage(id=f"u{self.runs}", parts=(TextPart(text=words), *more.get("files", ())))
        request = RunRequest(
            owner_id=1,
            thread_id="t",
            run_id=f"r{self.runs}",
            message=message,
            sources=sources,
            sources_given=sources is not None,
        )
        return await collect(runner, request)

    async def saved(self, name: str) -> str:
        return (await self.files.load(await self.files.find(name))).decode()


def last(emitted: list[Emitted]) -> AssistantMessage:
    return [e.event for e in emitted if isinstance(e.event, AssistantMessage)][-1]


def sources(emitted: list[Emitted]) -> list[str]:
    return [cited.citation.quote for cited in last(emitted).citations]


# Answers


async def test_a_question_is_searched_and_answered_with_its_source() -> None:
    emitted = await Desk(harbour=HARBOUR, club=CLUB).say("What does a mooring cost?")
    assert [name for name, _ in calls(emitted)] == ["search_knowledge"]
    assert "900 crowns a season" in quoted(said(emitted))
    assert "costs 900 crowns" in sources(emitted)[0]
    assert not last(emitted).not_in_documents


async def test_a_chinese_question_is_answered_in_chinese_with_its_source() -> None:
    emitted = await Desk(港口=RULES, club=CLUB).say("泊位费是多少？")
    assert "九百元" in quoted(said(emitted))
    assert CHINESE.found.format(name="港口.md") in said(emitted)
    assert "九百元" in sources(emitted)[0]


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("Who is the harbour master?", ENGLISH.not_said),
        ("What does a mooring cost in Bergen?", ENGLISH.not_said),
        ("How many moorings are there?", ENGLISH.not_said),
        ("When was the club founded?", ENGLISH.not_said),
        ("码头有没有充电桩？", CHINESE.not_said),
        ("泊位一共有多少个？", CHINESE.not_said),
    ],
)
async def test_what_the_documents_do_not_say_is_said_so(question: str, missing: str) -> None:
    emitted = await Desk(harbour=HARBOUR, club=CLUB, 港口=RULES).say(question)
    assert last(emitted).not_in_documents
    assert missing in said(emitted)


@pytest.mark.parametrize(
    ("documents", "question", "missing", "unsaid"),
    [
        ({"harbour": HARBOUR, "club": CLUB}, "泊位费是多少？", CHINESE.no_passage, CHINESE.not_said),
        ({"港口": RULES}, "What does a mooring cost?", ENGLISH.no_passage, ENGLISH.not_said),
        ({"港口": RULES}, "Compare moorings and races", ENGLISH.no_passage, ENGLISH.not_said),
        ({"港口": RULES}, "Write a report on fuel", ENGLISH.no_passage, ENGLISH.not_said),
    ],
)
async def test_of_documents_in_another_language_it_says_only_that_no_passage_was_found(
    documents: dict[str, str], question: str, missing: str, unsaid: str
) -> None:
    emitted = await Desk(**documents).say(question)
    assert last(emitted).not_in_documents
    assert missing in said(emitted) and unsaid not in said(emitted)


async def test_the_closest_passage_is_named_as_one_that_does_not_answer() -> None:
    emitted = await Desk(harbour=HARBOUR).say("How many moorings are there?")
    assert ENGLISH.closest.format(name="harbour.md") in said(emitted)
    assert "A mooring for boats" in quoted(said(emitted))


async def test_what_the_passages_leave_open_is_read_on_for() -> None:
    emitted = await Desk(harbour=HARBOUR).say("How many moorings are there?")
    assert [name for name, _ in calls(emitted)] == ["search_knowledge", "read_document"]


async def test_quoted_words_and_names_are_searched_by_themselves() -> None:
    emitted = await Desk(club=CLUB).say('Which race gives its winner the "Lindgren cup"?')
    queries = [arguments["query"] for _, arguments in calls(emitted)]
    assert '"Lindgren cup"' in queries
    assert len(queries) == 3
    assert "Lindgren cup" in quoted(said(emitted))


async def test_a_named_document_is_the_only_one_searched_and_another_is_if_there_is_none() -> None:
    desk = Desk(harbour=HARBOUR, club=CLUB)
    emitted = await desk.say("How much does an adult pay, according to club.md?")
    assert all(arguments["documents"] == ["club.md"] for _, arguments in calls(emitted))
    emitted = await desk.say("How much does an adult pay, according to clubs-old.md?")
    assert "1,100 crowns" in quoted(said(emitted))


async def test_a_follow_up_is_understood_with_the_question_before_it() -> None:
    desk = Desk(club=CLUB, harbour=HARBOUR)
    await desk.say("How much does an adult member pay?")
    assert "300 crowns" in quoted(said(await desk.say("And a junior?")))


async def test_documents_that_are_not_read_yet_are_named() -> None:
    desk = Desk(harbour=HARBOUR)
    desk.knowledge.add("plan.pdf", "", state=DocumentState.READING)
    assert ENGLISH.unread.format(names="plan.pdf") in said(await desk.say("What does a mooring cost?"))


# Forms of answers


async def test_two_things_are_compared_in_a_table_with_sources() -> None:
    emitted = await Desk(club=CLUB, harbour=HARBOUR).say("Compare the moorings and the races")
    rows = [line for line in said(emitted).splitlines() if line.startswith("|")]
    assert rows[0] == "| moorings | races |"
    assert "900 crowns" in rows[2].split("|")[1]
    assert "14 September" in said(emitted)
    assert len(sources(emitted)) >= 2
    assert len(calls(emitted)) == 2


async def test_two_things_are_compared_in_chinese() -> None:
    emitted = await Desk(港口=RULES).say("泊位和安全有什么区别？")
    assert "| 泊位 | 安全 |" in said(emitted)
    assert "九百元" in said(emitted) and "禁止吸烟" in said(emitted)


@pytest.mark.parametrize("joint", ["on", "with respect to", "concerning"])
def test_what_two_things_are_compared_on_is_no_part_of_the_second(joint: str) -> None:
    asked = comparison(f"Compare the lease with the loan {joint} their price.")
    assert asked == Comparison(first="lease", second="loan", on="their price")


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("Compare dogs in marina.pdf and hotel.docx", ("marina.pdf", "hotel.docx", "dogs")),
        ("Compare the fees of the marina with the hotel.", ("marina", "hotel", "fees")),
        (
            "Compare the fees of the marina and the rules of the hotel.",
            ("fees of the marina", "rules of the hotel", ""),
        ),
        ("Compare the lease with the loan in terms of price", ("lease", "loan", "price")),
    ],
)
def test_what_two_things_are_compared_on_may_stand_before_them(words: str, asked: tuple[str, str, str]) -> None:
    assert comparison(words) == Comparison(first=asked[0], second=asked[1], on=asked[2])


@pytest.mark.parametrize("text", ["I live in Rome. " * 6_500, "我住在北京" * 20_000, '把"a' * 30_000, "写一" * 50_000])
def test_a_long_text_is_looked_at_in_no_time(text: str) -> None:
    assert (comparison(text), replacement(text), report_topic(text)) == (None, None, None)


async def test_what_two_places_say_alike_stands_once_in_a_comparison() -> None:
    pages = "\n\n".join(f"The marina keeps records.\n\nBerth {n} is dry." for n in range(3))
    emitted = await Desk(marina=pages, club=CLUB).say("Compare the marina and the club")
    assert said(emitted).count("The marina keeps records.") == 1


async def test_the_closest_passage_is_shown_for_what_is_named_in_it() -> None:
    emitted = await Desk(ferries="# Routes\n\nFrom Alba to Bruma at 09:40, daily.\n").say(
        "When does the boat to Bruma leave?"
    )
    assert last(emitted).not_in_documents
    assert "09:40" in quoted(said(emitted))


async def test_the_title_of_a_document_is_no_point_of_a_report() -> None:
    desk = Desk(moorings="Moorings\n\nMoorings cost 900 crowns a year.\n\nAll moorings have water and power.\n")
    await desk.say("Write a report about moorings")
    report = await desk.saved("report-moorings.md")
    points = [line for line in report.splitlines() if line.startswith("- ")]
    assert points and not any(point.startswith("- Moorings [") for point in points)


async def test_a_list_is_given_item_by_item() -> None:
    emitted = await Desk(harbour=HARBOUR, club=CLUB).say("List all who sell fuel")
    items = [line for line in said(emitted).splitlines() if line.startswith("- ")]
    assert [item.partition(" [")[0] for item in items] == ["- Arvid Lund", "- Siri Moen"]


async def test_a_document_is_summed_up_by_its_name() -> None:
    emitted = await Desk(harbour=HARBOUR, club=CLUB).say("Summarise the club document")
    assert [name for name, _ in calls(emitted)] == ["list_documents", "read_document"]
    assert ENGLISH.summary.format(name="club.md") in said(emitted)
    lines = [line.partition(":")[0] for line in said(emitted).splitlines() if line.startswith("- ")]
    assert lines == ["- **Sailing club**", "- **Members**", "- **Races**"]
    assert sources(emitted)


async def test_documents_are_counted_and_listed() -> None:
    desk = Desk(harbour=HARBOUR, club=CLUB)
    desk.knowledge.add("plan.pdf", "", state=DocumentState.READING)
    answer = said(await desk.say("How many documents do I have?"))
    assert ENGLISH.documents_are.format(count=3) in answer
    assert f"- plan.pdf, {ENGLISH.being_read}" in answer
    assert CHINESE.documents_are.format(count=3) in said(await desk.say("有哪些文档？"))


async def test_at_the_last_step_it_answers_with_what_was_found() -> None:
    desk = Desk(club=CLUB)
    emitted = await desk.say(
        "How much does an adult member pay?", limits=Limits(model_calls=2, finish_without_tools=True)
    )
    assert "1,100 crowns" in quoted(said(emitted))


# Reports


async def test_a_report_is_saved_with_its_sources() -> None:
    desk = Desk(harbour=HARBOUR, club=CLUB)
    emitted = await desk.say("Write a report about moorings and races")
    assert [name for name, _ in calls(emitted)][-1] == "save_artifact"
    report = await desk.saved("report-moorings-and-races.md")
    assert report.startswith("# Report: moorings and races\n")
    assert "900 crowns" in report and "14 September" in report
    assert "[^1]: harbour.md" in report or "[^1]: club.md" in report
    assert ENGLISH.saved.format(name="report-moorings-and-races.md@1") in said(emitted)


async def test_a_chinese_report_is_saved_and_changed_on_request() -> None:
    desk = Desk(港口=RULES)
    await desk.say("写一份关于泊位和安全的报告")
    emitted = await desk.say("把“泊位”改成“船位”")
    name, arguments = calls(emitted)[-1]
    assert (name, arguments["base_version"]) == ("edit_artifact", 1)
    report = await desk.saved("报告-泊位和安全.md")
    assert "船位" in report and "泊位" not in report
    assert CHINESE.saved.format(name="报告-泊位和安全.md@2") in said(emitted)


async def test_its_own_report_is_no_source() -> None:
    desk = Desk(club=CLUB)
    await desk.say("Write a report about members and races")
    desk.knowledge.add("report-members-and-races.md", await desk.saved("report-members-and-races.md"))
    emitted = await desk.say("How much does an adult member pay?")
    assert {cited.citation.name for cited in last(emitted).citations} == {"club.md"}


STALE = """\
# Report: members

- The club has 180 members. [^1]

## Sources

[^1]: club.md, version 1, line 7: “The club has 180 members. A junior pays 300 crowns a year.”
"""


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("How many members does the club have?", "210 members"),
        ("List all the members of the club", "210 members"),
        ("Compare the club members and the autumn race", "210 members"),
    ],
)
async def test_what_another_conversation_wrote_is_no_source_beside_what_people_did(question: str, words: str) -> None:
    desk = Desk(club=CLUB)
    desk.knowledge.add("report-members.md", STALE, second_hand=True)
    emitted = await desk.say(question)
    assert words in said(emitted) and "180" not in said(emitted)
    assert {cited.citation.name for cited in last(emitted).citations} == {"club.md"}


async def test_what_another_conversation_wrote_answers_what_nothing_else_does() -> None:
    desk = Desk(club=CLUB)
    desk.knowledge.add("note.md", "The alarm code of the boathouse is 4711. [^1]\n", second_hand=True)
    emitted = await desk.say("What is the alarm code of the boathouse?")
    assert "> The alarm code of the boathouse is 4711. [" in said(emitted)  # the mark of its footnote is none of ours
    assert {cited.citation.name for cited in last(emitted).citations} == {"note.md"}


async def test_no_report_is_made_of_nothing() -> None:
    emitted = await Desk(harbour=HARBOUR).say("Write a report about glaciers")
    assert "save_artifact" not in [name for name, _ in calls(emitted)]
    assert last(emitted).not_in_documents


async def test_a_change_that_fits_nothing_is_told() -> None:
    desk = Desk()
    await desk.say("Save a note: order ropes")
    emitted = await desk.say('replace "anchors" with "chains" in order-ropes.md')
    assert ENGLISH.not_saved.format(complaint=ENGLISH.complaint("edit_not_found")) in said(emitted)
    assert ENGLISH.edit_what in said(await desk.say('replace "a" with "b" in other.md'))


# Without documents, and with files


@pytest.mark.parametrize(
    "question", ["What does a mooring cost?", "Compare moorings and races", "Write a report on fuel"]
)
async def test_with_no_documents_chosen_it_is_plain_talk(question: str) -> None:
    emitted = await Desk(harbour=HARBOUR).say(question, sources=())
    assert ENGLISH.no_files in said(emitted)
    assert not last(emitted).not_in_documents


async def test_greetings_search_nothing() -> None:
    assert calls(await Desk(harbour=HARBOUR).say("Good morning!")) == []


async def test_an_attached_file_that_has_passages_is_quoted_with_its_source() -> None:
    class Known(MemoryKnowledge):
        """The tool asks by the file's id; here documents have others."""

        def narrowed(self, sources: tuple[str, ...] | None) -> "MemoryKnowledge":
            return self

        async def read(self, document: str, **more: Any) -> Reading:
            return await super().read("harbour.md", **more)

    desk = Desk()
    desk.knowledge = Known()
    desk.knowledge.add("harbour.md", HARBOUR)
    ref = await desk.files.save(name="harbour.md", data=HARBOUR.encode())
    emitted = await desk.say("When does the season begin?", files=(part_of(ref),))
    assert [name for name, _ in calls(emitted)] == ["read_artifact"]
    assert "2 May" in quoted(said(emitted))
    assert "2 May" in sources(emitted)[0]


@pytest.mark.parametrize(("question", "words"), [("What does a mooring cost?", ENGLISH), ("泊位费是多少？", CHINESE)])
async def test_a_search_that_fails_is_told_in_the_questions_language(question: str, words: Any) -> None:
    class Away(MemoryKnowledge):
        def narrowed(self, sources: tuple[str, ...] | None) -> "MemoryKnowledge":
            return self

        async def search(self, query: str, **_: Any) -> Found:
            raise OSError("no connection to 10.0.0.7")

    desk = Desk()
    desk.knowledge = Away()
    assert words.not_searched.format(complaint=words.complaint("unexpected")) in said(await desk.say(question))
