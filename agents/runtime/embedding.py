"""Texts as vectors: what search adds to words that are shared. None is needed."""

from collections.abc import Sequence
from typing import Protocol
from zlib import crc32

Vector = tuple[float, ...]


class Embedder(Protocol):
    """An engine that turns texts into vectors. Safe from several threads at once.

    name: "minilm" or "openai"; model: which of its models. Both say which vectors can be compared. query_s: how long a
    search waits for the vector of its question, seconds.
    """

    name: str
    model: str
    query_s: float

    def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """Return a vector of length 1 for each text, or None for one that this model cannot read.

        For a worker thread: takes from milliseconds to seconds. Raises EmbedderFailed.
        """
        ...


class EmbedderFailed(RuntimeError):
    """The embedder gave no vectors. Searching goes on with words alone."""


def model_id(embedder: Embedder) -> int:
    """Return the number that stands with every vector of this embedder and model: 31 bits, the same for ever."""
    return crc32(f"{embedder.name}:{embedder.model}".encode()) & 0x7FFFFFFF
