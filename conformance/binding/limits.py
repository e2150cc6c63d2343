"""What may be drawn for an implementation: ranges of sizes, as declared in `conform.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from conformkit.conformance.binding.language import names
from conformkit.conformance.binding.toml_nodes import Node
from conformkit.spec.variants import LATENTS

__all__ = ["LIMITED", "MAX_SIZE", "NUMBERS", "SIZE_NAMES", "Range", "SizeLimits", "check_range", "read_limits"]

NUMBERS = (
    "d_model", "num_heads", "kv_heads", "head_width", "d_ff", "vocab_size", "block_size", "max_len", "num_layers",
    "d_k", "d_v", "src_vocab_size", "tgt_vocab_size", "num_encoder_layers", "num_decoder_layers",
    "num_segments", "image_size", "patch_size", "channels", "num_classes",
)  # fmt: skip
"""What expressions in `limits` may use."""
SIZE_NAMES = (
    *NUMBERS, *LATENTS, "dropout", "causal", "pad_id",
)  # fmt: skip
"""What expressions in `construct` and `weights` may use."""
LIMITED = (*NUMBERS, "tokens", "batch")
MAX_SIZE = 1_000_000


@dataclass(frozen=True, slots=True)
class Range:
    """What a size may be.

    `equals`, an expression over other sizes, leaves no choice; `least` is one that it is not less than.
    """

    min: int | None = None
    max: int | None = None
    multiple_of: int | None = None
    equals: str | None = None
    least: str | None = None

    def merged(self, other: Range) -> Range:
        """Return this range, overridden by what the other one sets."""
        if other.equals is not None:
            return other
        said = {f.name: value for f in fields(other) if (value := getattr(other, f.name)) is not None}
        return replace(self, equals=None, **said) if said else self

    def words(self) -> str:
        """Return what it allows, in words: `multiples of 2 from 8 on`."""
        if self.equals is not None:
            return self.equals
        step = f"multiples of {self.multiple_of}" if self.multiple_of else ""
        least = self.least or self.min
        if step:
            return f"{step} from {least} on" if least else step
        return f"at least {least}" if least else "any"

    def line(self) -> str:
        """Return the value that declares it in conform.toml; empty if nothing can."""
        if self.least is not None:
            return ""
        if self.equals is not None:
            return f'"{self.equals}"'
        said = [f"{name} = {value}" for name in ("min", "max", "multiple_of") if (value := getattr(self, name))]
        return f"{{ {', '.join(said)} }}"

    def allows(self, size: int) -> bool:
        """Return whether a size is in the range (an expression allows any)."""
        low, high = self.min or 0, MAX_SIZE if self.max is None else self.max
        return low <= size <= high and size % (self.multiple_of or 1) == 0


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """What may be drawn. `rank`: attention inputs have exactly this many dimensions."""

    sizes: Mapping[str, Range] = field(default_factory=dict)
    rank: int | None = None

    def of(self, size: str) -> Range:
        """Return the range of a size, of `tokens` or of `batch`; without limits if none are declared."""
        return self.sizes.get(size, Range())

    def merged(self, other: SizeLimits) -> SizeLimits:
        """Return these limits, overridden by what the others set."""
        sizes = {n: self.of(n).merged(other.of(n)) for n in {**self.sizes, **other.sizes}}
        return SizeLimits(sizes, self.rank if other.rank is None else other.rank)


def read_limits(node: Node) -> SizeLimits:
    """Return the declared limits: a table of bounds, a fixed number or an expression for each size."""
    tables = node.table((*LIMITED, "rank"), "size")
    rank = tables.pop("rank").whole(2, 8) if "rank" in tables else None
    limits = SizeLimits({name: _range(value) for name, value in tables.items()}, rank)
    for name, value in tables.items():
        check_range(name, limits, value)
    return limits


def _range(node: Node) -> Range:
    if isinstance(node.value, str):
        return Range(equals=node.expression(NUMBERS))
    if not isinstance(node.value, dict):
        size = node.whole(1, MAX_SIZE)
        return Range(size, size)
    bounds = {key: value.whole(1, MAX_SIZE) for key, value in node.table(("min", "max", "multiple_of")).items()}
    return Range(bounds.get("min"), bounds.get("max"), bounds.get("multiple_of"))


def check_range(size: str, limits: SizeLimits, node: Node) -> None:
    """Raise ConfigError if a range is empty, or depends on a size that itself follows from others."""
    limit = limits.of(size)
    for name in sorted(names(limit.equals)) if limit.equals else ():
        if name == size or limits.of(name).equals:
            raise node.error(f"it depends on {name}, which is an expression itself", "use sizes without expressions")
    low, step, high = limit.min or 1, limit.multiple_of or 1, limit.max
    if high is not None and -(-low // step) * step > high:
        raise node.error(f"no multiple of {step} lies between {low} and {high}")
