"""Prompts that ask a model for a summary, checked when they are made."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from agents.runtime.context.words import harmless
from agents.runtime.summary import templates

TEXT: Final = "conversation_text"
PREVIOUS: Final = "previous_summary"
WORDS: Final = "max_summary_words"
_PLACEHOLDER = re.compile(r"\{\{([A-Za-z_]+)\}\}|\{([A-Za-z_]+)\}")


class PromptInvalid(ValueError):
    """A prompt that cannot be used. The message says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """Three texts. system and user make a standalone request; fork is put behind a request that was sent before.

    user must hold {conversation_text} and may hold {previous_summary}; system and fork must hold neither. With
    words > 0, {max_summary_words} must stand in system or user. `{{x}}` is the same as `{x}`. headings: those the
    answer is asked to have, () = none. Raises PromptInvalid.
    """

    system: str
    user: str
    fork: str
    words: int = 0
    headings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        allowed = {"system": {WORDS}, "user": {TEXT, PREVIOUS, WORDS}, "fork": {WORDS}}
        for name, known in allowed.items():
            text = getattr(self, name)
            if not text.strip():
                raise PromptInvalid(f"The {name} prompt is empty.")
            for placeholder in placeholders(text):
                if placeholder not in known:
                    raise PromptInvalid(f"The {name} prompt must not hold {{{placeholder}}}.")
        if TEXT not in placeholders(self.user):
            raise PromptInvalid(f"The user prompt must hold {{{TEXT}}}.")
        if self.words > 0 and WORDS not in placeholders(self.user) | placeholders(self.system):
            raise PromptInvalid(f"The number of words is limited, so a prompt must hold {{{WORDS}}}.")

    @property
    def apart(self) -> bool:
        """Whether the previous summary has its own place in the user prompt."""
        return PREVIOUS in placeholders(self.user)

    def system_text(self) -> str:
        return render(self.system, {WORDS: self._words})

    def fork_text(self) -> str:
        return render(self.fork, {WORDS: self._words})

    def user_text(self, conversation: str, previous: str) -> str:
        """Return the user prompt about this conversation; a previous summary without a place becomes its first line.

        Both are data: they cannot close the tags that they stand in.
        """
        if previous and not self.apart:
            conversation = f"system: {previous}\n{conversation}"
        values = {TEXT: harmless(conversation), PREVIOUS: harmless(previous), WORDS: self._words}
        return render(self.user, values)

    @property
    def _words(self) -> str:
        return str(self.words) if self.words > 0 else ""


def placeholders(text: str) -> set[str]:
    return {found[1] or found[2] for found in _PLACEHOLDER.finditer(text)}


def render(text: str, values: Mapping[str, str]) -> str:
    """Return the text with its placeholders filled in; what is filled in is not looked at again.

    Raises PromptInvalid for a placeholder without a value.
    """

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if name not in values:
            raise PromptInvalid(f"Nothing is known of {{{name}}}.")
        return values[name]

    return _PLACEHOLDER.sub(value, text)


@lru_cache(maxsize=64)
def prompts_of(template: str, language: str, words: int) -> Prompts:
    """Return the prompts of a template (policy.TEMPLATES) in English ("en") or Chinese ("zh").

    Raises PromptInvalid for a template that is not there.
    """
    if template not in templates.PURPOSES:
        raise PromptInvalid(f"There is no template {template}.")
    lang = language if language in templates.LANGUAGES else "en"
    headings = templates.headings(template, lang)
    limit = templates.LIMIT[lang] if words > 0 else ""
    wanted = templates.WANTED[lang].format(headings=templates.SEPARATOR[lang].join(headings)) if headings else ""
    system = templates.SYSTEM[lang] + templates.PURPOSES[template][lang] + wanted + limit
    fork = templates.FORK[lang].format(purpose=templates.BRIEFLY[template][lang]) + wanted + limit
    return Prompts(system=system, user=templates.USER[lang], fork=fork, words=words, headings=headings)


def missing_headings(text: str, headings: tuple[str, ...]) -> tuple[str, ...]:
    """Return the headings that the text does not have as a line of its own, whatever marks stand around them."""
    found = {re.sub(r"^[\s#*\d.、()（）]+|[\s*:：]+$", "", line).casefold() for line in text.splitlines()}
    return tuple(heading for heading in headings if heading.casefold() not in found)
