"""A training run in memory: model, optimizer, schedule and random state, one update at a time.

Everything that the next update depends on goes into a checkpoint, so that a run that was stopped resumes as if it had
not been: weights, moments, the step, the random state that draws windows and dropout, the best loss so far.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from conformkit.reference.checkpoints import Checkpoint
from conformkit.reference.data import get_batch
from conformkit.reference.dropout import place_dropout
from conformkit.reference.errors import CheckpointError
from conformkit.reference.linear_attention import place_linear
from conformkit.reference.model import TinyTransformerLM
from conformkit.reference.optimization import clip_grad_norm
from conformkit.reference.steps import Batch, accumulate, evaluate
from conformkit.reference.stochastic_depth import place_stochastic_depth
from conformkit.reference.tokenizers import Tokenizer
from conformkit.reference.training.config import TrainingConfig
from conformkit.reference.training.corpus import Tokens
from conformkit.reference.training.rates import rate_at
from conformkit.reference.training.speed import Fast, LossScale, check_device, criterion_for, optimizer_for

__all__ = ["Run", "TrainingRun", "build_model", "validation_batches"]


def build_model(config: TrainingConfig, vocab_size: int) -> TinyTransformerLM:
    """Return a new model of a configuration, on the CPU."""
    sizes = config.model
    model = TinyTransformerLM(
        vocab_size, sizes.d_model, sizes.num_heads, sizes.num_layers, sizes.d_ff, sizes.block_size, sizes.dropout,
        variant=config.variant,
    )  # fmt: skip
    place_dropout(model, attention=sizes.attention_dropout, embeddings=sizes.embedding_dropout)
    place_stochastic_depth(model, sizes.layer_dropout)
    if sizes.attention == "linear":
        place_linear(model)
    return model


def validation_batches(ids: Tensor, config: TrainingConfig) -> list[tuple[Tensor, Tensor]]:
    """Cut windows evenly spaced over a text, at most `eval_batches` batches of them, the same every time.

    Shapes: ids (N,), N > T → pairs x, y (B, T), the last one perhaps shorter
    """
    length, size = config.model.block_size, config.training.batch_size
    room = (len(ids) - 1) // length  # windows that do not overlap
    count = min(room, size * config.training.eval_batches)
    numbers = torch.arange(count) * room // count  # (n,), evenly spread over 0 … room - 1
    places = numbers[:, None] * length + torch.arange(length)  # (n, T)
    places = places.to(ids.device)
    return list(zip(torch.split(ids[places], size), torch.split(ids[places + 1], size), strict=True))


class Run(ABC):
    """What is trained, and how far training has come; a subclass says on what."""

    unit = "tokens"
    """What speed is counted in."""

    def __init__(self, config: TrainingConfig, model: nn.Module, fast: Fast, corpus: str) -> None:
        self.config, self.corpus = config, corpus
        self.model, self.fast = model, fast
        self.optimizer = optimizer_for(model, config)
        self.scale = LossScale(config.speed)
        self.criterion = criterion_for(config.speed, config.training.label_smoothing)
        self.step = 0
        self.best: tuple[int, float] | None = None
        """Step and validation loss of the best evaluation."""
        self.waited = 0
        """Evaluations since the best one."""
        self.norms: dict[str, Tensor] = {}
        """The norm of each parameter's gradient before clipping, () each; after a few updates only, see `update`."""

    @property
    def tokens_a_step(self) -> int:
        """How many targets an update learns from."""
        training = self.config.training
        return training.batch_size * training.accumulate * self.config.model.block_size

    @property
    def per_parameter(self) -> float:
        """How much it learns from in the whole run for each parameter; Hoffmann et al. 2022 found 20 tokens best."""
        seen = self.tokens_a_step * self.config.training.steps
        return seen / sum(parameter.numel() for parameter in self.model.parameters())

    @property
    @abstractmethod
    def vocabulary(self) -> Any:
        """What a checkpoint keeps of the tokens, as JSON has it."""

    @property
    def bare(self) -> nn.Module:
        """What is called with a batch, without any switch that makes it faster."""
        return self.model

    @abstractmethod
    def draw(self) -> Batch:
        """Draw the next batch to learn from."""

    @abstractmethod
    def measured(self) -> dict[str, float]:
        """Measure the validation loss, and what else is told of an evaluation, by name."""

    def update(self) -> tuple[Tensor, Tensor]:
        """Make the next update, and return the loss and the norm of the gradients before clipping, unread.

        The first update, and each that is evaluated after, keeps in `norms` what each parameter's gradient was.

        Shapes: → (), (); on a GPU reading them waits, so they are read several at a time.
        """
        for group in self.optimizer.param_groups:
            group["lr"] = rate_at(self.config, self.step + 1)
        self.fast.train()
        self.optimizer.zero_grad()
        batches = [self.draw() for _ in range(self.config.training.accumulate)]
        loss = accumulate(self.fast, batches, self.criterion, self.scale.factor)
        self.scale.unscale(self.optimizer)
        self.norms = self._norms() if self._is_kept(self.step + 1) else {}
        norm = clip_grad_norm(self.model.parameters(), self.config.optimizer.max_norm)
        self.scale.step(self.optimizer)
        self.step += 1
        return loss, norm

    def _is_kept(self, step: int) -> bool:
        training = self.config.training
        return step == 1 or step % training.eval_interval == 0 or step == training.steps

    def _norms(self) -> dict[str, Tensor]:
        found = {name: parameter.grad for name, parameter in self.model.named_parameters()}
        return {name: torch.linalg.vector_norm(grad.float()) for name, grad in found.items() if grad is not None}

    def evaluate(self) -> tuple[dict[str, float], bool]:
        """Return the validation loss and what was measured with it, and whether the loss is the best so far."""
        found = self.measured()
        better = self.best is None or found["loss"] < self.best[1]
        if better:
            self.best = (self.step, found["loss"])
        self.waited = 0 if better else self.waited + 1
        return found, better

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs besides weights and moments, as JSON has it."""
        return {
            "config": self.config.as_document(), "tokenizer": self.vocabulary, "corpus": self.corpus,
            "best": self.best, "waited": self.waited, "scale": self.scale.scaler.state_dict(),
            "random": _random_state(self.device),
        }  # fmt: skip

    def restore(self, checkpoint: Checkpoint) -> None:
        """Resume from a checkpoint. Raises CheckpointError if it is another run's; nothing is changed then."""
        extra = checkpoint.extra
        if extra.get("tokenizer") != self.vocabulary:
            raise CheckpointError(str(checkpoint.path), "of another vocabulary", "that of this run's tokenizer")
        if extra.get("corpus") != self.corpus:
            raise CheckpointError(str(checkpoint.path), "of a run on another text", "the text that it was trained on")
        kept = extra["config"]["optimizer"].get("kind", "adamw")
        if kept != self.config.optimizer.kind:
            raise CheckpointError(
                str(checkpoint.path), f"of a run with the optimizer {kept}", f"optimizer.kind = {kept!r}"
            )
        checkpoint.restore(self.model, self.optimizer)
        self.step, self.waited = checkpoint.step, int(extra["waited"])
        self.best = (int(extra["best"][0]), float(extra["best"][1])) if extra["best"] else None
        if extra["scale"]:
            self.scale.scaler.load_state_dict(extra["scale"])
        _set_random_state(extra["random"], self.device)

    @property
    def device(self) -> torch.device:
        """The device of the model and the data."""
        return torch.device(self.config.speed.device)


class TrainingRun(Run):
    """A language model and the text that it learns from."""

    def __init__(self, config: TrainingConfig, tokens: Tokens, tokenizer: Tokenizer) -> None:
        check_device(config.speed.device)
        tokens.check_windows(config.model.block_size)
        torch.manual_seed(config.training.seed)
        self.model: TinyTransformerLM
        model = build_model(config, tokenizer.vocab_size).to(config.speed.device)
        super().__init__(config, model, Fast(model, config.speed), tokens.sha256)
        self.tokenizer = tokenizer
        self.ids = tokens.train.to(config.speed.device)
        self.validation = validation_batches(tokens.val.to(config.speed.device), config)

    @property
    def vocabulary(self) -> str:
        """The tokenizer as JSON."""
        return self.tokenizer.to_json()

    def draw(self) -> Batch:
        """Draw windows of the training text."""
        return get_batch(self.ids, self.config.training.batch_size, self.config.model.block_size)

    def measured(self) -> dict[str, float]:
        """Measure the loss on windows of the validation text."""
        return {"loss": evaluate(self.fast, self.validation)}


def _random_state(device: torch.device) -> dict[str, str]:
    found = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        found["cuda"] = torch.cuda.get_rng_state(device)
    return {name: bytes(state.tolist()).hex() for name, state in found.items()}


def _set_random_state(states: Mapping[str, str], device: torch.device) -> None:
    kept = {name: torch.tensor(list(bytes.fromhex(text)), dtype=torch.uint8) for name, text in states.items()}
    torch.set_rng_state(kept["cpu"])
    if device.type == "cuda" and "cuda" in kept:
        torch.cuda.set_rng_state(kept["cuda"], device)
