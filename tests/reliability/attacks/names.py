"""Names from every plane of Unicode, as keys, columns, files, folders and partitions."""

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from reliability.attacks.apart import attacked
from reliability.attacks.errors import check_clear
from reliability.check import Check, Outcome

# The short form takes each of so many.
EACH = 5


def run(scale: float) -> Outcome:
    return attacked(attack, 1 if scale >= 0.1 else EACH)


def attack(each: int) -> dict[str, Any]:
    from reliability.attacks.odd import NAMES

    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "secret").mkdir()
        (folder / "secret" / "kept").write_text("kept")
        for number, name in enumerate([*NAMES, "\ud800", "\0", "../secret/x", "/etc/x", "a" * 5000][::each]):
            for action in (_key, _column, _folder, _file, _partition):
                place = folder / f"{number}-{action.__name__}"
                place.mkdir()
                try:
                    seen[_tried(action, place, name)] += 1
                except AssertionError as error:
                    raise AssertionError(f"{action.__name__} {name!r}") from error
        assert [one.name for one in (folder / "secret").iterdir()] == ["kept"]
    return {"seen": seen, "attempts": seen.total()}


def _tried(action: Any, place: Path, name: str) -> str:
    try:
        action(place, name)
    except AssertionError:
        raise
    except Exception as error:
        # Of names that no file system takes, and of text that is none, Python and the system say so.
        if isinstance(error, ValueError | UnicodeError | OSError) and (
            "\0" in name or "\ud800" in name or len(name) > 100
        ):
            return type(error).__name__
        return check_clear(error)
    return "the same again"


def _key(place: Path, name: str) -> None:
    """What Python writes, the official library reads under the same name, and Python again."""
    from safetensors.numpy import load_file

    from safetensors_spark.dataset import open_store, write_dataset

    write_dataset([{"k": [name, "other"], "x": [[1.0], [2.0]]}], place / "d", name_col="k", generate_index=True)
    [shard] = (place / "d").glob("*.safetensors")
    assert {key: value.tolist() for key, value in load_file(shard).items()} == {name: [1.0], "other": [2.0]}
    store = open_store(place / "d")
    assert store[name].tolist() == [1.0]
    assert sorted(store) == sorted([name, "other"])


def _column(place: Path, name: str) -> None:
    from safetensors.numpy import load_file

    from safetensors_spark.dataset import open_dataset, write_dataset

    write_dataset([{name: [1.0, 2.0], "other": ["a", "é"]}], place / "d", batch_size=2)
    [shard] = (place / "d").glob("*.safetensors")
    assert load_file(shard)[name].tolist() == [1.0, 2.0]
    assert open_dataset(place / "d")[1] == {name: 2.0, "other": "é"}


def _folder(place: Path, name: str) -> None:
    from safetensors_spark.dataset import open_dataset, verify, write_dataset

    # A name that leads to another folder is what the caller asks for.
    inside = place / "in" / name
    if name.startswith(("/", "..")):
        return
    write_dataset([{"x": [1.0, 2.0]}], inside, batch_size=2)
    assert open_dataset(inside)["x"].tolist() == [1.0, 2.0]
    assert not verify(inside).faults


def _file(place: Path, name: str) -> None:
    import numpy as np
    from safetensors.numpy import save_file

    from safetensors_spark.dataset import open_store

    if "/" in name:
        return
    save_file({"x": np.ones(2)}, place / "a.safetensors")
    (place / "a.safetensors").rename(place / f"{name}.safetensors")
    if name and name[0] not in "._":
        assert open_store(place)["x"].tolist() == [1, 1]
    assert open_store(place / f"{name}.safetensors")["x"].tolist() == [1, 1]


def _partition(place: Path, name: str) -> None:
    import numpy as np
    from safetensors.numpy import save_file

    from safetensors_spark.dataset import open_dataset

    if "/" in name or "%" in name or not name:
        return
    for value in (name, f"other {name}"):
        folder = place / f"k={value}"
        folder.mkdir()
        save_file({"x": np.ones(2)}, folder / "a.safetensors")
    assert set(open_dataset(place)["k"]) == {name, f"other {name}"}


CHECK = Check(
    name="names",
    kind="attack",
    environment="python",
    what="characters of every plane of Unicode, controls, quotes, paths and text that is none as keys, columns, "
    "files, folders and partitions, written and read",
    holds="Python and the official library read what was written under the same name, or an error says what is wrong "
    "with it.",
    run=run,
)
