"""A run's documents over the tables: Knowledge for one owner, as seen from one session, narrowed to chosen sources."""

import logging
from collections.abc import Sequence

from django.db import DataError

from agents import search as searching
from agents.models.search_entry import Kind
from agents.runtime.artifacts import ArtifactMissing, ArtifactUnreadable
from agents.runtime.embedding import Embedder
from agents.runtime.knowledge import (
    Document,
    DocumentMissing,
    DocumentState,
    DocumentUnread,
    Found,
    Reading,
)
from agents.stores import documents as rows
from agents.stores import vectors
from agents.stores.db import in_thread
from artifacts.models import Artifact
from artifacts.store import DjangoArtifactStore

MOST_LISTED = 500
MOST_HITS = 100
RANKED = 60  # asked for, so that enough are left when some turn out to be of a deleted conversation
AT_A_TIME = 200  # passages of one reading

logger = logging.getLogger(__name__)


class PgKnowledge:
    """Documents of one owner. session: the run's conversation, its primary key, None = outside any.

    sources: public ids of the documents to use; None = all, () = none. embedder: None = by words alone.
    """

    def __init__(
        self,
        owner_id: int,
        session: int | None,
        sources: tuple[str, ...] | None,
        *,
        embedder: Embedder | None = None,
    ) -> None:
        self._shelf = rows.Shelf(owner_id=owner_id, session=session, sources=sources)
        self._embedder = embedder

    async def search(self, query: str, *, documents: Sequence[str] = (), limit: int = 8) -> Found:
        """See the protocol. Two statements; one more if documents are named."""
        if self._shelf.sources == ():
            return Found(hits=(), searched=0)
        vector = await vectors.of_question(self._embedder, query)
        return await in_thread(self._search)(query, tuple(documents), min(limit, MOST_HITS), vector)

    async def read(self, document: str, *, at: str = "", max_chars: int = 12_000) -> Reading:
        entry = await in_thread(rows.resolve)(self._shelf, document)
        if entry.document.state is not DocumentState.READY:
            entry = await self._made_ready(entry)
        any_version = "@" not in document
        entry, hits = await in_thread(rows.passages_from)(self._shelf, entry, at, any_version, AT_A_TIME + 1)
        if not hits:
            raise DocumentUnread(f'"{entry.document.name}" holds no text.')
        taken = 1
        fits = min(len(hits), AT_A_TIME)
        while taken < fits and hits[taken].citation.end - hits[0].citation.start <= max_chars:
            taken += 1
        more = hits[taken : taken + 1]
        return Reading(
            document=entry.document,
            version=entry.document.version,
            passages=tuple(hits[:taken]),
            next_at=f"char:{more[0].citation.start}" if more else "",
        )

    async def list(self, query: str = "") -> tuple[Document, ...]:
        words = query.casefold().split()
        known = await in_thread(rows.latest)(self._shelf)
        named = (e.document for e in known if all(word in e.document.name.casefold() for word in words))
        return tuple(named)[:MOST_LISTED]

    def _search(self, query: str, documents: tuple[str, ...], limit: int, vector: searching.Vector | None) -> Found:
        shelf = self._shelf
        groups: searching.Groups = None
        if documents:
            chosen = rows.resolve_all(shelf, documents)
            shelf = rows.Shelf(
                owner_id=shelf.owner_id,
                session=shelf.session,
                sources=tuple(entry.document.artifact_id for entry in chosen),
            )
            groups = [entry.key for entry in chosen]
        elif shelf.ids is not None:
            groups = Artifact.objects.of(shelf.owner_id).filter(public_id__in=shelf.ids).values_list("pk", flat=True)
        scope = searching.Scope(owner_id=shelf.owner_id, kinds=(Kind.PASSAGE,), groups=groups)
        quoted = searching.phrases(query)
        most = MOST_HITS if quoted else max(limit, RANKED)
        try:
            ranked = searching.search(scope, query, limit=most, vector=vector)
        except DataError:  # vectors of another length under the same name: the endpoint changed its model
            logger.exception("searched without vectors")
            ranked = searching.search(scope, query, limit=most)
        return rows.found(shelf, ranked, limit, quoted)

    async def _made_ready(self, entry: rows.Entry) -> rows.Entry:
        """Return a document with its text, read now if no job has begun to. Raises DocumentUnread, DocumentMissing."""
        document = entry.document
        if document.state is DocumentState.FAILED:
            raise DocumentUnread(document.reason)
        if document.state is DocumentState.READING:
            raise DocumentUnread(f'"{document.name}" is being read and cannot be used yet. Try again in a moment.')
        files = DjangoArtifactStore(owner_id=self._shelf.owner_id, session_id=None)
        reference = f"{document.artifact_id}@{document.version}"
        try:
            await files.read_text(await files.find(document.artifact_id, document.version), max_chars=1)
        except ArtifactUnreadable as e:
            raise DocumentUnread(str(e)) from e
        except ArtifactMissing as e:
            raise DocumentMissing(str(e)) from e
        return await in_thread(rows.resolve)(self._shelf, reference)
