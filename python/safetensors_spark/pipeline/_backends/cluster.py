"""What tasks on the nodes of a cluster have in common, whoever starts them there."""

from __future__ import annotations

import pickle
import platform
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from safetensors_spark._errors import PipelineError
from safetensors_spark._files.commit.target import open_target
from safetensors_spark.pipeline._failures import is_temporary, sent, with_note
from safetensors_spark.pipeline._task import Task, Work, run

# What this worker had last, by its name, so that it is not made of bytes for each task.
_latest: tuple[str, Any] | None = None


def packed(work: Work) -> bytes:
    """What nodes need of the work, whose folder is made: a node where it does not exist does not see it."""
    open_target(work.folder).make()
    return packed_value(work)


def packed_value(value: Any) -> bytes:
    """What nodes need to have a value, and to import what it names."""
    import cloudpickle

    return bytes(cloudpickle.dumps((sys.path, cloudpickle.dumps(value, 5)), 5))


def attempt(name: str, content: Callable[[], bytes], task: Task, rows: Iterator[Any] | None = None) -> tuple[bool, Any]:
    """Whether the shard was made, with its footer or the error.

    Raises what another attempt may change, and nothing else: the cluster runs a task again that raises.

    Args:
        name: of the work, which is another one for each.
        content: gets what `packed` has made of it.
        rows: of the source, where the cluster has them here.
    """
    try:
        work = unpacked(name, content)
        check_folder(work)
        return True, run(work, task, rows=rows)
    except KeyboardInterrupt:
        # Ray ends a task so.
        raise
    except BaseException as error:
        if is_temporary(error):
            raise
        return False, sent(error)


def unpacked(name: str, content: Callable[[], bytes]) -> Any:
    """The value of what was packed, which has this name."""
    global _latest
    if _latest is None or _latest[0] != name:
        path, found = pickle.loads(content())
        # Where nodes have the caller's folders, what functions import is found in them.
        sys.path.extend(folder for folder in path if folder not in sys.path)
        try:
            _latest = name, pickle.loads(found)
        except ImportError as error:
            raise with_note(
                error, f"Node {platform.node()} lacks modules that the pipeline's functions import"
            ) from None
    return _latest[1]


def check_folder(work: Work) -> None:
    """Raise `PipelineError` on a node that does not see the work's folder."""
    if "://" not in work.folder and not Path(work.folder).is_dir():
        raise PipelineError(
            f"{work.folder}, where the pipeline keeps the rows between stages, does not exist on node "
            f"{platform.node()}. Give `work_dir` a folder that all nodes share, such as one of an object store, and "
            "write there, too."
        )
