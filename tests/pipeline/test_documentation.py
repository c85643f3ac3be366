"""The examples of docs/pipelines.md run, and its table of faults names what is tested."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]

import examples
from safetensors_spark.dataset import open_dataset
from sbt import ROOT

# The rows of the table in "What happens when", and what shows them.
_FAULTS: dict[str, tuple[str, ...]] = {
    "a function raises": (
        "test_faults.test_an_exception_is_raised_at_once_as_it_is",
        "test_faults.test_what_is_raised_and_is_no_exception_is_raised_as_it_is",
        "test_ray.test_an_error_of_a_function_is_its_own_class_and_not_tried_again",
        "test_spark.test_an_error_of_a_function_ends_what_else_runs_and_is_not_tried_again",
    ),
    '`on_error="quarantine"`': (
        "test_faults.test_rows_that_fail_are_kept_apart",
        "test_faults.test_rows_without_a_key_are_kept_apart",
        "test_bad_rows.test_a_record_that_fails_in_a_reader_costs_no_other",
        "test_bad_rows.test_a_shard_that_is_stopped_is_not_whole",
        "test_resume.test_rows_of_a_pipeline_that_writes_nothing_are_kept_apart",
    ),
    "a worker dies, also one whose own child lives": (
        "test_side_by_side.test_a_dead_worker_is_noticed_while_its_child_lives",
        "test_faults.test_a_worker_that_dies_costs_its_shard_one_attempt",
        "test_ray.test_a_shard_whose_worker_died_is_made_by_another",
        "test_ray.test_a_shard_that_kills_each_worker_is_named",
        "test_spark.test_a_shard_that_was_lost_is_made_again",
        "test_spark_shuffle.test_what_was_lost_is_made_again",
    ),
    "a connection is lost": (
        "test_faults.test_a_lost_connection_is_tried_three_times",
        "test_ray.test_a_connection_that_is_always_lost_is_named",
        "test_spark.test_a_connection_that_is_always_lost_is_named",
        "test_spark_shuffle.test_a_connection_that_is_always_lost_is_named",
    ),
    "a node of Ray is gone": ("test_ray.test_shards_of_a_node_that_is_gone_are_made_on_others",),
    "the run is killed": (
        "test_faults.test_a_run_that_was_killed_goes_on",
        "test_resume.test_a_run_that_is_killed_anywhere_is_finished_by_the_next",
        "test_ray.test_a_driver_that_was_ended_goes_on_when_it_is_started_again",
    ),
    "the same pipeline runs again": (
        "test_resume.test_another_file_costs_its_own_shard",
        "test_resume.test_files_that_rows_name_are_input",
        "test_faults.test_what_was_made_is_not_made_again",
        "test_resume.test_a_dataset_that_was_replaced_is_written_again",
        "test_side_by_side.test_rows_are_appended_once",
        "test_side_by_side.test_a_dataset_without_its_files_does_not_count",
        "test_fingerprint.test_other_code_of_the_project_is_other_code",
    ),
    "it runs again on fewer files": ("test_side_by_side.test_rows_of_shards_that_are_gone_are_not_kept_apart",),
    "an output is a file, or a dataset, that is read": ("test_files.test_a_run_does_not_write_what_it_reads",),
    "Ctrl-C": ("test_faults.test_ctrl_c_ends_workers",),
    "the caller is killed": ("test_faults.test_workers_end_with_a_killed_caller",),
    "two runs write the same files": (
        "test_side_by_side.test_two_runs_do_not_write_the_same_files",
        "test_side_by_side.test_a_file_that_is_being_written_is_left_to_its_writer",
    ),
    "a disk is full": ("test_faults.test_a_full_disk_is_told_with_the_file_and_leaves_nothing_half",),
    "an input file is truncated or damaged": (
        "test_files.test_compressed_lines_are_read",
        "test_files.test_a_gzip_file_whose_bytes_have_changed_is_named",
        "test_bad_rows.test_damaged_files_are_named",
    ),
    "a file that `reshard` divides changes meanwhile": ("test_split.test_parts_of_two_files_are_never_mixed",),
    "rows between stages were damaged on the disk": ("test_faults.test_a_chunk_that_was_damaged_gives_no_wrong_rows",),
    "a dataset's task or commit fails": ("test_files.test_a_dataset_appears_at_once_or_not_at_all",),
    "two runs of a pipeline that writes nothing": (
        "test_resume.test_results_of_two_runs_are_read_side_by_side",
        "test_resume.test_results_that_nobody_reads_leave_nothing",
    ),
}

_SCRIPT = """
from safetensors_spark.pipeline import Dataset, flow_backend

def main():
    rows = Dataset.from_list(range(4)).map(lambda number: {"number": number})
    print(list(flow_backend().execute(rows.write_jsonl("of-script/{shard}.jsonl"))))
"""


def test_the_examples_of_pipelines(tmp_path: Path) -> None:
    # What the examples read, and do not write.
    (tmp_path / "in").mkdir()
    texts = [f" some words of {number} " for number in range(10)]
    rows = [{"text": text, "score": number / 10} for number, text in enumerate(texts)]
    with gzip.open(tmp_path / "in" / "a.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "script.py").write_text(_SCRIPT)
    examples.run(tmp_path, "docs/pipelines.md", more={"XDG_CACHE_HOME": str(tmp_path / "cache")}, but=["--backend ray"])
    written = pq.read_table(tmp_path / "out" / "data-00000-of-00001.parquet").to_pylist()
    assert written == [{"text": text.strip(), "words": 4} for text in texts[6:]]
    assert len(list((tmp_path / "of-script").glob("*.jsonl"))) == 4
    pairs = [row for path in sorted(tmp_path.glob("functions/*.parquet")) for row in pq.read_table(path).to_pylist()]
    samples = open_dataset(tmp_path / "functions-bytes")
    assert len(samples) == len(pairs) > 1000
    assert [sample["code"].tobytes().decode() for sample in samples] == [row["code"] for row in pairs]


def test_each_row_of_the_table_of_faults_is_tested() -> None:
    section = (ROOT / "docs/pipelines.md").read_text().partition("## What happens when")[2].partition("\nEach row")[0]
    rows = re.findall(r"^\| (.*?) \|", section, re.MULTILINE)
    assert rows[1:] == list(_FAULTS)
    for tests in _FAULTS.values():
        for test in tests:
            module, _, name = test.partition(".")
            assert f"\ndef {name}(" in (Path(__file__).parent / f"{module}.py").read_text(), test
