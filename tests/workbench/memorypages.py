"""What the tests of the memories page do with it: send its forms, read what it shows."""

import json
import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django.test import Client

from agents.runtime.memory.memories import Draft, Memory, Source
from agents.stores.memoryrows import MemoryRows

HTMX = {"HTTP_HX_REQUEST": "true"}
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def signed_in(owner: Any) -> Client:
    client = Client()
    client.force_login(owner)
    return client


def remembered(owner: Any, text: str, **more: Any) -> Memory:
    return MemoryRows(owner.pk).add(Draft(text=text, **{"source": Source.EXTRACTOR, **more})).memory


def page(client: Client, **query: Any) -> str:
    response = client.get("/memories/" + (f"?{urlencode(query)}" if query else ""))
    assert response.status_code == 200
    return response.content.decode()


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def texts(html: str) -> list[str]:
    return re.findall(r'class="memory-text"[^>]*>([^<]*)<', html)


def form(memory: Memory, **typed: Any) -> dict[str, Any]:
    """Return what the form of a memory sends, with some fields typed anew."""
    about = {"text": memory.text, "kind": memory.kind.value, "people": ", ".join(memory.participants)}
    return {**about, "place": memory.location, "when": "", "version": memory.version, **typed}


def edit(client: Client, memory: Memory, **typed: Any) -> Any:
    return client.post(f"/memories/{memory.id}/edit/", form(memory, **typed), **HTMX)


def held(owner: Any) -> list[str]:
    return sorted(memory.text for memory in MemoryRows(owner.pk).read(muted=True))


def token_in(html: str) -> str:
    return re.search(r'name="token" value="([^"]+)"', html)[1]  # type: ignore[index]


def said(response: Any) -> str:
    return str(json.loads(response.headers["HX-Trigger"])["memories-changed"]["said"])
