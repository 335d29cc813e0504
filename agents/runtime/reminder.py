"""A reminder: what is found in the past for a question that plainly refers back, put before the model unasked."""

import logging
import re
from collections.abc import Sequence
from typing import Final

from agents.runtime.context.injection import Block
from agents.runtime.excerpts import Excerpt, excerpts, terms, told
from agents.runtime.invocation import Invocation
from agents.runtime.policy import ContextPolicy
from agents.runtime.recall import NO_RECALL, RecallFailed, RecallScope
from agents.runtime.remembering import question_of

HITS: Final = 3
TOKENS: Final = 600
LEAST: Final = 0.5  # of what the question is about, by the letters of its words, that one record must hold
QUESTION_CHARS: Final = 1_000  # a longer message is a text, and holds what it is about

_SAID: Final = "said|told|mentioned|discussed|agreed|decided|talked|spoke|settled|arranged|planned|chose|picked"
_SAY: Final = "say|tell|mention|discuss|agree|decide|talk|speak|settle|arrange|plan|choose|pick"
_BACK: Final = re.compile(
    rf"\b(?:earlier|previously|yesterday|back then|the other day|day one|(?:the )?first day)\b"
    rf"|\b(?:last|past|previous) (?:time|night|week|weekend|month|year|chat|conversation|session)\b"
    rf"|\b(?:days?|weeks?|months?|years?|while) ago\b|\bat the (?:beginning|start)\b|\bin the beginning\b"
    rf"|\b(?:we|i|you)(?:'d|’d|'ve|’ve| had| have)? (?:already |once |just )?(?:{_SAID})\b"
    rf"|\bdid (?:we|i|you) (?:\w+ )?(?:{_SAY})\b|\b(?:{_SAID}|asked) (?:you |me |us )?before\b"
    rf"|\b(?:you|i) (?:still )?remember\b|\bremember (?:what|when|which|who|where|how)\b|\bremind me\b"
    rf"|之前|以前|上次|上回|上一次|上个?(?:周|星期|礼拜|月)|前几[天次]|前些[天日]|昨天|前天|刚才|早些时候|先前|当初|那次|去年"
    rf"|还记得|记得吗|记不记得|一开始|第一天|[天周年]前|个月前|(?:说|提到?|谈|聊|讨论|商量|约定|商定|决定|告诉)过"
    rf"|(?:我们|你|我)(?:\S{{0,4}})(?:说|谈|聊|定|约|商)(?:好|定|妥)的",
    re.IGNORECASE,
)
# what frames a question and is not what it is about
_FRAME: Final = frozenset(
    "about after again all and any are been but can could did does for from get give had has have her here him his how "
    "into its just like many more much not now off one only our out over please say she should some such than that the "
    "their them then there these they this those thing things time tell told was were what when where which while who "
    "whom whose why will with would you your agree agreed ask asked decide decided discuss discussed mention mentioned "
    "said spoke talk talked remember remind".split()
)
_FRAME_WIDE: Final = re.compile(
    "什么时候|为什么|怎么样|是不是|有没有|什么|多少|怎么|如何|哪些|哪个|哪里|多久|几个|我们|你们|他们|告诉|请问|一下|来着|那个|这个"
    "|说过|提过|提到|谈过|聊过|讨论|决定|约定|[的了吗呢吧啊是在有和与我你他她它请都也还说谈聊定好过那这]"
)

logger = logging.getLogger(__name__)


def refers_back(text: str) -> bool:
    """Return whether a message plainly speaks of something said or done before. English and Chinese."""
    return len(text) <= QUESTION_CHARS and bool(_BACK.search(text))


def without_frame(text: str) -> str:
    """Return a question without what only says that it refers back."""
    return _BACK.sub(" ", text)


def about(text: str) -> list[str]:
    """Return what a question that refers back is about: `terms` without those of its frame."""
    bare = _FRAME_WIDE.sub(" ", without_frame(text))
    words = " ".join(word for word in bare.split() if word.strip("?!.,;:").casefold() not in _FRAME)
    return terms(words)


class Reminder:
    """A Preload (preparing.py) of the hidden part of the conversation and of the person's others, by the question's
    words. own: the policy the agent comes with."""

    def __init__(self, own: ContextPolicy) -> None:
        self._own = own

    async def __call__(self, invocation: Invocation) -> Block | None:
        services = invocation.services
        wanted = services.policy(invocation.agent_name, self._own).preload_recall
        question = question_of(invocation) if wanted and services.recall is not NO_RECALL else ""
        words = about(question) if refers_back(question) else []
        if not words:
            return None
        try:
            found = await services.recall.search(question, scope=RecallScope.ALL_SESSIONS, limit=HITS)
        except RecallFailed:
            logger.info("run %s: nothing was recalled, the past cannot be read", invocation.run_id)
            return None
        taken = excerpts(found, " ".join(words), tokens=TOKENS)
        if not any(_holds(excerpt, words) for excerpt in taken):
            return None
        scopes = {one.piece.thread_id: one.scope for one in found}
        text = "\n\n".join(told(taken, [scopes[excerpt.piece.thread_id] for excerpt in taken]))
        citations = {citation.id: citation for excerpt in taken for citation in excerpt.citations}
        return Block(kind="recall", text=text, citations=tuple(citations.values()))


def _holds(excerpt: Excerpt, words: Sequence[str]) -> bool:
    text = excerpt.piece.text.casefold()
    there = sum(len(word) for word in words if word in text)
    return there >= LEAST * sum(map(len, words))
