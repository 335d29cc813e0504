"""Everything searchable: one table, one index over lexemes that begin with their owner (`123:paint`).

agents/search asks; who owns a text (documents, memories) adds and drops its entries here, in the transaction that
changes the text; events come with their entries (stores/sql.py). Vectors have a table of their own: filling them in
later changes no entry and no index over words, and the nearest are found in narrow rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import connection, models
from pgvector.django import HalfVectorField

from agents.models.owned import Owned

TEXT_CHARS = 1_500  # longer texts are given as several entries
BATCH = 500


class Kind(models.TextChoices):
    EVENT = "event"  # of a conversation
    MEMORY = "memory"  # what outlives one
    PASSAGE = "passage"  # of a document


class SearchEntry(Owned):
    """One searchable text; the text itself stays where it is. Written by `add`, events by the statement that stores
    them (stores/sql.py); deleted by `drop`.

    ref: of a passage its primary key; of an event its position in the session, not its primary key: it is known with
    the group only. offset: the byte in that text where this entry begins; of an event, in pieces.content_of. group_id:
    what neighbours share, an Artifact's or a Session's key; position: order in the group, of events from 1 without gaps
    over all forks.
    """

    # no index of its own: search_place begins with it
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    ref = models.BigIntegerField()
    offset = models.IntegerField(default=0)
    fork = models.IntegerField(null=True, blank=True)
    group_id = models.BigIntegerField()
    position = models.IntegerField()
    length = models.SmallIntegerField()  # lexemes
    terms = SearchVectorField()
    created = models.DateTimeField()

    class Meta:
        indexes = [
            # neighbours of a hit; how many there are; a group's entries
            models.Index(fields=["owner", "kind", "group_id", "position"], name="search_place"),
            GinIndex(fields=["terms"], name="search_terms", fastupdate=False),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.ref}"


class Embedding(Owned):
    """An entry's vector of length 1, made by one embedder. Written by background/embed.py alone.

    model: agents.runtime.embedding.model_id. vector: null if that embedder cannot read the text. The database deletes
    it with its entry; owner, kind and group are the entry's, so that the nearest are found without it. It also keeps
    the signs of each vector, and an index of them in a scope, embedding_signs (migration 0005).
    """

    # no index of its own: embedding_signs begins with it
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    entry = models.OneToOneField(SearchEntry, primary_key=True, on_delete=models.DO_NOTHING, db_constraint=False)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    group_id = models.BigIntegerField()
    model = models.IntegerField()
    vector = HalfVectorField(null=True, blank=True)

    class Meta:
        indexes: ClassVar[list[models.Index]] = []  # embedding_signs is of a column that Django does not know

    def __str__(self) -> str:
        return f"vector of entry {self.entry_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text to be found. marks: marker lexemes such as "@author", "#q" (a question), "#t" (holds a time word)."""

    ref: int
    position: int
    text: str
    created: datetime
    offset: int = 0
    fork: int | None = None
    marks: tuple[str, ...] = ()


_ADD = """
insert into agents_searchentry (owner_id, kind, ref, "offset", fork, group_id, position, length, terms, created)
select %(owner)s, %(kind)s, ref, "offset", fork, %(group)s, position, least(length(terms), 32767), terms, created
from (select x.ref, x."offset", x.fork, x.position, x.created,
             wb_index(%(owner)s, x.body, string_to_array(x.marks, ' ')) terms
      from unnest(%(ref)s::bigint[], %(offset)s::int[], %(fork)s::int[], %(position)s::int[], %(body)s::text[],
                  %(marks)s::text[], %(created)s::timestamptz[])
           x(ref, "offset", fork, position, body, marks, created) offset 0) y
"""


def add(owner_id: int, kind: Kind, group_id: int, texts: Sequence[Text]) -> None:
    """Make these texts of one group findable by word, in the caller's transaction. Embeddings come later, by a job."""
    with connection.cursor() as cursor:
        for start in range(0, len(texts), BATCH):
            some = texts[start : start + BATCH]
            cursor.execute(
                _ADD,
                {
                    "owner": owner_id,
                    "kind": kind.value,
                    "group": group_id,
                    "ref": [t.ref for t in some],
                    "offset": [t.offset for t in some],
                    "fork": [t.fork for t in some],
                    "position": [t.position for t in some],
                    "body": [t.text.replace("\0", "") for t in some],
                    "marks": [" ".join(t.marks) for t in some],
                    "created": [t.created for t in some],
                },
            )


def drop(owner_id: int, kind: Kind, group_ids: Sequence[int]) -> None:
    """Make the texts of these groups unfindable, those of one kind, in the caller's transaction."""
    SearchEntry.objects.of(owner_id).filter(kind=kind, group_id__in=group_ids).delete()
