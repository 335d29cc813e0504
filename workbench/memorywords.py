"""What an answer says of memory, in the reader's language."""

from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.runtime.memory.policies import Verb
from agents.stores.remembering import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """A memory that the model was shown. muted: it is not shown to it any more."""

    id: str
    text: str
    muted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """What was done to memory. words: in front of the memory's text."""

    words: str
    change: Change

    @classmethod
    def of(cls, change: Change) -> "Changed":
        return cls(words=_words(change), change=change)


@dataclass(frozen=True, slots=True, kw_only=True)
class Foot:
    """Of one run. used: what is still there of what was shown; gone: how many of those are deleted since."""

    used: tuple[Used, ...] = ()
    gone: int = 0
    changes: tuple[Changed, ...] = ()

    @property
    def used_words(self) -> str:
        total = len(self.used) + self.gone
        return ngettext("Used {n} memory", "Used {n} memories", total).format(n=total) if total else ""

    @property
    def gone_words(self) -> str:
        found = ngettext("{n} more has been deleted since.", "{n} more have been deleted since.", self.gone)
        return found.format(n=self.gone) if self.gone else ""


def _words(change: Change) -> str:
    if change.undone and not change.text:
        return _("Taken back: it is not remembered.")
    match change.verb:
        case Verb.ADD:
            return _("Remembered:") if change.text else _("Something was remembered here, and deleted since.")
        case Verb.UPDATE:
            return _("Completed in memory:") if change.text else _("A memory was completed here, and deleted since.")
        case Verb.SUPERSEDE:
            return _("Changed in memory:") if change.text else _("A memory was changed here, and deleted since.")
        case Verb.DELETE:
            return _("Forgotten, as you asked.")
        case Verb.CLEAR:
            return _("Everything is forgotten, as you asked.")
