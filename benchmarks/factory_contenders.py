"""How each library curates Parquet files of texts, by two workers: language, rules of Gopher and C4, then duplicates.

Each function prepares, and returns the work. It imports its library, in a process that has none of the others.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

WORKERS = 2
LANGUAGE, LEAST = "en", 0.65
# Those that this project's `minhash_dedup` has for its threshold.
THRESHOLD, HASHES, NGRAM, BANDS, ROWS = 0.7, 128, 5, 14, 9

Record = dict[str, Any]
# Takes the folder of the input, that of the output, and one for what else is needed. Returns where the result is.
Start = Callable[[Path, Path, Path], Path]


def inputs(source: Path) -> list[str]:
    return sorted(map(str, source.glob("*.parquet")))


# --- this project ---


def factory() -> Start:
    import datasets

    from safetensors_spark.factory import load_pipeline, run
    from safetensors_spark.pipeline import create_backend

    datasets.disable_progress_bars()

    def work(source: Path, out: Path, cache: Path) -> Path:
        cache.mkdir()
        recipe = cache / "recipe.yaml"
        recipe.write_text(_RECIPE)
        rows = datasets.load_dataset("parquet", data_files=inputs(source), split="train", streaming=True)
        run(load_pipeline(recipe), rows, out=out, backend=create_backend("processes", max_parallelism=WORKERS))
        return out / "near" / "data"

    return work


_RECIPE = f"""
name: web
stages:
  - name: quality
    operators:
      - type: language
      - {{type: expression_filter, expression: "language = '{LANGUAGE}' AND language_score > {LEAST}"}}
      - type: gopher_quality
      - type: gopher_repetition
      - type: c4_quality
      - type: c4_lines
  - name: exact
    operators:
      - type: exact_dedup
  - name: near
    operators:
      - {{type: minhash_dedup, threshold: {THRESHOLD}, num_perm: {HASHES}, ngram: {NGRAM}}}
"""

# --- its functions, by others ---


@cache
def _operators() -> tuple[Any, ...]:
    from safetensors_spark.factory.operators import c4, gopher_quality, gopher_repetition, language, minhash_dedup

    rules = (gopher_quality.GopherQuality(), gopher_repetition.GopherRepetition(), c4.C4Quality())
    of_language, of_lines = language.Language(), c4.C4Lines()
    near = minhash_dedup.MinhashDedup(threshold=THRESHOLD, num_perm=HASHES, ngram=NGRAM)
    return of_language, rules, of_lines, near


def is_kept(text: str) -> bool:
    """Whether the language and the rules keep it."""
    return is_english(text) and all(rule.reason(text) is None for rule in _operators()[1])


def are_kept(texts: list[str]) -> list[bool]:
    return [is_kept(text) for text in texts]


def is_english(text: str) -> bool:
    """By the model of 176 languages in its small form, which this project's operator brings; others fetch it."""
    import pyarrow as pa  # type: ignore[import-untyped]

    found = _operators()[0].score(pa.record_batch({"text": pa.array([text])}))
    return bool(found["language"][0] == LANGUAGE and found["language_score"][0].as_py() > LEAST)


def of_lines(texts: list[str]) -> list[str]:
    import pyarrow as pa

    found: list[str] = _operators()[2].refine(pa.record_batch({"text": pa.array(texts)}))["text"]
    return found


def bands_of(texts: list[str]) -> list[list[int]]:
    import pyarrow as pa

    keys = _operators()[3].keys(pa.record_batch({"text": pa.array(texts)}))
    found: list[list[int]] = [[] for _ in texts]
    for row, key in zip(keys.rows.tolist(), keys.keys[:, 0].view("int64").tolist(), strict=True):
        found[row].append(key)
    return found


class Together:
    """Which rows hang together."""

    def __init__(self) -> None:
        self._first: dict[Any, Any] = {}

    def first_of(self, row: Any) -> Any:
        while (first := self._first.get(row, row)) != row:
            self._first[row] = self._first.get(first, first)
            row = first
        return row

    def join(self, one: Any, other: Any) -> None:
        one, other = sorted((self.first_of(one), self.first_of(other)))
        self._first[other] = one

    def others(self) -> list[Any]:
        """All but the first of each group."""
        return [row for row in self._first if self.first_of(row) != row]


# --- others ---


def hf_datasets() -> Start:
    import datasets

    datasets.disable_progress_bars()

    def work(source: Path, out: Path, cache: Path) -> Path:
        rows = datasets.load_dataset(
            "parquet", data_files=inputs(source), split="train", cache_dir=str(cache), num_proc=WORKERS
        )
        options: Record = {"batched": True, "input_columns": ["text"], "num_proc": WORKERS}
        rows = rows.filter(are_kept, **options).map(_with_lines, **options)
        # By one process, in the order of rows.
        seen = set[bytes]()
        rows = rows.filter(lambda text: _is_new(text, seen), input_columns=["text"])
        bands = rows.map(_with_bands, remove_columns=["text"], **options)
        together, first = Together(), dict[int, int]()
        number = 0
        for batch in bands.select_columns(["bands"]).iter(1000):
            for keys in batch["bands"]:
                for key in keys:
                    if (before := first.setdefault(key, number)) != number:
                        together.join(before, number)
                number += 1
        drop = {*together.others()}
        rows = rows.select([number for number in range(len(rows)) if number not in drop])
        out.mkdir()
        rows.to_parquet(out / "all.parquet")
        return out

    return work


def _with_lines(texts: list[str]) -> Record:
    return {"text": of_lines(texts)}


def _with_bands(texts: list[str]) -> Record:
    return {"bands": bands_of(texts)}


def _is_new(text: str, seen: set[bytes]) -> bool:
    from hashlib import blake2b

    digest = blake2b(text.encode(), digest_size=16).digest()
    is_new = digest not in seen
    seen.add(digest)
    return is_new


def datatrove() -> Start:
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import (
        ExactDedupConfig,
        ExactDedupFilter,
        ExactDedupSignature,
        ExactFindDedups,
        MinhashConfig,
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupFilter,
        MinhashDedupSignature,
    )
    from datatrove.pipeline.filters import (
        C4QualityFilter,
        GopherQualityFilter,
        GopherRepetitionFilter,
        LambdaFilter,
    )
    from datatrove.pipeline.readers import ParquetReader
    from datatrove.pipeline.writers import ParquetWriter

    exact = ExactDedupConfig(content_getter=_content)
    near = MinhashConfig(n_grams=NGRAM, num_buckets=BANDS, hashes_per_bucket=ROWS)

    def work(source: Path, out: Path, cache: Path) -> Path:
        tasks = len(inputs(source))

        def step(name: str, steps: list[Any], tasks: int = tasks) -> None:
            logs = str(cache / "logs" / name)
            LocalPipelineExecutor(pipeline=steps, tasks=tasks, workers=WORKERS, logging_dir=logs).run()

        def folder(name: str) -> str:
            return str(cache / name)

        def filtered() -> Any:
            return ParquetReader(folder("filtered"), glob_pattern="*.parquet")

        step(
            "filters",
            [
                ParquetReader(str(source), glob_pattern="*.parquet"),
                LambdaFilter(_is_english_document),
                GopherQualityFilter(),
                GopherRepetitionFilter(),
                C4QualityFilter(),
                ParquetWriter(folder("filtered")),
            ],
        )
        step("exact", [filtered(), ExactDedupSignature(folder("exact"), exact)])
        step("equal", [ExactFindDedups(folder("exact"), folder("equal"), exact)], 1)
        unique = [filtered(), ExactDedupFilter(folder("equal"), exact)]
        step("signatures", [*unique, MinhashDedupSignature(folder("signatures"), near)])
        step("buckets", [MinhashDedupBuckets(folder("signatures"), folder("buckets"), config=near)], BANDS)
        step("clusters", [MinhashDedupCluster(folder("buckets"), folder("clusters"), config=near)], 1)
        step("out", [*unique, MinhashDedupFilter(folder("clusters")), ParquetWriter(str(out))])
        return out

    return work


def _content(document: Any) -> str:
    text: str = document.text
    return text


def _is_english_document(document: Any) -> bool:
    return is_english(document.text)


def daft() -> Start:
    import daft as library
    from daft import DataType, col

    # In processes: functions of Python would else take one core.
    @library.cls(use_process=True, max_concurrency=WORKERS)
    class Rules:
        @library.method.batch(return_dtype=DataType.bool())  # type: ignore[untyped-decorator]
        def keep(self, texts: Any) -> list[bool]:
            return are_kept(texts.to_pylist())

        @library.method.batch(return_dtype=DataType.string())  # type: ignore[untyped-decorator]
        def lines(self, texts: Any) -> list[str]:
            return of_lines(texts.to_pylist())

    def work(source: Path, out: Path, cache: Path) -> Path:
        rules, text = Rules(), col("text")
        rows = (
            library.read_parquet(f"{source}/*.parquet").where(rules.keep(text)).with_column("text", rules.lines(text))
        )
        # Else each plan behind it would do this again.
        rows.write_parquet(str(cache / "kept"))
        kept = library.read_parquet(f"{cache}/kept/*.parquet")
        unique = kept.groupby(text.hash().alias("hash")).agg(col("id").min(), text.any_value()).exclude("hash")
        unique.write_parquet(str(cache / "unique"))
        unique = library.read_parquet(f"{cache}/unique/*.parquet")
        plain = text.normalize(remove_punct=True, lowercase=True, white_space=True)
        signed = unique.select("id", plain.minhash(num_hashes=HASHES, ngram_size=NGRAM, seed=1).alias("hashes"))
        bands = [
            library.functions.to_struct(
                library.lit(band).alias("band"), col("hashes").slice(band * ROWS, (band + 1) * ROWS).alias("hashes")
            ).hash()
            for band in range(BANDS)
        ]
        keys = signed.select("id", library.functions.to_list(*bands).alias("band")).explode("band")
        groups = keys.groupby("band").agg(col("id").list_agg()).where(col("id").list_count() > 1)
        together = Together()
        for ids in groups.to_pydict()["id"]:
            for one in ids[1:]:
                together.join(ids[0], one)
        drop = library.from_pydict({"id": together.others()})
        unique.join(drop, on="id", how="anti").write_parquet(str(out))
        return out

    return work
