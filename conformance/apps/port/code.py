"""Code as a side of a conversion: a model of an implementation, in its worker."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from conformkit.conformance.apps.port.family import Family
from conformkit.conformance.apps.port.problems import Unportable
from conformkit.conformance.apps.port.sides import ARGUMENTS, HEADS, Model, head_sizes
from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.binding.expressions import evaluate
from conformkit.conformance.binding.language import ExpressionError
from conformkit.conformance.binding.rules import Rule
from conformkit.conformance.binding.sizes import LimitWithoutValue, NoSizeError
from conformkit.conformance.driver.client.interface import Reply
from conformkit.conformance.driver.errors import DriverError, ImplementationFailure
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.arrays import Array
from conformkit.spec.variants import Variant

__all__ = ["Code"]

_SMALL = {"d_model": 24, "num_heads": 4, "d_ff": 96, "vocab_size": 19, "block_size": 17}


@dataclass(frozen=True, slots=True)
class Code:
    """A model of an implementation, which lives in its worker."""

    title: str
    subject: Subject
    implementation: Implementation
    family: Family | None = None
    notes: tuple[str, ...] = ()

    @property
    def bound(self) -> Bound:
        """How it is bound."""
        return self.subject.bound

    @property
    def variant(self) -> Variant:
        """The variant under which it is bound."""
        return self.bound.variant

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Where canonical weights are in its own."""
        return self.bound.rules or ()

    @property
    def exact(self) -> bool:
        """Whether it computes in float64 throughout."""
        return self.bound.precision == "float64"

    @property
    def free(self) -> frozenset[str]:
        """Which of kv_heads and head_width its constructor takes."""
        return frozenset(HEADS) & self.bound.construct.names()

    def sizes(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return sizes that it takes, near those wanted. Raises Unportable."""
        try:
            return self.subject.sizes(**{name: wanted[name] for name in ARGUMENTS if name in wanted})
        except (NoSizeError, LimitWithoutValue) as error:
            raise Unportable(f"{self.title}: {error}") from None

    def at(self, sizes: Mapping[str, Any]) -> dict[str, Any]:
        """Return exactly these sizes, with its own heads where they are not free. Raises Unportable."""
        found = {name: sizes[name] for name in ARGUMENTS}
        for name, limit in self.bound.limits.sizes.items():
            wanted = found.get(name)
            if wanted is None:
                continue
            equals = int(evaluate(limit.equals, found)) if limit.equals else wanted
            if equals != wanted or not limit.allows(wanted):
                raise Unportable(f"{self.title} takes {name} {limit.words()}, the checkpoint has {wanted}")
        try:
            own = head_sizes(self.variant, found)
        except (ExpressionError, TypeError, ValueError) as error:
            raise Unportable(f"{self.title} has no number of heads at these sizes: {error}") from None
        return {**found, **own, **{name: sizes[name] for name in self.free & sizes.keys()}}

    def ignored(self, name: str) -> bool:
        """Whether a tensor of its checkpoints is no parameter."""
        return self.bound.ignored(name)

    def others(self, sizes: Mapping[str, Any]) -> Mapping[str, str]:
        """Return names of buffers, and of tied weights with the name of the same tensor; found on a small model."""
        small = {**self.sizes(_SMALL), "num_layers": sizes["num_layers"]}
        built = self._built(small, self.bound.dtype)
        try:
            return {str(p["name"]): str(p["alias"] or "") for p in built.instance.listing}
        finally:
            built.close()

    def model(self, sizes: Mapping[str, Any], dtype: str) -> Model:
        """Build a model in the worker. Raises Unportable."""
        return self._built(sizes, dtype)

    def _built(self, sizes: Mapping[str, Any], dtype: str) -> _Built:
        shown = ", ".join(f"{n} {sizes[n]}" for n in ARGUMENTS if n in sizes)
        try:
            own = self.subject.like(_Direct(self.implementation))
            return _Built(self, own.construct({"dropout": 0.0, **sizes}, dtype=dtype))
        except ImplementationFailure as failure:
            where = (f"where: {failure.where}",) if failure.where else ()
            problem = f"{self.title} cannot be built with {shown}: {failure.type}: {failure.message}"
            raise Unportable(problem, advice=where) from None
        except DriverError as error:
            raise Unportable(f"{self.title} cannot be built with {shown}: {error}") from None


class _Direct:
    """The connection to a worker, without the bounds on sizes that hold for drawn weights."""

    def __init__(self, implementation: Implementation) -> None:
        self.is_torch = implementation.is_torch
        self.session = implementation.session

    def request(self, header: Mapping[str, Any], tensors: Mapping[str, Array]) -> Reply:
        """Send a request to the worker; start another one where it is gone."""
        if self.session.lost:
            self.session.restart()
        return self.session.request(header, tensors)


class _Built:
    """A model in a worker."""

    def __init__(self, side: Code, instance: Instance) -> None:
        self._title, self.instance = side.title, instance

    def write(self, arrays: Mapping[str, Array]) -> None:
        try:
            self.instance.write_raw(arrays)
        except DriverError as error:
            raise Unportable(f"{self._title}: {', '.join(arrays)} cannot be written: {error}") from None

    def logits(self, ids: Array) -> Array:
        try:
            return self.instance(ids)
        except ImplementationFailure as failure:
            where = (f"where: {failure.where}",) if failure.where else ()
            problem = f"{self._title} cannot be called with ids {ids.shape}: {failure.type}: {failure.message}"
            raise Unportable(problem, advice=where) from None
        except (DriverError, ClauseFailure) as error:
            raise Unportable(f"{self._title} cannot be called with ids {ids.shape}: {error}") from None

    def close(self) -> None:
        with suppress(DriverError):
            self.instance.subject.link.request({"op": "release", "handle": self.instance.handle}, {})
