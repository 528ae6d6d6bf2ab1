"""Stored keys of a live cache, turned in place: the cure for positions that were moved (mode ``rerotate``)."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from stabilitykit.errors import MissingExtra, UsageError
from stabilitykit.mitigations.rotary import Rope, rotated
from stabilitykit.mitigations.whole_numbers import whole_numbers

__all__ = ["rope_of", "turn_keys"]

_SCALINGS = {"default": "none", "linear": "linear", "dynamic": "ntk", "yarn": "yarn", "llama3": "llama3"}


def rope_of(config: Any) -> Rope:
    """Read the rotary embedding of a model's configuration.

    Raises
    ------
    UsageError
        A kind that ``Rope`` does not know, or a model that caches a shared latent, which cannot be turned.

    Examples
    --------
    >>> from types import SimpleNamespace as Config
    >>> rope_of(Config(head_dim=128, rope_parameters={"rope_type": "default", "rope_theta": 500000.0}))
    Rope(dim=128, base=500000.0, layout='half', scaling='none', factor=1.0, original_max_position=8192, length=None, \
beta_fast=32.0, beta_slow=1.0, low_freq_factor=1.0, high_freq_factor=4.0)
    """
    if getattr(config, "kv_lora_rank", None):
        raise UsageError("keys are cached as one shared latent (MLA), which cannot be rotated")
    given: dict[str, Any] = dict(
        getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    )
    kind = given.get("rope_type", given.get("type", "default"))
    if kind not in _SCALINGS:
        raise UsageError(f"a rotary embedding of kind {kind!r:.40} cannot be turned, only {', '.join(_SCALINGS)}")
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    share = given.get("partial_rotary_factor") or getattr(config, "partial_rotary_factor", None) or 1.0
    trained = given.get("original_max_position_embeddings") or getattr(config, "max_position_embeddings", None)
    own = ("factor", "beta_fast", "beta_slow", "low_freq_factor", "high_freq_factor")
    numbers: dict[str, Any] = {name: float(given[name]) for name in own if given.get(name) is not None}
    return Rope(
        dim=int(head * share),
        base=float(given.get("rope_theta") or getattr(config, "rope_theta", None) or 10000.0),
        scaling=_SCALINGS[kind],  # type: ignore[arg-type]
        original_max_position=int(trained or 8192) if kind != "default" else 8192,
        **numbers,
    )


def turn_keys(cache: Any, rotation: ArrayLike, rope: Rope) -> None:
    """Turn the keys of every layer of a cache by a number of positions each, rounding once.

    Parameters
    ----------
    cache
        One of transformers; its ``keys``, [batch, heads, n, d], are replaced.
    rotation
        int[n], as ``compensate_positions`` gives it.

    Raises
    ------
    UsageError
        Rotations that are no whole numbers, or a layer that holds another number of keys. Nothing is changed then.
    MissingExtra
        torch is not installed.
    """
    try:
        import torch
    except ImportError:
        raise MissingExtra("torch", "torch") from None
    by = whole_numbers(rotation, "rotations").ravel()
    held = {layer.keys.shape[-2] for layer in cache.layers}
    if held != {len(by)}:
        raise UsageError(f"{len(by)} rotations for layers of {', '.join(map(str, sorted(held)))} keys")
    with torch.no_grad():
        for layer in cache.layers:
            keys = layer.keys
            turned = rotated(keys.float().cpu().numpy(), by, rope)
            layer.keys = torch.from_numpy(turned).to(device=keys.device, dtype=keys.dtype)
