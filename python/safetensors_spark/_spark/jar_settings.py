"""Where users name jars and other settings for Spark, and how one more jar joins them. No JVM, no PySpark."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

_CONF = re.compile(r"spark\.jars=(.*)", re.DOTALL)


def split(jars: str | None) -> list[str]:
    """The jars of a comma-separated setting, without the empty ones."""
    return [jar.strip() for jar in (jars or "").split(",") if jar.strip()]


def merge(*lists: Iterable[str]) -> list[str]:
    """All jars in order, each file once, however it is spelled (`/x.jar`, `file:/x.jar`, `file:///x.jar`)."""
    first: dict[str, str] = {}
    for jars in lists:
        for jar in jars:
            first.setdefault(_file(jar), jar)
    return list(first.values())


def in_submit_args(args: str) -> list[str]:
    """The jars of `--jars` and `--conf spark.jars` in the value of `PYSPARK_SUBMIT_ARGS`."""
    return merge(*(split(jars) for _, jars in _options(args) if jars is not None))


def join_submit_args(args: str, jars: Iterable[str]) -> str:
    """The same arguments with these jars in place of those that they name."""
    others = [token for tokens, named in _options(args) if named is None for token in tokens]
    return shlex.join(["--jars", ",".join(jars), *others])


def in_defaults(conf: Path) -> list[str]:
    """The jars of `spark.jars` in a `spark-defaults.conf`; none if there is no such file."""
    return split(default(conf, "spark.jars"))


def default(conf: Path, name: str) -> str | None:
    """A setting of a `spark-defaults.conf`; None if it or the file does not exist."""
    if not conf.is_file():
        return None
    line = re.compile(rf"\s*{re.escape(name)}(?:\s*[=:]\s*|\s+)(\S.*?)\s*")
    found = [match[1] for match in map(line.fullmatch, conf.read_text(encoding="utf-8").splitlines()) if match]
    return found[-1] if found else None  # the last one counts, as in Java's properties


def sets(args: str, name: str) -> bool:
    """Whether the value of `PYSPARK_SUBMIT_ARGS` makes this setting, in `--conf`."""
    return any(token.removeprefix("--conf=").startswith(f"{name}=") for token in shlex.split(args))


def _file(jar: str) -> str:
    """What tells whether two spellings mean one file."""
    uri = urlsplit(jar)
    return unquote(uri.path) if uri.scheme == "file" else jar


def _options(args: str) -> list[tuple[list[str], str | None]]:
    """The arguments, option by option, each with the jars that it names or None."""
    tokens, options = shlex.split(args), []
    while tokens:
        name, equals, value = tokens[0].partition("=")
        taken = 1
        if name in ("--jars", "--conf", "-c") and not equals and len(tokens) > 1:
            value, taken = tokens[1], 2
        options.append((tokens[:taken], _named(name, value)))
        tokens = tokens[taken:]
    return options


def _named(option: str, value: str) -> str | None:
    if option == "--jars":
        return value
    setting = _CONF.fullmatch(value) if option in ("--conf", "-c") else None
    return setting[1] if setting else None
