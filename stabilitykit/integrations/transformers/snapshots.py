"""A few numbers that say what a model's cache looks like, for the detector ``snapshot_drift``.

Of each sampled layer two vectors of length 1, one after the other:

- the mean key and the mean value over all tokens, which say what the conversation is about and move slowly;
- of the first 13 tokens the products of key and value, each less its mean, summed with signs that no shift of theirs
  resembles (Barker's code, less its mean). These tokens never change while a cache is sound. A cache whose tokens have
  been moved round has the same means as before, but not the same sum; nor has one in which keys alone, or heads, were
  moved.

References
----------
.. [1] R. H. Barker, "Group synchronizing of binary digital systems", Communication Theory, 1953.
.. [2] formulas B5.1: the mean over tokens, and which layers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ANCHORS", "sampled_layers", "snapshot_of"]

_BARKER = np.array([1, 1, 1, 1, 1, -1, -1, 1, 1, -1, 1, -1, 1], np.float64)
_SIGNS = _BARKER - _BARKER.mean()
"""The overlap of these with themselves, moved by any number of places, is at most 13 % (computed in the tests)."""
ANCHORS = len(_SIGNS)
_SAMPLED = 3


def sampled_layers(count: int) -> tuple[int, ...]:
    """Give the three layers of so many that are sampled: at a third, at two thirds and the last.

    Examples
    --------
    >>> sampled_layers(61), sampled_layers(2)
    ((20, 40, 60), (0, 1, 1))
    """
    return tuple(max((k * count) // _SAMPLED - (k == _SAMPLED), 0) for k in range(1, _SAMPLED + 1))


def snapshot_of(
    cache: Any, layers: tuple[int, ...] | None, row: int, valid: NDArray[np.bool_] | None
) -> NDArray[np.float32] | None:
    """Read a cache, as float32[layers * d].

    Parameters
    ----------
    cache
        One of transformers, with ``layers`` that hold ``keys`` and ``values``, [batch, heads, n, d].
    layers
        Which are sampled; None: three of those that keep all tokens, or of all where none does.
    row
        Of the batch.
    valid
        Tokens that are no padding; None: all.

    Returns
    -------
    NDArray or None
        None where a sampled layer holds no keys in plain numbers (quantized, linear attention) or, keeping all tokens,
        fewer than 13. Of layers with a sliding window only the means are given: their first tokens leave the cache.
    """
    readable = [layer for layer in getattr(cache, "layers", ()) if _is_readable(layer)]
    if layers is None:
        whole = [layer for layer in readable if not getattr(layer, "is_sliding", False)] or readable
        chosen = [whole[i] for i in sampled_layers(len(whole))] if whole else []
    else:
        chosen = [cache.layers[i] for i in layers]
    parts = [_layer_vector(layer, row, valid) if _is_readable(layer) else None for layer in chosen]
    if not parts or any(part is None for part in parts):
        return None
    return np.concatenate([part for part in parts if part is not None]).astype(np.float32)


def _is_readable(layer: Any) -> bool:
    parts: list[Any] = [getattr(layer, name, None) for name in ("keys", "values")]
    is_plain = all(getattr(part, "ndim", 0) == 4 and part.is_floating_point() for part in parts)
    return is_plain and "Quantized" not in type(layer).__name__


def _layer_vector(layer: Any, row: int, valid: NDArray[np.bool_] | None) -> NDArray[np.float64] | None:
    is_sliding = bool(getattr(layer, "is_sliding", False))
    held = min(int(layer.get_seq_length()), layer.keys.shape[-2])
    at = np.arange(held)
    if valid is not None and not is_sliding:
        at = at[valid[:held]] if len(valid) >= held else at
    if len(at) < (1 if is_sliding else ANCHORS):
        return None
    both = [_chosen(part[min(row, part.shape[0] - 1)], at, held) for part in (layer.keys, layer.values)]
    means = _unit(np.concatenate([_numbers(part.float().mean(dim=1)).ravel() for part in both]))
    if is_sliding:
        return means
    keys, values = (_numbers(part[:, :ANCHORS].float()) for part in both)
    width = min(keys.shape[-1], values.shape[-1])  # a shared latent and its rotary part differ in width
    product = (keys - keys.mean(axis=1, keepdims=True))[..., :width]
    product = product * (values - values.mean(axis=1, keepdims=True))[..., :width]
    return np.concatenate([means, _unit(np.tensordot(product, _SIGNS, axes=(1, 0)).ravel())])


def _chosen(part: Any, at: NDArray[np.int64], held: int) -> Any:
    return part[:, :held] if len(at) == held else part[:, at.tolist()]


def _numbers(part: Any) -> NDArray[np.float64]:
    return np.asarray(part.detach().to("cpu").numpy(), np.float64)


def _unit(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale to length 1; in steps, for one flipped bit may make a number whose square is infinite."""
    greatest = np.abs(vector).max()
    if not greatest > 0 or not np.isfinite(greatest):
        return vector
    scaled = vector / greatest
    return np.asarray(scaled / np.linalg.norm(scaled))
