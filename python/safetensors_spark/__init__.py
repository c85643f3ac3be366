"""Read and write safetensors files with Apache Spark.

    import safetensors_spark as sts

    spark = sts.configure(SparkSession.builder).getOrCreate()  # before a session exists
    sts.attach(spark)                                          # a session that runs already
    sts.jar_path()                                             # for `spark-submit --jars`

Importing this package has no effect and needs neither PySpark nor Java.

Errors:

    SafetensorsSparkError
    ├── DamagedShardError           a shard that is not what the manifest says
    ├── DatasetChangedError         a dataset that was written again since it was opened
    ├── InvalidWriteError           options, columns or rows that cannot be written, or not to what is there
    │   └── DuplicateKeyError       a key that would be twice in a dataset with an index
    ├── HubAccessError              no such repository or revision of the Hub, or no right to it
    ├── IncompatibleVersionError    package, jar and Spark do not fit each other, or a dataset's format is newer
    ├── InvalidCheckpointError      an index of a checkpoint that cannot be relied on
    ├── InvalidFileError            a file that is no safetensors file by the official library's rules
    ├── InvalidIndexError           a `_tensor_index.parquet` that cannot be read
    ├── InvalidManifestError        a `dataset_manifest.json` that cannot be relied on
    ├── InvalidShardError           rows, a run id or a schema that cannot be staged
    ├── InvalidSidecarError         a `.meta.json` of a staging directory that cannot be relied on
    ├── InvalidTensorError          a tensor that its dtype and shape do not describe, or that NumPy has no type for
    ├── LostLockError               a commit that stood still until another write took its lock
    ├── MissingExtraError           something needs an extra that is not installed
    ├── PipelineError               a pipeline that cannot be planned, or whose shard could not be made
    │   ├── LostShardError          a shard whose workers died each time that it was tried
    │   └── PipelineBusyError       another process writes the same files
    └── StagingBusyError            another process syncs the staging directory
"""

from importlib.metadata import version as _version

from safetensors_spark._errors import (
    DamagedShardError,
    DatasetChangedError,
    DuplicateKeyError,
    HubAccessError,
    IncompatibleVersionError,
    InvalidCheckpointError,
    InvalidFileError,
    InvalidIndexError,
    InvalidManifestError,
    InvalidShardError,
    InvalidSidecarError,
    InvalidTensorError,
    InvalidWriteError,
    LostLockError,
    LostShardError,
    MissingExtraError,
    PipelineBusyError,
    PipelineError,
    SafetensorsSparkError,
    StagingBusyError,
)
from safetensors_spark._spark.jar import jar_path
from safetensors_spark._spark.session import attach, configure

__version__ = _version("safetensors-spark")

__all__ = [
    "DamagedShardError",
    "DatasetChangedError",
    "DuplicateKeyError",
    "HubAccessError",
    "IncompatibleVersionError",
    "InvalidCheckpointError",
    "InvalidFileError",
    "InvalidIndexError",
    "InvalidManifestError",
    "InvalidShardError",
    "InvalidSidecarError",
    "InvalidTensorError",
    "InvalidWriteError",
    "LostLockError",
    "LostShardError",
    "MissingExtraError",
    "PipelineBusyError",
    "PipelineError",
    "SafetensorsSparkError",
    "StagingBusyError",
    "__version__",
    "attach",
    "configure",
    "jar_path",
]
