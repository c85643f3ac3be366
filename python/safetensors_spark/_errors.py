"""The errors of this package; the tree stands in the package's docstring."""


class SafetensorsSparkError(Exception):
    """Base of every error that this package raises on its own account."""


class FunctionsUnavailableError(SafetensorsSparkError):
    """The session has the data source, but cannot be given `arr_to_st` and `st_to_array`."""


class MissingExtraError(SafetensorsSparkError):
    """A command needs a package that only an extra of the distribution installs."""
