"""What the rules of extraction take out of a sentence, in either language."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agents.runtime.memory.memories import Kind

# Of these a person may have several, each with a name of its own.
_MANY: Final = re.compile(
    r"sister|brother|son|daughter|child|kid|uncle|aunt|cousin|nephew|niece|colleague|friend|dog|cat|horse|client|"
    r"customer|"
    r"grand|neighbo|parents|teacher|doctor|lawyer|mate|儿子|女儿|孩子|小孩|哥哥|姐姐|弟弟|妹妹|同事|室友|家人|狗|猫|"
    r"客户|老师|"
    r"医生|律师|父母|合伙人|搭档|爱好"
)
# What is said to hold beside something else takes no place.
_ALSO: Final = re.compile(r"\b(?:also|as well|too|another|second|part-?time|side job)\b|也|还在|还有|兼", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One thing that a person said of themselves, in their words.

    slot: what can be true in one way only, as "home"; value: which way, lower case. was: what it was before, "" = not
    said. ended: it no longer holds. others: it is about somebody of theirs. past: times in it that could be ahead or
    behind are behind.
    """

    text: str
    kind: Kind = Kind.FACT
    slot: str = ""
    value: str = ""
    was: str = ""
    ended: bool = False
    others: bool = False
    past: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern that a clause must begin with.

    Its groups, if there are such: v, the value of the slot; was, the value before; noun, who or what of theirs it is
    about, which the slot may name: "my {noun}".
    """

    pattern: "re.Pattern[str]"
    slot: str = ""
    ended: bool = False

    def taken(self, clause: str, text: str) -> Statement | None:
        """Return the statement that the clause makes, with this text; None = it makes none."""
        found = self.pattern.match(clause)
        if found is None:
            return None
        groups = {name: (part or "").strip().casefold() for name, part in found.groupdict().items()}
        noun = groups.get("noun", "")
        one = not _MANY.search(noun) and not _ALSO.search(clause)
        return Statement(
            text=text,
            slot=self.slot.format(**groups) if one else "",
            value=groups.get("v", ""),
            was=groups.get("was", ""),
            ended=self.ended,
            others=bool(noun),
        )


def first(rules: Sequence[Rule], clause: str, text: str) -> Statement | None:
    """Return what the first rule that fits makes of the clause."""
    return next((found for rule in rules if (found := rule.taken(clause, text)) is not None), None)
