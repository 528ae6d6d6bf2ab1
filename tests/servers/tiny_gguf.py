"""Write a tiny random llama as a GGUF file, with the tokenizer and chat template of another one.

References
----------
.. [1] ggml-org/ggml, docs/gguf.md, "GGUF file format", version 3.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["write_tiny_gguf"]

_WIDTH, _LAYERS, _FORWARD, _HEADS, _KV_HEADS, _TRAINED = 64, 2, 128, 4, 2, 2048
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_U32, _F32, _STRING, _ARRAY = 4, 6, 8, 9
_ALIGN = 32
_U64_AT = struct.Struct("<Q").unpack_from
_TYPES = {np.dtype(np.float32): 0, np.dtype(np.float16): 1}


def write_tiny_gguf(tokenizer_of: Path, path: Path) -> None:
    """Write a llama of two layers with random weights (seeded).

    Parameters
    ----------
    tokenizer_of
        A GGUF file whose tokenizer is copied.
    path
        Where to write.
    """
    entries, vocabulary = _tokenizer(tokenizer_of.read_bytes())
    numbers = {
        "context_length": _TRAINED, "embedding_length": _WIDTH, "block_count": _LAYERS, "feed_forward_length": _FORWARD,
        "attention.head_count": _HEADS, "attention.head_count_kv": _KV_HEADS, "vocab_size": vocabulary,
        "rope.dimension_count": _WIDTH // _HEADS,
    }  # fmt: skip
    entries.append(_text("general.architecture") + struct.pack("<I", _STRING) + _text("llama"))
    entries += [_text(f"llama.{name}") + struct.pack("<II", _U32, value) for name, value in numbers.items()]
    entries.append(_text("llama.attention.layer_norm_rms_epsilon") + struct.pack("<If", _F32, 1e-5))
    infos, blocks, offset = [], [], 0
    tensors = _weights(vocabulary)
    for name, tensor in tensors.items():
        shape = tensor.shape[::-1]
        infos.append(_text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, _TYPES[tensor.dtype], offset))
        blocks.append(_padded(tensor.tobytes()))
        offset += len(blocks[-1])
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries))
    path.write_bytes(_padded(b"".join([head, *entries, *infos])) + b"".join(blocks))


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % _ALIGN)


def _tokenizer(data: bytes) -> tuple[list[bytes], int]:
    """Give the entries of a file that begin with ``tokenizer.``, as bytes, and the number of its tokens."""
    assert data[:4] == b"GGUF"
    entries, tokens, at = [], 0, 24
    for _ in range(_U64_AT(data, 16)[0]):
        start = at
        name = data[at + 8 : at + 8 + _U64_AT(data, at)[0]]
        at += 8 + len(name)
        if name == b"tokenizer.ggml.tokens":
            tokens = _U64_AT(data, at + 8)[0]
        at = _after(data, at + 4, struct.unpack_from("<I", data, at)[0])
        if name.startswith(b"tokenizer."):
            entries.append(data[start:at])
    return entries, tokens


def _after(data: bytes, at: int, kind: int) -> int:
    """Give the place after a value."""
    if kind == _STRING:
        return int(at + 8 + _U64_AT(data, at)[0])
    if kind != _ARRAY:
        return at + _SIZES[kind]
    inner, count = struct.unpack_from("<IQ", data, at)
    at += 12
    if inner != _STRING:
        return int(at + count * _SIZES[inner])
    for _ in range(count):
        at += 8 + _U64_AT(data, at)[0]
    return at


def _weights(vocabulary: int) -> dict[str, NDArray[np.floating]]:
    draw = np.random.default_rng(0)
    kv_width = _WIDTH // _HEADS * _KV_HEADS

    def matrix(rows: int, columns: int, spread: float = 0.12) -> NDArray[np.floating]:
        return (np.float32(spread) * draw.standard_normal((rows, columns), np.float32)).astype(np.float16)

    norm = np.ones(_WIDTH, np.float32)
    found: dict[str, NDArray[np.floating]] = {
        "token_embd.weight": matrix(vocabulary, _WIDTH, 0.5),
        "output.weight": matrix(vocabulary, _WIDTH, 0.25),
        "output_norm.weight": norm,
    }
    for layer in range(_LAYERS):
        found |= {
            f"blk.{layer}.attn_norm.weight": norm,
            f"blk.{layer}.ffn_norm.weight": norm,
            f"blk.{layer}.attn_q.weight": matrix(_WIDTH, _WIDTH),
            f"blk.{layer}.attn_k.weight": matrix(kv_width, _WIDTH),
            f"blk.{layer}.attn_v.weight": matrix(kv_width, _WIDTH),
            f"blk.{layer}.attn_output.weight": matrix(_WIDTH, _WIDTH),
            f"blk.{layer}.ffn_gate.weight": matrix(_FORWARD, _WIDTH),
            f"blk.{layer}.ffn_up.weight": matrix(_FORWARD, _WIDTH),
            f"blk.{layer}.ffn_down.weight": matrix(_WIDTH, _FORWARD),
        }
    return found
