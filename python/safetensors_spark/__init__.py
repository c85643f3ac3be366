"""Read and write safetensors files with Apache Spark.

    import safetensors_spark as sts

    spark = sts.configure(SparkSession.builder).getOrCreate()  # before a session exists
    sts.attach(spark)                                          # for a session that already runs
    sts.jar_path()                                             # for `spark-submit --jars`

Importing this package has no effect and needs neither PySpark nor Java.

Errors:

    SafetensorsSparkError
    ├── DamagedShardError           a shard that is not what the manifest says
    ├── DatasetChangedError         a dataset that was overwritten after it was opened
    ├── InvalidWriteError           options, columns or rows that cannot be written, or not to the existing dataset
    │   └── DuplicateKeyError       a key that would occur twice in a dataset with an index
    ├── HubAccessError              a repository or revision of the Hub that does not exist, or no access to it
    ├── IncompatibleVersionError    incompatible versions of package, jar and Spark, or a newer format of a dataset
    ├── InvalidCheckpointError      an index of a checkpoint that is not valid
    ├── InvalidFileError            a file that is not a safetensors file by the official library's rules
    ├── InvalidIndexError           a `_tensor_index.parquet` that cannot be read
    ├── InvalidManifestError        a `dataset_manifest.json` that is not valid
    ├── InvalidShardError           rows, a run id or a schema that cannot be staged
    ├── InvalidSidecarError         a `.meta.json` of a staging directory that is not valid
    ├── InvalidTensorError          a tensor that does not match its dtype and shape, or has no NumPy type
    ├── LostLockError               a commit that paused until another write took its lock
    ├── MissingExtraError           something needs an extra that is not installed
    ├── PipelineError               a pipeline that cannot be planned, or whose shard could not be computed
    │   ├── LostShardError          a shard whose workers died at each attempt
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
