"""How many tokens a model's window holds, where that is known from, and how many of them a request may take."""

from dataclasses import dataclass
from typing import Final

from agents.runtime.context.knownwindows import KNOWN
from agents.runtime.policy import ContextPolicy

GUESS_TOKENS: Final = 32_768
SHORTENED: Final = 0.5  # of a request that was too long: what is tried instead
FORGET_S: Final = 3_600.0  # after so long a refusal may have had another reason, or another model has the name
_AFTER_NAME: Final = ("-", "@", ":")  # what may follow a known name: a date, a size, a tag


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """source: run, settings, model, provider (its list of models), registry (known names) or guess."""

    tokens: int
    source: str


GUESS: Final = Window(tokens=GUESS_TOKENS, source="guess")


@dataclass(slots=True)
class Tried:
    """What requests have shown of one model's window, where nobody names it: kept for all runs of a process.

    answered: tokens of the largest request that was answered; refused, refused_at: of the smallest that was too long
    in the last FORGET_S, 0 = none, and when, by the caller's monotonic clock. One event loop writes it.
    """

    answered: int = 0
    refused: int = 0
    refused_at: float = 0.0

    def learn_answered(self, tokens: int) -> None:
        """Take in that a request of so many tokens was not too long."""
        self.answered = max(self.answered, tokens)

    def learn_refused(self, tokens: int, now: float) -> None:
        """Take in that a request of so many tokens was too long, whatever was answered before."""
        self.refused = min(self.refused, tokens) if self._holds(now) else tokens
        self.refused_at = now
        if self.answered >= self.refused:
            self.answered = 0

    def within(self, window: Window, now: float) -> Window:
        """Return the window, or as much of it as requests have shown to be there: the largest that was answered, or
        half of what was refused."""
        shown = max(self.answered, int(self.refused * SHORTENED))
        return Window(tokens=shown, source="provider") if self._holds(now) and shown < window.tokens else window

    def _holds(self, now: float) -> bool:
        return self.refused > 0 and now - self.refused_at < FORGET_S


def resolve(
    name: str,
    *,
    run: int | None = None,
    settings: int | None = None,
    model: int | None = None,
    provider: int | None = None,
) -> Window:
    """Return the window of the model of this name: the first of these that somebody has said.

    run: an option of the run. settings: of the configured model. model: what the provider declares of itself.
    provider: what its server's list tells. Then the registry of known names, else GUESS. Tokens; 0 or less says
    nothing.
    """
    said = (("run", run), ("settings", settings), ("model", model), ("provider", provider), ("registry", known(name)))
    return next((Window(tokens=tokens, source=source) for source, tokens in said if tokens and tokens > 0), GUESS)


def known(name: str) -> int | None:
    """Return the window of a well-known model in tokens; None for any other.

    The name in lower case, else the longest known name that it begins with, followed by `-`, `@` or `:`. A name with
    a path ("maker/model") is also looked up without it.
    """
    name = name.lower().strip()
    found = _known(name)
    return _known(name.rpartition("/")[2]) if found is None and "/" in name else found


def _known(name: str) -> int | None:
    if name in KNOWN:
        return KNOWN[name]
    ends = (i for i in range(len(name) - 1, 0, -1) if name[i] in _AFTER_NAME)
    return next((KNOWN[name[:end]] for end in ends if name[:end] in KNOWN), None)


def budget(window: Window, policy: ContextPolicy, *, max_tokens: int | None = None, tools_tokens: int = 0) -> int:
    """Return how many tokens the messages of a request may cost; 0 if the window leaves no room.

    max_tokens: of the answer, thinking included; raises what is kept for it. tools_tokens: of the declared tools; an
    explicit policy.max_input_tokens is taken as it is. input_floor never reaches beyond what the window holds.
    """
    if policy.max_input_tokens:
        return policy.max_input_tokens
    reserve = max(policy.output_reserve, max_tokens or 0)
    room = window.tokens - reserve - policy.protocol_overhead - int(window.tokens * policy.margin)
    soft = max(min(room, int(window.tokens * policy.input_ratio)), policy.input_floor)
    return max(0, min(soft, max(room, 0)) - tools_tokens)
