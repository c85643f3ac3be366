"""Texts that a model writes depend on seed, key and prompt, and on nothing else."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

from models.conftest import SENTENCES
from safetensors_spark.factory import ConfigError, Pipeline, Stage, load_pipeline, run
from safetensors_spark.factory.operators._models import load_model, load_tokenizer
from safetensors_spark.factory.operators.generate import Generate, Writer, drawn
from safetensors_spark.pipeline import create_backend

WORDS = [sentence[:30] for sentence in SENTENCES]


def _texts(operator: Generate, **columns: list[Any]) -> list[str | None]:
    operator.load()
    found: list[str | None] = operator.generate(pa.record_batch(columns))[operator.output]
    return found


def _writer(folder: str, size: int, tokens: int = 8, temperature: float = 1.0, top_p: float = 1.0) -> Writer:
    place = Path(folder)
    model = load_model(Generate(model=folder), place, "AutoModelForCausalLM")
    return Writer(
        model,
        load_tokenizer(place),
        most_tokens=100,
        new_tokens=tokens,
        temperature=temperature,
        top_p=top_p,
        batch_size=size,
    )


def test_a_text_depends_on_seed_and_prompt_alone(tiny: str) -> None:
    operator = Generate(model=tiny, max_new_tokens=8)
    found = _texts(operator, text=WORDS)
    assert len(set(found)) > len(set(WORDS)) - 2
    assert _texts(operator, text=WORDS[::-1]) == found[::-1]
    assert [_texts(operator, text=[word])[0] for word in WORDS] == found
    other = _texts(Generate(model=tiny, max_new_tokens=8, seed=1), text=WORDS)
    assert sum(one != another for one, another in zip(found, other, strict=True)) > len(WORDS) - 3


@pytest.mark.parametrize("keys", [[1, 2, 1, None, None], ["a", "b", "a", None, None], [b"a", b"b", b"a", None, None]])
def test_equal_keys_have_equal_texts(tiny: str, keys: list[Any]) -> None:
    one, two, again, none, also = _texts(Generate(model=tiny, key="id", max_new_tokens=8), text=["So"] * 5, id=keys)
    assert one == again
    assert none == also
    assert len({one, two, none}) == 3


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_rows_that_are_computed_together_have_the_same_texts(tiny: str, temperature: float) -> None:
    # As GPUs compute them.
    prompts = dict(enumerate(WORDS))
    keys = {row: bytes([row] * 16) for row in prompts}
    one, some = (_writer(tiny, size, temperature=temperature)(prompts, keys) for size in (1, 7))
    assert one == some


def test_without_a_temperature_tokens_are_the_likeliest(tiny: str) -> None:
    found = _texts(Generate(model=tiny, temperature=0, max_new_tokens=6), text=WORDS)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(tiny), Tokenizer.from_file(f"{tiny}/tokenizer.json")
    for word, text in zip(WORDS, found, strict=True):
        ids = tokenizer.encode(word).ids
        new: list[int] = []
        while len(new) < 6:
            with torch.no_grad():
                token = int(model(torch.tensor([ids + new])).logits[0, -1].argmax())
            if token == 0:
                break
            new.append(token)
        assert text == tokenizer.decode(new)


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.5, 1.0), (1.0, 0.4)])
def test_tokens_come_as_often_as_they_are_likely(tiny: str, temperature: float, top_p: float) -> None:
    count = 4000
    found = _writer(tiny, 1000, 1, temperature, top_p)(
        dict.fromkeys(range(count), "A cat"), {row: row.to_bytes(16, "little") for row in range(count)}
    )
    tokenizer = Tokenizer.from_file(f"{tiny}/tokenizer.json")
    with torch.no_grad():
        logits = AutoModelForCausalLM.from_pretrained(tiny)(torch.tensor([tokenizer.encode("A cat").ids])).logits
    shares, order = torch.softmax(logits[0, -1].double() / temperature, -1).sort(descending=True)
    kept = int((shares.cumsum(-1) < top_p).sum()) + 1 if top_p < 1 else len(shares)
    shares = shares[:kept] / shares[:kept].sum()
    counts = Counter(found.values())
    texts = [tokenizer.decode([token]) for token in order[:kept].tolist()]
    assert set(counts) <= set(texts)
    for text, share in list(zip(texts, shares.tolist(), strict=True))[:5]:
        if text.isascii():
            # Five times what chance makes of it.
            assert abs(counts[text] - count * share) < 5 * (count * share) ** 0.5


def test_numbers_that_are_drawn_are_evenly_spread() -> None:
    found = sorted(drawn(row.to_bytes(16, "little"), step) for row in range(100) for step in range(100))
    assert all(abs(one - place / 10_000) < 0.02 for place, one in enumerate(found))
    assert len(set(found)) == 10_000


def test_a_prompt_is_made_of_fields(tiny: str) -> None:
    operator = Generate(model=tiny, prompt="{{{n}}} {text}:", key="id", max_new_tokens=4)
    assert operator.reads == ("n", "text", "id")
    found = _texts(operator, n=[1, 2, None], text=["a", None, "b"], id=[1, 2, 3])
    assert found[1:] == [None, None]
    assert found[0] == _texts(Generate(model=tiny, key="id", max_new_tokens=4), text=["{1} a:"], id=[1])[0]


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        ("Say it", "names no field"),
        ("{}", "the name of a field"),
        ("{a.b}", "the name of a field"),
        ("{a!r}", "the name of a field"),
    ],
)
def test_a_prompt_that_is_wrong_is_told_with_its_line(tmp_path: Path, prompt: str, told: str) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(
        "name: p\nstages:\n  - name: s\n    operators:\n      - type: generate\n        model: m\n"
        f"        prompt: '{prompt}'\n"
    )
    with pytest.raises(ConfigError, match=rf"line 7: .*{told}"):
        load_pipeline(file)


def test_a_prompt_that_is_too_long_is_an_error(tiny: str, tmp_path: Path) -> None:
    rows = datasets.Dataset.from_dict({"text": ["a", "b " * 200, "c"]})
    operators = [Generate(model=tiny, max_new_tokens=28)]
    backend = create_backend("sync", progress=False)
    with pytest.raises(ValueError, match=r"a prompt has \d+ tokens, expected 1 to 100, .*It begins with 'b b") as error:
        run(Pipeline("p", (Stage("s", operators),)), rows, tmp_path / "a", backend=backend)
    assert "In operator `generate_1`" in error.value.__notes__
    kept = run(Pipeline("p", (Stage("s", operators, on_error="quarantine"),)), rows, tmp_path / "b", backend=backend)
    assert kept["text"][:] == ["a", "c"]


def test_files_are_the_same_wherever_the_model_is(tiny: str, texts: Any, tmp_path: Path) -> None:
    import ray

    def made(name: str, backend: str, workers: int, **resources: Any) -> dict[str, bytes]:
        operator = Generate(model=tiny, prompt="{n}", key="n", max_new_tokens=8, **resources)
        found = run(
            Pipeline("p", (Stage("s", [operator]),)),
            texts,
            tmp_path / name,
            backend=create_backend(backend, workers, progress=False),
            shard_bytes=6000,
            window_bytes=2000,
        )
        assert found["__fdf__/generated_by"][0] == ["generate_1"]
        return {path.name: path.read_bytes() for path in (tmp_path / name).rglob("*.parquet")}

    expected = made("sync", "sync", 1)
    assert len(expected) > 2
    for workers in (1, 4):
        assert made(f"{workers}", "processes", workers) == expected
    ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=80 << 20)
    try:
        assert made("ray", "ray", 4, concurrency=2) == expected
    finally:
        ray.shutdown()
