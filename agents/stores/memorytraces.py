"""What tools had shown a model of memories, in stored events: it goes when they are deleted.

What answers say of them, and what people wrote, stays: that is the conversation. A process that has the events at hand
reads them anew (stores/histories.py).
"""

from collections.abc import Collection
from typing import Final

from django.db import connection
from django.db.models import QuerySet

from agents.models.event import Event

ERASED: Final = "[deleted from memory since]"
_ERASE: Final = """
update agents_event
set payload = jsonb_set(payload, '{content}', to_jsonb(regexp_replace(payload ->> 'content', %s, %s, 'gn')))
where id = any(%s)
"""


def erase(owner_id: int, ids: Collection[str]) -> None:
    """Take the lines of these memories out of the results of memory tools, in the caller's transaction."""
    if not ids:
        return
    line = rf"^\[({'|'.join(ids)})\] .*$"  # as preloading.line writes it; ids are letters and digits
    found = list(_shown(owner_id).filter(payload__content__regex=rf"(?n){line}").values_list("pk", flat=True))
    if found:
        with connection.cursor() as cursor:
            cursor.execute(_ERASE, [line, ERASED, found])


def _shown(owner_id: int) -> QuerySet[Event]:
    return Event.objects.of(owner_id).filter(type="tool_returned", payload__name__startswith="memory_")
