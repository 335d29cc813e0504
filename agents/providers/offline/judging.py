"""Which sentences answer a question, and whether any does; which say what a text is about. Pure functions.

A sentence counts by the question's words that it, its heading, its neighbours and its document hold, rare words more.
It answers if it holds enough of them, everything that was named, and a thing of the kind that was asked for. No meaning
is understood: what says the same in other words is not found.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from agents.providers.offline.kinds import Kind, attribute_of, counts, holds, kind_of
from agents.providers.offline.terms import WEAK_TERMS, bag, names, terms, weights
from agents.providers.offline.units import QUOTE_CHARS, Unit, joined

# What a word counts by where it stands, seen from a sentence
HEADING, NEAR, PASSAGE, DOCUMENT = 0.7, 0.55, 0.4, 0.25
WITH_KIND, WITHOUT_KIND = 1.25, 0.6
CUT_OFF = 0.72  # of the best one's score
FAR = 0.3  # what a word counts towards ENOUGH that only the document holds
# Of the weight of what the question is about, the least that answers, by what it asks for: the surer an amount or a
# time shows that a sentence answers, the fewer words it has to share with the question
ENOUGH = {
    Kind.OFTEN: 0.7,
    Kind.DURATION: 0.75,
    Kind.MONEY: 0.7,
    Kind.DATE: 0.7,
    Kind.TIME: 0.7,
    Kind.PLACE: 0.72,
    Kind.PERSON: 0.75,
}
ENOUGH_OTHERWISE = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A quotation. score: comparable within one judgement. cite: "" = no citation was issued for it. place: of its unit
    among those that were judged. answers: whether it answers by itself.
    """

    document: str
    text: str
    page: int
    line: int
    score: float
    heading: str = ""
    cite: str = ""
    place: int = 0
    answers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """passages: best first. answers: whether they answer. coverage: of the question's weight, 0 to 1, by the best.

    named: the best holds all that the question names, and it names something.
    """

    passages: tuple[Passage, ...] = ()
    answers: bool = False
    coverage: float = 0.0
    named: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Around:
    """The words a unit is seen with."""

    own: frozenset[str]
    heading: frozenset[str]
    near: frozenset[str]
    passage: frozenset[str]
    document: frozenset[str]

    def factor(self, term: str) -> float:
        layers = ((self.own, 1.0), (self.heading, HEADING), (self.near, NEAR), (self.passage, PASSAGE))
        return next((f for words, f in layers if term in words), DOCUMENT if term in self.document else 0.0)


@dataclass(slots=True)
class _Texts:
    """The units' words, as they are seen from each other."""

    units: Sequence[Unit]
    bags: list[frozenset[str]] = field(init=False)
    of_passage: dict[str, frozenset[str]] = field(init=False)
    of_document: dict[str, frozenset[str]] = field(init=False)
    of_path: dict[tuple[str, ...], frozenset[str]] = field(init=False)

    def __post_init__(self) -> None:
        self.bags = [bag(unit.text) for unit in self.units]
        self.of_path = {path: bag("\n".join(path)) for path in {unit.path for unit in self.units}}
        passages: dict[str, set[str]] = {}
        documents: dict[str, set[str]] = {}
        for unit, words in zip(self.units, self.bags, strict=True):
            passages.setdefault(unit.cite, set()).update(words)
            whole = documents.setdefault(unit.document, set(bag(unit.document)))
            whole.update(words, self.of_path[unit.path])
        self.of_passage = {cite: frozenset(words) if cite else frozenset() for cite, words in passages.items()}
        self.of_document = {name: frozenset(words) for name, words in documents.items()}

    def spread(self) -> Counter[str]:
        headed = (words | self.of_path[u.path] for u, words in zip(self.units, self.bags, strict=True))
        return Counter(term for words in headed for term in words)

    def around(self, i: int) -> _Around:
        unit = self.units[i]
        heading = self.of_path[unit.path]
        document = self.of_document[unit.document]
        if unit.row:  # a row says all by itself
            document = bag(unit.document)
            return _Around(own=self.bags[i], heading=heading, near=frozenset(), passage=frozenset(), document=document)
        near = frozenset().union(*(self.bags[j] for j in self.near(i)))
        passage = self.of_passage[unit.cite]
        return _Around(own=self.bags[i], heading=heading, near=near, passage=passage, document=document)

    def near(self, i: int) -> list[int]:
        """Return the units next to one, in its passage; rows have none."""
        unit = self.units[i]
        near = (j for j in (i - 1, i + 1) if 0 <= j < len(self.units) and not unit.row)
        return [j for j in near if self.units[j].document == unit.document and self.units[j].cite == unit.cite]

    def beside(self, i: int, fits: Sequence[bool]) -> bool:
        """Return whether a unit next to one fits."""
        return any(fits[j] for j in self.near(i))


def judge(
    units: Sequence[Unit], question: str, *, count: int = 3, cut_off: float = CUT_OFF, whole: bool = True
) -> Judged:
    """Return the passages that share most with the question, best first, and whether they answer it.

    cut_off: share of the best one's score below which others are left out. whole: a passage holds what stands around
    its sentence in the paragraph, too.
    """
    texts = _Texts(units)
    asked = _Asked.of(question, texts.spread(), len(units))
    if not asked.weights:
        return Judged()
    arounds = [texts.around(i) for i in range(len(units))]
    fits = [asked.fits(unit.text) for unit in units]
    scores = []
    for i, unit in enumerate(units):
        score = asked.score(arounds[i])
        score *= WITH_KIND if asked.kind and fits[i] else 1.0 if texts.beside(i, fits) else WITHOUT_KIND
        scores.append(score * 0.5 if unit.is_heading else score)  # a heading says where, not what
    chosen = _pick(units, scores, count, cut_off, whole)
    if not chosen:
        return Judged()

    def answers(i: int) -> bool:
        there = asked.coverage(arounds[i]) >= asked.enough and asked.has_all(arounds[i])
        return there and (fits[i] or texts.beside(i, fits))

    passages = tuple(replace(passage, answers=answers(passage.place)) for passage in chosen)
    best = arounds[passages[0].place]
    return Judged(
        passages=passages,
        answers=passages[0].answers,
        coverage=asked.coverage(best),
        named=bool(asked.named) and all(best.factor(name) > DOCUMENT for name in asked.named),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What a question asks for. weights: of its words. named: those that have to be there. attribute: what is asked of
    something, which has to stand near."""

    question: str
    weights: Mapping[str, float]
    named: frozenset[str]
    attribute: frozenset[str]
    kind: Kind | None

    @classmethod
    def of(cls, question: str, spread: Mapping[str, int], count: int) -> "_Asked":
        found = weights(question, spread, count) if count else {}
        return cls(
            question=question,
            weights=found,
            named=names(question) & found.keys(),
            attribute=frozenset(weights(attribute_of(question), spread, count).keys() - WEAK_TERMS),
            kind=kind_of(question),
        )

    @property
    def enough(self) -> float:
        return ENOUGH_OTHERWISE if self.kind is None else ENOUGH.get(self.kind, ENOUGH_OTHERWISE)

    def fits(self, text: str) -> bool:
        """Return whether the text holds a thing of the kind that is asked for."""
        return holds(text, self.kind) and (self.kind is not Kind.NUMBER or counts(self.question, text))

    def score(self, around: "_Around") -> float:
        factors = {term: around.factor(term) for term in self.weights}
        if max(factors.values()) <= DOCUMENT:
            return 0.0
        return sum(weight * factors[term] for term, weight in self.weights.items()) / sum(self.weights.values())

    def coverage(self, around: "_Around") -> float:
        """Return the share of what the question is about, names aside, that is there. 1 if it is about names only."""
        about = {term: weight for term, weight in self.weights.items() if term not in self.named}
        factors = {term: around.factor(term) for term in about}
        there = sum(w * (1.0 if factors[t] > DOCUMENT else FAR * bool(factors[t])) for t, w in about.items())
        return there / sum(about.values()) if about else 1.0

    def has_all(self, around: "_Around") -> bool:
        named = all(around.factor(name) for name in self.named)
        return named and all(around.factor(term) > DOCUMENT for term in self.attribute)


def gist(units: Sequence[Unit], *, count: int = 5) -> list[Passage]:
    """Return the units that speak of what the text speaks of most, in the text's order; never two that say the same."""
    sentences = [u for u in units if not u.is_heading and len(u.text) > 12]
    bags = [set(terms(u.text)) for u in sentences]
    spread = Counter(t for words in bags for t in words)
    most = len(sentences)

    def weight(place: int) -> float:
        known = [spread[t] for t in bags[place] if spread[t] > 1]
        central = sum(math.log(1 + n) for n in known) / (4 + len(bags[place])) ** 0.6
        early = 1.0 + 0.6 * math.exp(-8.0 * place / most)  # texts say what they are about at their beginning
        return central * early if known else 0.01 * early

    chosen: list[int] = []
    for place in sorted(range(most), key=lambda p: (-weight(p), p)):
        if all(_overlap(bags[place], bags[other]) < 0.5 for other in chosen):
            chosen.append(place)
        if len(chosen) == count:
            break
    return [replace(passage_of(sentences[p]), place=sentences[p].place) for p in sorted(chosen)]


def passage_of(unit: Unit, score: float = 1.0, text: str = "") -> Passage:
    return Passage(
        document=unit.document,
        text=text or unit.text,
        page=unit.page,
        line=unit.line,
        score=score,
        heading="" if unit.is_heading else unit.heading,
        cite=unit.cite,
    )


def _pick(units: Sequence[Unit], scores: Sequence[float], count: int, cut_off: float, whole: bool) -> list[Passage]:
    """Return the best passages that do not overlap; headings alone, and what is far behind the best, are left out."""
    around = {i: _around(units, i) for i, score in enumerate(scores) if score > 0}
    places = {i: near if whole or units[i].is_heading else [i] for i, near in around.items()}
    says = [i for i, near in places.items() if not all(units[j].is_heading for j in near)]
    order = sorted(says, key=lambda i: (-scores[i], i))
    taken: set[int] = set()
    chosen: list[Passage] = []
    for i in order:
        if len(chosen) == count or scores[i] < cut_off * scores[order[0]]:
            break
        near = places[i]
        if taken.isdisjoint(near):
            taken.update(near)
            text = joined([units[j].text for j in near])
            chosen.append(replace(passage_of(units[near[0]], scores[i], text), place=i))
    return chosen


def _around(units: Sequence[Unit], i: int) -> list[int]:
    """Return i and what stands around it in its paragraph, as much as a quotation may hold; for a heading, the next."""
    start, end = i, i + 1
    size = len(units[i].text)

    def fits(j: int) -> bool:
        if not 0 <= j < len(units):
            return False
        unit, other = units[i], units[j]
        same = other.document == unit.document and other.cite == unit.cite
        return same and size + len(other.text) <= QUOTE_CHARS

    if units[i].is_heading and fits(i + 1):
        return [i, i + 1]
    while True:
        if fits(end) and units[end].paragraph == units[i].paragraph:
            size += len(units[end].text)
            end += 1
        elif fits(start - 1) and units[start - 1].paragraph == units[i].paragraph:
            start -= 1
            size += len(units[start].text)
        else:
            return list(range(start, end))


def _overlap(a: set[str], b: set[str]) -> float:
    return len(a & b) / (min(len(a), len(b)) or 1)
