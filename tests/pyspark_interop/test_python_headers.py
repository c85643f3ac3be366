"""The headers that Python reads by itself: the official library's verdict on the cases, and on files made by chance."""

from itertools import islice
from pathlib import Path

import pytest

from fuzz import TRIES_OF_CHANCE, cases_of
from header_cases import CASES, HUGE_SHAPES
from official import Verdict, verdicts
from safetensors_spark import InvalidFileError
from safetensors_spark._files import header_text
from safetensors_spark._files.header import Header, read_header
from safetensors_spark._files.header_json import members_of, split_members

BY_CHANCE = 3000


def _said(content: bytes) -> Header | str:
    try:
        return read_header(lambda start, end: content[start:end], len(content), "name")
    except InvalidFileError as error:
        return error.rule


def _agree(official: Verdict, content: bytes) -> bool:
    ours = _said(content)
    if isinstance(ours, str):
        return ours == official.refused
    found = {
        tensor.name: (
            tensor.dtype,
            tensor.shape,
            content[ours.data_start + tensor.begin : ours.data_start + tensor.end],
        )
        for tensor in ours.tensors
    }
    told = {name: (tensor.dtype, tensor.shape, tensor.data) for name, tensor in official.tensors.items()}
    return official.refused is None and found == told and ours.metadata == (official.metadata or {})


def test_the_official_library_s_verdict(tmp_path: Path) -> None:
    cases = [*CASES, *HUGE_SHAPES, *islice(cases_of(7), BY_CHANCE)]
    paths = [tmp_path / f"{number}.safetensors" for number in range(len(cases))]
    for path, (_, content) in zip(paths, cases, strict=True):
        path.write_bytes(content)
    asked = zip(paths, cases, verdicts(paths), strict=True)
    others = [(path, case) for path, case, official in asked if not _agree(official, case[1])]
    # The library finds one fault or another, by chance, where tensors have the same offsets.
    assert [name for path, (name, content) in others if not _ever_agree(path, content)] == []


def _ever_agree(path: Path, content: bytes) -> bool:
    return any(_agree(official, content) for official in verdicts([path] * TRIES_OF_CHANCE))


T = '{"dtype":"U8","shape":[1],"data_offsets":[0,1]}'
TEXTS = [
    "{}",
    "{ }",
    "{,}",
    f'{{"a":{T}}}',
    f'{{"a":{T},}}',
    f'{{,"a":{T}}}',
    f'{{"a":{T},,"b":{T}}}',
    f'{{"a":{T} "b":{T}}}',
    f'{{"a":{T},"b":{T}}}  ',
    f'{{"a":{T},"a":{T}}}',
    f'{{"a":{T},"b":{T}}} x',
    f'{{"a":{T}}}}}',
    f'{{"__metadata__":{{"k":"v"}},"a":{T},"__metadata__":{{}}}}',
    f'{{"a":{T},"__metadata__":{T}}}',
    f'{{"a":{T},"__metadata__":{{"k":"]}},\\"b\\":{{"}},"b":{T}}}',
    f'{{"__metadata__":{{"k":"\\":{T}"}},"b":{T}}}',
    f'{{"a":":{T}}}',
    f'{{"a\\"":{T},"\\u00e9\\\\":{T},"\\q":{T}}}',
    f'{{"a\\"":{T},"\\u00e9\\\\":{T}}}',
    f'{{"a\tb":{T}}}',
    f'{{"a":{T[:-1]},"more":1}},"b":{T}}}',
    f'{{"a":["U8",[1],[0,1]],"b":{T}}}',
    f'{{"a":{T.replace("[1]", "[01]")}}}',
    f'{{"a":{T.replace("[1]", "[1,]")}}}',
    f'{{"a":{T.replace("0,1", "0,01")}}}',
    f'{{"a":{T.replace("0,1", "0,-1")}}}',
    f'{{"a":{T.replace("0,1", "0,٣")}}}',
    f'{{"a":{T.replace("0,1", "0,18446744073709551615")},"b":{T}}}',
    f'{{"a":{T.replace("U8", "U9")}}}',
    f'{{"a":{T.replace(",", " ,").replace(":", ": ")} , "b" :{T}}}',
]


def test_texts_are_parsed_in_pieces_as_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(header_text, "_PIECE", 1)
    taken = 0
    cases = [content[8 : 8 + int.from_bytes(content[:8], "little")] for _, content in islice(cases_of(7), BY_CHANCE)]
    for text in [*TEXTS, *(case.decode() for case in cases if _is_text(case))]:
        if usual := header_text.parse_usual(text):
            metadata, tensors = split_members(members_of(text))
            assert (usual[0], sorted(usual[1])) == (metadata, sorted(tensors)), text
            taken += 1
    assert taken > 500


def _is_text(content: bytes) -> bool:
    try:
        return bool(content.decode())
    except UnicodeDecodeError:
        return False


def test_a_header_of_any_length_takes_two_reads_and_nothing_of_the_buffer(tmp_path: Path) -> None:
    many = ",".join(f'"{name}":{{"dtype":"U8","shape":[1],"data_offsets":[{name},{name + 1}]}}' for name in range(5000))
    header = f"{{{many}}}".encode()
    content = len(header).to_bytes(8, "little") + header + bytes(5000)
    reads: list[tuple[int, int]] = []

    def read(start: int, end: int) -> bytes:
        reads.append((start, end))
        return content[start:end]

    found = read_header(read, len(content), "name")
    assert (len(found.tensors), found.by_name["4999"].begin) == (5000, 4999)
    assert reads == [(0, 65536), (65536, 8 + len(header))]
