"""Why rows of a stage were dropped, in bounded memory: reasons that differ in numbers alone are one rule."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from safetensors_spark.factory._fields import DROPPED_BECAUSE, DROPPED_BY, PREFIX
from safetensors_spark.factory._frequent import Frequent
from safetensors_spark.factory._report_files import batches, is_text, schema_of, short
from safetensors_spark.factory._report_parts import Rule

# Rules of an operator that are told, and that are counted at a time.
_TOLD, _COUNTED = 20, 1000
_EXAMPLES = 3
# Of a number in a template, which has no such character of its own.
_PLACE = "\0"
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)", re.IGNORECASE)


@dataclass
class _Rule:
    """What reasons of one kind have in common.

    Attributes:
        numbers: in the reason, by their places; None for one that differs from row to row.
    """

    numbers: list[str | None]
    examples: list[str] = field(default_factory=list)

    def text(self, template: str) -> str:
        numbers = ["" if not place else self.numbers[place - 1] or "#" for place in range(len(self.numbers) + 1)]
        return "".join(number + part for number, part in zip(numbers, template.split(_PLACE), strict=True))


class _Rules:
    """Of one operator."""

    def __init__(self, only: frozenset[str] | None) -> None:
        self.rows = Frequent(_COUNTED)
        self._only = only
        self._rules: dict[str, _Rule] = {}

    def add(self, reasons: Sequence[str], texts: Sequence[str | None]) -> None:
        counts: Counter[str] = Counter()
        for reason, text in zip(reasons, texts, strict=True):
            template, numbers = _parts(reason)
            if self._only is not None and template not in self._only:
                self.rows.total += 1
                continue
            counts[template] += 1
            rule = self._rules.setdefault(template, _Rule([*numbers]))
            rule.numbers = [old if old == new else None for old, new in zip(rule.numbers, numbers, strict=True)]
            if len(rule.examples) < _EXAMPLES:
                rule.examples.append(f"{short(reason)} | {short(text)}" if text else short(reason))
        self.rows.add(counts)
        if len(self._rules) > len(self.rows.counts):
            self._rules = {template: self._rules[template] for template in self.rows.counts}

    def told(self) -> tuple[tuple[Rule, ...], int]:
        """The most frequent rules, and how many rows others have dropped."""
        top = self.rows.top(_TOLD)
        rules = [
            Rule(short(self._rules[template].text(template)), rows, tuple(self._rules[template].examples))
            for template, rows in top
        ]
        return tuple(rules), self.rows.total - sum(rows for _, rows in top)


def rules_of(folder: str, files: Sequence[str]) -> dict[str, tuple[tuple[Rule, ...], int]]:
    """By operator, its rules, the most frequent one first, and how many rows others have dropped.

    Args:
        files: of dropped rows, in the folder.
    """
    found = _counted(folder, files, {})
    if not all(one.rows.is_exact for one in found.values()):
        # Once more, and of those that are left alone: their counts are exact then.
        found = _counted(folder, files, {name: frozenset(one.rows.counts) for name, one in found.items()})
    return {name: one.told() for name, one in found.items()}


def _counted(folder: str, files: Sequence[str], only: Mapping[str, frozenset[str]]) -> dict[str, _Rules]:
    found: dict[str, _Rules] = {}
    for path in (f"{folder}/{file}" for file in files):
        # What is shown of a row is its first text.
        names = [one.name for one in schema_of(path) if is_text(one.type) and not one.name.startswith(PREFIX)]
        for batch in batches(path, [*names[:1], DROPPED_BY, DROPPED_BECAUSE], 4096):
            texts = batch.column(names[0]).to_pylist() if names else [None] * batch.num_rows
            by, because = (batch.column(name).to_pylist() for name in (DROPPED_BY, DROPPED_BECAUSE))
            rows: dict[str, list[int]] = {}
            for place, name in enumerate(by):
                rows.setdefault(name, []).append(place)
            for name, places in rows.items():
                rules = found.setdefault(name, _Rules(only.get(name)))
                rules.add([because[place] for place in places], [texts[place] for place in places])
    return found


def _parts(reason: str) -> tuple[str, list[str]]:
    """What of a reason is not a number, and its numbers. What follows a colon is of single rows."""
    rule = "duplicate" if reason.startswith("duplicate of ") else reason.partition(":")[0][:1000]
    rule = rule.replace(_PLACE, "")
    return _NUMBER.sub(_PLACE, rule), _NUMBER.findall(rule)
