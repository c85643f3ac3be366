"""What is mutated, and which tests guard it: narrow ones, so that a mutant costs seconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Group:
    """Modules of one concern.

    Attributes:
        files: below `python/safetensors_spark`.
        quick: arguments of pytest.
        slow: those of what is run if a mutant survives the quick tests.
        environment: of the project, in which the tests run.
    """

    files: tuple[str, ...]
    quick: tuple[str, ...]
    slow: tuple[str, ...] = ()
    environment: str = ".venv"


def _paths(begin: str, names: str) -> tuple[str, ...]:
    return tuple(f"{begin}{name}.py" for name in names.split())


_KILLED = "tests/python/test_commit.py::test_a_write_killed_at_any_step_is_there_or_not[append]"
_COMMIT = "not killed_at_any_step and not processes_write and not writers_at_once and not found_in_a_part_that_stays"
_ONE_WORLD = "not one_for_all_worlds and not same_for_all_worlds and not shares_of_their_weights"

GROUPS = {
    "header": Group(
        _paths("_files/", "header header_json header_text header_writer"),
        _paths("tests/python/test_", "header odd_cells messages"),
        ("tests/pyspark_interop/test_python_headers.py",),
    ),
    "manifest": Group(
        _paths("_files/", "manifest manifest_writer format_version"),
        (*_paths("tests/python/test_", "manifest writer"), "-k", "not any_rows and not close_at_their_size"),
        (*_paths("tests/python/test_", "written_buckets commit"), "-k", _COMMIT),
    ),
    "index": Group(
        _paths("_files/", "index key_buckets commit/index commit/index_parts commit/index_runs"),
        _paths("tests/python/test_", "index_files key_buckets verify_index store_parts"),
        (
            *_paths("tests/python/test_", "written_buckets commit writer"),
            "-k",
            "not killed_at_any_step and not any_rows",
        ),
    ),
    "commit": Group(
        _paths("_files/commit/", "commit columns existing leftovers local_target pending remote_target written"),
        (*_paths("tests/python/test_", "commit_columns commit"), "-k", _COMMIT),
        (*_paths("tests/python/test_", "writer writer_ended writer_attacked"), _KILLED),
    ),
    "lock": Group(
        _paths("_files/commit/", "lock lock_record host_lock"),
        (*_paths("tests/python/test_", "host_lock lock_wait commit"), "-k", _COMMIT),
        ("tests/python/test_commit.py", "-k", "writers_at_once or processes_write"),
    ),
    "orders": Group(
        _paths("dataset/_", "permutation order steps"),
        (*_paths("tests/python/test_", "steps order"), "-k", "not orders_of_four"),
        ("tests/python/test_order.py", "-k", "orders_of_four"),
    ),
    "blocks": Group(
        _paths("dataset/_", "block_order cut"),
        (*_paths("tests/python/test_", "token_blocks"), "-k", _ONE_WORLD),
        ("tests/python/test_token_blocks.py", "tests/python/test_mix_rows.py", "-k", "blocks or worlds"),
    ),
    "packs": Group(
        _paths("dataset/_", "best_fit pack groups max_tokens"),
        _paths("tests/python/test_", "pack max_tokens"),
        ("tests/python/test_mix_rows.py", "-k", _ONE_WORLD),
    ),
    "mixes": Group(
        _paths("dataset/_", "shares mix mixed joined"),
        (*_paths("tests/python/test_", "mix mix_rows"), "-k", _ONE_WORLD),
        _paths("tests/python/test_", "mix mix_rows"),
    ),
    "states": Group(
        _paths("dataset/_", "state position"),
        _paths("tests/python/test_", "state batches"),
        (*_paths("tests/python/test_", "mix pack mix_rows max_tokens token_blocks"), "-k", "on or state"),
    ),
    "staging": Group(
        _paths("publish/_", "sidecar staged put_in_place sync_state sync_pending superseded published local_staging"),
        _paths("tests/publish/test_", "sync_state staging_format staged write_shard"),
        _paths("tests/publish/test_", "stage_dataset sync sync_generations"),
        ".venv-publish",
    ),
}
