"""Datasets and stores in many threads, in forked processes, and when Ctrl-C is pressed."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event, Thread
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from handmade import Handmade
from safetensors_spark._files.storage import LocalFolder
from safetensors_spark.dataset import open_dataset, open_store
from safetensors_spark.dataset._maps import MAPS


@pytest.fixture
def often_switched() -> Iterator[None]:
    """Threads take turns a thousand times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(before / 1000)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("often_switched")
def test_threads_over_more_shards_than_are_kept_open(tmp_path: Path) -> None:
    shards = MAPS + 150
    for number in range(shards):
        save_file({"n": np.array([number, -number])}, tmp_path / f"{number:04}.safetensors")
    ds = open_dataset(tmp_path)
    barrier = Barrier(8)

    def read(seed: int) -> bool:
        numbers = np.random.default_rng(seed).permutation(len(ds)).tolist()
        barrier.wait()
        return all(int(ds[number]["n"]) == (-1) ** (number % 2) * (number // 2) for number in numbers)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(read, range(8)))


def exit_code_of_child(run: Callable[[], bool]) -> int:
    """Of a forked process; -14 if it hangs."""
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(0 if run() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("indexed", [False, True])
def test_a_process_forked_during_the_first_look_up(
    tmp_path: Path, indexed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = Handmade(tmp_path)
    entries = dataset.shard(a=[1.0], b=[2.0])
    if indexed:
        dataset.part(entries)
    dataset.commit()
    store, parent = open_store(tmp_path), os.getpid()
    reading, go_on = Event(), Event()
    read = LocalFolder.read

    def stopped(self: LocalFolder, *arguments: Any) -> bytes:
        if os.getpid() == parent:
            reading.set()
            go_on.wait()
        return read(self, *arguments)

    monkeypatch.setattr(LocalFolder, "read", stopped)
    other = Thread(target=store.get, args=("a",))
    other.start()
    reading.wait()
    code = exit_code_of_child(lambda: store["b"].tolist() == [2.0])
    go_on.set()
    other.join()
    assert code == 0
    assert store["b"].tolist() == [2.0]


@pytest.mark.parametrize("taken", [1, 9])
def test_a_forked_process_goes_on_with_an_iterator(tmp_path: Path, taken: int) -> None:
    """Its parent's threads may be in the middle of a transform."""
    save_file({"n": np.arange(20)}, tmp_path / "0.safetensors")
    parent, go_on = os.getpid(), Event()

    def transform(batch: dict[str, Any]) -> list[int]:
        numbers: list[int] = batch["n"].tolist()
        if numbers[0] >= 2 * taken and os.getpid() == parent:
            go_on.wait()
        return numbers

    iterator = iter(open_dataset(tmp_path).batches(2, transform=transform))
    expected = [[number, number + 1] for number in range(0, 20, 2)]
    assert [next(iterator) for _ in range(taken)] == expected[:taken]
    code = exit_code_of_child(lambda: list(iterator) == expected[taken:])
    go_on.set()
    assert code == 0
    assert list(iterator) == expected[taken:]


IMPORTS = """
import sys
import fsspec
from safetensors_spark.dataset import open_dataset, open_store

fsspec.filesystem("memory").put(sys.argv[1], "/samples/", recursive=True)
store, ds = open_store(sys.argv[2]), open_dataset("memory://samples", cache_dir=sys.argv[3])
before = set(sys.modules)
assert store["a"].tolist() == [1.0]
assert ds[0]["v"] == 2.0
print({name.partition(".")[0] for name in set(sys.modules) - before} - sys.stdlib_module_names)
"""


def test_the_first_look_up_imports_nothing(tmp_path: Path) -> None:
    """A process that is forked while another thread imports a module would wait for that for ever."""
    keys, samples = Handmade(tmp_path / "keys"), Handmade(tmp_path / "samples", "batch")
    keys.part(keys.shard(a=[1.0]))
    keys.commit()
    samples.shard(v=[2.0])
    samples.commit()
    command = [sys.executable, "-c", IMPORTS, f"{samples.folder}/", str(keys.folder), str(tmp_path / "cache")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("set()\n", "")


INTERRUPTED = """
import signal, sys, threading
import fsspec
from fsspec.implementations.memory import MemoryFileSystem
from safetensors_spark.dataset import open_dataset

# A shell that starts the tests in the background has them ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)

class Stuck(MemoryFileSystem):
    def open(self, path, mode="rb", **options):
        if "rb" in mode and "part-" in path and "part-00000" not in path:
            threading.Event().wait()
        return super().open(path, mode, **options)

fsspec.register_implementation("memory", Stuck, clobber=True)
fsspec.filesystem("memory").put(sys.argv[1], "/stuck/", recursive=True)
for sample in open_dataset("memory://stuck", cache_dir=sys.argv[2]):
    print("reading", flush=True)
"""


def test_ctrl_c_does_not_wait_for_downloads(tmp_path: Path) -> None:
    dataset = Handmade(tmp_path / "dataset", "batch")
    for number in range(4):
        dataset.shard(v=[number])
    dataset.commit()
    command = [sys.executable, "-c", INTERRUPTED, f"{dataset.folder}/", str(tmp_path / "cache")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "reading\n"
    process.send_signal(signal.SIGINT)
    try:
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == -signal.SIGINT
    assert said.rstrip().endswith("KeyboardInterrupt")


MANY = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
from safetensors_spark.dataset import open_dataset, open_store
datasets = [open_dataset(sys.argv[1]) for _ in range(3)]
print(*(sum(len(sample["x"]) for sample in ds) for ds in datasets))
print(len(dict(open_store(sys.argv[2]))))
"""


def test_more_shards_than_a_process_may_have_files_open(tmp_path: Path) -> None:
    """Arrays of a store keep their maps."""
    samples, keys = tmp_path / "samples", tmp_path / "keys"
    samples.mkdir()
    keys.mkdir()
    length = 2 << 20
    for number in range(300):
        for folder, name in ((samples, "x"), (keys, f"x{number}")):
            header = f'{{"{name}":{{"dtype":"U8","shape":[1,{length}],"data_offsets":[0,{length}]}}}}'.encode()
            with (folder / f"{number:03}.safetensors").open("wb") as file:
                file.write(len(header).to_bytes(8, "little") + header)
                file.truncate(8 + len(header) + length)
    done = subprocess.run([sys.executable, "-c", MANY, samples, keys], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"{300 * length} {300 * length} {300 * length}\n300\n", "")
