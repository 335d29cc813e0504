"""Conversations to replay: exchanges, each of what a person says and what the agent then does."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from workbench.bench.readers import History


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call and what it returned. arguments: JSON text."""

    name: str
    arguments: str
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One answer of the model; its calls are made together."""

    text: str = ""
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One run. said: the person's messages, the first of which started it. memory: what is preloaded, "" = nothing."""

    said: tuple[str, ...]
    steps: tuple[Step, ...]
    memory: str = ""


def exchanges(history: History) -> Iterator[Exchange]:
    """Yield a data set's history as runs, one event per turn: a run begins where a person's turn follows an agent's."""
    said: tuple[str, ...] = ()
    for user, turns in groupby(history.turns, key=lambda turn: turn.user):
        texts = tuple(turn.text for turn in turns)
        if user:
            said = texts
        else:
            yield Exchange(said=said, steps=tuple(Step(text=text) for text in texts))
            said = ()
    if said:
        yield Exchange(said=said, steps=())


def events(script: Iterable[Exchange]) -> int:
    """Return how many messages, answers and results the exchanges hold."""
    return sum(len(e.said) + sum(1 + len(s.calls) for s in e.steps) for e in script)
