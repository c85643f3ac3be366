"""Embeddings are those of the model's own library, whatever they are computed with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from models.conftest import SENTENCES
from safetensors_spark.factory import ChangedStageError, ConfigError, Pipeline, Stage, load_config, run
from safetensors_spark.factory.operators._models import load_model, load_tokenizer
from safetensors_spark.factory.operators.embed import Embed, Encoder
from safetensors_spark.pipeline import Backend, create_backend

SIZES: dict[str, Any] = {"shard_bytes": 6000, "window_bytes": 2000, "file_bytes": 50_000}


def _vectors(operator: Embed, texts: list[str | None]) -> pa.Array:
    operator.load()
    found = operator.score(pa.record_batch({operator.field: pa.array(texts, pa.string())}))
    return found[operator.output]


def _matrix(found: pa.Array) -> Any:
    return np.array(found.to_pylist(), np.float32)


def _reference(folder: str, texts: list[str], pooling: str, normalize: bool, most: int = 256) -> Any:
    """All texts in one batch, by transformers, pooled as sentence-transformers documents it."""
    tokens = AutoTokenizer.from_pretrained(folder)(
        texts, padding=True, truncation=True, max_length=most, return_tensors="pt"
    )
    with torch.no_grad():
        states = AutoModel.from_pretrained(folder).eval()(**tokens).last_hidden_state
    mask = tokens["attention_mask"]
    weights = mask[:, :, None].float()
    last = mask.sum(1) - 1
    found = {
        "mean": lambda: (states * weights).sum(1) / weights.sum(1),
        "cls": lambda: states[:, 0],
        "max": lambda: (states - 1e9 * (1 - weights)).max(1).values,
        "last": lambda: torch.stack([row[at] for row, at in zip(states, last, strict=True)]),
    }[pooling]()
    return (torch.nn.functional.normalize(found, dim=1) if normalize else found).numpy()


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.parquet")}


def test_embeddings_are_those_of_the_models_own_library(minilm: str) -> None:
    found = _matrix(_vectors(Embed(model=minilm), SENTENCES))  # type: ignore[arg-type]
    np.testing.assert_allclose(found, _reference(minilm, SENTENCES, "mean", True), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "last"])
@pytest.mark.parametrize("normalize", [True, False])
def test_tokens_are_pooled_as_asked(minilm: str, pooling: Any, normalize: bool) -> None:
    operator = Embed(model=minilm, pooling=pooling, normalize=normalize, max_tokens=32)
    found = _matrix(_vectors(operator, SENTENCES))  # type: ignore[arg-type]
    np.testing.assert_allclose(found, _reference(minilm, SENTENCES, pooling, normalize, 32), atol=1e-5)


def test_a_prefix_is_put_before_each_text(minilm: str) -> None:
    found = _matrix(_vectors(Embed(model=minilm, prefix="query: "), ["a cat", ""]))
    np.testing.assert_allclose(found, _reference(minilm, ["query: a cat", "query: "], "mean", True), atol=1e-5)


def test_a_null_has_null_and_an_empty_text_the_embedding_of_special_tokens(minilm: str) -> None:
    found = _vectors(Embed(model=minilm), ["a cat", None, ""])
    assert found.type == pa.list_(pa.float32(), 384)
    assert found.is_null().to_pylist() == [False, True, False]
    np.testing.assert_allclose(np.array(found[2].as_py()), _reference(minilm, [""], "mean", True)[0], atol=1e-5)
    assert len(_vectors(Embed(model=minilm), [])) == 0


def test_a_text_without_a_token_has_null(minilm: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(minilm, folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["post_processor"] = None
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert _vectors(Embed(model=str(folder)), ["", "a cat"]).is_null().to_pylist() == [True, False]


def test_bytes_do_not_depend_on_the_batch(minilm: str) -> None:
    operator = Embed(model=minilm)
    expected = _matrix(_vectors(operator, SENTENCES))  # type: ignore[arg-type]
    for size in (1, 7):
        parts = [SENTENCES[begin : begin + size] for begin in range(0, len(SENTENCES), size)]
        found = np.concatenate([_matrix(_vectors(operator, part)) for part in parts])  # type: ignore[arg-type]
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(_matrix(_vectors(operator, SENTENCES[::-1])), expected[::-1])  # type: ignore[arg-type]


def test_batches_of_texts_have_nearly_the_same_embeddings(minilm: str) -> None:
    # As GPUs compute them.
    place, texts = Path(minilm), dict(enumerate(SENTENCES))
    one, some = (
        Encoder(
            load_model(Embed(model=minilm), place, "AutoModel"),
            load_tokenizer(place),
            "mean",
            normalize=True,
            max_tokens=128,
            batch_size=size,
        )(texts)
        for size in (1, 8)
    )
    for number in texts:
        np.testing.assert_allclose(one[number], some[number], atol=1e-5)


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    import ray

    ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=80 << 20)
    yield
    ray.shutdown()


def test_files_are_the_same_wherever_the_model_is(cluster: Any, minilm: str, texts: Any, tmp_path: Path) -> None:
    def made(name: str, backend: Backend, **resources: Any) -> dict[str, bytes]:
        recipe = Pipeline("p", (Stage("s", [Embed(model=minilm, **resources)]),))
        found = run(recipe, texts, tmp_path / name, backend=backend, **SIZES)
        assert found.features["embedding"] == datasets.List(datasets.Value("float32"), length=384)
        assert [row["embedding"] is None for row in found] == [text is None for text in texts["text"]]
        return _files(tmp_path / name)

    expected = made("sync", create_backend("sync", progress=False))
    assert len(expected) > 2
    for workers in (1, 4):
        assert made(f"{workers}", create_backend("processes", workers, progress=False)) == expected
    assert made("ray", create_backend("ray", 4, progress=False), concurrency=2) == expected


def test_other_weights_are_another_stage(minilm: str, texts: Any, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(minilm, folder)
    recipe = Pipeline("p", (Stage("s", [Embed(model=str(folder), max_tokens=8)]),))
    backend = create_backend("sync", progress=False)
    before = run(recipe, texts, tmp_path / "out", backend=backend)["embedding"][0]
    with (folder / "model.safetensors").open("r+b") as file:
        file.seek(-4, 2)
        file.write(b"\0\0\0\0")
    with pytest.raises(ChangedStageError, match="a file that they read, has changed"):
        run(recipe, texts, tmp_path / "out", backend=backend)
    again = run(recipe, texts, tmp_path / "out", backend=backend, mode="overwrite")
    assert len(again["embedding"][0]) == len(before)


def test_a_model_is_found_from_the_folder_of_the_recipe(minilm: str, tmp_path: Path) -> None:
    (tmp_path / "recipe").mkdir()
    (tmp_path / "model").symlink_to(minilm)
    file = tmp_path / "recipe" / "p.yaml"
    file.write_text(
        "name: p\nstages:\n  - name: s\n    operators:\n"
        "      - {type: embed, model: ../model, gpus: 1, concurrency: 2}\n"
    )
    (operator,) = load_config(file).pipeline().stages[0].operators
    assert isinstance(operator, Embed)
    assert Path(operator.model).is_absolute()
    assert (operator.gpus, operator.concurrency) == (1, 2)
    assert operator.writes == {"embedding": pa.list_(pa.float32(), 384)}


def test_a_folder_that_is_no_model_is_named(minilm: str, texts: Any, tmp_path: Path) -> None:
    def problem(folder: Path) -> str:
        with pytest.raises(ConfigError) as error:
            run(Pipeline("p", (Stage("s", [Embed(model=str(folder))]),)), texts, tmp_path / "out")
        return str(error.value)

    assert "is not a folder, expected a model with config.json, tokenizer.json and *.safetensors" in problem(
        tmp_path / "none"
    )
    folder = tmp_path / "model"
    shutil.copytree(minilm, folder)
    (folder / "model.safetensors").unlink()
    assert f"`embed_1`: {folder} has no *.safetensors, expected" in problem(folder)
    (folder / "model.safetensors").touch()
    (folder / "config.json").write_text("{")
    assert "config.json is not JSON" in problem(folder)


def test_a_module_that_is_not_computed_is_named(minilm: str, texts: Any, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(minilm, folder)
    modules = json.loads((folder / "modules.json").read_text())
    modules.insert(2, {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"})
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ConfigError, match=r"modules\.json has the module Dense, which `embed` does not compute"):
        Embed(model=str(folder)).load()
    (folder / "modules.json").unlink()
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling | {"pooling_mode_max_tokens": True}))
    with pytest.raises(ConfigError, match="asks for pooling_mode_mean_tokens and pooling_mode_max_tokens"):
        Embed(model=str(folder)).load()
    assert len(_vectors(Embed(model=str(folder), pooling="mean"), ["a"])) == 1


def test_a_gpu_that_is_not_there_is_an_error(minilm: str) -> None:
    if torch.accelerator.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(Exception, match="asks for 1 GPU, but PyTorch finds none"):
        Embed(model=minilm, gpus=1).load()
