"""`DatasetWriter` takes PyTorch's tensors, of whatever dtype, memory and device of this machine."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from safetensors_spark import InvalidWriteError
from safetensors_spark.dataset import DatasetWriter, open_dataset, open_store, verify

DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
    torch.float32, torch.float64, torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2, torch.uint16, torch.uint32,
    torch.uint64, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz,
]  # fmt: skip


def write(path: Path, batch: dict[str, Any], **options: Any) -> dict[str, torch.Tensor]:
    """The tensors of the only shard, as the official library reads them."""
    with DatasetWriter(path, **options) as writer:
        writer.write(batch)
    assert verify(path).faults == []
    [shard] = path.glob("*.safetensors")
    loaded: dict[str, torch.Tensor] = load_file(shard)
    return loaded


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    bytes_of = [tensor.contiguous().reshape(-1).view(torch.uint8) for tensor in (one, other)]
    return one.dtype == other.dtype and one.shape == other.shape and bool(torch.equal(*bytes_of))


def values(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    numbers = torch.arange(torch.Size(shape).numel()).reshape(shape) % 7
    return numbers.to(torch.float32).to(dtype)


def test_tensors_of_every_dtype_have_their_bytes(tmp_path: Path) -> None:
    rows = {str(dtype): values(dtype, 3, 2, 2) for dtype in DTYPES}
    loaded = write(tmp_path / "dataset", rows, batch_size=3)
    assert [name for name, tensor in rows.items() if not same(loaded[name], tensor)] == []


def test_views_and_gradients_are_rows_like_any(tmp_path: Path) -> None:
    whole = values(torch.bfloat16, 4, 6, 5)
    gradient = torch.rand(4, 3, requires_grad=True)
    rows = {
        "strided": whole[:, ::2], "turned": whole.transpose(1, 2), "later": whole[:, 1:3, 2:], "gradient": gradient * 2,
        "leaf": gradient, "expanded": torch.tensor([1.5], dtype=torch.float8_e5m2).expand(4, 2),
        "single": torch.arange(4), "empty": torch.zeros(4, 0), "conjugated": torch.full((4,), 1 + 2j).conj(),
        "negative": torch.full((4,), 1 + 2j).conj().imag, "parameter": torch.nn.Parameter(torch.ones(4, 2)),
    }  # fmt: skip
    loaded = write(tmp_path / "dataset", rows, batch_size=4)
    assert set(loaded) == set(rows)
    for name, tensor in rows.items():
        assert torch.equal(loaded[name].to(torch.complex64), tensor.detach().to(torch.complex64)), name
        assert loaded[name].dtype == tensor.dtype


def test_rows_may_be_tensors_of_no_dimension_or_of_their_own_length(tmp_path: Path) -> None:
    rows = {
        "loss": [torch.tensor(0.5, dtype=torch.bfloat16), torch.tensor(1.5, dtype=torch.bfloat16)],
        "ids": [torch.tensor([1, 2, 3]), torch.tensor([], dtype=torch.int64)],
        "jagged": torch.nested.nested_tensor([torch.ones(2, 3), torch.zeros(1, 3)], layout=torch.jagged),
        "gaps": torch.nested.narrow(
            torch.arange(8).reshape(2, 4), 1, torch.tensor([1, 0]), torch.tensor([2, 3]), torch.jagged
        ),
        "padded": torch.nested.nested_tensor([torch.ones(2, 1), torch.zeros(3, 1)], layout=torch.strided),
    }
    loaded = write(tmp_path / "dataset", rows, batch_size=2, ragged=["ids"])
    assert same(loaded["loss"], torch.tensor([0.5, 1.5], dtype=torch.bfloat16))
    assert (loaded["ids"].tolist(), loaded["ids.offsets"].tolist()) == ([1, 2, 3], [0, 3, 3])
    assert (loaded["jagged"].shape, loaded["jagged.offsets"].tolist()) == ((3, 3), [0, 2, 3])
    assert (loaded["gaps"].tolist(), loaded["gaps.offsets"].tolist()) == ([1, 2, 4, 5, 6], [0, 2, 5])
    assert (loaded["padded"].shape, loaded["padded.offsets"].tolist()) == ((5, 1), [0, 2, 5])
    first = open_dataset(tmp_path / "dataset")[0]
    assert (first["ids"].tolist(), first["jagged"].shape) == ([1, 2, 3], (2, 3))


def test_tensors_by_key(tmp_path: Path) -> None:
    tensors = [torch.ones(2, 3, dtype=torch.bfloat16), torch.tensor(True), torch.zeros(3, dtype=torch.float8_e4m3fn)]
    loaded = write(tmp_path / "store", {"k": ["a", "b", "c"], "x": tensors}, name_col="k")
    assert all(same(loaded[key], tensor) for key, tensor in zip("abc", tensors, strict=True))
    assert len(open_store(tmp_path / "store")) == 3


def test_dtypes_are_converted_as_pytorch_does(tmp_path: Path) -> None:
    numbers = torch.randn(1000, 3) * 100
    kinds = {"BF16": torch.bfloat16, "F16": torch.float16, "F8_E5M2": torch.float8_e5m2, "F64": torch.float64}
    loaded = write(
        tmp_path / "dataset", dict.fromkeys(kinds, numbers), batch_size=1000, dtype={name: name for name in kinds},
        rounding="nearest_even",
    )  # fmt: skip
    assert [name for name, kind in kinds.items() if not same(loaded[name], numbers.to(kind))] == []


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (torch.tensor(1.0), "Column `x` is a single value"),
        (torch.ones(2, dtype=torch.complex128), "Column `x`: NumPy's complex128 is not a dtype of safetensors"),
        (torch.ones(2, 3).to_sparse(), "Column `x`.*the layout torch.sparse_coo.*to_dense"),
        (torch.ones(2, device="meta"), "Column `x`.*no values"),
        (torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), "Column `x`.*torch.qint8.*dequantize"),
    ],
    ids=["no rows", "no dtype", "sparse", "meta", "quantized"],
)
def test_tensors_that_have_no_rows_are_refused(tmp_path: Path, tensor: torch.Tensor, message: str) -> None:
    with pytest.raises(InvalidWriteError, match=message):
        write(tmp_path / "dataset", {"x": tensor}, batch_size=2)
    assert not list(tmp_path.rglob("*.safetensors"))
