"""Several datasets of the Hugging Face library as one stream, by weights."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from math import isfinite
from typing import TYPE_CHECKING, Any, get_args

from safetensors_spark.dataset._arguments import whole
from safetensors_spark.dataset._shares import Weight, checked_weight
from safetensors_spark.factory._caps import Caps, Counting
from safetensors_spark.factory._errors import ConfigError
from safetensors_spark.factory._source import features_of

if TYPE_CHECKING:
    from safetensors_spark.factory._mixed_examples import Stopping


def mix(
    datasets: Sequence[tuple[Any, Weight] | tuple[Any, Weight, Caps]],
    *,
    seed: int = 0,
    stopping: Stopping = "first_exhausted",
    shards: int | None = None,
    step_samples: int = 1024,
    tokens: str = "token_count",
    images: str = "image",
) -> Any:
    """Several datasets in one stream, a `datasets.IterableDataset`, whose rows are drawn by weights.

        mixed = mix([(web, 0.7), (code, 0.3, Caps(rows=100_000))], seed=1)

    Nothing is shuffled: rows of each dataset keep their order. The stream has shards, which are divided among tasks of
    the factory and workers of a DataLoader. A shard takes a part of each dataset and draws independently, so its rows
    depend only on `seed` and its number. The stream's `state_dict` and `load_state_dict` resume at the same row.

    Args:
        datasets: pairs of a dataset, with or without streaming, and its weight; optionally with `Caps`. The
            sum of weights need not be 1. A weight may be a function of the step, such as one of a `Curriculum`. A cap
            is divided evenly among shards: it is never exceeded, and not reached if a shard has less of the dataset
            than its part.
        seed: decides which dataset each row is from.
        stopping: `first_exhausted` ends when a row is drawn from a dataset that has no more; `all_exhausted` starts
            such a dataset again until each has ended once; `all_exhausted_without_replacement` takes each row once. A
            dataset whose cap is reached has ended and does not start again. If all remaining datasets have weight 0,
            the stream ends. `all_exhausted` does not accept functions as weights: a dataset might never end.
        shards: the number of shards of the stream; by default as many as the stream with the fewest, and one if there
            are only datasets in memory. Each shard ends independently, and runs all steps of a curriculum.
        step_samples: the number of rows in a step, of all shards together. A shard counts its own rows, times the
            number of shards.
        tokens: the field that caps of tokens count: lists of token ids, or counts.
        images: the field that caps of images count.

    Raises `ConfigError` for datasets whose columns or types differ from the first one, and if a dataset
    cannot be divided into the shards; `TypeError` and `ValueError` for other arguments.
    """
    from datasets import DatasetInfo, IterableDataset

    from safetensors_spark.factory._mixed_examples import MixedExamples, Recipe, Stopping

    found, weights, caps = _parts(datasets)
    if stopping not in get_args(Stopping):
        raise ValueError(f"stopping is {stopping!r:.100}, expected one of {', '.join(get_args(Stopping))}")
    first = [checked_weight(one(0) if callable(one) else one, 0) for one in weights]
    if not isfinite(sum(first)):
        raise ValueError("the sum of the weights is too large for a number, expected weights such as 0.7 and 0.3")
    if not any(first):
        raise ValueError("the weights of step 0 are all 0, expected one that is not")
    if stopping == "all_exhausted" and any(map(callable, weights)):
        raise ValueError(
            "stopping='all_exhausted' needs weights that are numbers: a dataset whose weight falls to 0 never ends. "
            "Take 'first_exhausted' or 'all_exhausted_without_replacement'."
        )
    features = [features_of(one) for one in found]
    for number, one in enumerate(features[1:], 2):
        _check_alike(features[0], one, number)
    for field, what in ((tokens, "tokens"), (images, "images")):
        if any(getattr(cap, what) is not None for cap in caps) and field not in features[0]:
            raise ConfigError(
                f"a cap of {what} counts the field `{field}`, but rows have {', '.join(features[0])}. Name the field "
                f"with `{what}=`."
            )
    count = _shards(found, shards)
    streams = [_stream(one, count, number) for number, one in enumerate(found, 1)]
    recipe = Recipe(
        tuple(weights),
        tuple(caps),
        Counting(tokens, images),
        whole("seed", seed, 0),
        stopping,
        whole("step_samples", step_samples, 1),
        count,
    )
    examples = MixedExamples([deepcopy(one._ex_iterable) for one in streams], recipe, range(count))
    tokens_of_hub = {name: token for one in streams for name, token in one._token_per_repo_id.items()}
    return IterableDataset(examples, info=DatasetInfo(features=features[0]), token_per_repo_id=tokens_of_hub)


def _parts(datasets: Sequence[Any]) -> tuple[list[Any], list[Weight], list[Caps]]:
    from datasets import Dataset, IterableDataset

    parts = list(datasets)
    for part in parts:
        if (
            not isinstance(part, tuple | list)
            or len(part) not in (2, 3)
            or not isinstance(part[0], Dataset | IterableDataset)
            or not isinstance(part[-1], Caps if len(part) == 3 else object)
        ):
            raise TypeError(
                f"mix was given {part!r:.200}, expected pairs of a datasets.Dataset or IterableDataset and its weight, "
                "and Caps as a third where they are needed"
            )
    if not parts:
        raise ValueError("mix was given no datasets, expected pairs of a dataset and its weight")
    return [one[0] for one in parts], [one[1] for one in parts], [one[2] if len(one) == 3 else Caps() for one in parts]


def _check_alike(first: Any, other: Any, number: int) -> None:
    for name in {**first, **other}:
        if name not in first or name not in other:
            only = 1 if name in first else number
            raise ConfigError(
                f"datasets 1 and {number} of the mixture cannot be mixed: only dataset {only} has "
                f"the field `{name}`. Leave it out with `remove_columns`, or add it to the other one."
            )
        if first[name] != other[name]:
            raise ConfigError(
                f"datasets 1 and {number} of the mixture cannot be mixed: their field `{name}` is {first[name]} and "
                f"{other[name]}. Make them alike with `cast_column`."
            )


def _shards(datasets: Sequence[Any], shards: int | None) -> int:
    from datasets import IterableDataset

    counts = {number: one.num_shards for number, one in enumerate(datasets, 1) if isinstance(one, IterableDataset)}
    least = min(counts, key=lambda number: counts[number], default=None)
    if shards is None:
        return 1 if least is None else counts[least]
    wanted = whole("shards", shards, 1)
    if least is not None and wanted > counts[least]:
        raise ConfigError(
            f"a mixture of {wanted} shards needs as many of each stream, but dataset {least} has {counts[least]}. Ask "
            "for fewer, or give it more files."
        )
    return wanted


def _stream(dataset: Any, shards: int, number: int) -> Any:
    from datasets import IterableDataset

    if isinstance(dataset, IterableDataset):
        return dataset
    if not len(dataset):
        raise ConfigError(f"dataset {number} of the mixture has no rows. Leave it out.")
    if len(dataset) < shards:
        raise ConfigError(
            f"dataset {number} of the mixture has {len(dataset)} rows, which cannot be divided into {shards} shards. "
            "Ask for fewer with `shards=`."
        )
    return dataset.to_iterable_dataset(num_shards=shards)
