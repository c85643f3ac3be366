"""Texts through a recipe in YAML: cleaned, filtered, without duplicates, and why each row was dropped.

pip install "safetensors-spark[factory]" && python curate_texts.py
"""

import builtins
from pathlib import Path

import datasets

from safetensors_spark.factory import load_pipeline, report, run

docs = [text for name in dir(builtins) if (text := getattr(builtins, name).__doc__)]
source = datasets.Dataset.from_dict({"text": docs})

curated = run(load_pipeline(Path(__file__).with_name("curate.yaml")), source, out="docs")
print(f"{len(curated)} of {len(source)} texts are left")
for stage in report("docs").stages:
    for operator in stage.operators:
        for rule in operator.rules:
            print(f"{stage.name}: {operator.id} dropped {rule.rows} rows: {rule.reason}")
