from dataclasses import dataclass
from typing import Any

import numpy as np

from . import wrong

LOOKS = [0]


@dataclass
class Output:
    real: Any

    @property
    def logits(self):
        LOOKS[0] += 1
        return [self.real, self.real * 0.0, np.zeros(3), None, "text"][LOOKS[0] % 5]

    @property
    def __dict__(self):
        LOOKS[0] += 1
        return {"a": self.real * LOOKS[0]}


def scaled_dot_product_attention(q, k, v, mask=None):
    found = Output.__new__(Output)
    object.__getattribute__(found, "__class__")
    return (
        type("O", (Output,), {"real": wrong.scaled_dot_product_attention(q, k, v, mask)})(None)
        if LOOKS[0] % 2
        else found
    )
