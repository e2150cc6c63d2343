"""A language model called with further arguments: masks, positions, a cache, targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, answered, check_shape
from conformkit.conformance.assertions.observed import Observed
from conformkit.conformance.binding.call_arguments import ArgumentNames
from conformkit.conformance.binding.kernels import OtherKernel
from conformkit.conformance.binding.masks import MaskForm
from conformkit.conformance.subject.component import Instance
from conformkit.spec.arrays import Array

__all__ = ["Answer", "Path"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call gave: logits, and the handle of the cache that it returned."""

    logits: Array
    cache: int | None = None


@dataclass(frozen=True, slots=True)
class Path:
    """A model, and how its further arguments are passed."""

    instance: Instance
    form: MaskForm = field(default_factory=lambda: MaskForm("int"))
    placing: str = "rows"
    """How positions are passed: `rows` (B, T), `one` (T,), empty if they are not."""

    @property
    def call_arguments(self) -> ArgumentNames:
        """The names of its further arguments."""
        return self.instance.subject.bound.call_arguments

    def requires(self, *what: str) -> None:
        """Raise NotApplicable unless its call takes these."""
        for name in what:
            if getattr(self.call_arguments, name) is None:
                raise NotApplicable(f"its call takes no {_WORDS[name]}", lacks=name)

    def requires_rows(self) -> None:
        """Raise NotApplicable if rows cannot have positions of their own."""
        if self.placing == "one":
            raise NotApplicable("its positions (T,) are those of all rows")

    def __call__(self, ids: Array, **further: Any) -> Array:
        """Return the logits (B, T, V)."""
        return self.answer(ids, **further).logits

    def answer(
        self, ids: Array, *, caching: bool = False, mode: str = "eval", seed: int | None = None, **further: Any
    ) -> Answer:
        """Call with further arguments; `caching` asks for a cache to be returned, `seed` sets the random state."""
        header, tensors = self._request(ids, **further)
        if caching:
            header["keep"] = {"output": self.call_arguments.config.cache_output}
            if self.call_arguments.use_cache:
                header["kwargs"][self.call_arguments.use_cache] = True
        reply, arrays = self._ask({**header, "mode": mode, "seed": seed}, tensors)
        logits = np.asarray(self.instance.subject.bound.from_theirs(arrays["out"]), np.float64)
        if further.get("targets") is not None:
            logits = self.in_rows(logits, ids)
        check_shape("the logits", logits, (*ids.shape, self.instance.sizes["vocab_size"]))
        answered(self._observed(logits, ids, mode, seed, further))
        return Answer(logits, reply.get("kept"))

    def _observed(
        self, logits: Array, ids: Array, mode: str, seed: int | None, further: Mapping[str, Any]
    ) -> Observed:  # fmt: skip
        """Return a call as one that can be made again; with a cache, only without it."""
        given = {name: value for name, value in further.items() if value is not None and name in _ARRAYS}
        rest = {name: value for name, value in further.items() if name not in given and name != "cache"}
        if further.get("cache") is not None:
            given["cache"] = np.zeros(1)

        def again(asked: Mapping[str, Array]) -> Array:
            arrays: dict[str, Any] = {name: asked[name] for name in asked.keys() - {"ids", "cache"}}
            header, tensors = self._request(asked["ids"], **rest, **arrays)
            _, got = self._ask({**header, "mode": mode, "seed": seed}, tensors)
            return np.asarray(self.instance.subject.bound.from_theirs(got["out"]), np.float64)

        steady = "cache" not in given
        alone = not {"segments", "positions"} & given.keys()
        matter = frozenset(_that_must_matter(given))
        return Observed(logits, {"ids": ids, **given}, matter, again, steady, causal=alone)

    def in_rows(self, logits: Array, ids: Array) -> Array:
        """Return the logits that came back with a loss as (B, T, V): some code flattens them to (B·T, V) for it."""
        flat = (ids.size, self.instance.sizes["vocab_size"])
        return logits.reshape(*ids.shape, -1) if logits.shape == flat else logits

    def continued(self, ids: Array, count: int, further: Mapping[str, Array]) -> Array:
        """Continue prompts greedily by `count` ids, with further arguments of `generate`: (B, T) → (B, T + count)."""
        bound, sizes = self.instance.subject.bound, self.instance.sizes
        header, tensors = bound.generate_request(ids, count, {**sizes, "seed": 1, "greedy": True})
        header["kwargs"] |= {name: {"$tensor": name} for name in further}
        header |= {"mode": "eval", "seed": 1, "watch": False}
        _, arrays = self._ask({**header, "handle": self.instance.handle}, {**tensors, **further})
        return bound.generated(arrays["out"], ids)

    def recorded(self, way: str, ids: Array, **further: Any) -> tuple[Path, str]:
        """Return what `torch.compile` (`compiled`) or `torch.export` (`exported`) makes of it for such arguments.

        The text says why it takes no arguments of other extents; empty if it does.
        """
        header, tensors = self._request(ids, **further)
        reply, _ = self._ask({**header, "op": "record", "way": way}, tensors)
        made = replace(self, instance=replace(self.instance, handle=int(reply["handle"])))
        return made, str(reply["closed"])

    def with_kernel(self, kernel: OtherKernel) -> Path:
        """Return the same model with the same weights, constructed to compute attention in another way."""
        old, subject = self.instance, self.instance.subject
        construct = subject.bound.construct.setting(kernel.argument, kernel.value, own=kernel.own)
        other = subject.with_bound(replace(subject.bound, construct=construct)).construct(old.sizes, dtype=old.dtype)
        if [(p["name"], p["shape"]) for p in other.trainable] != [(p["name"], p["shape"]) for p in old.trainable]:
            raise NotApplicable(f"with {kernel} it has other parameters", lacks="kernels")
        other.write_raw(old.read_raw())
        return replace(self, instance=other)

    def told(self, attribute: str) -> Any:
        """Return what the object that is called says of itself."""
        return self._ask({"op": "ask", "attribute": attribute}, {})[0]["value"]

    def result(self, ids: Array, output: Any, **further: Any) -> Array:
        """Return a part of what a call gives: the item of this index, key or attribute."""
        header, tensors = self._request(ids, **further)
        _, arrays = self._ask({**header, "mode": "eval", "output": output}, tensors)
        return arrays["out"]

    def _request(
        self, ids: Array, *, mask: Array | None = None, positions: Array | None = None, segments: Array | None = None,
        targets: Array | None = None, cache: int | None = None, weights: bool | None = None,
    ) -> tuple[dict[str, Any], dict[str, Array]]:  # fmt: skip
        """Return the request with these arguments; the others are left out.

        `mask` is True for real ids. `cache` is the handle of one.
        """
        header, tensors = self._header(ids)
        if positions is not None and self.placing != "rows":
            positions = positions[0] if self.placing and (positions == positions[0]).all() else None
        given = {"positions": positions, "segments": segments, "targets": targets}
        given["mask"] = None if mask is None else self.as_mask(mask)
        for what, array in given.items():
            name = getattr(self.call_arguments, what)
            if array is not None and name is not None:
                header["kwargs"][name] = {"$tensor": what}
                tensors[what] = array
        if cache is not None:
            header["kwargs"][self.call_arguments.cache] = {"$handle": cache}
        if weights is not None and self.call_arguments.weights:
            header["kwargs"][self.call_arguments.weights] = weights
        return {**header, "watch": False}, tensors

    def new_cache(self, rows: int) -> int | None:
        """Return the handle of an empty cache for this many rows; None if the call makes it."""
        declared, maker = self.call_arguments.config.new_cache, self.call_arguments.maker
        if declared is not None:
            values = {**self.instance.sizes, "B": rows}
            (template,), _ = declared.template(values)
            reply, _ = self._ask({"op": "make", "template": template, "dtype": self.instance.dtype}, {})
            return int(reply["handle"])
        if maker is None:
            return None
        reply, _ = self._ask({"op": "ask", "method": maker, "keep": {"whole": True}}, {})
        return None if reply["kept"] is None else int(reply["kept"])

    def change(self, cache: int, method: str, *arguments: Any, own: bool = False, **arrays: Array) -> None:
        """Call a method of a cache; with `own`, only one that its author wrote: `list.clear` is no reset."""
        args = [*arguments, *({"$tensor": name} for name in arrays)]
        header = {
            "op": "ask",
            "handle": cache,
            "method": method,
            "args": args,
            "mode": None,
            "keep": {"whole": True},
            "own": own,
        }
        self._ask(header, arrays)

    def _header(self, ids: Array) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the request of a plain call, without the further arguments that core passes."""
        header, tensors = self.instance._call_header((ids,))  # noqa: SLF001 - a friend, in a file of its own
        bound = self.instance.subject.bound
        own = {getattr(self.call_arguments, what) for what in ("mask", "positions", "segments")} - bound.insisted
        if bound.causal == "mask":  # without it, later ids are seen
            own.discard(self.call_arguments.mask)
        header["kwargs"] = {name: value for name, value in header["kwargs"].items() if name not in own}
        return header, tensors

    def without(self, *what: str) -> Path:
        """Return the same model, of which these arguments are not used."""
        names: dict[str, Any] = dict.fromkeys(what)
        found = replace(self.call_arguments, **names)
        return replace(
            self, instance=self.instance.with_bound(replace(self.instance.subject.bound, call_arguments=found))
        )

    def as_mask(self, real: Array) -> Array:
        """Return a mask in the form that is taken, of what is True for real ids."""
        return self.form.passed(real)

    def _ask(self, header: dict[str, Any], tensors: Mapping[str, Array]) -> tuple[dict[str, Any], dict[str, Array]]:
        return self.instance._ask(header, tensors)  # noqa: SLF001 - as above


def _that_must_matter(given: Mapping[str, Array]) -> set[str]:
    """Return which arguments must have an effect: no mask of padding that comes last, no positions beside a mask."""
    matter = set(given) - {"targets"}
    mask = given.get("mask")
    if mask is not None:
        matter.discard("positions")
        if not (np.diff(np.asarray(mask, np.int8), axis=-1) > 0).any():  # later ids are hidden anyway
            matter.discard("mask")
    return matter


_ARRAYS = frozenset({"mask", "positions", "segments", "targets"})
_WORDS = {
    "mask": "attention_mask", "positions": "position_ids", "segments": "segment_ids", "cache": "cache",
    "targets": "targets", "weights": "switch for attention weights",
}  # fmt: skip
