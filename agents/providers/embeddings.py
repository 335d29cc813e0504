"""Vectors of an OpenAI-compatible embeddings endpoint: OpenAI, Azure, vLLM, llama.cpp, Ollama and the like."""

import math
from collections.abc import Sequence
from threading import Lock
from typing import Final

import openai

from agents.runtime.embedding import EmbedderFailed, Vector

BATCH: Final = 64
TIMEOUT_S: Final = 20.0
RETRIES: Final = 2


class OpenAIEmbedder:
    """An embedder at an endpoint; it says itself what it cannot read. api_key: "" for a server that wants none."""

    name = "openai"

    def __init__(self, *, base_url: str, api_key: str, model: str, query_s: float = 0.15) -> None:
        self.model = model
        self.query_s = query_s
        self._base_url, self._api_key = base_url, api_key
        self._lock = Lock()
        self._client: openai.OpenAI | None = None

    def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """Return vectors, made of length 1; None for an empty text. Raises EmbedderFailed."""
        found: list[Vector | None] = [None] * len(texts)
        wanted = [i for i, text in enumerate(texts) if text.strip()]
        for start in range(0, len(wanted), BATCH):
            some = wanted[start : start + BATCH]
            try:
                answer = self._connected().embeddings.create(
                    model=self.model, input=[texts[i] for i in some], encoding_format="float"
                )
                vectors = {item.index: item.embedding for item in answer.data}
                for nth, i in enumerate(some):
                    found[i] = _of_length_1(vectors[nth])
            except openai.OpenAIError as e:
                # its text may repeat the key; the kind of failure is enough
                raise EmbedderFailed(f"The embeddings endpoint failed: {type(e).__name__}") from None
            except (AttributeError, KeyError, TypeError, ValueError) as e:
                raise EmbedderFailed("What the embeddings endpoint sent are no vectors.") from e
        return found

    def _connected(self) -> openai.OpenAI:
        with self._lock:
            if self._client is None:
                self._client = openai.OpenAI(
                    base_url=self._base_url,
                    api_key=self._api_key or "none",
                    timeout=TIMEOUT_S,
                    max_retries=RETRIES,
                )
            return self._client


def _of_length_1(values: Sequence[float]) -> Vector:
    length = math.sqrt(sum(x * x for x in values))
    if not values or not math.isfinite(length) or not length:
        raise ValueError("a vector without a direction")
    return tuple(x / length for x in values)
