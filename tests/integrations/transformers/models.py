"""Tiny random models of transformers and a conversation with one, for the tests of the hooks."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import pytest

from stabilitykit import Turn

__all__ = ["DEEPSEEK", "Talk", "tiny"]

VOCABULARY = 97
_SIZES = {
    "vocab_size": VOCABULARY, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 4096,
    "attn_implementation": "eager", "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None,
}  # fmt: skip
DEEPSEEK: dict[str, Any] = {
    "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "kv_lora_rank": 16,
    "q_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8, "num_key_value_heads": 4,
    "moe_intermediate_size": 16, "first_k_dense_replace": 3,
}  # fmt: skip


def tiny(family: str = "Llama", form: str = "float32", **more: Any) -> Any:
    """Make a random model of a family and number format; skip where torch or transformers are not installed."""
    torch = pytest.importorskip("torch", reason="torch is an extra")
    library = pytest.importorskip("transformers", reason="transformers is an extra")
    library.logging.set_verbosity_error()
    torch.set_num_threads(1)  # a model this small is slower on two
    torch.manual_seed(0)
    config = getattr(library, f"{family}Config")(**{**_SIZES, **more})
    return getattr(library, f"{family}ForCausalLM")(config).to(getattr(torch, form)).eval()


class Talk:
    """One conversation with a model: a cache, and turns of made-up tokens that the model answers greedily."""

    def __init__(self, model: Any, watch: Any, engine: Any, cache: Any = None, seed: int = 0) -> None:
        self.torch = pytest.importorskip("torch")
        self.model, self.watch, self.engine = model, watch, engine
        library = pytest.importorskip("transformers")
        self.cache = library.DynamicCache(config=model.config) if cache is None else cache
        self._word = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
        self._draw = self.torch.Generator().manual_seed(seed)
        self.held = 0
        self.logits: Any = None

    def words(self, count: int) -> Any:
        """Draw tokens."""
        return self.torch.randint(2, VOCABULARY, (1, count), generator=self._draw)

    def step(self, ids: Any, **given: Any) -> Any:
        """Run one forward pass on the cache; gives the logits of its last token."""
        with self.torch.no_grad():
            out = self.model(ids, **{self._word: self.cache}, **given)
        self.held += ids.shape[1]
        self.logits = out.logits[0, -1]
        return self.logits

    def say(self, prompt: Any, answer: int, shift: int = 0) -> None:
        """Run one turn; the positions of its last token but one are moved on by ``shift``."""
        self.step(prompt)
        for left in range(answer, 0, -1):
            moved = {"position_ids": self.torch.tensor([[self.held + shift]])} if shift and left == 1 else {}
            self.step(self.logits.argmax().view(1, 1), **moved)

    def generate(self, prompt: Any, answer: int) -> None:
        """Run one turn through ``generate``, which feeds the cache all tokens but its last one."""
        ids = self.torch.cat([self.torch.zeros(1, self.held, dtype=self.torch.long) + 2, prompt], dim=1)
        marks = self.torch.ones_like(ids)
        self.model.generate(
            ids, attention_mask=marks, max_new_tokens=answer, do_sample=False, **{self._word: self.cache}
        )
        self.held += prompt.shape[1] + answer - 1

    def decide(self) -> Any:
        """Give the engine's decision on what the hooks saw."""
        return self.engine.evaluate(Turn(session_id="c-1", **self.watch.turn_fields()))

    def copy_cache(self) -> Any:
        """Give a copy of the cache, as a host keeps one a turn."""
        return copy.deepcopy(self.cache)
