"""What becomes of operations that were proposed: one decision for each, with its reason. Nothing is written here.

PRESERVE_HISTORY is the rule of the house: a repetition is dropped, an update only completes what is there, and what
changed is superseded, which keeps the old fact as history. Ids are those of candidates, tombstones come before an add.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from agents.runtime.memory.dates import Period, Precision
from agents.runtime.memory.forgetting import Forgetting
from agents.runtime.memory.memories import (
    Draft,
    Memory,
    MemoryInvalid,
    Source,
    Tombstone,
    checked,
    content_hash,
    draft_of,
    merged,
)
from agents.runtime.memory.words import (
    CHANGED,
    has_han,
    in_order,
    jaccard,
    names,
    negations,
    normalised,
    numbers,
    tokens,
    words_hash,
)

OLD_COVERED: Final = 0.95  # of an old text's words, that an enrichment keeps
NEW_COVERED: Final = 0.70  # of an enrichment's words, that stood in the old text
SAME: Final = 0.70  # Jaccard above which merge_similar drops an add
SIMILAR: Final = 0.40  # above which it updates
_ADDS: Final = (",", ";", "(", "、", "和", "与", "及", "以及", "并")  # how a normalised Chinese text goes on


class Verb(StrEnum):
    ADD = "add"
    UPDATE = "update"  # completes what is there
    SUPERSEDE = "supersede"  # holds in its place from now on
    DELETE = "delete"
    CLEAR = "clear"


class Policy(StrEnum):
    PRESERVE_HISTORY = "preserve_history"
    MERGE_SIMILAR = "merge_similar"
    APPEND_ONLY = "append_only"


class Reason(StrEnum):
    NEW = "new"
    COMPLETES = "completes"  # an update that loses nothing
    SIMILAR = "similar"  # merge_similar found it near enough
    CHANGED = "changed"  # a supersede of a candidate
    ASKED = "asked"  # the person wanted it gone
    UPDATE_UNSAFE = "update_unsafe"  # it would lose something, so it is added
    UNKNOWN_ID = "unknown_id"  # not among the candidates: added if it is new, else nothing
    POLICY = "policy"  # what the policy makes of this verb
    DUPLICATE = "duplicate"  # nothing is done: it is there already
    BURIED = "buried"  # nothing: it was deleted after it was said
    NOT_ASKED = "not_asked"  # nothing: nobody asked to forget
    INVALID = "invalid"  # nothing: it cannot be stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What was proposed. draft: of add, update, supersede. memory_id: of update, supersede, delete.

    said_at: when what it comes from was said, None = it does not come from a message.
    """

    verb: Verb
    draft: Draft | None = None
    memory_id: str = ""
    said_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is to be done. verb: None = nothing. version: of the candidate it is about, for the store to check."""

    operation: Operation
    verb: Verb | None
    reason: Reason
    draft: Draft | None = None
    memory_id: str = ""
    version: int | None = None


def decide(
    operations: Sequence[Operation],
    candidates: Sequence[Memory],
    tombstones: Sequence[Tombstone],
    *,
    policy: Policy = Policy.PRESERVE_HISTORY,
    asked: Forgetting = Forgetting.NOTHING,
) -> tuple[Decision, ...]:
    """Return a decision for each operation, in order; each sees what those before it come to.

    candidates: what holds and may be meant; superseded ones are left out. tombstones: those of the operations' words
    (`hashes_of`). asked: what the person asked to have forgotten, without which nothing is deleted.
    """
    deciding = _Deciding(candidates, tombstones, policy, asked)
    return tuple(deciding.one(operation) for operation in operations)


def hashes_of(operations: Sequence[Operation]) -> frozenset[str]:
    """Return what to look up tombstones by."""
    return frozenset(words_hash(operation.draft.text) for operation in operations if operation.draft)


def completes(old: Draft, new: Draft) -> bool:
    """Return whether the new one says all that the old one says and more, and nothing else: safe to be put in its
    place. Every doubt is a no."""
    a, b = tokens(old.text), tokens(new.text)
    gained = names(new.text) - names(old.text)
    return (
        old.kind is new.kind
        and _time_kept(old.event_time, new.event_time)
        and {normalised(p) for p in old.participants} <= {normalised(p) for p in new.participants}
        and normalised(old.location) == normalised(new.location)
        and _share(a, b) >= OLD_COVERED
        and _share(b, a) >= NEW_COVERED
        and in_order(tuple(word for word in a if word in b), b)
        and numbers(old.text) <= numbers(new.text)
        and names(old.text) <= set(b)
        and negations(old.text) == negations(new.text)
        and len(CHANGED.findall(new.text)) <= len(CHANGED.findall(old.text))
        # a name put into the middle may make it another person
        and not any(word in gained for word in b[: _last(a, b)])
        and (not has_han(old.text) or _goes_on(old.text, new.text))
    )


def conflicts(old: Draft, new: Draft) -> bool:
    """Return whether two near texts are about different things: numbers, names, order, a denial, a change, time, place.

    Chinese has no capitals, so there two texts conflict unless one goes on with the other.
    """
    a, b = tokens(old.text), tokens(new.text)
    return (
        numbers(old.text) != numbers(new.text)
        or [word for word in a if word in b] != [word for word in b if word in a]
        or names(old.text) != names(new.text)
        or negations(old.text) != negations(new.text)
        or bool(CHANGED.search(new.text)) != bool(CHANGED.search(old.text))
        or old.event_time != new.event_time
        or normalised(old.location) != normalised(new.location)
        or {normalised(p) for p in old.participants} != {normalised(p) for p in new.participants}
        or (
            (has_han(old.text) or has_han(new.text))
            and not _goes_on(old.text, new.text)
            and not _goes_on(new.text, old.text)
        )
    )


class _Deciding:
    """The candidates as the operations so far leave them."""

    def __init__(
        self, candidates: Sequence[Memory], tombstones: Sequence[Tombstone], policy: Policy, asked: Forgetting
    ) -> None:
        self._versions = {memory.id: memory.version for memory in candidates if not memory.superseded_by}
        self._known: dict[str, Draft] = {m.id: draft_of(m) for m in candidates if not m.superseded_by}
        self._added: list[Draft] = []
        self._tombstones = tombstones
        self._policy = policy
        self._asked = asked

    def one(self, operation: Operation) -> Decision:
        if operation.verb in (Verb.DELETE, Verb.CLEAR):
            return self._removal(operation)
        if operation.draft is None:
            return Decision(operation=operation, verb=None, reason=Reason.INVALID)
        try:
            draft = checked(operation.draft)
        except MemoryInvalid:
            return Decision(operation=operation, verb=None, reason=Reason.INVALID)
        if self._is_buried(draft, operation.said_at):
            return Decision(operation=operation, verb=None, reason=Reason.BURIED)
        old = self._known.get(operation.memory_id)
        if operation.verb is Verb.ADD:
            return self._addition(operation, draft, Reason.NEW)
        if old is None:
            return self._addition(operation, draft, Reason.UNKNOWN_ID)
        if self._policy is Policy.APPEND_ONLY:
            return self._addition(operation, draft, Reason.POLICY)
        if content_hash(old) != content_hash(draft) and self._is_known(draft):
            return Decision(operation=operation, verb=None, reason=Reason.DUPLICATE)
        if operation.verb is Verb.SUPERSEDE:
            return self._change(operation, operation.memory_id, draft, Verb.SUPERSEDE, Reason.CHANGED)
        if self._policy is Policy.MERGE_SIMILAR:
            return self._change(operation, operation.memory_id, draft, Verb.UPDATE, Reason.SIMILAR)
        if completes(old, draft) or content_hash(old) == content_hash(draft):
            return self._change(operation, operation.memory_id, draft, Verb.UPDATE, Reason.COMPLETES)
        return self._addition(operation, draft, Reason.UPDATE_UNSAFE)

    def _removal(self, operation: Operation) -> Decision:
        everything = operation.verb is Verb.CLEAR
        enough = (Forgetting.EVERYTHING,) if everything else (Forgetting.SOME, Forgetting.EVERYTHING)
        if self._policy is Policy.APPEND_ONLY:
            return Decision(operation=operation, verb=None, reason=Reason.POLICY)
        if self._asked not in enough:
            return Decision(operation=operation, verb=None, reason=Reason.NOT_ASKED)
        if everything:
            self._known.clear()
            self._added.clear()
            return Decision(operation=operation, verb=Verb.CLEAR, reason=Reason.ASKED)
        if self._known.pop(operation.memory_id, None) is None:
            return Decision(operation=operation, verb=None, reason=Reason.UNKNOWN_ID)
        return Decision(operation=operation, verb=Verb.DELETE, reason=Reason.ASKED, memory_id=operation.memory_id)

    def _addition(self, operation: Operation, draft: Draft, reason: Reason) -> Decision:
        if self._is_known(draft):
            return Decision(operation=operation, verb=None, reason=Reason.DUPLICATE)
        if reason in (Reason.NEW, Reason.UNKNOWN_ID):
            if self._policy is Policy.MERGE_SIMILAR and (found := self._merge(operation, draft)) is not None:
                return found
            if self._policy is Policy.PRESERVE_HISTORY:
                for id, old in self._known.items():
                    if completes(old, draft):
                        topics = merged(old.topics, draft.topics)
                        fuller = replace(draft, topics=topics)
                        return self._change(operation, id, fuller, Verb.UPDATE, Reason.COMPLETES)
        self._added.append(draft)
        return Decision(operation=operation, verb=Verb.ADD, reason=reason, draft=draft)

    def _merge(self, operation: Operation, draft: Draft) -> Decision | None:
        """Return what merge_similar makes of an add that is near to a candidate; None = it is near to none."""
        words = tokens(draft.text)
        near = [
            (jaccard(words, tokens(old.text)), id)
            for id, old in self._known.items()
            if old.kind is draft.kind and not conflicts(old, draft)
        ]
        likeness, id = max(near, default=(0.0, ""))
        if likeness < SIMILAR:
            return None
        old = self._known[id]
        topics = merged(old.topics, draft.topics)
        if likeness < SAME:
            return self._change(operation, id, replace(draft, topics=topics), Verb.UPDATE, Reason.SIMILAR)
        if topics == old.topics:
            return Decision(operation=operation, verb=None, reason=Reason.DUPLICATE)
        return self._change(operation, id, replace(old, topics=topics), Verb.UPDATE, Reason.SIMILAR)

    def _change(self, operation: Operation, id: str, draft: Draft, verb: Verb, reason: Reason) -> Decision:
        version = self._versions.get(id)
        if verb is Verb.SUPERSEDE:  # a later operation means something else by this id
            del self._known[id]
            self._added.append(draft)
        else:
            self._known[id] = draft
            if version is not None:
                self._versions[id] = version + 1
        return Decision(operation=operation, verb=verb, reason=reason, draft=draft, memory_id=id, version=version)

    def _is_known(self, draft: Draft) -> bool:
        wanted = content_hash(draft)
        return any(content_hash(old) == wanted for old in (*self._known.values(), *self._added))

    def _is_buried(self, draft: Draft, said_at: datetime | None) -> bool:
        """Return whether a memory of these words was deleted after this was said. What a person types in may return."""
        if draft.source is Source.PERSON or said_at is None:
            return False
        wanted = words_hash(draft.text)
        return any(tombstone.hash == wanted and tombstone.at >= said_at for tombstone in self._tombstones)


def _share(words: tuple[str, ...], others: tuple[str, ...]) -> float:
    """Return how much of the words stands in the others."""
    return sum(word in others for word in words) / len(words) if words else 0.0


def _time_kept(old: Period | None, new: Period | None) -> bool:
    if old is None or new is None or old == new:
        return old is new or old == new
    return old.precision is Precision.DAY and old.holds(new)


def _last(few: tuple[str, ...], many: tuple[str, ...]) -> int:
    """Return where the last of the old words stands in the new text."""
    return max((n for n, word in enumerate(many) if word in few), default=0)


def _goes_on(old: str, new: str) -> bool:
    """Return whether the new text is the old one and then something more."""
    a, b = normalised(old), normalised(new)
    return a == b or (b.startswith(a) and b[len(a) :].startswith(_ADDS))
