"""Embeddings by key: appended each day, looked up one at a time or many at once, without Spark.

pip install "safetensors-spark[arrow]" && python embedding_store.py
"""

import numpy as np

from safetensors_spark.dataset import DatasetWriter, open_store, verify

PLACE, DIMENSIONS = "embeddings", 64


def append_day(day: int, users: int) -> None:
    """The vectors of users that are new on a day."""
    rng = np.random.default_rng(day)
    keys = [f"user-{day}-{number}" for number in range(users)]
    with DatasetWriter(PLACE, name_col="user", generate_index=True, dtype="F16") as writer:
        for begin in range(0, users, 1000):
            some = keys[begin : begin + 1000]
            writer.write({"user": some, "vector": rng.standard_normal((len(some), DIMENSIONS))})


for day in range(3):
    append_day(day, 2500)

store = open_store(PLACE)
print(f"{len(store):,} vectors of {store['user-0-7'].shape[0]} numbers, {store['user-0-7'].dtype}")

wanted = ["user-2-2499", "user-0-0", "user-1-42"]
vectors = store.stack(wanted).astype(np.float32)
print("nearest to user-0-7:", wanted[int(np.argmax(vectors @ store["user-0-7"].astype(np.float32)))])

try:
    append_day(2, 1)
except ValueError as error:
    print(f"refused: {error}")
print(f"verified {verify(PLACE).tensors:,} tensors")
