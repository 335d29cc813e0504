"""Takes out of a text what must not travel: credentials, e-mail addresses, telephone numbers, names of people.

The same on the way to a reviewer, on the way back, and before anything is stored. What stood there cannot be told from
what stands there afterwards. All is told by its form, names by the list of this installation's people: a secret that
looks like an ordinary word, and a stranger's name, go through.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from agents.runtime.evolution.proposals import Proposal, Spec

SECRET: Final = "[REDACTED]"
MAIL: Final = "[E-MAIL]"
PHONE: Final = "[PHONE]"
NAME: Final = "[NAME]"
MARKS: Final = (SECRET, MAIL, PHONE, NAME)

# Texts of any length and kind come here, so nothing may be tried at every place and run on to the end from each: what
# repeats is bounded, and what stands before the name of a secret is not looked at.
_SECRET_NAME = (
    r"(?:token|secret|password|passwd|passphrase|pwd|api[_-]?key|access[_-]?key|private[_-]?key)"
    r"(?:[_-][A-Za-z0-9]{1,40}){0,6}"
)
_BEGINS = r"(?<![A-Za-z0-9])"
_IS_SECRET = re.compile(rf"(?:.*[_-])?{_SECRET_NAME}", re.IGNORECASE)
_VALUE = r"(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s,;\"'}\])]+)"
_WHOLE: Final = (  # all of it is the secret
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(r"\beyJ[\w-]{6,2000}\.[\w-]{6,}(?:\.[\w-]*)?"),  # a JWT
    re.compile(r"\bsk-[A-Za-z0-9_-]{8,}"),
    re.compile(r"\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{16,}|\bglpat-[\w-]{16,}"),
    re.compile(r"\bxox[abprs]-[\w-]{10,}|\bAIza[\w-]{30,}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
)
_KEPT_BEGINNING: Final = (  # what stands before it says what was there
    re.compile(
        r"(\bauthorization[\"']?\s*[:=]\s*[\"']?(?:(?:bearer|basic|token)\s+)?+)(?!\[)[^\s\"',;]+", re.IGNORECASE
    ),
    re.compile(r"(\bbearer\s+)(?!\[)[A-Za-z0-9._~+/=-]{12,}", re.IGNORECASE),
    re.compile(rf"(--(?:[A-Za-z0-9]{{1,40}}[_-]){{0,6}}{_SECRET_NAME}(?:=|\s+))(?!\[){_VALUE}", re.IGNORECASE),
    re.compile(rf"({_BEGINS}{_SECRET_NAME}[\"']?\s*(?:[:=]|：)\s*)(?!\[)(?!{{){_VALUE}", re.IGNORECASE),
    re.compile(r"(\bcookie[\"']?\s*[:=]\s*[\"']?[\w.-]+=)(?!\[)[^\s\"']+", re.IGNORECASE),
    re.compile(r"((?:密码|口令|密钥|令牌)\s*(?:[:=：]|是|为)\s*)(?!\[)[^\s,;，；。]+"),
    re.compile(r"(\b[a-z][a-z0-9+.-]{0,30}://[^\s/:@]+:)(?!\[)[^\s/@]+(?=@)", re.IGNORECASE),
)
_MAIL = re.compile(r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]++@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
_PHONE = re.compile(
    r"(?<![\w.,/-])(?:\+\d{1,3}[ .-]?)(?:\(?\d{1,4}\)?[ .-]?){2,5}\d{2,4}(?![\w/-])"  # +49 30 1234567
    r"|(?<![\w.,/-])\(\d{2,5}\)[ .-]?\d{3,4}[ .-]?\d{3,4}(?![\w/-])"  # (030) 123 4567
    r"|(?<![\w.,/-])\d{3}[ .-]\d{3}[ .-]\d{4}(?![\w/-])"  # 555-123-4567
    r"|(?<![\w.,/-])1[3-9]\d{9}(?!\d)"  # of China
    r"|(?<![\w.,/-])0\d{2,3}-\d{7,8}(?!\d)"
)
SHORTEST_NAME: Final = 2  # characters; a single one is no name that could be told from a word


class Redactor:
    """Takes out what must not travel. names: of the people of this installation, account names too."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        known = sorted({name.strip() for name in names if len(name.strip()) >= SHORTEST_NAME}, key=len, reverse=True)
        parts = "|".join(_name(name) for name in known)
        self._names = re.compile(parts, re.IGNORECASE) if parts else None

    def text(self, text: str) -> str:
        """Return the text without it. Done twice, it changes nothing more."""
        for pattern in _WHOLE:
            text = pattern.sub(SECRET, text)
        for pattern in _KEPT_BEGINNING:
            text = pattern.sub(rf"\g<1>{SECRET}", text)
        text = _PHONE.sub(PHONE, _MAIL.sub(MAIL, text))
        return self._names.sub(NAME, text) if self._names else text

    def value(self, value: Any) -> Any:
        """Return JSON without it, keys of mappings included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            # a value that stands under the name of a secret is one, however it looks
            return {self.text(str(key)): self._under(str(key), item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value

    def spec(self, spec: Spec) -> Spec:
        """Return a spec without it."""
        return Spec(
            name=self.text(spec.name),
            description=self.text(spec.description),
            when_to_use=self.text(spec.when_to_use),
            steps=tuple(map(self.text, spec.steps)),
            pitfalls=tuple(map(self.text, spec.pitfalls)),
            rules=tuple(map(self.text, spec.rules)),
        )

    def proposal(self, proposal: Proposal) -> Proposal:
        """Return a proposal without it."""
        spec = self.spec(proposal.spec) if proposal.spec else None
        return replace(proposal, spec=spec, reason=self.text(proposal.reason), note=self.text(proposal.note))

    def _under(self, key: str, item: Any) -> Any:
        if isinstance(item, str) and item and _IS_SECRET.fullmatch(key):
            return SECRET
        return self.value(item)


def _name(name: str) -> str:
    """Return the pattern of a name as a word of its own; Chinese names stand between other characters."""
    escaped = re.escape(name)
    return rf"(?<!\w){escaped}(?!\w)" if name.isascii() else escaped
