"""Rotary embedding: the angles of a model, and turning stored keys by a number of positions.

A key at position p has its i-th pair turned by p * theta_i, theta_i = base ** (-2 i / dim) (formulas B4.1). Turns add
up, R(a) R(b) = R(a + b), so a key that was turned for one position can be turned for another. Angles are computed in
float64 and the result is rounded once, to the number format of the keys.

References
----------
.. [1] J. Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021.
.. [2] S. Chen et al., "Extending context window of large language models via positional interpolation", 2023 (linear).
.. [3] B. Peng et al., "YaRN: Efficient context window extension of large language models", ICLR 2024 (ntk, yarn).
.. [4] A. Dubey et al., "The Llama 3 herd of models", 2024 (llama3).
"""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from stabilitykit.errors import UsageError
from stabilitykit.mitigations.whole_numbers import whole_number, whole_numbers

__all__ = ["Rope", "rotated"]

Scaling = Literal["none", "linear", "ntk", "yarn", "llama3"]
Layout = Literal["half", "interleaved"]
_MOST_COMPONENTS = 1 << 16
_GREATEST = 1e18
"""Of any number of a configuration; what is computed with it must have a place in a float64."""


@attrs.frozen
class Rope:
    """The rotary embedding of a model, as its configuration describes it.

    Parameters
    ----------
    dim
        Rotary components of a key, an even number (64 in DeepSeek, 128 in Llama); those behind them stay as they are.
    base
        Base of the frequencies (``rope_theta``).
    layout
        Which components make up a pair: ``half`` i and i + dim/2 (transformers, NeoX), ``interleaved`` 2i and 2i + 1
        (GPT-J, llama.cpp's norm).
    scaling
        How a longer context is squeezed in: ``none``, ``linear``, ``ntk``, ``yarn``, ``llama3``.
    factor
        By how much.
    original_max_position
        Positions that the model was trained on (ntk, yarn, llama3).
    length
        ntk only: length of the sequence, with which its frequencies change ("dynamic"); None: those for ``factor``
        times the original length, fixed.
    beta_fast, beta_slow
        yarn only: turns over the trained length above which a frequency stays, and below which it is divided.
    low_freq_factor, high_freq_factor
        llama3 only: the same in its own words.

    Raises
    ------
    UsageError
        An odd number of components, another layout or scaling, a factor below 1, a number that no model has.
    """

    dim: int
    base: float = 10000.0
    layout: Layout = "half"
    scaling: Scaling = "none"
    factor: float = 1.0
    original_max_position: int = 8192
    length: int | None = None
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0

    def __attrs_post_init__(self) -> None:
        dim = whole_number(self.dim, "dim")
        if dim % 2 or not 2 <= dim <= _MOST_COMPONENTS:
            raise UsageError(f"a rotary embedding has an even number of components, not {self.dim}")
        whole_number(self.original_max_position, "original_max_position", 1)
        if self.length is not None:
            whole_number(self.length, "length", 1)
        for name in ("base", "factor", "beta_fast", "beta_slow", "low_freq_factor", "high_freq_factor"):
            value: object = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _GREATEST:
                raise UsageError(f"{name} must be a finite number above 0, not {str(value)[:40]}")
        if not self.base > 1.0 or self.low_freq_factor == self.high_freq_factor:
            raise UsageError("base must be above 1, and low_freq_factor another than high_freq_factor")
        for name, kinds in (("layout", get_args(Layout)), ("scaling", get_args(Scaling))):
            if getattr(self, name) not in kinds:
                raise UsageError(f"{name} must be one of {', '.join(kinds)}, not {getattr(self, name)!r}")
        if not self.factor >= 1.0:
            raise UsageError(f"factor must be at least 1, not {self.factor}")

    def frequencies(self) -> NDArray[np.float64]:
        """Give theta, the angle of each pair per position in radians, f64[dim/2].

        Examples
        --------
        >>> Rope(dim=4, base=100.0).frequencies().tolist()
        [1.0, 0.1]
        >>> Rope(dim=4, base=100.0, scaling="linear", factor=2.0).frequencies().tolist()
        [0.5, 0.05]
        """
        theta = self._plain(self.base)
        if self.scaling == "linear":
            return theta / self.factor
        if self.scaling == "ntk":
            return self._plain(self.base * self._stretch() ** (self.dim / max(self.dim - 2, 1)))
        if self.scaling == "yarn":
            return self._yarn(theta)
        return self._llama3(theta) if self.scaling == "llama3" else theta

    def _plain(self, base: float) -> NDArray[np.float64]:
        exponents = -2.0 * np.arange(self.dim // 2) / self.dim
        return np.asarray(base**exponents, np.float64)

    def _stretch(self) -> float:
        if self.length is None:
            return self.factor
        length = max(self.length, self.original_max_position)
        return self.factor * length / self.original_max_position - (self.factor - 1.0)

    def _yarn(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Keep fast pairs, divide slow ones, blend between (YaRN, section 3.2)."""
        low = max(math.floor(self._pair_with(self.beta_fast)), 0)
        high = min(math.ceil(self._pair_with(self.beta_slow)), self.dim - 1)
        ramp = np.clip((np.arange(self.dim // 2) - low) / max(high - low, 1e-3), 0.0, 1.0)
        return np.asarray(theta / self.factor * ramp + theta * (1.0 - ramp))

    def _pair_with(self, turns: float) -> float:
        """Give the pair, as a broken number, that makes so many turns over the trained length."""
        return self.dim * math.log(self.original_max_position / (turns * 2 * math.pi)) / (2 * math.log(self.base))

    def _llama3(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Keep short waves, divide long ones, blend between."""
        turns = self.original_max_position * theta / (2 * math.pi)
        kept = np.clip((turns - self.low_freq_factor) / (self.high_freq_factor - self.low_freq_factor), 0.0, 1.0)
        return np.asarray((1.0 - kept) * theta / self.factor + kept * theta)


def rotated(keys: ArrayLike, by: ArrayLike, rope: Rope) -> NDArray[Any]:
    """Turn keys by a number of positions each.

    Parameters
    ----------
    keys
        float[..., n, d], d at least ``rope.dim``; what scales a rotary embedding's amplitude (YaRN) stays as it is.
    by
        int[n], positions to turn each key by; one number for all is enough.

    Returns
    -------
    NDArray
        New keys of the same number format, each component rounded once.

    Raises
    ------
    UsageError
        Keys with fewer components than the rotary embedding has, or turns that are no whole numbers, one for each.

    Examples
    --------
    >>> rope = Rope(dim=2)
    >>> rotated([[1.0, 0.0]], [1], rope).round(3).tolist()
    [[0.54, 0.841]]
    """
    given = np.asarray(keys)
    if given.ndim < 2 or given.dtype.kind not in "biuf":
        raise UsageError(f"keys are real numbers in at least two dimensions, not {given.dtype} in {given.ndim}")
    given = given if np.issubdtype(given.dtype, np.floating) else given.astype(np.float64)
    if given.shape[-1] < rope.dim:
        raise UsageError(f"keys of {given.shape[-1]} components, the rotary embedding has {rope.dim}")
    turns = whole_numbers(by, "turns")
    if turns.shape not in ((), (1,), given.shape[-2:-1]):
        raise UsageError(f"one turn for all or {given.shape[-2]}, not {turns.shape}")
    by = np.broadcast_to(turns, given.shape[-2:-1])
    distances, place = np.unique(by, return_inverse=True)
    angles = distances[:, None] * rope.frequencies()
    cos, sin = np.cos(angles)[place], np.sin(angles)[place]
    half = rope.dim // 2
    first, second = (slice(0, half), slice(half, rope.dim))
    if rope.layout == "interleaved":
        first, second = slice(0, rope.dim, 2), slice(1, rope.dim, 2)
    x, y = given[..., first].astype(np.float64), given[..., second].astype(np.float64)
    turned = given.copy()
    turned[..., first] = x * cos - y * sin
    turned[..., second] = x * sin + y * cos
    return turned
