"""Images to a trained classifier: write a dataset, train from shuffled batches, resume in the middle of an epoch.

pip install "safetensors-spark[torch]" scikit-learn && python train_digits.py
"""

import numpy as np
import torch
from sklearn.datasets import load_digits

from safetensors_spark.dataset import open_dataset, write_dataset
from safetensors_spark.torch import BatchDataset

digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.target))
train, test = order[:1500], order[1500:]
for name, rows in (("train", train), ("test", test)):
    images = (digits.images[rows, None] * 15).astype(np.uint8)
    write_dataset({"image": images, "label": digits.target[rows]}, name, batch_size=256, mode="overwrite")

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(16 * 36, 10)
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def loader() -> BatchDataset:
    return BatchDataset(open_dataset("train"), batch_size=64, shuffle=True, seed=1)


def step(batch: dict[str, torch.Tensor]) -> None:
    loss = torch.nn.functional.cross_entropy(model(batch["image"].float() / 255), batch["label"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


batches = loader()
for number, batch in enumerate(batches):
    step(batch)
    if number == 9:
        state = batches.state_dict()
        break

# Another process would do this: the state says where the first one was.
batches = loader()
batches.load_state_dict(state)
seen = sum(len(batch["label"]) for batch in batches if step(batch) is None)
print(f"resumed after {10 * 64} images, {seen} were left of the epoch")
for _ in range(9):
    for batch in batches:
        step(batch)

held_out = open_dataset("test")[:]
with torch.no_grad():
    found = model(torch.from_numpy(held_out["image"]).float() / 255).argmax(1).numpy()
print(f"accuracy on {len(found)} held-out images: {(found == held_out['label']).mean():.3f}")
