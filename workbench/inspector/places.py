"""Addresses of runs, calls and of the messages that parts came from."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse

from agents.models.model_call import ModelCall
from agents.models.run import Run
from agents.runtime.events import Stored, UserMessage
from agents.runtime.session import PartRef
from workbench.inspector import parts as inspectedparts
from workbench.inspector.parts import Known
from workbench.inspector.rows import Found

RECENT: Final = 150  # records: what the conversation's page surely shows when it is opened


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where things are. forks: up to which position each fork is on the line that the conversation shows. said: the
    positions of people's messages on it, as far as they are known, in order."""

    found: Found
    forks: Mapping[int, int]
    said: Sequence[int]

    @classmethod
    def of(cls, found: Found, forks: Mapping[int, int], events: Iterable[Stored]) -> "Address":
        """Return the addresses of a conversation. events: those that are known."""
        bare = cls(found=found, forks=forks, said=())
        said = (one.position for one in events if isinstance(one.record, UserMessage) and bare.shows(one))
        return replace(bare, said=sorted(said))

    def run(self, run: Run) -> str:
        return self._here(run=run.client_id)

    def call(self, call: ModelCall) -> str:
        return self._here(call=call.call_id)

    def _here(self, **query: str) -> str:
        session = self.found.session
        query = {**query, "owner": str(session.owner_id)}
        return f"{reverse('inspector', args=[session.thread_id])}?{urlencode(query)}"

    def source(self, part: PartRef, known: Known) -> str:
        """Return where a part's message stands in the conversation, "" if the conversation does not show it; of what is
        remembered the page of memories, of skills theirs.

        What a run said and did stands behind the message that it answers; only messages have a place of their own.
        """
        thread = self.found.session.thread_id
        if "memories" in part.params:
            return reverse("memories")
        if inspectedparts.tag_of(part) == "skills":
            return reverse("skills")
        if inspectedparts.kind_of(part) == "summary" and part.ref in known.summaries:
            return f"{reverse('session', args=[thread])}#summary"
        if inspectedparts.kind_of(part) not in inspectedparts.EVENTS or (stored := known.events.get(part.ref)) is None:
            return ""
        at = bisect_right(self.said, stored.position)
        if not at or not self.shows(stored):
            return ""
        place = self.said[at - 1]
        if self.found.session.last_position - place <= RECENT:
            return f"{reverse('session', args=[thread])}#h{place}"
        following = self.said[at] if at < len(self.said) else 0
        before = following if 0 < following - place <= RECENT else stored.position + 1
        return f"{reverse('messages', args=[thread])}?before={before}#h{place}"

    def shows(self, stored: Stored) -> bool:
        """Return whether the event is on the line that the conversation shows."""
        return stored.position <= self.forks.get(stored.fork, 0)
