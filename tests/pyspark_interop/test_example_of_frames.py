"""The example of Spark."""

from __future__ import annotations

from pathlib import Path

import examples


def test_a_data_frame_to_tensors_and_back(tmp_path: Path) -> None:
    told = examples.run_file(tmp_path, "spark_round_trip.py")
    assert "without Spark: (1000, 8) bfloat16" in told
    assert "|    0|  334|" in told
    assert "[7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0]" in told
