"""Which arguments of a model's constructor choose among ways to compute attention, by name or as declared."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformkit.conformance.binding.signatures import Signature
from conformkit.conformance.binding.toml_nodes import Node

__all__ = ["Kernels", "OtherKernel", "kernels_of", "read_kernels"]

Kernels = Mapping[str, Sequence[str | bool]]
"""By argument, the values that it takes."""

_SWITCHES = (
    "flash", "use_flash", "flash_attn", "use_flash_attn", "use_flash_attention", "sdpa", "use_sdpa", "fused",
    "use_fused", "fused_attn", "use_fused_attn", "fused_attention", "use_fused_attention", "eager", "use_eager",
    "manual_attention", "use_manual_attention", "use_torch_sdpa",
)  # fmt: skip
_NAMED = (
    "attn_implementation", "attention_implementation", "attn_impl", "attn_backend", "attention_backend",
    "attention_kernel", "attn_type",
)  # fmt: skip
"""Arguments that take a word."""
_WORDS = ("eager", "sdpa", "manual", "naive", "torch", "math", "flash")
"""What such an argument may take. What it refuses is not judged."""
_MAX_VALUES = 8


@dataclass(frozen=True, slots=True)
class OtherKernel:
    """One value of such an argument that is not its default."""

    argument: str
    value: str | bool
    own: bool = True
    """Whether it is an argument of the constructor itself, not of the settings that it is given."""
    declared: bool = False
    """Whether it must be taken."""

    def __str__(self) -> str:
        """Return it as it stands in a call."""
        return f"{self.argument}={self.value!r}"


def kernels_of(signature: Signature | None, declared: Kernels) -> tuple[OtherKernel, ...]:
    """Return the values to compare with the default."""
    if declared:
        own = {parameter["name"] for parameter in signature or ()}
        return tuple(
            OtherKernel(name, value, name in own, declared=True) for name in declared for value in declared[name]
        )
    return tuple(kernel for parameter in signature or () for kernel in _others(parameter))


def _others(parameter: Mapping[str, Any]) -> Iterator[OtherKernel]:
    name, default = parameter["name"], parameter["default"]
    if name in _SWITCHES and default in {"True", "False"}:
        yield OtherKernel(name, default == "False")
    if name in _NAMED and default is not None and default[:1] in {"'", '"'}:
        usual = ast.literal_eval(default)
        yield from (OtherKernel(name, word) for word in _WORDS if word != usual)


def read_kernels(node: Node) -> Kernels:
    """Read a table from arguments to lists of words or of true and false."""
    found: dict[str, Sequence[str | bool]] = {}
    for name, listed in node.table().items():
        values = [item.flag() if isinstance(item.value, bool) else item.text(40) for item in listed.items()]
        if not 0 < len(values) <= _MAX_VALUES:
            raise listed.error(f"it has {len(values)} values, expected 1 to {_MAX_VALUES}")
        found[name] = values
    return found
