"""The examples of docs/training.md with other libraries take every sample of every epoch, and go on where they were."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from pytorch_lightning import LightningModule, Trainer
from pytorch_lightning.callbacks import ModelCheckpoint
from torch import Tensor, nn
from transformers import Trainer as HubTrainer
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from safetensors_spark.dataset import Dataset, open_dataset
from safetensors_spark.torch import BatchDataset, SampleDataset, collate
from training.conftest import Folder

SAMPLES = 22
BATCHES = 6
EPOCHS = 2
# Steps after which training is resumed: within an epoch, and at its end.
STEPS = [4, 6, 8]


@pytest.fixture(scope="module")
def points(numbered: Folder) -> Dataset:
    return open_dataset(numbered([7, 10, 5]))


def order(points: Dataset, epoch: int) -> list[int]:
    batches = BatchDataset(points, SAMPLES, shuffle=True)
    batches.set_epoch(epoch)
    return [number for batch in batches for number in batch["n"].tolist()]


class Model(LightningModule):
    """The example's model. It keeps the numbers of the samples that it has seen."""

    def __init__(self, points: Dataset) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 1)
        self.points = points
        self.seen: list[list[int]] = []

    def train_dataloader(self) -> BatchDataset:
        batches = BatchDataset(self.points, 4, shuffle=True)
        batches.set_epoch(self.current_epoch)
        return batches

    def training_step(self, batch: dict[str, Tensor], step: int) -> Tensor:
        self.seen.append(batch["n"].tolist())
        return self.layer(batch["x"].flatten(1)).square().mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=1e-6)


def fit(model: LightningModule, folder: Path, checkpoint: Path | None = None, **options: Any) -> None:
    trainer = Trainer(
        accelerator="cpu",
        default_root_dir=folder,
        enable_progress_bar=False,
        enable_model_summary=False,
        logger=False,
        **{"max_epochs": EPOCHS} | options,
    )
    trainer.fit(model, ckpt_path=checkpoint)


@pytest.mark.parametrize("options", [{}, {"max_epochs": -1, "max_steps": EPOCHS * BATCHES}])
def test_lightning(points: Dataset, tmp_path: Path, options: dict[str, Any]) -> None:
    model = Model(points)
    checkpoints = ModelCheckpoint(tmp_path, "{step}", every_n_train_steps=1, save_top_k=-1)
    fit(model, tmp_path, callbacks=[checkpoints], **options)
    assert in_order(model.seen) == [number for epoch in range(EPOCHS) for number in order(points, epoch)]
    for step in STEPS:
        again = Model(points)
        fit(again, tmp_path, tmp_path / f"step={step}.ckpt", enable_checkpointing=False, **options)
        assert (step, again.seen) == (step, model.seen[step:])


def in_order(seen: list[list[int]]) -> list[int]:
    return [number for batch in seen for number in batch]


class Layer(nn.Module):
    """A model for Hugging Face's Trainer. It keeps the numbers of the samples that it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 1)
        self.seen: list[list[int]] = []

    def forward(self, x: Tensor, n: Tensor) -> dict[str, Tensor]:
        self.seen.append(n.tolist())
        return {"loss": self.layer(x.flatten(1)).square().mean()}


def arguments(folder: Path, **options: Any) -> TrainingArguments:
    return TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=EPOCHS,
        save_steps=1,
        report_to="none",
        use_cpu=True,
        remove_unused_columns=False,
        disable_tqdm=True,
        **options,
    )


def test_hugging_face_by_samples(points: Dataset, tmp_path: Path) -> None:
    def train(checkpoint: Path | None = None) -> list[list[int]]:
        model = Layer()
        options = arguments(tmp_path, per_device_train_batch_size=4)
        trainer = HubTrainer(model, options, collate, SampleDataset(points))
        trainer.train(resume_from_checkpoint=checkpoint and str(checkpoint))
        return model.seen

    seen = train()
    for epoch in range(EPOCHS):
        assert sorted(in_order(seen[epoch * BATCHES : (epoch + 1) * BATCHES])) == list(range(SAMPLES))
    for step in STEPS:
        assert (step, train(tmp_path / f"checkpoint-{step}")) == (step, seen[step:])


class BatchTrainer(HubTrainer):
    def get_train_dataloader(self) -> BatchDataset:
        batches: BatchDataset = self.train_dataset
        return batches


class SaveState(TrainerCallback):
    def on_save(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        train_dataloader: BatchDataset,
        **others: Any,
    ) -> None:
        path = Path(args.output_dir, f"checkpoint-{state.global_step}", "batches.json")
        path.write_text(json.dumps(train_dataloader.state_dict()))


def test_hugging_face_by_batches(points: Dataset, tmp_path: Path) -> None:
    def train(checkpoint: Path | None = None) -> list[list[int]]:
        model = Layer()
        batches = BatchDataset(points, 4, shuffle=True)
        if checkpoint:
            batches.load_state_dict(json.loads((checkpoint / "batches.json").read_text()))
        options = arguments(tmp_path, ignore_data_skip=True)
        trainer = BatchTrainer(model, options, train_dataset=batches, callbacks=[SaveState()])
        trainer.train(resume_from_checkpoint=checkpoint and str(checkpoint))
        return model.seen

    seen = train()
    assert in_order(seen) == [number for epoch in range(EPOCHS) for number in order(points, epoch)]
    for step in STEPS:
        assert (step, train(tmp_path / f"checkpoint-{step}")) == (step, seen[step:])
