"""Fingerprints of functions and values: equal in every process as long as what they do is equal.

A function's is that of its code, of the values it closes over, of its defaults, and of the functions, values and whole
modules of its own project that it names or imports. What an installed package has counts by the package's version.
"""

from __future__ import annotations

import copyreg
import dataclasses
import dis
import functools
import importlib.util
import inspect
import sys
import types
from collections.abc import Iterator
from hashlib import blake2b
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

_SITE = ("site-packages", "dist-packages")

# Of a class, what tells nothing of what it does.
_NOT_CODE = {
    "__dict__", "__weakref__", "__doc__", "__module__", "__firstlineno__", "__static_attributes__", "__signature__",
}  # fmt: skip

# What is told by its value alone. Classes derived from these may do, and have, anything.
_PLAIN = {bool, int, float, complex, str}

# What was met, by its id or a module's name, with its number. Values are kept: another one would get a freed one's id.
_Seen = dict[int | str, tuple[int, Any]]


def fingerprint(value: Any) -> str:
    """A short text, another one for other code or other values."""
    digest = blake2b(digest_size=16)
    for part in _parts(value, {}):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def _parts(value: Any, seen: _Seen) -> Iterator[bytes]:
    kind = type(value)
    yield f"{kind.__module__}.{kind.__qualname__}".encode()
    if value is None or kind in _PLAIN:
        yield repr(value).encode("utf-8", "surrogatepass")
    elif kind in (bytes, bytearray, memoryview):
        yield bytes(value)
    elif id(value) in seen:
        # A function that names itself, or a list that has itself.
        yield f"again {seen[id(value)][0]}".encode()
    else:
        seen[id(value)] = len(seen), value
        yield from _inside(value, seen)
        # Else what is in a list, and what is behind it, would be the same.
        yield b"\0end"


def _inside(value: Any, seen: _Seen) -> Iterator[bytes]:
    if hasattr(type(value), "__fingerprint__"):
        # It knows a shorter way to tell what it is.
        yield value.__fingerprint__().encode()
    elif isinstance(value, types.FunctionType):
        yield from _of_function(value, seen)
    elif isinstance(value, functools.partial):
        yield from _all((value.func, value.args, sorted(value.keywords.items())), seen)
    elif isinstance(value, types.MethodType):
        yield from _all((value.__func__, value.__self__), seen)
    elif isinstance(value, type):
        yield from _of_class(value, seen)
    elif isinstance(value, types.ModuleType):
        yield from _of_module(value.__name__, seen)
    elif isinstance(value, types.CodeType):
        yield from _of_code(value, None, seen)
    elif type(value) in (list, tuple):
        yield from _all(value, seen)
    elif type(value) in (set, frozenset):
        yield from sorted(fingerprint(one).encode() for one in value)
    elif type(value) in (dict, types.MappingProxyType):
        for name, one in value.items():
            yield from _all((name, one), seen)
    elif dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        yield from _all((type(value), _attributes(value) | fields), seen)
    else:
        yield from _of_object(value, seen)


def _all(values: Any, seen: _Seen) -> Iterator[bytes]:
    for one in values:
        yield from _parts(one, seen)


def _of_function(function: types.FunctionType, seen: _Seen) -> Iterator[bytes]:
    yield f"{function.__module__}.{function.__qualname__}".encode()
    is_installed = _is_installed(function.__module__)
    if is_installed:
        yield _version_of(function.__module__).encode()
        if "<locals>" not in function.__qualname__:
            return
        # What a package's function has returned, and closes over what that one was called with.
    else:
        yield from _of_code(function.__code__, function.__globals__.get("__package__"), seen)
    yield from _parts(function.__defaults__, seen)
    yield from _parts(function.__kwdefaults__, seen)
    yield from _parts({name: function.__dict__[name] for name in sorted(function.__dict__)}, seen)
    for cell in function.__closure__ or ():
        try:
            yield from _parts(cell.cell_contents, seen)
        except ValueError:
            yield b"empty"
    if is_installed:
        return
    names = sorted(_names(function.__code__))
    for name in names:
        if name in function.__globals__:
            value = function.__globals__[name]
            yield name.encode()
            yield from _parts(value, seen)
            if isinstance(value, types.ModuleType) and not _is_installed(value.__name__):
                # What it has may have been computed when it was imported, which its code does not tell.
                yield from _all((vars(value).get(one) for one in names), seen)


def _names(code: types.CodeType) -> set[str]:
    """The names that code and what is defined in it may take from its module."""
    inner = (one for one in code.co_consts if isinstance(one, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _of_code(code: types.CodeType, package: str | None, seen: _Seen) -> Iterator[bytes]:
    """Without files and lines, which change when something else in the file does. With what it imports."""
    yield code.co_code
    # What a `try` covers is not in the code, since Python 3.11.
    yield getattr(code, "co_exceptiontable", b"")
    for names in (code.co_names, code.co_varnames, code.co_freevars):
        yield " ".join(names).encode()
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield from _of_code(value, package, seen)
        else:
            yield from _parts(value, {})
    for name in _imports(code, package):
        yield from _of_module(name, seen)


def _imports(code: types.CodeType, package: str | None) -> Iterator[str]:
    """The modules that code imports, and the names that it takes from them, which may be modules too."""
    steps = [step for step in dis.get_instructions(code) if step.opname != "EXTENDED_ARG"]
    for at, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            level, names = (before.argval for before in steps[at - 2 : at])
            name = f"{'.' * level}{step.argval}"
            try:
                name = importlib.util.resolve_name(name, package) if level else name
            except ImportError:
                # The import will fail, too.
                continue
            yield name
            yield from (f"{name}.{one}" for one in names or ())


def _of_module(name: str, seen: _Seen) -> Iterator[bytes]:
    if name in seen:
        return
    seen[name] = len(seen), None
    if _is_installed(name):
        yield _version_of(name).encode()
        return
    spec = _spec(name)
    if spec is None or not spec.origin or not Path(spec.origin).is_file():
        return
    content = Path(spec.origin).read_bytes()
    try:
        code = compile(content, spec.origin, "exec") if spec.origin.endswith(".py") else None
    except SyntaxError:
        code = None
    yield name.encode()
    if code is None:
        yield content
    else:
        yield from _of_code(code, spec.parent, seen)


def _spec(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except Exception:
        # A name that a module has and is no module, or a package that cannot be imported here.
        return None


def _of_class(kind: type, seen: _Seen) -> Iterator[bytes]:
    yield f"{kind.__module__}.{kind.__qualname__}".encode()
    if _is_installed(kind.__module__):
        yield _version_of(kind.__module__).encode()
        return
    for name, value in sorted(vars(kind).items()):
        if name in _NOT_CODE or (name.startswith("__pydantic_") and name != "__pydantic_fields__"):
            # What pydantic makes of the fields is another each time.
            continue
        value = inspect.unwrap(value) if callable(value) else value
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        if isinstance(value, property):
            value = (value.fget, value.fset)
        if not isinstance(value, types.GetSetDescriptorType | types.MemberDescriptorType):
            yield name.encode()
            yield from _parts(value, seen)
    yield from _all((type(kind), *kind.__bases__), seen)


def _of_object(value: Any, seen: _Seen) -> Iterator[bytes]:
    """An object is its class and its state, as pickle takes it."""
    if isinstance(value, types.BuiltinFunctionType):
        yield f"{value.__module__}.{value.__qualname__}".encode()
        if not isinstance(value.__self__, types.ModuleType):
            yield from _parts(value.__self__, seen)
        return
    yield from _parts(type(value), seen)
    if hasattr(value, "__wrapped__"):
        # Of `functools.cache`, whose state is only its name.
        yield from _parts(value.__wrapped__, seen)
    reduce = copyreg.dispatch_table.get(type(value))
    try:
        found = reduce(value) if reduce is not None else value.__reduce_ex__(4)
    except Exception:
        # An open file or a lock says nothing of what it does.
        if not _is_installed(type(value).__module__):
            yield from _parts(_attributes(value), seen)
        return
    if isinstance(found, str):
        yield found.encode()
        return
    _, arguments, *state = found
    for one in (arguments, *state[:1]):
        yield from _parts(one, seen)
    for items in state[1:3]:
        if items is not None:
            yield from _all(list(items), seen)


def _attributes(value: Any) -> dict[str, Any]:
    """What an object has, without what `cached_property` has computed of it."""
    found = getattr(value, "__dict__", {})
    computed = functools.cached_property
    return {
        name: found[name]
        for name in sorted(found)
        if not isinstance(inspect.getattr_static(type(value), name, None), computed)
    }


def _is_installed(module: str | None) -> bool:
    """Whether a module is of a package that has a version, or of Python itself, or ours."""
    if not module or module == "__main__":
        return False
    first = module.partition(".")[0]
    if first in sys.stdlib_module_names or first == "safetensors_spark":
        return True
    place = getattr(sys.modules.get(module), "__file__", None)
    if place is None and (spec := _spec(first)):
        place = spec.origin or next(iter(spec.submodule_search_locations or ()), None)
    return any(one in (place or "") for one in _SITE)


@functools.cache
def _version_of(module: str) -> str:
    from importlib.metadata import PackageNotFoundError, packages_distributions, version

    first = module.partition(".")[0]
    if first in sys.stdlib_module_names:
        return f"{first} {sys.version_info[:2]}"
    for name in packages_distributions().get(first, []):
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
    return first
