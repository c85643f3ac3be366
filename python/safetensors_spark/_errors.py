"""The errors of this package; the tree is in the package's docstring."""


def printable(text: str) -> str:
    """The text without terminal escape sequences and the like, which names of tensors and files may have."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one == "\n" else ascii(one)[1:-1] for one in text)


def counted(number: int, one: str, several: str | None = None) -> str:
    """So many of something: `1 file`, `2,000 files`."""
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def shortened(text: str) -> str:
    """Names, numbers and shapes are a file's, and may have megabytes."""
    return text if len(text) <= 500 else f"{text[:500]}..."


class SafetensorsSparkError(Exception):
    """The base class of this package's errors."""

    def __str__(self) -> str:
        return printable(super().__str__())


class IncompatibleVersionError(SafetensorsSparkError):
    """Incompatible versions of the package, the connector's jar and Spark, or of a dataset's format."""


class MissingExtraError(SafetensorsSparkError):
    """A command or module needs a package that only an extra of the distribution installs."""


class InvalidManifestError(SafetensorsSparkError):
    """A `dataset_manifest.json` that is not valid."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(
            f"{path} is not a valid dataset manifest: {shortened(what)}. Overwrite the dataset, or remove the file to "
            "read the folder's safetensors files as they are."
        )


class InvalidFileError(SafetensorsSparkError):
    """A file that is not a safetensors file by the official library's rules; `rule` is its name of the broken rule."""

    def __init__(self, file: str, rule: str, detail: str) -> None:
        super().__init__(f"{file} is not a valid safetensors file: {shortened(detail)} ({rule})")
        self.rule = rule


class InvalidCheckpointError(SafetensorsSparkError):
    """An index of a checkpoint, `*.safetensors.index.json`, that is not valid, or several in one folder."""


class InvalidIndexError(SafetensorsSparkError):
    """A `_tensor_index.parquet` that cannot be read."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(
            f"{path} cannot be read: {what}. Delete it, and have a write with `generate_index` rebuild it."
        )


class InvalidTensorError(SafetensorsSparkError, ValueError):
    """A Tensor Struct that is not a valid tensor, or an array that cannot become one."""


class DamagedShardError(SafetensorsSparkError):
    """A shard that is not what the manifest says: it is truncated, or its bytes have changed."""


class DatasetChangedError(SafetensorsSparkError):
    """The dataset was written again while or after it was opened, or after MLflow logged it."""


class InvalidWriteError(SafetensorsSparkError, ValueError):
    """Options, columns or rows that cannot be written, or not to the existing dataset."""


class DuplicateKeyError(InvalidWriteError):
    """A key that would occur twice in a dataset with an index."""


class LostLockError(SafetensorsSparkError):
    """A commit that paused for so long that another write has taken its lock. It changed nothing."""


class InvalidShardError(SafetensorsSparkError, ValueError):
    """Rows, a run id or a schema that cannot be staged, or that conflict with staged files."""


class InvalidSidecarError(SafetensorsSparkError):
    """A `.meta.json` in a staging directory that is not valid."""


class StagingBusyError(SafetensorsSparkError):
    """Another process syncs the staging directory."""


class HubAccessError(SafetensorsSparkError):
    """The repository or revision does not exist on the Hub, or the token has no access to it."""


class PipelineError(SafetensorsSparkError):
    """A pipeline that cannot be planned, or whose shard could not be computed."""


class LostShardError(PipelineError):
    """A shard whose workers died, or lost their connections, at each attempt."""


class PipelineBusyError(PipelineError):
    """Another process writes the same files."""
