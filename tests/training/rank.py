"""One of several processes that train together: `rank.py FOLDER RESULT [STATE]`, with torchrun's environment.

It takes batches as `torch.distributed` says which rank it is, and adds up gradients with the others; it stops half way,
saving its state, unless it goes on from one.
"""

import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from safetensors_spark.dataset import open_dataset
from safetensors_spark.torch import BatchDataset


def main(folder: str, result: str, state: str | None = None) -> None:
    dist.init_process_group("gloo")
    batches = BatchDataset(open_dataset(folder), 4, shuffle=True, seed=3)
    batches.set_epoch(6)
    if state is not None:
        batches.load_state_dict(json.loads(Path(state).read_text()))
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(6, 1))
    taken = []
    for step, batch in enumerate(batches):
        # Every rank must have a batch, or the others wait for ever.
        model(batch["x"].flatten(1)).sum().backward()
        taken.append(batch["n"].tolist())
        if state is None and step == len(batches) // 2:
            break
    Path(f"{result}.{dist.get_rank()}").write_text(json.dumps({"taken": taken, "state": batches.state_dict()}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
    # Not by way of the interpreter's end: a thread of Gloo that frees a tensor then aborts the process, which PyTorch
    # knows (pytorch/pytorch#179291).
    os._exit(0)
