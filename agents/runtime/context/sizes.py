"""What events and parts of requests cost: everything is measured once, however many requests it stands in."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from agents.runtime.events import Stored
from agents.runtime.session import PartRef
from agents.runtime.tokens import DEFAULT_RATES, REQUEST, Mix, Rates, measure, measure_record, total

MOST_KNOWN: Final = 16_384
_FLAGS = ("bare", "foreign", "partial", "reasoning")


class KnownSizes(dict[str, Mix]):
    """Mixes that a process keeps for all its runs, the oldest half dropped at MOST_KNOWN: about 6 MB. One event loop
    writes it; events have ids that no other event has."""

    def __setitem__(self, key: str, mix: Mix) -> None:
        if len(self) >= MOST_KNOWN:
            for old in tuple(self)[: MOST_KNOWN // 2]:
                del self[old]
        super().__setitem__(key, mix)


class Sizes:
    """Mixes by part, and tokens by the rates of the model that answers.

    known: mixes of earlier requests, owned by the caller; a whole event is known by its id, everything else by its
    reference and how it is shown.
    """

    def __init__(self, rates: Rates, known: dict[str, Mix] | None = None) -> None:
        self._rates = rates
        self._known: dict[str, Mix] = {} if known is None else known

    def part(
        self,
        measured: Callable[[], Mix],
        *,
        kind: str,
        ref: str,
        tag: str,
        position: int = 0,
        params: Mapping[str, Any] | None = None,
    ) -> PartRef:
        """Return the part with its tokens. measured: called only for what is not known."""
        params = params or {}
        key = _key(kind, ref, params)
        mix = self._known.get(key)
        if mix is None:
            mix = self._known[key] = measured()
        return PartRef(kind=kind, ref=ref, tokens=self._rates.tokens(mix), tag=tag, position=position, params=params)

    def total(self, parts: Iterable[PartRef]) -> Mix:
        """Return the mix of a whole request; what was left out of it counts nothing."""
        known = self._known
        return REQUEST + total(known[_key(p.kind, p.ref, p.params)] for p in parts if p.kind != "dropped")

    def event(self, stored: Stored) -> int:
        """Return what the event, whole, costs the model that answers."""
        return self._rates.tokens(self._mix(stored))

    def text(self, text: str) -> int:
        """Return what the text costs the model that answers; it is measured each time."""
        return self._rates.tokens(measure(text))

    def settled(self, stored: Stored) -> int:
        """Return what the event costs whatever model answers: decisions that must not flip go by this."""
        return stored.tokens or DEFAULT_RATES.tokens(self._mix(stored))

    def _mix(self, stored: Stored) -> Mix:
        mix = self._known.get(stored.id)
        if mix is None:
            mix = self._known[stored.id] = measure_record(stored.record)
        return mix


def _key(kind: str, ref: str, params: Mapping[str, Any]) -> str:
    if kind != "event":
        return f"{ref}#{kind}{dict(params) if params else ''}"
    if not params:
        return ref
    flags = [f"{flag}{params.get('calls') if flag != 'reasoning' else ''}" for flag in _FLAGS if params.get(flag)]
    return f"{ref}#{','.join(flags)}" if flags else ref
