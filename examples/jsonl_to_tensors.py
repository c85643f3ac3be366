"""Records of compressed JSON lines to a dataset of tokens, in processes, resumable.

pip install "safetensors-spark[pipeline]" && python jsonl_to_tensors.py
"""

import gzip
import json
import keyword
from pathlib import Path

from safetensors_spark.dataset import open_dataset
from safetensors_spark.pipeline import Dataset, col, create_backend

# What a crawl would have left.
Path("in").mkdir(exist_ok=True)
for number in range(4):
    with gzip.open(f"in/{number}.jsonl.gz", "wt") as file:
        for word in keyword.kwlist:
            print(json.dumps({"text": f"{word} " * (number + 1), "score": len(word) / 10}), file=file)


def tokens(record):
    return {"tokens": list(record["text"].encode()), "score": record["score"]}


pipeline = (
    Dataset.from_files("in/", "*.jsonl.gz")
    .load_jsonl()
    .filter(col("score") > 0.3)
    .map(tokens)
    .write_safetensors("tokens", batch_size=64, ragged=["tokens"], mode="overwrite")
)
backend = create_backend("processes", max_parallelism=2, progress=False)
print(backend.plan(pipeline))
list(backend.execute(pipeline))

dataset = open_dataset("tokens")
print(f"{len(dataset)} rows, {sum(len(row) for row in dataset[:]['tokens']):,} tokens")
print(bytes(dataset[0]["tokens"].tolist()).decode())
