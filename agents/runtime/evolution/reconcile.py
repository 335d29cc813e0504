"""Proposals against the library: what is new only in name becomes a change of what is there, and says why.

Only a person's own skills that are managed here are changed; what would change another is refused. It makes
duplicates fewer; whether a proposal is good is for gates.py.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agents.runtime.evolution.likeness import canonical, cosine, overlap, uncounted, words
from agents.runtime.evolution.proposals import Action, Known, Proposal, Review, Spec, described
from agents.runtime.skills.format import slug

ALIKE: Final = 0.5  # share of words
LEAST_SHARED: Final = 2
NEAR: Final = 0.7  # cosine: of the default embedder, what is the same task in other words is above it
_SUFFIX = re.compile(r"(?:[-:(\[/|_. （【]|v\d)")

Vectors = Mapping[str, Sequence[float]]
"""Vectors of texts, by text; whatever is missing is compared by words alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A proposal that is not followed, and why: unknown, not_managed, duplicate."""

    proposal: Proposal
    code: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    proposals: tuple[Proposal, ...]
    refused: tuple[Refused, ...]


def text_of(name: str, description: str) -> str:
    """Return the text whose vector stands for a skill."""
    return f"{name.replace('-', ' ')}: {description}"


def reconcile(review: Review, known: Sequence[Known], vectors: Vectors | None = None) -> Reconciled:
    """Return what of a review is to be carried out, in order, and what is not.

    known: all skills that the person sees, so that nothing of another's is made anew under its name.
    """
    by_name = {one.name: one for one in known}
    kept: list[Proposal] = []
    refused: list[Refused] = []
    doomed = {p.target for p in review.proposals if p.action is Action.DELETE}
    changed = {p.target for p in review.proposals if p.action is Action.UPDATE}
    for proposal in review.proposals:
        if proposal.action is Action.CREATE:
            proposal = _placed(proposal, known, doomed, vectors or {})
        target = by_name.get(proposal.name)
        merged = proposal.action is Action.UPDATE and bool(proposal.note)
        if proposal.action is not Action.CREATE and target is None:
            refused.append(Refused(proposal=proposal, code="unknown", words=f"There is no skill {proposal.target}."))
        elif target is not None and not target.changeable:
            words = f"{target.name} is not managed here, so no review changes it."
            refused.append(Refused(proposal=proposal, code="not_managed", words=words))
        elif merged and proposal.target in changed:
            words = f"{proposal.target} is changed already by this review."
            refused.append(Refused(proposal=proposal, code="duplicate", words=words))
        elif twin := next((one for one in kept if _same(one, proposal)), None):
            words = f"It says the same as {twin.name}."
            refused.append(Refused(proposal=proposal, code="duplicate", words=words))
        else:
            kept.append(proposal)
            changed |= {proposal.target} if proposal.action is Action.UPDATE else set()
    return Reconciled(proposals=tuple(kept), refused=tuple(refused))


def _same(one: Proposal, other: Proposal) -> bool:
    """Return whether two of one batch are about the same skill, or say the same."""
    if canonical(one.name) == canonical(other.name):
        return True
    if one.spec is None or other.spec is None:
        return False
    return _shape(one.spec) == _shape(other.spec)


def _shape(spec: Spec) -> tuple[tuple[str, ...], ...]:
    return tuple(words(text) for text in (spec.when_to_use, *spec.steps))


def _placed(proposal: Proposal, known: Sequence[Known], doomed: set[str], vectors: Vectors) -> Proposal:
    """Return a new skill as a change of the one that it is like, if there is one."""
    assert proposal.spec is not None
    spec = proposal.spec
    there = [one for one in known if one.name not in doomed]
    for rule in _RULES:
        if (found := rule(spec, there, vectors)) is not None:
            parent, why = found
            note = f"merged into {parent.name} because {why}"
            changed = replace(spec, name=parent.name)
            return Proposal(
                action=Action.UPDATE, target=parent.name, spec=changed, reason=proposal.reason or why, note=note
            )
    return proposal


def _by_suffix(spec: Spec, known: Sequence[Known], _: Vectors) -> tuple[Known, str] | None:
    names = {slug(spec.name), spec.name.casefold()}
    parents = [
        one
        for one in known
        for name in names
        if name == one.name or (name.startswith(one.name) and _SUFFIX.match(name[len(one.name) :]))
    ]
    best = max(parents, key=lambda one: len(one.name), default=None)
    return (best, f"the name {slug(spec.name)} is that name with something behind it") if best else None


def _by_count(spec: Spec, known: Sequence[Known], _: Vectors) -> tuple[Known, str] | None:
    own = uncounted(spec.name)
    found = next((one for one in known if own and uncounted(one.name) == own), None)
    return (found, f"{slug(spec.name)} differs only in how many it is for") if found else None


def _by_words(spec: Spec, known: Sequence[Known], _: Vectors) -> tuple[Known, str] | None:
    own = words(f"{spec.name} {described(spec)}")
    shares = [(*overlap(own, words(f"{one.name} {one.description}")), one) for one in known if one.changeable]
    found = [(share, n, one) for share, n, one in shares if share >= ALIKE and n >= LEAST_SHARED]
    share, n, best = max(found, key=lambda each: each[:2], default=(0.0, 0, None))
    return (best, f"they share {n} words ({share:.2f})") if best else None


def _by_vectors(spec: Spec, known: Sequence[Known], vectors: Vectors) -> tuple[Known, str] | None:
    own = vectors.get(text_of(slug(spec.name), described(spec)))
    if own is None:
        return None
    near = [
        (cosine(own, vector), one)
        for one in known
        if one.changeable and (vector := vectors.get(text_of(one.name, one.description))) is not None
    ]
    best = max(near, key=lambda each: each[0], default=None)
    return (best[1], f"they mean nearly the same ({best[0]:.2f})") if best and best[0] >= NEAR else None


_RULES: Final[tuple[Callable[[Spec, Sequence[Known], Vectors], tuple[Known, str] | None], ...]] = (
    _by_suffix,
    _by_count,
    _by_words,
    _by_vectors,
)
