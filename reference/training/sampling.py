"""Text from a trained model: every prompt at every temperature."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from conformkit.reference.beam import beam_search
from conformkit.reference.kv_cache import continue_ids
from conformkit.reference.model import TinyTransformerLM
from conformkit.reference.tokenizers import Tokenizer
from conformkit.reference.training.config import Samples

__all__ = ["Sample", "best_continuations", "continuation", "samples"]


@dataclass(frozen=True)
class Sample:
    """A prompt and what the model made of it."""

    step: int
    prompt: str
    temperature: float
    text: str
    """What follows the prompt."""

    def record(self) -> dict[str, Any]:
        """Return it as a line of JSON."""
        return {"step": self.step, "prompt": self.prompt, "temperature": self.temperature, "text": self.text}


def continuation(
    model: TinyTransformerLM,
    tokenizer: Tokenizer,
    prompt: str,
    tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    repetition_penalty: float = 1.0,
) -> str:
    """Return what the model writes after a prompt, without the prompt.

    Raises: CharacterError for a prompt with a character that the vocabulary lacks; ShapeError for an empty one; as
            `generate`.
    """
    device = model.head.weight.device
    ids = torch.tensor([tokenizer.encode(prompt)], dtype=torch.int64, device=device)  # (1, T)
    continued = continue_ids(
        model, ids, tokens, temperature, top_k, top_p, repetition_penalty=repetition_penalty
    )  # (1, T + n)
    return tokenizer.decode(continued[0, ids.shape[1] :])


def best_continuations(
    model: TinyTransformerLM, tokenizer: Tokenizer, prompt: str, tokens: int, width: int, length_penalty: float
) -> list[tuple[str, float]]:
    """Return the most probable texts after a prompt with their scores, the best first. Raises as `continuation`."""
    ids = torch.tensor([tokenizer.encode(prompt)], dtype=torch.int64, device=model.head.weight.device)  # (1, T)
    found, scores = beam_search(model, ids, tokens, width, length_penalty)  # (1, W, T + n), (1, W)
    texts = [tokenizer.decode(row[ids.shape[1] :]) for row in found[0]]
    return list(zip(texts, scores[0].tolist(), strict=True))


def samples(
    model: TinyTransformerLM, tokenizer: Tokenizer, wanted: Samples, beginning: str, step: int, seed: int
) -> Iterator[Sample]:
    """Yield a sample for each prompt and temperature; `beginning` stands for an empty prompt.

    The random numbers of training are left as they are: sampling in between changes no run.
    """
    devices = [model.head.weight.device] if model.head.weight.is_cuda else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed)
        for prompt in wanted.prompts:
            for temperature in wanted.temperatures:
                shown = prompt or beginning
                text = continuation(model, tokenizer, shown, wanted.tokens, temperature)
                yield Sample(step, shown, temperature, text)
