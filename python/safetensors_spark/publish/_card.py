"""The dataset card, `README.md`: what is between the marks is made here, and the rest is its author's."""

from __future__ import annotations

import re
from typing import Any

import yaml

from safetensors_spark._errors import counted
from safetensors_spark._files.manifest import Column, Manifest

CARD = "README.md"

_YAML_BEGIN, _YAML_END = "# Made by safetensors-spark", "# End of what safetensors-spark made"
# Sizes as the Hub names them.
_SIZES = {
    10**3: "n<1K",
    10**4: "1K<n<10K",
    10**5: "10K<n<100K",
    10**6: "100K<n<1M",
    10**7: "1M<n<10M",
    10**8: "10M<n<100M",
    10**9: "100M<n<1B",
    10**10: "1B<n<10B",
    10**11: "10B<n<100B",
    10**12: "100B<n<1T",
}


def with_card(card: bytes | None, manifest: Manifest, repo_id: str, prefix: str) -> bytes:
    """The card with what the manifest says; the same bytes if it says so already.

    Args:
        card: the card that is there.
        prefix: the dataset's folder in the repository. Each folder has a part of the card.
    """
    text = (card or b"").decode("utf-8", "surrogateescape")
    mark, text = ("\ufeff", text[1:]) if text.startswith("\ufeff") else ("", text)
    line = "\r\n" if "\r\n" in text else "\n"
    front, body = _split(text.replace("\r\n", "\n"))
    title = "" if card is not None else f"# {repo_id.rpartition('/')[2]}\n\n"
    body = _with_part(body or title, _part(manifest, repo_id, prefix), *_marks(prefix))
    made = _with_front(front, _samples(body)) + body
    return (mark + made.replace("\n", line)).encode("utf-8", "surrogateescape")


def _split(text: str) -> tuple[str, str]:
    """The lines of the metadata, without their marks, and the text."""
    found = re.match(r"---[ \t]*\n(.*?)^---[ \t]*(\n|\Z)", text, re.DOTALL | re.MULTILINE)
    # A text may begin with a line, too.
    return (found[1], text[found.end() :]) if found and _metadata(found[1]) is not None else ("", text)


def _metadata(front: str) -> dict[str, Any] | None:
    """What metadata says; None for what is none."""
    try:
        found = yaml.safe_load(front)
    except yaml.YAMLError:
        return None
    return found if isinstance(found, dict) else {} if found is None else None


def _with_front(front: str, samples: int) -> str:
    """Metadata that the author has not given."""
    others = re.sub(rf"{_YAML_BEGIN}\n.*?{_YAML_END}\n", "", front, flags=re.DOTALL)
    given = _metadata(others) or {}
    size = next((name for limit, name in _SIZES.items() if samples < limit), "n>1T")
    made: dict[str, Any] = {"tags": ["safetensors"], "size_categories": [size]}
    if "configs" not in given:
        # Else the Hub's viewer and `load_dataset` take the manifest or the index for the data.
        made |= {"viewer": False, "configs": [{"config_name": "default", "data_files": "**/*.safetensors"}]}
    ours = {name: value for name, value in made.items() if name not in given}
    lines = yaml.safe_dump(ours, sort_keys=False) if ours else ""
    whole = f"{others}{_YAML_BEGIN}\n{lines}{_YAML_END}\n" if lines else others
    # Not all ways to write a mapping can be continued so.
    return f"---\n{whole if _metadata(whole) == given | ours else others}---\n"


def _samples(body: str) -> int:
    """The rows of all datasets that have a part of the card."""
    parts = re.findall(r"^<!-- Made by safetensors-spark[^\n]* -->\n\n([\d,]+) rows? in ", body, re.MULTILINE)
    return sum(int(count.replace(",", "")) for count in parts)


def _marks(prefix: str) -> tuple[str, str]:
    name = f" {prefix}" if prefix else ""
    return f"<!-- Made by safetensors-spark{name} -->", f"<!-- End of what safetensors-spark made{name} -->"


def _with_part(text: str, part: str, begin: str, end: str) -> str:
    # Where the author has deleted one of the marks, what follows the other one is the author's.
    found = re.search(rf"{re.escape(begin)}\n(?:(?!{re.escape(begin)}).)*?{re.escape(end)}\n?", text, re.DOTALL)
    if found:
        return text[: found.start()] + f"{begin}\n{part}{end}\n" + text[found.end() :]
    gap = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
    return f"{text}{gap}{begin}\n{part}{end}\n"


def _part(manifest: Manifest, repo_id: str, prefix: str) -> str:
    url = f"hf://datasets/{repo_id}" + (f"/{prefix}" if prefix else "")
    rows = "\n".join(map(_row, manifest.columns))
    size = f"{counted(manifest.samples, 'row')} in {counted(len(manifest.shards), 'shard')}, {_bytes(manifest.bytes)}"
    how = (
        f'store = open_store("{url}")\nkey = next(iter(store))\nstore[key]'
        if manifest.mode == "key_value"
        else f'dataset = open_dataset("{url}")\ndataset[0]'
    )
    function = how.partition("(")[0].rpartition(" ")[2]
    return f"""
{size}, as [safetensors](https://github.com/huggingface/safetensors) files.

| column | dtype | shape of a row | kind |
|---|---|---|---|
{rows}

```python
# pip install "safetensors-spark[publish]"
from safetensors_spark.dataset import {function}

{how}
```

"""


def _row(column: Column) -> str:
    shape = column.sample_shape
    shown = "differs" if shape is None else f"[{', '.join('?' if dim is None else str(dim) for dim in shape)}]"
    name = re.sub(r"([|`\\<>*_\[\]])", r"\\\1", column.name).replace("\n", " ")
    return f"| {name} | {column.dtype or 'differs'} | {shown} | {column.kind} |"


def _bytes(count: int) -> str:
    size, units = float(count), ["bytes", "kB", "MB", "GB", "TB", "PB"]
    while size >= 1000 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{count:,} bytes" if units[0] == "bytes" else f"{size:.1f} {units[0]}"
