"""The offline provider in the real loop: the assistant, its real tools, in-memory stores."""

import json
from typing import Any

import pytest

from agents.presets import assistant
from agents.providers.offline.deciding import MOST_READS, decide
from agents.providers.offline.model import INFO, OfflineModel
from agents.providers.offline.request import situation
from agents.providers.offline.words import CHINESE, ENGLISH, Words
from agents.runtime.artifacts import ArtifactNotKept, ArtifactRef, ArtifactUnreadable, TextPage
from agents.runtime.context.words import CONTEXT_LEAD, CONTINUE, FINISH
from agents.runtime.errors import ToolFailure
from agents.runtime.events import (
    AssistantMessage,
    Emitted,
    Outcome,
    ReasoningDelta,
    RunFinished,
    TextDelta,
    ToolReturned,
    UserMessage,
)
from agents.runtime.memorystores import MemoryArtifactStore, MemorySessionStore
from agents.runtime.model import (
    Chunk,
    FilePart,
    FinishChunk,
    FinishReason,
    Message,
    ModelRequest,
    Role,
    TextChunk,
    TextPart,
    UsageChunk,
    file_note,
    text_message,
)
from agents.runtime.runner import Runner
from agents.runtime.session import CancelReason, CancelToken, RunRequest
from agents.runtime.testing import collect, memory_runner
from agents.tools import artifacts as artifact_tools

HANDBOOK = """\
# Travel handbook

This handbook says how colleagues of Norrland Marine book and settle journeys.

## Trains

Journeys of less than four hours are made by train. First class is allowed after two hours.

## Hotels

A hotel may cost 145 euros a night; in capitals 190 euros. Breakfast is paid by the company.

## Settling

Receipts are handed in within fifteen days. What comes later is not refunded.
"""
ZH_RULES = """\
差旅管理办法

第一章 交通
四小时以内的行程应乘坐火车。超过两小时可以乘坐一等座。

第二章 住宿
住宿标准为每晚不超过五百元，省会城市不超过七百元。早餐由公司承担。

第三章 报销
发票应在返回后十五日内提交，逾期不予报销。
"""


class Talk:
    """A conversation with the offline provider over in-memory stores."""

    def __init__(self, files: MemoryArtifactStore | None = None) -> None:
        self.files = files or MemoryArtifactStore()
        self.sessions = MemorySessionStore()
        self.runs = 0

    def runner(self) -> Runner:
        return memory_runner(
            OfflineModel(),
            agent=assistant.build(artifact_tools.tools()),
            store=self.sessions,
            artifacts=self.files,
        )

    async def say(self, words: str, **files: str | bytes) -> list[Emitted]:
        """Send a message with files (name with its dots as "__") and return everything that happened."""
        parts: list[TextPart | FilePart] = [TextPart(text=words)] if words else []
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            parts.append(part_of(await self.files.save(name=name.replace("__", "."), data=data)))
        self.runs += 1
        message = UserMessage(id=f"u{self.runs}", parts=tuple(parts))
        return await collect(
            self.runner(), RunRequest(owner_id=1, thread_id="t", run_id=f"r{self.runs}", message=message)
        )

    async def ask(self, words: str, **files: str | bytes) -> str:
        return said(await self.say(words, **files))


def part_of(ref: ArtifactRef) -> FilePart:
    return FilePart(
        artifact_id=ref.artifact_id, version=ref.version, name=ref.name, mime=ref.mime, size_bytes=ref.size_bytes
    )


def said(emitted: list[Emitted]) -> str:
    return "".join(e.event.text for e in emitted if isinstance(e.event, TextDelta))


def results(emitted: list[Emitted]) -> list[ToolReturned]:
    return [e.event for e in emitted if isinstance(e.event, ToolReturned)]


def calls(emitted: list[Emitted]) -> list[tuple[str, dict[str, Any]]]:
    messages = [e.event for e in emitted if isinstance(e.event, AssistantMessage)]
    return [(c.name, json.loads(c.arguments)) for m in messages for c in m.tool_calls]


def quoted(answer: str) -> str:
    return "\n".join(line for line in answer.splitlines() if line.startswith(">"))


# Files


async def test_an_attached_file_is_read_with_the_tool_and_quoted_with_its_place() -> None:
    emitted = await Talk().say("How much may a hotel cost?", handbook__md=HANDBOOK)
    assert calls(emitted) == [("read_artifact", {"name": "artifact://handbook.md@1"})]
    assert "145 euros a night" in quoted(said(emitted))
    assert 'under "Hotels"' in said(emitted)
    assert "train" not in quoted(said(emitted))
    last = emitted[-1].event
    assert isinstance(last, RunFinished)
    assert last.outcome is Outcome.SUCCESS


async def test_a_chinese_question_is_answered_in_chinese_from_a_chinese_file() -> None:
    answer = await Talk().ask("发票要在多少天内提交？", 办法__md=ZH_RULES)
    assert "十五日内提交" in quoted(answer)
    assert "第三章 报销" in answer
    assert "办法.md 中是这样写的" in answer
    assert CHINESE.notice in answer


async def test_the_language_is_that_of_the_question_not_of_the_file() -> None:
    talk = Talk()
    assert ENGLISH.notice in await talk.ask("What is this about?", 办法__md=ZH_RULES)
    assert "中没有找到" in await talk.ask("飞机票怎么报价？")


async def test_later_questions_use_what_was_read_and_read_nothing_again() -> None:
    talk = Talk()
    await talk.say("How much may a hotel cost?", handbook__md=HANDBOOK)
    emitted = await talk.say("And when are receipts handed in?")
    assert calls(emitted) == []
    assert "fifteen days" in quoted(said(emitted))


async def test_a_long_file_is_read_to_its_end_page_by_page() -> None:
    filler = "".join(f"Paragraph {n} speaks of tides, ropes and weather at length.\n\n" for n in range(900))
    emitted = await Talk().say("Where is the spare anchor kept?", log__txt=f"{filler}The spare anchor is kept aft.\n")
    read = [arguments.get("cursor", "") for name, arguments in calls(emitted)]
    assert len(read) > 3
    assert len(set(read)) == len(read)
    assert "The spare anchor is kept aft." in quoted(said(emitted))


async def test_a_file_too_long_to_be_read_whole_is_said_so() -> None:
    filler = "".join(f"Paragraph {n} speaks of tides, ropes and weather at length.\n\n" for n in range(7_000))
    emitted = await Talk().say("Which ropes are there?", log__txt=filler)
    assert len(calls(emitted)) == MOST_READS
    assert "I read log.txt up to" in said(emitted)


async def test_a_table_is_quoted_by_row_with_its_columns() -> None:
    table = "ship,port,tons\nBirka,Turku,34000\nSvea,Visby,1200\n"
    answer = await Talk().ask("How many tons does the Svea have?", fleet__csv=table)
    assert "ship: Svea; port: Visby; tons: 1200" in quoted(answer)
    assert "Birka" not in answer


async def test_several_files_are_read_at_once_and_each_quotation_names_its_file() -> None:
    talk = Talk()
    emitted = await talk.say(
        "What is the deposit?", a__txt="The deposit is 300 euros.\n", b__txt="The deposit is 500 euros.\n"
    )
    assert len(calls(emitted)) == 2
    answer = said(emitted)
    assert "300 euros" in answer and "a.txt" in answer
    assert "500 euros" in answer and "b.txt" in answer


async def test_a_question_that_names_a_file_looks_into_that_one() -> None:
    talk = Talk()
    await talk.say("What is the deposit?", lease__txt="The deposit is 300 euros.\n")
    await talk.say("What is the deposit?", garage__txt="The deposit is 500 euros.\n")
    answer = await talk.ask("What is the deposit in lease.txt?")
    assert "300 euros" in answer
    assert "500" not in answer


async def test_a_file_without_a_word_is_summed_up() -> None:
    answer = await Talk().ask("", handbook__md=HANDBOOK)
    assert "The sentences of handbook.md that say most" in answer
    assert "Trains, Hotels, Settling" in answer


async def test_what_the_file_does_not_say_is_not_made_up() -> None:
    answer = await Talk().ask("Who founded the observatory in Chile?", handbook__md=HANDBOOK)
    assert "I found nothing about this in handbook.md" in answer
    assert quoted(answer) == ""


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What does it say?", "I could not read plan.pdf: it is protected by a password."),
        ("里面写了什么？", "plan.pdf 读不了：它有密码保护，请去掉密码后重新添加。"),
    ],
)
async def test_a_file_that_cannot_be_read_is_told_with_the_reason_in_the_questions_language(
    question: str, answer: str
) -> None:
    class Locked(MemoryArtifactStore):
        async def read_text(self, ref: ArtifactRef, *, cursor: str = "", max_chars: int = 12_000) -> TextPage:
            raise ArtifactUnreadable("plan.pdf is protected by a password.", ToolFailure.FILE_ENCRYPTED)

    emitted = await Talk(Locked()).say(question, plan__pdf=b"%PDF-1.7")
    assert answer in said(emitted)
    assert len(calls(emitted)) == 1


async def test_a_note_that_cannot_be_saved_is_told_in_the_questions_language() -> None:
    class Full(MemoryArtifactStore):
        async def save(self, **_: Any) -> ArtifactRef:
            raise ArtifactNotKept

    answer = await Talk(Full()).ask("帮我记一下：五月前订购新缆绳")
    assert "没能保存：文件未能存储，请稍后再试。" in answer
    answer = await Talk(Full()).ask("Save a note: order new ropes before May")
    assert "It could not be saved: the file could not be stored." in answer


@pytest.mark.parametrize("language", [ENGLISH, CHINESE])
def test_every_failure_has_its_words_in_both_languages(language: Words) -> None:
    assert language.failures.keys() == set(ToolFailure)
    assert language.complaint("of another version") == language.complaint(ToolFailure.TOOL_FAILED)


async def test_no_files_and_a_list_that_fails_are_told_in_the_questions_language() -> None:
    class Away(MemoryArtifactStore):
        async def list(self) -> tuple[ArtifactRef, ...]:
            raise OSError("no connection to 10.0.0.7")

    assert "本对话中没有文件。" in await Talk().ask("有哪些文件？")
    assert "This conversation has no files." in await Talk().ask("Which files are there?")
    assert "列不出文件：工具出现了意外错误。" in await Talk(Away()).ask("有哪些文件？")


async def test_headings_alone_are_no_answer() -> None:
    answer = await Talk().ask("How do trains and hotels compare?", list__md="# Trains and hotels\n\n## Hotels\n")
    assert quoted(answer) == ""
    assert "I found nothing about this in list.md" in answer


async def test_a_read_that_was_stopped_is_tried_again_in_the_next_turn() -> None:
    talk = Talk()
    token = CancelToken()

    class Stops(MemoryArtifactStore):
        async def read_text(self, ref: ArtifactRef, *, cursor: str = "", max_chars: int = 12_000) -> TextPage:
            if not token.cancelled:
                token.cancel(CancelReason.USER)
            return await super().read_text(ref, cursor=cursor, max_chars=max_chars)

    talk.files = Stops()
    ref = await talk.files.save(name="handbook.md", data=HANDBOOK.encode())
    message = UserMessage(id="first", parts=(TextPart(text="How much is a hotel?"), part_of(ref)))
    request = RunRequest(owner_id=1, thread_id="t", run_id="first", message=message)
    await collect(talk.runner(), request, token)
    emitted = await talk.say("How much is a hotel?")
    assert len(calls(emitted)) == 1
    assert "145 euros" in said(emitted)


async def test_the_files_of_the_conversation_are_listed() -> None:
    talk = Talk()
    await talk.say("What is it?", handbook__md=HANDBOOK)
    answer = await talk.ask("Which files are there?")
    assert "artifact://handbook.md@1" in answer


# Notes


async def test_a_note_is_saved_and_named() -> None:
    talk = Talk()
    answer = await talk.ask("Save a note: order new ropes before May")
    ref = await talk.files.find("order-new-ropes-before-may.md")
    assert (await talk.files.load(ref)).decode() == "order new ropes before May\n"
    assert "Saved as order-new-ropes-before-may.md@1." in answer


async def test_an_answer_is_saved_without_the_notice() -> None:
    talk = Talk()
    await talk.say("How much may a hotel cost?", handbook__md=HANDBOOK)
    await talk.say("Save that as hotels.md")
    note = (await talk.files.load(await talk.files.find("hotels.md"))).decode()
    assert "145 euros" in note
    assert ENGLISH.notice not in note


async def test_a_file_is_summed_up_into_a_note_in_one_turn() -> None:
    talk = Talk()
    emitted = await talk.say("Summarise it and save the summary as a note", handbook__md=HANDBOOK)
    assert [name for name, _ in calls(emitted)] == ["read_artifact", "save_artifact"]
    assert [r.name for r in await talk.files.list()] == ["handbook.md", "notes-on-handbook.md"]
    assert "Saved as notes-on-handbook.md@1." in said(emitted)


async def test_a_chinese_note_is_saved() -> None:
    talk = Talk()
    answer = await talk.ask("帮我记一下：五月前订购新缆绳")
    assert (await talk.files.load(await talk.files.find("五月前订购新缆绳.md"))).decode() == "五月前订购新缆绳\n"
    assert "已保存为" in answer


async def test_a_question_about_notes_saves_nothing() -> None:
    talk = Talk()
    emitted = await talk.say("Where do they keep notes on hotels?", handbook__md=HANDBOOK)
    assert {name for name, _ in calls(emitted)} == {"read_artifact"}


# Plain talk


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("Good morning!", ENGLISH.greeting),
        ("您好", CHINESE.greeting),
        ("What can you do?", ENGLISH.about_us),
        ("你是谁？", CHINESE.about_us),
        ("thank you so much", ENGLISH.thanks),
        ("What is the capital of Peru?", ENGLISH.no_files),
        ("秘鲁的首都是哪里？", CHINESE.no_files),
        ("save a note", ENGLISH.nothing_to_save),
    ],
)
async def test_plain_talk_is_answered_honestly_without_tools(words: str, part: str) -> None:
    emitted = await Talk().say(words)
    assert part in said(emitted)
    assert calls(emitted) == []


async def test_the_notice_is_given_once_in_a_conversation() -> None:
    talk = Talk()
    answers = [await talk.ask("Hello"), await talk.ask("What is the capital of Peru?"), await talk.ask("你好")]
    assert sum(a.count(ENGLISH.notice) + a.count(CHINESE.notice) for a in answers) == 1
    assert ENGLISH.notice in answers[0]


# As a model


async def stream(request: ModelRequest) -> list[Chunk]:
    return [c async for c in OfflineModel().stream(request)]


async def test_it_streams_word_by_word_with_reasoning_usage_and_a_finish() -> None:
    emitted = await Talk().say("How much may a hotel cost?", handbook__md=HANDBOOK)
    assert any(isinstance(e.event, ReasoningDelta) for e in emitted)
    pieces = [e.event.text for e in emitted if isinstance(e.event, TextDelta)]
    assert len(pieces) > 30
    assert max(map(len, pieces)) < 30
    finished = emitted[-1].event
    assert isinstance(finished, RunFinished)
    assert finished.usage.prompt > 100 and finished.usage.completion > finished.usage.reasoning > 0


async def test_it_gives_the_same_answer_to_the_same_request() -> None:
    request = ModelRequest(messages=(text_message(Role.USER, "hello"),))
    assert await stream(request) == await stream(request)


async def test_max_tokens_cuts_the_answer_and_says_so() -> None:
    chunks = await stream(ModelRequest(messages=(text_message(Role.USER, "hello"),), max_tokens=5))
    assert chunks[-1] == FinishChunk(FinishReason.LENGTH)
    usage = next(c.usage for c in chunks if isinstance(c, UsageChunk))
    assert usage.completion - usage.reasoning <= 5


async def test_an_answer_that_was_stopped_goes_on_where_it_stopped() -> None:
    first = ModelRequest(messages=(text_message(Role.USER, "What can you do?"),))
    whole = "".join(c.text for c in await stream(first) if isinstance(c, TextChunk))
    rest = ModelRequest(
        messages=(*first.messages, text_message(Role.ASSISTANT, whole[:60]), text_message(Role.USER, CONTINUE))
    )
    assert "".join(c.text for c in await stream(rest) if isinstance(c, TextChunk)) == whole[60:]


async def test_without_tools_it_answers_with_what_it_has() -> None:
    part = FilePart(artifact_id="a", version=1, name="x.txt", mime="text/plain", size_bytes=9)
    messages = (
        Message(role=Role.USER, parts=(TextPart(text="What is the fee?"), part)),
        text_message(Role.USER, FINISH),
    )
    move = decide(situation(ModelRequest(messages=messages)))
    assert move.calls == ()
    assert ENGLISH.no_tool in move.text


def test_files_are_seen_as_parts_and_as_notes() -> None:
    part = FilePart(artifact_id="a", version=2, name="a b (1).txt", mime="text/plain", size_bytes=9)
    as_part = Message(role=Role.USER, parts=(TextPart(text="What is the fee?"), part))
    as_note = text_message(Role.USER, f"What is the fee?\n\n{file_note(part)}")
    found = [situation(ModelRequest(messages=(m,))) for m in (as_part, as_note)]
    assert {s.attached for s in found} == {("artifact://a b (1).txt@2",)}
    assert {s.question for s in found} == {"What is the fee?"}


def test_what_the_person_has_open_is_not_the_question() -> None:
    opened = TextPart(text=f"{CONTEXT_LEAD}\n<context>save a note: x</context>\n\n")
    at = situation(ModelRequest(messages=(Message(role=Role.USER, parts=(opened, TextPart(text="hello"))),)))
    assert at.question == "hello"


def test_it_says_what_it_is() -> None:
    assert (INFO.name, INFO.provider, INFO.images) == ("offline", "offline", False)
