"""HDFS, and S3A with its magic committer: real servers, and executors that are processes of their own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from failures import leftovers, written
from filesystems import BUCKET, S3, Cluster, cluster, hdfs, s3
from official import Tensor, load, verdicts
from remote_model import NAMES, SCHEMA, Model
from spark_io import Dataset, assert_says, files
from test_index import assert_leads_to_every_tensor

BATCH = {"batch_size": 2}
KEYED = {"name_col": "k", "generate_index": "true"}


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory, bucket: S3) -> Iterator[dict[str, str]]:
    with hdfs(tmp_path_factory.mktemp("hdfs")) as address:
        yield {"hdfs": address, "s3a": bucket.uri}


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory, bucket: S3) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("spark"), bucket.conf) as running:
        yield running


class Place:
    """A directory of a file system, to be written to."""

    def __init__(self, uri: str, application: Cluster, bucket: S3, local: Path) -> None:
        self.uri = uri
        self.application = application
        self._bucket = bucket
        self._local = local

    def write(self, first: int, options: dict[str, Any], **arguments: Any) -> str | None:
        error: str | None = self.application.ask("write", self.uri, first=first, options=options, **arguments)
        return error

    def upload(self, *files: Path) -> None:
        self.application.ask("upload", self.uri, files=[str(file) for file in files])

    def query(self, *columns: str, **arguments: Any) -> Any:
        return self.application.ask("query", self.uri, columns=columns, **arguments)

    def requests(self, *columns: str, **arguments: Any) -> dict[str, list[tuple[int, int]]]:
        """The ranges of each file that a query asked S3 for; it must have asked for nothing else."""
        before = self._bucket.requests(self.uri)
        assert isinstance(self.query(*columns, **arguments), list)
        asked = {name: found[len(before.get(name, [])) :] for name, found in self._bucket.requests(self.uri).items()}
        assert {request.method for found in asked.values() for request in found} == {"GET"}
        return {name: [request.range for request in found if request.range] for name, found in asked.items()}

    def download(self) -> Path:
        """All that is there, with no empty folder, and no upload under way."""
        path = self._local / str(len(list(self._local.iterdir())))
        path.mkdir()
        if self.uri.startswith(self._bucket.uri):
            self._bucket.download(self.uri, path)
        else:
            self.application.ask("download", self.uri, to=str(path))
        assert [found for found in path.rglob("*") if found.is_dir() and not any(found.iterdir())] == []
        assert self._bucket.pending_uploads() == []
        return path

    def numbers(self) -> list[int]:
        """The numbers that readers see, in order: the official library and Spark, which must agree on every byte."""
        dataset = Dataset(self.download())
        assert leftovers(dataset.path) == []
        loaded = [verdict.tensors for verdict in verdicts(dataset.shards)]
        names = sorted({name for tensors in loaded for name in tensors})
        expected = [{name: [t.dtype, list(t.shape), t.data.hex()] for name, t in tensors.items()} for tensors in loaded]
        assert self.application.ask("read", self.uri, names=names) == expected
        return [number for tensors in loaded for name, tensor in tensors.items() for number in rows(name, tensor)]


def rows(name: str, tensor: Tensor) -> list[int]:
    """The numbers of the rows in a tensor; in key-value mode it is named by the only one."""
    assert tensor.dtype == "F32"
    values = tensor.array.reshape(-1, 2).tolist()
    assert [half for _, half in values] == [0.5] * len(values)
    numbers = [int(number) for number, _ in values]
    assert name in ("x", f"k{numbers[0]}")
    return numbers


@pytest.fixture(params=["hdfs", "s3a"])
def place(
    request: pytest.FixtureRequest, roots: dict[str, str], application: Cluster, bucket: S3, tmp_path: Path
) -> Place:
    return Place(f"{roots[request.param]}/{tmp_path.name}", application, bucket, tmp_path)


@pytest.mark.parametrize("options", [BATCH, KEYED])
def test_every_value_comes_back_from_a_write_an_append_and_an_overwrite(place: Place, options: dict[str, Any]) -> None:
    for first in (0, 100):
        assert place.write(first, options) is None
    assert sorted(place.numbers()) == written(0) + written(100)
    assert place.write(200, options, mode="overwrite") is None
    assert sorted(place.numbers()) == written(200)


def test_index_leads_to_every_tensor_after_appends(place: Place) -> None:
    # The third one merges an index that took the place of one which the same driver has read.
    for first in (0, 100, 200):
        assert place.write(first, KEYED) is None
    assert_leads_to_every_tensor(Dataset(place.download()))


@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize("options", [BATCH, KEYED])
def test_a_task_that_fails_in_the_midst_leaves_the_old_dataset_exactly(
    place: Place, options: dict[str, Any], mode: str
) -> None:
    assert place.write(0, options) is None
    old = files(place.download())
    # The last row of the last partition: its task has written shards, and the others have committed.
    error = place.write(100, options, mode=mode, bad=123)
    assert error is not None
    assert_says(error, "Column `x`, row 7 of partition 2", "null")
    assert files(place.download()) == old
    assert place.write(100, options, mode=mode) is None
    assert sorted(place.numbers()) == (written(0) if mode == "append" else []) + written(100)


def test_a_first_write_that_fails_leaves_nothing(place: Place) -> None:
    assert place.write(0, BATCH, bad=23) is not None
    assert files(place.download()) == {}
    assert place.write(0, BATCH) is None
    assert place.numbers() == written(0)


def test_a_commit_that_fails_takes_back_what_tasks_committed(place: Place) -> None:
    assert place.write(0, KEYED) is None
    old = files(place.download())
    error = place.write(23, KEYED)
    assert error is not None
    assert_says(error, "The key `k23` is in two shards")
    assert files(place.download()) == old


def test_four_appends_at_once_are_all_counted(place: Place) -> None:
    assert place.write(0, BATCH) is None
    firsts = [100, 200, 300, 400]
    assert place.application.ask("appends", place.uri, firsts=firsts, options=BATCH) == [None] * 4
    assert sorted(place.numbers()) == [number for first in (0, *firsts) for number in written(first)]


@pytest.mark.parametrize("place", ["s3a"], indirect=True)
def test_shards_are_uploaded_in_parts_and_completed_by_the_magic_committer(place: Place, bucket: S3) -> None:
    assert place.write(0, KEYED) is None
    etags = bucket.etags(place.uri)
    assert {name for name, etag in etags.items() if "-" in etag} == {s.name for s in Dataset(place.download()).shards}


@pytest.mark.parametrize("place", ["s3a"], indirect=True)
@pytest.mark.parametrize(("committer", "prefix"), [("directory", "fs.s3a"), ("partitioned", f"fs.s3a.bucket.{BUCKET}")])
def test_staging_committers_replace_nothing(place: Place, committer: str, prefix: str, tmp_path: Path) -> None:
    conflicts = {"conflict-mode": "replace", "unique-filenames": "true"}
    staging = {f"{prefix}.committer.staging.{name}": value for name, value in conflicts.items()}
    shared = {"fs.s3a.committer.staging.tmp.path": str(tmp_path / "staging")}
    options = BATCH | {"fs.s3a.committer.name": committer} | shared | staging
    assert place.write(0, options) is None
    assert place.write(100, options) is None
    assert sorted(place.numbers()) == written(0) + written(100)


@pytest.mark.parametrize("place", ["s3a"], indirect=True)
def test_the_manifest_is_replaced_only_if_it_is_the_one_that_was_read(place: Place, bucket: S3) -> None:
    assert place.write(0, BATCH) is None
    etag = bucket.etags(place.uri)["dataset_manifest.json"]
    assert place.write(100, BATCH) is None
    first, second, third = bucket.put_conditions(f"{place.uri}/dataset_manifest.json")
    assert first == (None, "*")
    assert second[0] is not None
    assert third == (etag, None)


@pytest.mark.parametrize("place", ["hdfs"], indirect=True)
def test_the_manifest_committer_leaves_nothing_behind(place: Place) -> None:
    factory = "org.apache.hadoop.mapreduce.lib.output.committer.manifest.ManifestCommitterFactory"
    options = BATCH | {"mapreduce.outputcommitter.factory.scheme.hdfs": factory}
    assert place.write(0, options) is None
    assert place.numbers() == written(0)
    assert place.write(100, options, bad=123) is not None
    assert place.numbers() == written(0)


@pytest.fixture
def model(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Model:
    """The files, in the place."""
    made = Model(tmp_path_factory.mktemp("model"))
    place.upload(*made.files)
    return made


def test_tensors_come_back_in_every_layout(place: Place, model: Model) -> None:
    expected = model.tensors(*NAMES)
    assert place.query("*", schema=SCHEMA) == expected
    rows = [{"tensor_key": name, "tensor": tensor} for file in expected for name, tensor in file.items()]
    assert place.query("*", layout="long") == rows
    assert place.query("*", layout="long", where="tensor_key = 'b'") == rows[1::3]
    assert place.query("c.data", "a.shape", schema=SCHEMA) == [
        {"data": file["c"]["data"], "shape": file["a"]["shape"]} for file in expected
    ]


@pytest.mark.parametrize("place", ["s3a"], indirect=True)
@pytest.mark.parametrize(
    ("columns", "arguments"),
    [
        (["a.shape", "b.dtype"], {"schema": SCHEMA}),
        (["tensor_key", "tensor.shape"], {"layout": "long"}),
        (["count(*)"], {"layout": "long"}),
        (["*"], {"layout": "long", "where": "tensor_key = 'nobody'"}),
    ],
)
def test_what_headers_tell_takes_headers_alone(
    place: Place, model: Model, columns: list[str], arguments: dict[str, Any]
) -> None:
    assert place.requests(*columns, **arguments) == model.headers()


@pytest.mark.parametrize("place", ["s3a"], indirect=True)
@pytest.mark.parametrize("arguments", [{"schema": SCHEMA}, {"layout": "long", "where": "tensor_key = 'b'"}])
def test_one_tensor_takes_one_request_more_for_its_bytes_alone(
    place: Place, model: Model, arguments: dict[str, Any]
) -> None:
    column = "b.data" if "schema" in arguments else "tensor.data"
    asked = place.requests(column, **arguments)
    for file in ("large.safetensors", "long.safetensors"):
        assert asked[file] == [*model.headers()[file], model.place(file, "b")]
    assert asked["small.safetensors"] == model.headers()["small.safetensors"]


@pytest.mark.parametrize("place", ["s3a"], indirect=True)
@pytest.mark.parametrize("arguments", [{"schema": SCHEMA}, {"layout": "long"}])
def test_tensors_that_lie_together_take_one_request(place: Place, model: Model, arguments: dict[str, Any]) -> None:
    asked = place.requests("*", **arguments)
    for file in ("large.safetensors", "long.safetensors"):
        assert asked[file] == [*model.headers()[file], (model.place(file, "a")[0], model.place(file, "c")[1])]
    assert asked["small.safetensors"] == model.headers()["small.safetensors"]


@pytest.mark.parametrize("what", ["gone", "shorter", "longer", "another"])
def test_a_file_that_changes_between_planning_and_reading_is_named(place: Place, model: Model, what: str) -> None:
    sizes = {"shorter": 40_000, "longer": 60_000, "another": 50_000}
    replacement = str(model.save("other.safetensors", sizes[what], 1, 9)) if what in sizes else ""
    place.upload(model.folder / "large.safetensors")
    answer = place.query("*", schema=SCHEMA, meanwhile={"large.safetensors": replacement})
    if what == "another" and place.uri.startswith("hdfs"):
        # HDFS does not tell one file from another of the same length, of which all is read.
        assert answer[0]["a"]["data"] == load(Path(replacement))["a"].data.hex()
        return
    words = {"gone": "is gone: it was there", "another": "but different content"}.get(what, "it had 600")
    assert_says(answer, f"{place.uri}/large.safetensors", words, "Load the table again")
    assert "Caused by" not in answer
