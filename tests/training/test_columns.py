"""What tensors are made of: all dtypes, rows small and large, and shards that are not what they should be."""

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.utils.data import ConcatDataset, DataLoader, Subset

from safetensors_spark import DamagedShardError, InvalidTensorError
from safetensors_spark.dataset import open_dataset, open_store
from safetensors_spark.dataset._gather import LARGE
from safetensors_spark.torch import BatchDataset, SampleDataset, collate
from safetensors_spark.torch._tensors import DTYPES
from training.conftest import Folder


def random(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Elements of any bits."""
    whole = (*shape[:-1], shape[-1] * dtype.itemsize)
    bits = np.random.default_rng(len(shape)).integers(0, 256, whole, np.uint8)
    return torch.from_numpy(bits & 1 if dtype == torch.bool else bits).view(dtype)


def same(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether dtype, shape and every bit are the same."""
    as_bytes = [tensor.contiguous().view(torch.uint8).numpy() for tensor in (left, right)]
    return (left.dtype, left.shape) == (right.dtype, right.shape) and np.array_equal(*as_bytes)


def test_all_dtypes_as_the_official_library_has_them(tmp_path: Path) -> None:
    for number, rows in enumerate((5, 3)):
        tensors = {name: random(dtype, rows, 2, 6) for name, dtype in DTYPES.items()}
        save_file(tensors, tmp_path / f"{number}.safetensors")
    files = [load_file(tmp_path / f"{number}.safetensors") for number in (0, 1)]
    samples = SampleDataset(open_dataset(tmp_path))
    batch = next(iter(BatchDataset(open_dataset(tmp_path), 8)))
    rest = next(iter(BatchDataset(open_dataset(tmp_path), 8, shuffle=True)))
    assert set(batch) == set(DTYPES)
    for name in DTYPES:
        expected = [row for file in files for row in file[name].unbind(0)]
        assert all(same(samples[number][name], row) for number, row in enumerate(expected)), name
        assert all(same(one, row) for one, row in zip(batch[name].unbind(0), expected, strict=True)), name
        assert all(any(same(one, row) for row in expected) for one in rest[name].unbind(0)), name


@pytest.mark.parametrize("width", [1, 7, LARGE - 1, LARGE, LARGE + 8])
def test_rows_of_any_size(tmp_path: Path, width: int) -> None:
    """Gathered by address, or copied one by one; neighbours at once; of one shard, and of several."""
    shards = [random(torch.uint8, 6, width), random(torch.uint8, 9, width), random(torch.uint8, 1, width)]
    for number, shard in enumerate(shards):
        save_file(
            {"x": shard, "none": torch.empty(len(shard), 0), "one": torch.ones(len(shard))},
            tmp_path / f"{number}.safetensors",
        )
    rows = torch.cat(shards)
    samples = SampleDataset(open_dataset(tmp_path))
    for numbers in ([3], [0, 1, 2], [4, 5, 6, 7], [5, 4, 4, 15, 0], list(range(16)), [15, 6, 7, 8, 1, 2], []):
        found = samples.__getitems__(numbers)
        assert len(found) == len(numbers)
        assert all(torch.equal(sample["x"], rows[number]) for sample, number in zip(found, numbers, strict=True))
        assert all(sample["none"].shape == (0,) and sample["one"] == 1 for sample in found)


def test_samples_by_number(numbered: Folder) -> None:
    samples = SampleDataset(open_dataset(numbered([3, 1, 4]), columns=["n"]))
    assert len(samples) == 8
    assert [int(samples[number]["n"]) for number in (0, 3, 7, -1)] == [0, 3, 7, 7]
    for wrong in (8, -9):
        with pytest.raises(IndexError):
            samples[wrong]
    with pytest.raises(IndexError, match="numbered 0 to 7, and 8 is asked for"):
        samples.__getitems__([2, 8])
    assert int(pickle.loads(pickle.dumps(samples))[5]["n"]) == 5
    for workers, options in ((0, {}), (2, {}), (0, {"collate_fn": collate}), (2, {"collate_fn": collate})):
        loader = DataLoader(samples, batch_size=3, shuffle=True, num_workers=workers, **options)
        assert sorted(number for batch in loader for number in batch["n"].tolist()) == list(range(8))
    together = samples.__getitems__([6, 1])
    assert collate(together)["n"].tolist() == [sample["n"].item() for sample in together] == [6, 1]
    assert [sample["n"].item() for sample in together[::-1]] == [1, 6]
    # Samples of a subset come one by one, or from several datasets.
    parts = ConcatDataset([Subset(samples, [7, 2]), samples])
    assert collate([parts[0], parts[2]])["n"].tolist() == [7, 0]


@pytest.fixture(params=["file_descriptor", "file_system"])
def sharing(request: pytest.FixtureRequest) -> Iterator[None]:
    """PyTorch's ways to share memory."""
    before = torch.multiprocessing.get_sharing_strategy()
    torch.multiprocessing.set_sharing_strategy(request.param)
    yield
    torch.multiprocessing.set_sharing_strategy(before)


@pytest.mark.usefixtures("sharing")
@pytest.mark.parametrize("width", [1, 1021, LARGE + 3])
def test_a_worker_makes_batches_where_the_main_process_has_them(tmp_path: Path, width: int) -> None:
    """In shared memory, which is not copied again."""
    shards = [random(torch.uint8, rows, width) for rows in (40, 27)]
    for number, shard in enumerate(shards):
        columns = {"x": shard, "n": torch.arange(len(shard)) + 40 * number, "none": torch.empty(len(shard), 0)}
        save_file(columns, tmp_path / f"{number}.safetensors")
    rows = torch.cat(shards)
    for shuffle in (False, True):
        batches = BatchDataset(open_dataset(tmp_path), 32, shuffle=shuffle)
        found = list(DataLoader(batches, batch_size=None, num_workers=1))
        assert all(batch["x"].is_shared() and batch["n"].is_shared() for batch in found)
        numbers = torch.cat([batch["n"] for batch in found])
        assert sorted(numbers.tolist()) == list(range(67))
        assert (numbers.tolist() != list(range(67))) == shuffle
        assert torch.equal(torch.cat([batch["x"] for batch in found]), rows[numbers])
        assert [batch["none"].shape for batch in found] == [(32, 0), (32, 0), (3, 0)]
        assert not any(tensor.is_shared() for tensor in next(iter(batches)).values())


def test_pytorch_writes_to_arrays_of_numpy(tmp_path: Path) -> None:
    """It does not know of read-only memory, writing to which ends the process."""
    path = tmp_path / "0.safetensors"
    save_file({"x": torch.zeros(4, 100_000)}, path)
    before = path.read_bytes()
    ds = open_dataset(tmp_path)
    for array in (ds[0]["x"], ds[1:3]["x"]):
        assert torch.from_numpy(array).add_(1).min() == 1
    assert not ds["x"].any()
    with pytest.warns(UserWarning, match="not writable"):
        torch.from_numpy(open_store(tmp_path)["x"]).add_(1)
    assert path.read_bytes() == before


def test_shards_that_do_not_agree(tmp_path: Path) -> None:
    save_file({"x": torch.zeros(4, 2)}, tmp_path / "0.safetensors")
    save_file({"x": torch.zeros(4, 3)}, tmp_path / "1.safetensors")
    with pytest.raises(
        InvalidTensorError, match=r"column `x` has samples of torch.float32 \[2\] in 0\.safetensors and of"
    ):
        list(BatchDataset(open_dataset(tmp_path), 8))
    assert [len(sample["x"]) for sample in (SampleDataset(open_dataset(tmp_path))[n] for n in (0, 7))] == [2, 3]


def test_what_pytorch_has_not(tmp_path: Path) -> None:
    pairs = r"its shape is \[4\], and PyTorch has F4 only in pairs along the last dimension"
    for dtype, shape, message in (
        ("F6_E2M3", [4, 4], "F6_E2M3 is not a dtype of PyTorch"),
        # PyTorch 2.6 has none.
        ("F4", [4], pairs if "F4" in DTYPES else "F4 is not a dtype of PyTorch"),
    ):
        bits = {"F6_E2M3": 6, "F4": 4}[dtype]
        length = int(np.prod(shape)) * bits // 8
        header = f'{{"x":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[0,{length}]}}}}'.encode()
        (tmp_path / "0.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(length))
        with pytest.raises(InvalidTensorError, match=rf"0.safetensors: tensor `x`: {message}"):
            SampleDataset(open_dataset(tmp_path))[0]


@pytest.mark.parametrize("workers", [0, 1])
def test_faults_name_the_shard(numbered: Folder, workers: int) -> None:
    folder = numbered([4, 4, 4])
    batches = BatchDataset(open_dataset(folder), 4, shuffle=True)
    shard = folder / "00001.safetensors"
    kept = shard.rename(folder / "kept")
    loader = DataLoader(batches, batch_size=None, num_workers=workers)
    shard.write_bytes(kept.read_bytes()[:-1])
    with pytest.raises(DamagedShardError, match=r"00001.safetensors has \d+ bytes, expected \d+"):
        list(loader)
    shard.unlink()
    with pytest.raises(FileNotFoundError, match=r"00001\.safetensors does not exist"):
        list(loader)
    kept.rename(shard)
    assert sum(len(batch["n"]) for batch in loader) == 12


MANY = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
from safetensors_spark.dataset import open_dataset
from safetensors_spark.torch import BatchDataset, SampleDataset
points = open_dataset(sys.argv[1], columns=["n"])
for shuffle in (False, True):
    batches = BatchDataset(points, 64, shuffle=shuffle)
    assert sorted(n for batch in batches for n in batch["n"].tolist()) == list(range(300))
samples = SampleDataset(points).__getitems__(range(300))
assert [int(sample["n"]) for sample in samples] == list(range(300))
"""


def test_more_shards_than_a_process_may_have_open(tmp_path: Path) -> None:
    """They are large enough to be mapped; their files are holes but for a number."""
    names = {
        "n": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]},
        "x": {"dtype": "U8", "shape": [1, 1 << 20], "data_offsets": [8, 8 + (1 << 20)]},
    }
    header = json.dumps(names).encode()
    start = len(header).to_bytes(8, "little") + header
    for number in range(300):
        with (tmp_path / f"{number:03}.safetensors").open("wb") as file:
            file.write(start + number.to_bytes(8, "little"))
            file.truncate(len(start) + 8 + (1 << 20))
    done = subprocess.run([sys.executable, "-c", MANY, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


MEMORY = """
import sys
from collections.abc import Iterator
from pathlib import Path
from safetensors_spark.dataset import _shards, open_dataset
from safetensors_spark.torch import BatchDataset

def mapped():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssFile")) * 1024

_shards._MAPPED_BYTES = 8 << 20
shuffle = sys.argv[2] == "True"
batches = BatchDataset(open_dataset(sys.argv[1]), 16, shuffle=shuffle, window_bytes=8 << 20)
before, most, samples = mapped(), 0, 0
for batch in batches:
    samples += len(batch["x"])
    most = max(most, mapped() - before)
print(samples, most >> 20)
"""


@pytest.mark.parametrize("shuffle", [False, True])
def test_memory_does_not_grow_with_the_dataset(tmp_path: Path, shuffle: bool) -> None:
    for number in range(32):
        save_file({"x": torch.zeros(64, 1 << 16, dtype=torch.uint8)}, tmp_path / f"{number:02}.safetensors")
    arguments = [sys.executable, "-c", MEMORY, str(tmp_path), str(shuffle)]
    samples, most = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.split()
    assert int(samples) == 32 * 64
    # Of 128 MB: two windows, and the batches that are made of the one before.
    assert int(most) < 40
