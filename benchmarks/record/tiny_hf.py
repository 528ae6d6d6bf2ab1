"""Write a tiny random llama for servers that load Hugging Face folders, with the tokenizer of a GGUF file.

    python tiny_hf.py MODEL.gguf FOLDER

Runs in the environment of the server, which needs ``gguf`` beside torch and transformers; imports nothing of ours.
"""

from __future__ import annotations

import sys
from pathlib import Path

WINDOW = 1024


def write(tokenizer_of: Path, folder: Path) -> None:
    """Write two layers of random weights (seeded): 3 million parameters, nearly all of them the embedding."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    tokenizer = AutoTokenizer.from_pretrained(str(tokenizer_of.parent), gguf_file=tokenizer_of.name)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=32, max_position_embeddings=WINDOW, tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, initializer_range=0.2,
    )  # fmt: skip
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
