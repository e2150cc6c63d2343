"""Who looked at whom at each evaluation of a run: small files, from which the report takes a few that are far apart.

One array a step, attention/00000250.npy: the weights of each layer, the mean of its heads, (L, Tq, Tk) float16.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from conformkit.reference.checkpoints import replace_file
from conformkit.reference.training.folder import RunFolder

__all__ = ["keep", "spread"]

SHOWN = 4
"""Steps side by side in a picture."""


def keep(folder: RunFolder, step: int, maps: Sequence[Tensor]) -> None:
    """Write the weights of a step. Shapes: maps (1, H, Tq, Tk) for each layer. Raises OSError."""
    if not maps:
        return
    stream = io.BytesIO()
    np.save(stream, torch.stack([one[0].float().mean(dim=0) for one in maps]).half().cpu().numpy())
    folder.attention.mkdir(exist_ok=True)
    replace_file(folder.attention / f"{step:08}.npy", stream.getvalue())


def spread(folder: RunFolder, most: int = SHOWN) -> list[tuple[int, Tensor]]:
    """Return at most `most` steps with their weights, the first and the last among them, evenly spread between.

    Shapes: → (step, (L, Tq, Tk)) each
    """
    paths = sorted(path for path in folder.attention.glob("*.npy") if path.stem.isdigit())
    count = min(most, len(paths))
    places = sorted({round(number * (len(paths) - 1) / max(count - 1, 1)) for number in range(count)})
    found = []
    for place in places:
        with contextlib.suppress(ValueError, OSError, EOFError):  # a file that something else damaged is left out
            found.append((int(paths[place].stem), torch.from_numpy(np.load(paths[place], allow_pickle=False))))
    return found
