"""What errors say of a header, and what is written. Which headers hold is the official library's to say, as
tests/pyspark_interop/ does.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save

from safetensors_spark import InvalidFileError
from safetensors_spark._files.header import Header, read_header
from safetensors_spark._files.header_writer import header_bytes, name_bytes, order
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark._files.tensors import TensorInfo


def read(content: bytes) -> Header:
    return read_header(lambda start, end: content[start:end], len(content), "name")


def file(header: str | dict[str, Any], buffer: int = 0) -> bytes:
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    return len(text).to_bytes(8, "little") + text + bytes(buffer)


def tensor(begin: int, end: int, dtype: str = "U8", shape: Any = None) -> dict[str, Any]:
    return {"dtype": dtype, "shape": [end - begin] if shape is None else shape, "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (bytes(7), "it has 7 bytes, expected 8 or more (HeaderTooSmall)"),
        (
            (100_000_001).to_bytes(8, "little"),
            "its header has 100000001 bytes, at most 100000000 are allowed (HeaderTooLarge)",
        ),
        ((100_000_000).to_bytes(8, "little"), "its header ends at byte 100000008, but it has 8 bytes"),
        (file("{}")[:-1], "its header ends at byte 10, but it has 9 bytes (InvalidHeaderLength)"),
        (file('{"é":{}}').replace(b"\xc3", b"\xff"), "its header is not UTF-8 (InvalidHeader)"),
        (file("[]"), "it is not a JSON object (InvalidHeaderDeserialization)"),
        (file('{"a":NaN}'), "`NaN` is not JSON"),
        (file('{"a":1e309}'), "the number 1e309 is out of range"),
        (file('{"a":' + "[" * 127 + "]" * 127 + "}"), "nesting deeper than 127"),
        (file('{"__metadata__":{},"__metadata__":{}}'), "`__metadata__` a second time"),
        (file('{"__metadata__":{"a":1}}'), "`__metadata__` is not an object of strings"),
        (file('{"__metadata__":["a"]}'), "`__metadata__` is not an object of strings"),
        (file({"a": 7}), "tensor `a` is not an object"),
        (file({"a": ["U8", [1]]}), "tensor `a` is not an object"),
        (file({"a": {"dtype": "U8", "shape": []}}), "tensor `a` has 0 times `data_offsets`, expected once"),
        (file('{"a":{"dtype":"U8","dtype":"U8"}}'), "tensor `a` has 2 times `dtype`, expected once"),
        (file({"a": tensor(0, 1, "X")}, 1), "tensor `a` has an unknown dtype, 'X'"),
        (file({"a": tensor(0, 1, "X" * 200)}, 1), f"tensor `a` has an unknown dtype, '{'X' * 99} ("),
        (
            file({"a": tensor(0, 1, shape=[-1])}, 1),
            "tensor `a` has a shape that is not a list of 64-bit dimensions, [-1]",
        ),
        (file({"a": tensor(0, 1, shape=[1 << 64])}, 1), "dimensions, [18446744073709551616]"),
        (
            file({"a": {"dtype": "U8", "shape": [], "data_offsets": [0, 1, 2]}}),
            "tensor `a` has data_offsets that are not two 64-bit numbers, [0, 1, 2]",
        ),
        (file({"a": {"dtype": "U8", "shape": [], "data_offsets": [0, 1.5]}}), "not two 64-bit numbers, [0, 1.5]"),
        (file({"a": tensor(1, 2)}, 2), "tensor `a` begins at byte 1, expected 0 (InvalidOffset)"),
        (file({"a": tensor(0, 2), "b": tensor(1, 3)}, 3), "tensor `b` begins at byte 1, expected 2 (InvalidOffset)"),
        (file({"b": tensor(4, 5), "a": tensor(0, 2)}, 5), "tensor `b` begins at byte 4, expected 2 (InvalidOffset)"),
        (
            file({"a": tensor(0, 2), "b": tensor(2, 1, shape=[])}, 2),
            "tensor `b` ends at byte 1, before it begins (InvalidOffset)",
        ),
        (
            file({"a": tensor(0, 8, shape=[1 << 32, 1 << 32])}, 8),
            "tensor `a` has the shape [4294967296, 4294967296], too large for 64 bits (ValidationOverflow)",
        ),
        (
            file({"a": tensor(0, 1, "F4", [3])}, 1),
            "tensor `a` has 12 bits, which is not a whole number of bytes (MisalignedSlice)",
        ),
        (
            file({"a": tensor(0, 9, "F32", [2])}, 9),
            "tensor `a` has 9 bytes, but shape [2] of F32 takes 8 (TensorInvalidInfo)",
        ),
        (
            file({"a": tensor(0, 2)}, 3),
            "its tensors end at byte 2 of the byte buffer, which has 3 bytes (MetadataIncompleteBuffer)",
        ),
        (
            file("{}", 3),
            "its tensors end at byte 0 of the byte buffer, which has 3 bytes (MetadataIncompleteBuffer)",
        ),
    ],
)
def test_an_error_says_what_is_wrong_and_where(content: bytes, said: str) -> None:
    with pytest.raises(InvalidFileError) as raised:
        read(content)
    assert said in str(raised.value)


@pytest.mark.parametrize("there", [1, 5, 70_000])
def test_a_file_that_ends_while_its_header_is_read(there: int) -> None:
    content = file({str(number): tensor(number, number + 1) for number in range(5_000)}, 5_000)
    with pytest.raises(InvalidFileError) as raised:
        read_header(lambda start, end: content[: 8 + there][start:end], len(content), "name")
    assert f"it ends within its header, at byte {8 + there} (InvalidHeaderLength)" in str(raised.value)


def test_tensors_come_in_the_order_of_their_bytes() -> None:
    header = {"c": tensor(4, 5), "a": tensor(0, 4, "I16", [2]), "e": tensor(4, 4), "__metadata__": {"k": "v"}}
    content = file(header, 5)
    found = read(content)
    assert list(found.tensors) == [
        TensorInfo("a", "I16", (2,), 0, 4),
        TensorInfo("e", "U8", (0,), 4, 4),
        TensorInfo("c", "U8", (1,), 4, 5),
    ]
    assert (found.metadata, found.data_start) == ({"k": "v"}, len(content) - 5)
    assert found.by_name["c"] == found.tensors[2]
    assert "d" not in found.by_name


def test_a_header_that_is_written_is_the_librarys() -> None:
    arrays: dict[str, Array] = {
        "b": np.zeros((2, 3), np.float32),
        'é"\\\n': np.zeros(3, np.uint8),
        "a": np.zeros((), np.int64),
    }
    kinds = {np.dtype("f4"): "F32", np.dtype("u1"): "U8", np.dtype("i8"): "I64"}
    end, tensors = 0, []
    for name in sorted(arrays, key=lambda name: order(kinds[arrays[name].dtype], name)):
        begin, end = end, end + arrays[name].nbytes
        tensors.append(TensorInfo(name, kinds[arrays[name].dtype], arrays[name].shape, begin, end))
    assert save(arrays) == header_bytes({}, tensors) + bytes(end)
    assert header_bytes({"k": "é"}, []) == save({}, {"k": "é"})
    assert header_bytes({"b": "2", "a": "1"}, [])[8:].strip() == b'{"__metadata__":{"a":"1","b":"2"}}'


@pytest.mark.parametrize("length", range(9))
def test_the_buffer_begins_at_a_multiple_of_8(tmp_path: Path, length: int) -> None:
    content = header_bytes({}, [TensorInfo("n" * length, "U8", (1,), 0, 1)])
    assert len(content) % 8 == 0
    assert len(content) - len(content.rstrip()) < 8
    path = tmp_path / "one.safetensors"
    path.write_bytes(content + b"\7")
    with safe_open(path, "np") as opened:
        assert opened.get_tensor("n" * length).tolist() == [7]


def test_wide_dtypes_come_first_and_then_names_by_their_bytes() -> None:
    names = sorted([("U8", "a"), ("F64", "b"), ("F32", "é"), ("F32", "z"), ("F32", "😀")], key=lambda one: order(*one))
    assert names[0] == ("F64", "b")
    assert names[1:] == [("F32", "z"), ("F32", "é"), ("F32", "😀"), ("U8", "a")]


def test_the_length_of_a_name() -> None:
    assert [name_bytes(name) for name in ("", "ab", "é", '"', "\n", "\0")] == [0, 2, 2, 2, 2, 6]
