"""What counts as other code: whatever a pipeline's functions may reach in their own project."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.conftest import MakeBackend
from safetensors_spark.pipeline import Dataset
from safetensors_spark.pipeline._fingerprint import fingerprint

FUNCTIONS = """
import json, sys
import helpers, outer, tools.text
from helpers import clean
from outer import clean as clean_outside
from safetensors_spark.pipeline import Dataset, create_backend
from safetensors_spark.pipeline._fingerprint import fingerprint

def a_module(number): return helpers.clean(number)
def a_module_of_a_package(number): return tools.text.clean(number)
def a_module_that_a_module_imports(number): return outer.clean(number)
def a_function(number): return clean(number)
def a_function_that_a_function_calls(number): return clean_outside(number)
def a_constant(number): return number * helpers.FACTOR
def a_computed_value(number): return number * helpers.COMPUTED
def a_module_inside(number):
    import helpers
    return helpers.clean(number)
def a_function_inside(number):
    from helpers import clean
    return clean(number)
def a_module_of_a_package_inside(number):
    from tools import text
    return text.clean(number)
def a_module_by_its_place_inside(number):
    from tools.near import clean
    return clean(number)
def nothing_of_it(number):
    import math
    return math.floor(number)

functions = [one for name, one in vars().items() if name.startswith(("a_", "nothing"))]
pipeline = Dataset.from_list([1, 2]).map(a_module).write_jsonl(sys.argv[1] + "/{shard}.jsonl")
list(create_backend("sync").execute(pipeline))
print(json.dumps({one.__name__: [fingerprint(one), one(2)] for one in functions}))
"""


def test_other_code_of_the_project_is_other_code(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "__init__.py").touch()
    (tmp_path / "tools" / "near.py").write_text("from .text import clean\n")
    (tmp_path / "outer.py").write_text("import helpers\ndef clean(number):\n    return helpers.clean(number)\n")
    (tmp_path / "script.py").write_text(FUNCTIONS)

    def run(factor: int, comment: str = "") -> tuple[dict[str, list[object]], str]:
        (tmp_path / "factor.json").write_text(str(factor))
        for place in (tmp_path / "helpers.py", tmp_path / "tools" / "text.py"):
            place.write_text(
                f"import json\nfrom pathlib import Path\n{comment}\nFACTOR = {factor}\n"
                "COMPUTED = json.loads((Path(__file__).parent / 'factor.json').read_text())\n"
                "def clean(number):\n    return number * FACTOR\n".replace(
                    "Path(__file__).parent", f"Path('{tmp_path}')"
                )
            )
        command = [sys.executable, "-B", str(tmp_path / "script.py"), str(tmp_path / "out")]
        done = subprocess.run(command, check=True, timeout=60, stdout=subprocess.PIPE)
        return json.loads(done.stdout), (tmp_path / "out" / "0.jsonl").read_text()

    (before, written), (after, written_after) = run(1), run(30)
    assert (written, written_after) == ("1\n", "30\n")
    assert after["a_module_by_its_place_inside"][1] == 60
    assert [name for name in before if before[name][0] == after[name][0]] == ["nothing_of_it"]
    # What it does is the same.
    assert run(30, "# A comment.\n\n")[0] == after


@pytest.mark.parametrize(
    "code",
    [
        "def f(row): return ['{}' for _ in row]",
        "def f(row): return sum('{}' for _ in row)",
        "f = '{}'.join",
        "import re\nf = re.compile('{}').match",
        "import re\nP = re.compile('{}')\ndef f(row): return P.match(row)",
        "import functools\n@functools.cache\ndef f(row): return '{}'",
        "class C:\n K = frozenset(['{}'])\n def m(self, row): return row in self.K\nf = C().m",
        "import shutil\nf = shutil.ignore_patterns('{}')",
        "def f(row): return f.k\nf.k = '{}'",
        "import collections\nA = collections.defaultdict(lambda: '{}')\ndef f(row): return A[row]",
        "class L(list): pass\nA = L()\nA.k = '{}'\ndef f(row): return A.k",
        "import types\nA = types.MappingProxyType(dict(k='{}'))\ndef f(row): return A['k']",
        "import functools\n@functools.singledispatch\ndef f(row): return 0\n@f.register(int)\ndef _(row): return '{}'",
        "class M(type):\n def m(cls): return '{}'\nclass C(metaclass=M): pass\ndef f(row): return C.m()",
        "import dataclasses\n@dataclasses.dataclass\nclass D:\n a: dataclasses.InitVar[str]\n"
        " def __post_init__(self, a): self.b = a\nA = D('{}')\ndef f(row): return A.b",
        "class C:\n def __reduce__(self): raise TypeError\nA = C()\nA.k = '{}'\ndef f(row): return A.k",
        "class B:\n def m(self): return '{}'\nclass C(B):\n def __call__(self, row): return self.m()\nf = C()",
    ],
)
def test_another_text_in_the_code_is_other_code(code: str) -> None:
    def of(text: str) -> str:
        names: dict[str, Any] = {"__name__": "__main__"}
        exec(code.format(text), names)
        return fingerprint(names["f"])

    assert of("a") == of("a")
    assert of("a") != of("b")


def test_what_a_try_covers_is_code() -> None:
    def of(code: str) -> str:
        names: dict[str, Any] = {"__name__": "__main__"}
        exec(code, names)
        return fingerprint(names["f"])

    inside = "def f(row):\n try:\n  a(row)\n  b(row)\n except ValueError:\n  return 0\n return 1"
    outside = "def f(row):\n try:\n  a(row)\n except ValueError:\n  return 0\n else:\n  b(row)\n return 1"
    assert of(inside) != of(outside)


def test_each_operation_counts(tmp_path: Path, sync: MakeBackend) -> None:
    def plus(number: int) -> Any:
        return lambda row: row + number

    rows = Dataset.from_list([[0, 1, 2]]).flat_map(list)
    for numbers in ((1, 2, 3), (1, 2, 4), (1, 5, 4), (1, 5, 1)):
        dataset = rows
        for number in numbers:
            dataset = dataset.map(plus(number))
        for size in (1, 2):
            list(sync().execute(dataset.window(size).write_jsonl(f"{tmp_path}/{{shard}}.jsonl")))
            found = [row + sum(numbers) for row in range(3)]
            expected = [found[start : start + size] for start in range(0, 3, size)]
            assert [json.loads(line) for line in (tmp_path / "0.jsonl").read_text().splitlines()] == expected


def test_values_that_are_nested_in_another_way_are_other_values() -> None:
    pairs: list[tuple[Any, Any]] = [
        ([["a"], "b"], [["a", "b"]]),
        ({"clean": {"lower": True}, "dedup": True}, {"clean": {"lower": True, "dedup": True}}),
        (((1,), 2), ((1, 2),)),
        (memoryview(b"abc"), memoryview(b"abd")),
    ]
    for one, other in pairs:
        assert fingerprint(one) != fingerprint(other)
