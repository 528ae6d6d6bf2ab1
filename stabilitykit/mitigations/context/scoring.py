"""One score a unit from what was asked, what a message is worth by itself, and how recent it is."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from stabilitykit.mitigations.context import identifiers, relevance, worth
from stabilitykit.mitigations.context.index import ContextIndex
from stabilitykit.mitigations.context.scanning import WORDS

__all__ = ["Policy", "fused", "relevance_of"]

SCORERS = ("auto", "lexical", "identifiers", "source")


def _share(instance: Policy, attribute: attrs.Attribute[float], value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{attribute.name} is a share between 0 and 1, not {value}")


@attrs.frozen(kw_only=True)
class Policy:
    """How a cut is made. Defaults were chosen on recorded dialogues; ``Policy.of_source()`` is the source's way.

    Parameters
    ----------
    window_tokens, window_share
        The most recent units that stay whole: this many tokens, at most this share of what there is room for.
    last_share
        The last thing said stays, too, unless it takes more of the budget than this share.
    anchors
        Units that stay because they fit the query best.
    anchor_weight, worth_weight, window_weight
        What is added up, each in standard deviations, for the units beside these.
    scorer
        ``auto``: identifiers where tools are called, else words (and embeddings where the host has a model);
        ``lexical``, ``identifiers``, or ``source``: the softmax diagonal with position bias (formulas A4.1).
    is_blind
        Ignore what was asked.
    is_whole
        Tool results stay whole or not at all; else the members or sentences of one that the next call hardly needs can
        be left out.
    low_water
        A cut goes down to this share of the budget, so that the next turns need none and the prefix stays.
    summary_tokens
        Room for a summary of what was dropped; 0: none.
    worth_weights, identifier_weights
        Of what a message is worth by itself, and of the chance of an identifier to be needed again.
    """

    window_tokens: int = attrs.field(default=512, validator=attrs.validators.ge(0))
    window_share: float = attrs.field(default=0.0625, validator=_share)
    last_share: float = attrs.field(default=0.2, validator=_share)
    anchors: int = attrs.field(default=3, validator=attrs.validators.ge(0))
    anchor_weight: float = 1.0
    worth_weight: float = 0.4
    window_weight: float = 0.05
    scorer: str = attrs.field(default="auto", validator=attrs.validators.in_(SCORERS))
    is_blind: bool = False
    is_whole: bool = False
    low_water: float = attrs.field(default=0.75, validator=_share)
    summary_tokens: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    worth_weights: tuple[float, ...] = worth.WEIGHTS
    identifier_weights: tuple[float, ...] = identifiers.WEIGHTS

    @classmethod
    def of_source(cls) -> Policy:
        """Give half of the room to the window and the rest to the source's score."""
        return cls(window_share=0.5, scorer="source", worth_weight=0.0, window_weight=0.0)


def relevance_of(index: ContextIndex, query: str, scorer: str = "auto", asked: int = -1) -> NDArray[np.float64]:
    """Score every message against a query, in standard deviations; all 0 where nothing fits.

    The message that asks (``asked``, -1: it is not in the list) lends nothing to its neighbours.
    """
    vectors = index.vectors() if scorer == "source" or (query and scorer == "auto") else None
    if scorer == "source":
        rows = _word_vectors(index) if vectors is None else vectors
        return relevance.standard(relevance.uniqueness(rows, len(rows) - 1))

    def smoothed(scores: NDArray[np.float64], shares: Sequence[float]) -> NDArray[np.float64]:
        if asked >= 0:
            scores[asked] = np.delete(scores, asked).mean() if len(scores) > 1 else 0.0
        return relevance.standard(relevance.neighbours(scores, shares))

    shares = relevance.SENTENCES if relevance.is_cjk(index) else relevance.TURNS
    found = smoothed(relevance.bm25(index, query), shares)
    if vectors is None:
        return found
    return found + smoothed(vectors @ index.embedded([query])[0], relevance.MEANING)


def _word_vectors(index: ContextIndex) -> NDArray[np.float64]:
    messages = len(index.texts)
    rows = np.zeros((messages, len(index.words)))
    is_stem = index.stems >= 0
    np.add.at(rows, (np.repeat(np.arange(messages), index.counts[:, WORDS])[is_stem], index.stems[is_stem]), 1.0)
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))


def fused(index: ContextIndex, relevant: NDArray[np.float64], policy: Policy) -> NDArray[np.float64]:
    """Add up what speaks for each message; without a query what it is worth for each token."""
    is_blind = not relevant.any()
    if policy.scorer == "source":
        return relevant
    value = worth.log_worth(index, policy.worth_weights)
    share = 0.0 if relevance.is_cjk(index) else policy.worth_weight  # what makes a message worth it is English
    if is_blind:
        return value - np.log(np.maximum(index.tokens, 1))
    later = np.cumsum(index.tokens[::-1])[::-1] - index.tokens
    recent = 0.5 ** (later / max(policy.window_tokens, 1))
    return (
        policy.anchor_weight * relevant
        + share * relevance.standard(value)
        + policy.window_weight * relevance.standard(recent)
    )
