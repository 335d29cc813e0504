"""What a review proposes: a way of working as a spec, and what is to be done with it in the library of skills."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from agents.runtime.memory.words import cleaned
from agents.runtime.skills.format import slug, written
from agents.runtime.skills.skill import DESCRIPTION_CHARS


class Action(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A way of working. name: as a person would say it; steps, pitfalls: one sentence each.

    rules: lines for the assistant that goes by rules (what a SKILL.md holds in its block `offline`), () = none.
    """

    name: str
    description: str
    when_to_use: str
    steps: tuple[str, ...]
    pitfalls: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What is to be done. target: name of the skill that is changed or deleted, "" = a new one. spec: None = delete.

    reason: why, in the reviewer's words. note: what reconciling made of it, "merged into X because ...".
    """

    action: Action
    target: str = ""
    spec: Spec | None = None
    reason: str = ""
    note: str = ""

    @property
    def name(self) -> str:
        """Return the name that the skill has, or is to have."""
        return self.target or (slug(self.spec.name) if self.spec else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What a reviewer says. skip_reason: why nothing is proposed; with it there are no proposals."""

    skip_reason: str = ""
    proposals: tuple[Proposal, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A skill that is there. changeable: the person's own and managed here, so that a review may propose to change it.

    id: of the revision that holds, for whoever keeps them.
    """

    name: str
    description: str
    body: str = ""
    changeable: bool = False
    id: int | None = None


def described(spec: Spec) -> str:
    """Return the description of a skill: what it does and when it is used, on one line."""
    what, when = cleaned(spec.description), cleaned(spec.when_to_use)
    text = what if when.casefold() in what.casefold() else f"{what.rstrip('.。')}. {when}" if what else when
    return text[:DESCRIPTION_CHARS]


def body(spec: Spec) -> str:
    """Return the body of a SKILL.md that says this."""
    parts = [f"# {cleaned(spec.name)}", f"## When to use\n\n{spec.when_to_use.strip()}"]
    parts.append("## Steps\n\n" + "\n".join(f"{n}. {cleaned(step)}" for n, step in enumerate(spec.steps, 1)))
    if spec.pitfalls:
        parts.append("## Pitfalls\n\n" + "\n".join(f"- {cleaned(one)}" for one in spec.pitfalls))
    if spec.rules:
        lines = "\n".join(map(cleaned, spec.rules))
        parts.append(f"The block is for the assistant that goes by rules; pass it over.\n\n```offline\n{lines}\n```")
    return "\n\n".join(parts)


def rendered(spec: Spec, name: str) -> str:
    """Return the whole SKILL.md: what a model would read of it, name included."""
    return written(name, described(spec), body(spec))


def texts(spec: Spec) -> Sequence[str]:
    """Return every text of a spec."""
    return (spec.name, spec.description, spec.when_to_use, *spec.steps, *spec.pitfalls, *spec.rules)
