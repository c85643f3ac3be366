"""YAML as plain values, with the line of each. What YAML would make of a slip in silence is an error here.

Scalars are read by YAML 1.2's core schema: `no` is text, and `1e-3` a number. Anchors, tags, duplicate keys and keys
that are no text are refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from safetensors_spark.factory._errors import ConfigError

Place = tuple[str | int, ...]

_TAG = "tag:yaml.org,2002:"
_DEEPEST = 50
_MOST_BITS = 10_000
_SCALARS = {
    "null": (r"~|null|Null|NULL|", ("~", "n", "N", "")),
    "bool": (r"true|True|TRUE|false|False|FALSE", tuple("tTfF")),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", tuple("-+0123456789")),
    "float": (
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        tuple("-+0123456789."),
    ),
}
_IN_WORDS = {
    "while scanning a simple key": "a key without `:`",
    "could not find expected ':'": "expected `:` behind the key",
    "mapping values are not allowed here": "a second `:`, or a line that is indented too far: put text with `: ` into "
    "quotes",
    "found character '\\t' that cannot start any token": "a tab: indent with spaces",
}


@dataclass(frozen=True)
class Document:
    """What a file says.

    Attributes:
        lines: of each value, by the keys and numbers that lead to it, the line where it begins, or where its key does.
    """

    value: Any
    lines: Mapping[Place, int] = field(default_factory=dict)


def parsed(content: bytes, name: str) -> Document:
    """The document in a file of this name. Raises `ConfigError` with the line for what is no YAML."""
    text = _text(content, name)
    try:
        node = _Loader(text).get_single_node()
        if node is None:
            raise ConfigError(f"{name} is empty, expected a mapping with `name` and `stages`.")
        lines: dict[Place, int] = {}
        return Document(_value(node, (), lines), lines)
    except _SlipError as slip:
        raise ConfigError(f"{name}, line {slip.line}: {slip}.") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        raise ConfigError(f"{name}, line {line}: {_in_words(error)}.") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError(f"{name}, line {line}: the character {error.character:#x} is not allowed in YAML.") from None
    except RecursionError:
        raise ConfigError(f"{name} is nested too deep.") from None


def written(value: Any) -> str:
    """YAML that `parsed` reads as the same value."""
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))


class _SlipError(Exception):
    def __init__(self, node: Any, text: str) -> None:
        super().__init__(text)
        self.line = node.start_mark.line + 1


class _Loader(yaml.SafeLoader):
    """Makes nodes, and no anchors."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        if getattr(event, "anchor", None) is not None:
            raise _SlipError(
                event, f"`{event.anchor}` is an anchor or an alias, which are not read here: write the value"
            )
        return super().compose_node(parent, index)


class _Dumper(yaml.SafeDumper):
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_str(self, data: str) -> Any:
        # Quoted with escapes where a line break of Unicode would be folded.
        style = '"' if set(data) & set("\x85\u2028\u2029") else None
        return self.represent_scalar(f"{_TAG}str", data, style)


_Dumper.add_representer(str, _Dumper.represent_str)


for _name, (_pattern, _first) in _SCALARS.items():
    for _kind in (_Loader, _Dumper):
        _kind.add_implicit_resolver(f"{_TAG}{_name}", re.compile(rf"(?:{_pattern})\Z"), list(_first))


def _text(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{name}, line {line}: not UTF-8: store the file in this encoding.") from None


def _in_words(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or ""
    if problem == "but found another document":
        return "a second document begins here, expected one: remove the `---`"
    return _IN_WORDS.get(problem) or f"not YAML: {', '.join(one for one in (error.context, problem) if one)}"


def _value(node: Any, place: Place, lines: dict[Place, int]) -> Any:
    lines.setdefault(place, node.start_mark.line + 1)
    if len(place) > _DEEPEST:
        raise _SlipError(node, "nested too deep")
    kind = node.tag.removeprefix(_TAG)
    match node:
        case yaml.SequenceNode() if kind == "seq":
            return [_value(one, (*place, number), lines) for number, one in enumerate(node.value)]
        case yaml.MappingNode() if kind == "map":
            return _mapping(node, place, lines)
        case yaml.ScalarNode() if kind in ("str", *_SCALARS):
            return _scalar(node, kind)
    raise _SlipError(node, f"the tag `{node.tag.replace(_TAG, '!!')}` is not read here: write a plain value")


def _mapping(node: yaml.MappingNode, place: Place, lines: dict[Place, int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag != f"{_TAG}str":
            shown = f"`{key.value}`" if isinstance(key, yaml.ScalarNode) else "a list or a mapping"
            raise _SlipError(key, f"{shown} is a key, expected text: put it into quotes")
        name = _scalar(key, "str")
        inside = (*place, name)
        if name in found:
            raise _SlipError(key, f"`{name}` is there twice, first in line {lines[inside]}: remove one")
        lines[inside] = key.start_mark.line + 1
        found[name] = _value(value, inside, lines)
    return found


def _scalar(node: yaml.ScalarNode, kind: str) -> Any:
    text = node.value
    try:
        match kind:
            case "null":
                return None
            case "bool":
                return text.lower() == "true"
            case "int":
                whole = int(text, 0) if text[:2] in ("0o", "0x") else int(text)
                # Python does not write longer ones in digits.
                if whole.bit_length() > _MOST_BITS:
                    raise _SlipError(node, f"{text:.40}... is a number that is too large")
                return whole
            case "float":
                bare = text.lower().replace(".inf", "inf").replace(".nan", "nan")
                number = float(bare)
                if math.isinf(number) and "inf" not in bare:
                    raise _SlipError(node, f"{text} is a number that is too large")
                return number
    except ValueError:
        raise _SlipError(node, f"{text:.40} is no {kind}") from None
    if not text.isprintable():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise _SlipError(node, "the text has half of a surrogate pair, which is not a character") from None
    return text
