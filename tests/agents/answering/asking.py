"""A library's questions put to the offline provider, through the real tools and search, and what came of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.presets import assistant
from agents.providers.offline.model import OfflineModel
from agents.runtime.events import AssistantMessage, UserMessage
from agents.runtime.knowledge import Cited, Knowledge
from agents.runtime.model import TextPart
from agents.runtime.session import RunRequest
from agents.runtime.testing import collect, memory_runner
from agents.tools import artifacts as artifact_tools
from agents.tools import knowledge as knowledge_tools
from tests.agents.answering.library import Question


@dataclass(frozen=True, slots=True)
class _Whole:
    """The documents of somebody who chose none of them."""

    knowledge: Knowledge

    def narrowed(self, sources: tuple[str, ...] | None) -> Knowledge:
        assert sources is None
        return self.knowledge


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was said to a question. text: the last message. refused: it said that the documents do not say."""

    question: Question
    text: str
    cited: tuple[Cited, ...]
    refused: bool

    @property
    def right_document(self) -> bool:
        """Whether the first source is of the right document, and the answer is one."""
        return not self.refused and bool(self.cited) and self.cited[0].citation.name == self.question.document

    @property
    def right_passage(self) -> bool:
        """Whether the first source says it."""
        says = " ".join(self.question.says.split())
        return self.right_document and says in " ".join(self.cited[0].citation.quote.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """answerable, unanswerable: how many questions. documents, passages: right ones. refused: of the unanswerable."""

    answerable: int
    documents: int
    passages: int
    unanswerable: int
    refused: int


async def ask(knowledge: Knowledge, questions: Sequence[Question]) -> list[Answer]:
    """Put every question in a conversation of its own."""
    return [await _ask(knowledge, question) for question in questions]


def score(answers: Sequence[Answer]) -> Score:
    answerable = [a for a in answers if a.question.document]
    unanswerable = [a for a in answers if not a.question.document]
    return Score(
        answerable=len(answerable),
        documents=sum(a.right_document for a in answerable),
        passages=sum(a.right_passage for a in answerable),
        unanswerable=len(unanswerable),
        refused=sum(a.refused for a in unanswerable),
    )


async def _ask(knowledge: Knowledge, question: Question) -> Answer:
    agent = assistant.build((*knowledge_tools.tools(), *artifact_tools.tools()))
    runner = memory_runner(OfflineModel(), agent=agent, knowledge=_Whole(knowledge))
    message = UserMessage(id="u", parts=(TextPart(text=question.text),))
    emitted = await collect(runner, RunRequest(owner_id=1, thread_id="t", run_id="r", message=message))
    said = [e.event for e in emitted if isinstance(e.event, AssistantMessage)]
    last = said[-1]
    return Answer(question=question, text=last.text, cited=last.citations, refused=last.not_in_documents)
