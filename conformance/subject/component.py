"""The implementation as the suite sees it: components to build, instances to call, arrays in and out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, answered, called, check_shape, explains, withheld
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.formats import HALF, rounded
from conformkit.conformance.assertions.observed import Observed
from conformkit.conformance.assertions.size_jitter import AS_ASKED, SizeJitter
from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.binding.rules import Rule
from conformkit.conformance.binding.sizes import NoSizeError, complete, completed, nearest_allowed
from conformkit.conformance.binding.unpassed_masks import withheld_mask
from conformkit.conformance.subject.example_inputs import example_inputs
from conformkit.conformance.subject.extents_of_call import extents_of_call
from conformkit.conformance.subject.inputs_of_call import further_inputs, positions_of
from conformkit.conformance.subject.link import Link
from conformkit.conformance.subject.outcomes import Gradients, Outcome
from conformkit.conformance.subject.parameters import check_same_extent, readable
from conformkit.conformance.subject.random_weights import noise, placed_noise
from conformkit.spec.arrays import Array
from conformkit.spec.components import Parameter
from conformkit.spec.rounding import room
from conformkit.spec.tolerances import ROOM, Precision, tolerance
from conformkit.spec.variants import Variant

__all__ = ["Instance", "Subject"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """One component of the implementation."""

    bound: Bound
    link: Link
    declared: tuple[Rule, ...] = ()
    """Where its weights are, as conform.toml says."""
    on_built: Callable[[Instance], None] | None = None
    """Callback for each constructed object."""
    jitter: SizeJitter = AS_ASKED
    """How much larger than asked for its sizes are."""
    around_one: dict[str, bool] = field(default_factory=dict)
    """Which of its vectors are scales, remembered for all its instances; see `Instance.scatter`."""

    sized: dict[tuple[tuple[str, Any], ...], dict[str, Any]] = field(default_factory=dict)
    """Sizes within the limits by those asked for, remembered since many clauses ask for the same."""

    known: dict[Hashable, Any] = field(default_factory=dict)
    """What was found out about it at some cost; see `once`."""

    def with_bound(self, bound: Bound) -> Subject:
        """Return the same component, bound in another way."""
        return replace(self, bound=bound, sized={}, known={})

    def retried(self) -> Subject:
        """Return the same component, to be built although the first attempt failed."""
        return self.with_bound(replace(self.bound, failure=None))

    def like(self, link: Link) -> Subject:
        """Return the same component in another worker."""
        return Subject(self.bound, link, declared=self.declared, around_one=dict(self.around_one))

    def watched(self, on_built: Callable[[Instance], None]) -> Subject:
        """Return the same component, with a callback for each object that it constructs from now on."""
        return replace(self, on_built=on_built, known={})

    @property
    def name(self) -> str:
        """The component's name in the contract."""
        return self.bound.component.name

    @property
    def variant(self) -> Variant:
        """The declared choices."""
        return self.bound.variant

    @property
    def precision(self) -> Precision:
        """Its accuracy, which may be less than that of its number format."""
        return self.bound.precision

    def tolerance(self, depth: int = 1) -> float:
        """The relative error allowed to a result of this component."""
        return tolerance(self.precision, depth)

    @property
    def half(self) -> bool:
        """Whether it is judged in half precision."""
        return self.precision in HALF

    def no_finer(self, fixed: float) -> float:
        """Return a fixed tolerance; in half precision at least the format's own."""
        return max(fixed, self.tolerance()) if self.half else fixed

    def up_to(self, wanted: float, *, power: int = 1) -> float:
        """Return a factor for inputs of order 1, no larger than float16 can hold if it is judged in float16.

        `power` is the number of scaled inputs in a product.
        """
        return min(wanted, ROOM ** (1 / power)) if self.precision == "float16" else wanted

    def offers(self, what: str) -> bool:
        """Whether the implementation has this ability (`gradients`, `dropout`, `causal-off`, …)."""
        return self.bound.offers.get(what, False)

    def requires(self, what: str) -> None:
        """Raise NotApplicable unless the implementation has this ability."""
        if not self.offers(what):
            raise NotApplicable(f"{self.name} has no {what}", lacks=what)

    def sizes(self, **wanted: Any) -> dict[str, Any]:
        """Return constructor arguments within the declared limits, near the wanted ones.

        Widths of keys and values keep their default if the constructor does not take them.
        """
        taken = self.bound.construct.names()
        wanted = self.jitter.sizes(completed(wanted, self.bound.component))
        wanted = {name: value for name, value in wanted.items() if name not in {"d_k", "d_v"} or name in taken}
        key = tuple(wanted.items())
        if key not in self.sized:
            self.sized[key] = complete(wanted, self.bound.component, self.variant, self.bound.limits)
        sizes = dict(self.sized[key])
        if "causal" in sizes and not self.offers("causal-on" if sizes["causal"] else "causal-off"):
            sizes["causal"] = not sizes["causal"]
        return sizes

    def build(self, *, dtype: str | None = None, seed: int = 0, **wanted: Any) -> Instance:
        """Construct with sizes near the wanted ones (see `sizes`), in eval mode."""
        return self.construct(self.sizes(**wanted), dtype=dtype, seed=seed)

    def construct(
        self, sizes: Mapping[str, Any], *, dtype: str | None = None, seed: int = 0, marked: bool = False
    ) -> Instance:
        """Construct with exactly these arguments, whether they make sense or not.

        `marked` fills memory that the constructor takes and gives no value with NaN, where the framework can. A
        failure of the first attempt to build and call the component is raised again, without a request; see `retried`.
        """
        if self.bound.failure is not None:
            raise self.bound.failure
        own_dtype = dtype or self.bound.dtype
        header, tensors = self.bound.build_request(sizes, dtype=own_dtype, seed=seed)
        header |= {"marked": True} if marked else {}
        reply = self.link.request(header, tensors)
        instance = Instance(self, dict(sizes), reply.header["handle"], reply.header["parameters"], own_dtype)
        if self.on_built is not None:
            self.on_built(instance)
        if reply.header["lazy"] or self.bound.grows:
            instance.make_lazy_parameters()
        return instance

    def example(
        self, draw: Draw, *, batch: int = 2, tokens: int = 5, **wanted: Any
    ) -> tuple[Instance, tuple[Array, ...]]:
        """Return an instance with random weights, and one set of inputs for it (see `Instance.example_inputs`)."""
        instance = self.build(**wanted).scatter(draw)
        return instance, instance.example_inputs(draw, batch=batch, tokens=tokens)

    def tokens(self, wanted: int) -> int:
        """A sequence length within the declared limits, near the wanted one."""
        return nearest_allowed("tokens", self.jitter.length(wanted), self.bound.limits)

    def takes(self, name: str) -> bool:
        """Whether the constructor has this argument, not only settings with such an entry."""
        return name in self.bound.construct.passed()

    def shifted(self, jitter: SizeJitter) -> Subject:
        """Return the same component, with sizes a little larger than those asked for."""
        return replace(self, jitter=jitter)

    def once(self, key: Hashable, find: Callable[[], T]) -> T:
        """Return what `find` returns, called once for all clauses about this component.

        Each clause has a `Subject` of its own, with other sizes: what is found must not depend on these.
        """
        if key not in self.known:
            self.known[key] = find()
        found: T = self.known[key]
        return found

    @property
    def as_asked(self) -> Subject:
        """The same component, with exactly the sizes asked for where limits allow."""
        return self.shifted(AS_ASKED)


@dataclass
class Instance:
    """A constructed component."""

    subject: Subject
    sizes: dict[str, Any]
    handle: int
    listing: Sequence[Mapping[str, Any]]
    dtype: str
    weights: dict[str, Array] = field(default_factory=dict)
    """Canonical weights as last written or read."""

    def with_bound(self, bound: Bound) -> Instance:
        """Return the same object, with its component bound in another way."""
        return replace(self, subject=self.subject.with_bound(bound))

    # -- parameters --------------------------------------------------------------------------------------------

    @property
    def canonical(self) -> dict[str, Parameter]:
        """The parameters that the definition gives this instance."""
        return self.subject.bound.component.parameters(self.sizes, self.subject.variant)

    @property
    def trainable(self) -> list[Mapping[str, Any]]:
        """The implementation's trainable parameters, shared memory once, without declared constants."""
        return [
            p for p in self.listing
            if p["trainable"] and p["alias"] is None and not self.subject.bound.ignored(p["name"])
        ]  # fmt: skip

    @property
    def counted(self) -> list[Mapping[str, Any]]:
        """Its trainable parameters with those that conform.toml ignores, and those that training mode makes trainable.

        They are learned like any other.
        """
        bound, frozen = self.subject.bound, {p["name"] for p in self.listing if not p["trainable"]}
        hidden = [p for p in self.listing if p["trainable"] and p["alias"] is None and bound.conceals(p["name"])]
        in_training = self._listed("train") if frozen and self.subject.offers("modes") else []
        thawed = [p for p in in_training if p["trainable"] and p["alias"] is None and p["name"] in frozen]
        return [*self.trainable, *hidden, *thawed]

    def _listed(self, mode: str) -> list[Mapping[str, Any]]:
        """Return the parameters as they are in a mode, and leave the object in evaluation mode."""
        found: list[Mapping[str, Any]] = self._ask({"op": "parameters", "mode": mode})[0]["parameters"]
        self._ask({"op": "parameters", "mode": "eval"})
        return found

    def make_lazy_parameters(self) -> None:
        """Call once, so that parameters whose shape depends on the first input are created."""
        self(*self.example_inputs(Draw(0, "first call")))
        self.list_again()

    def list_again(self) -> None:
        """List the parameters again: a call may have changed them."""
        self.listing = self._ask({"op": "parameters"})[0]["parameters"]

    def count(self) -> int:
        """The number of trainable numbers."""
        return sum(int(np.prod(p["shape"], dtype=np.int64)) for p in self.counted)

    def randomize(self, draw: Draw, *, gain: float = 1.0) -> Instance:
        """Draw canonical weights and write them through the binding."""
        drawn = draw.weights(self.canonical, gain=gain)
        if self.subject.variant.norm_weight == "offset":  # these are drawn around 1
            drawn |= {n: w - 1.0 for n, w in drawn.items() if "norm" in n.split(".")[-2] and n.endswith(".weight")}
        return self.write(drawn)

    def write(self, weights: Mapping[str, Array]) -> Instance:
        """Write canonical weights; those not given keep their last value."""
        self.weights = self.weights | {
            name: self.held(np.asarray(value, np.float64)) for name, value in weights.items()
        }
        self.write_raw(self.subject.bound.to_implementation(self.weights, self.sizes))
        return self

    def read(self) -> dict[str, Array]:
        """Read the canonical weights through the binding."""
        self.weights = self.subject.bound.to_canonical(self.read_raw(), self.sizes)
        return self.weights

    def read_raw(self) -> dict[str, Array]:
        """Read parameters by their own names."""
        found = self._ask({"op": "read", "names": [p["name"] for p in self.listing if not p["lazy"]]})[1]
        readable(self.trainable, found)
        return found

    def keeps_parameters(self) -> bool:
        """Whether its parameters have the same names and values in training mode as when they were bound."""
        trained = self._ask({"op": "read", "mode": "train"})[1]
        return all(n in trained and np.array_equal(a, trained[n], equal_nan=True) for n, a in self.read_raw().items())

    def write_raw(self, arrays: Mapping[str, Array]) -> None:
        """Write parameters by their own names."""
        if arrays:
            self._ask({"op": "write"}, {name: self._cast(value) for name, value in arrays.items()})

    def scatter(self, draw: Draw, *, gain: float = 1.0) -> Instance:
        """Write random numbers to everything trainable, for clauses that do not depend on specific weights.

        If its weights are bound, each has the same numbers in every implementation.
        """
        drawn = self._placed(draw, gain)
        if drawn is None:
            around_one = self._around_one()
            drawn = {p["name"]: noise(draw, p["shape"], gain, around_one.get(p["name"])) for p in self.trainable}
        self.write_raw(drawn)
        return self

    def _placed(self, draw: Draw, gain: float) -> dict[str, Array] | None:
        """Draw canonical weights, arranged for the implementation; None if they do not fill all that is trainable."""
        if not self.subject.bound.rules:
            return None
        try:
            sizes = self.subject.as_asked.sizes(**self.sizes)  # including those left at their defaults
        except NoSizeError:  # sizes differ from their declaration
            return None
        listed = {p["name"]: tuple(p["shape"]) for p in self.trainable}
        return placed_noise(self.subject.bound, sizes, listed, draw, gain)

    def _around_one(self) -> dict[str, bool]:
        """Return which vectors are scales, not shifts: initially they are around 1. Read only once."""
        known = self.subject.around_one
        names = [p["name"] for p in self.trainable if len(p["shape"]) < 2]
        if not all(name in known for name in names):
            now = self._ask({"op": "read", "names": names})[1]
            for name in (name for name in names if name not in known):
                known[name] = name in now and bool(now[name].sum() > 0.5 * now[name].size)
        return known

    # -- calls -------------------------------------------------------------------------------------------------

    def __call__(self, *inputs: Array | None, **options: Any) -> Array:
        """Call in eval mode and return the output; options as for `call`."""
        return self.call(*inputs, **options).out

    def call(
        self,
        *inputs: Array | None,
        mode: str | None = "eval",
        seed: int | None = None,
        echo: bool = False,
        strided: bool = False,
        cast: bool = True,
        format: str | None = None,  # noqa: A002
        watch: bool = False,
        record: bool = True,
        method: str | None = None,
        options: Mapping[str, Any] | None = None,
        device: str | None = None,
        seeing: str | None = None,
    ) -> Outcome:
        """Call with the contract's inputs in order.

        `watch` observes the random state and the training flags. `echo` brings back the arguments as they are
        afterwards. `strided` passes non-contiguous views. `cast=False` leaves the number format of the inputs
        alone; `format` converts them to one that does not cross the wire (`int32` for ids). An instance in half
        precision gets half precision. `record=False` calls it without recording for derivatives. `method` calls one of
        the contract's methods with its inputs; `options` are its arguments that are not arrays. `device` is where
        inputs are made, if it was moved there; `seeing` notes what it does with `devices` there, or with `formats` in
        half precision.
        """
        header, tensors = self._call_header(
            inputs, strided=strided, cast=cast, form=format, method=method, options=options
        )
        header |= {"mode": mode, "seed": seed, "echo": echo, "watch": watch, "record": record}
        header |= {"device": device, "seeing": seeing}
        header |= {"graph": watch and method is not None}
        reply, arrays = self._ask(header, tensors)
        bound = self.subject.bound
        out = bound.from_theirs(arrays["out"])
        names = bound.component.inputs
        given = {name: array for name, array in zip(names, inputs, strict=False) if array is not None}
        vectors = {name: weight for name, weight in self.weights.items() if weight.ndim == 1}
        called(self.subject.name, extents_of_call(self.sizes, names, inputs), {**vectors, **given})
        self._check_extent(inputs, out, reply, method)
        if mode is not None:
            answered(self._observed(out, inputs, header, method))
        return Outcome.of(reply, arrays, out)

    def _observed(
        self, out: Array, inputs: Sequence[Array | None], header: Mapping[str, Any], method: str | None
    ) -> Observed:  # fmt: skip
        """Return a call as one that can be made again, and worked out."""
        component = self.subject.bound.component
        definition = component.method(method) if method else component
        names, own = definition.inputs, {key: header[key] for key in ("mode", "seed", "dtype")}

        def again(given: Mapping[str, Array]) -> Array:
            request, tensors = self._call_header([given.get(name) for name in names], method=method)
            _, arrays = self._ask({**request, **own, "watch": False}, {n: self._cast(a) for n, a in tensors.items()})
            return self.subject.bound.from_theirs(arrays["out"])

        defined = partial(self.defined, method=method) if definition.forward is not None else None
        optional = frozenset(name for name in names if name.endswith("mask"))
        named = self.named(*inputs, method=method)
        return Observed(out, named, optional, again, weights=self.weights, defined=defined)

    def unchecked(self, *inputs: Array) -> tuple[dict[str, Any], Array]:
        """Call in eval mode; return the observations and the selected part of the result, whatever its shape."""
        header, tensors = self._call_header(inputs)
        reply, arrays = self._ask({**header, "mode": "eval", "watch": False}, tensors)
        return reply, self.subject.bound.from_theirs(arrays["out"])

    def result(self, inputs: Sequence[Array], output: Any, **further: Array) -> Array:
        """Call in eval mode with further arguments, by the code's names; return the item of this index, key or name."""
        header, tensors = self._call_header(inputs)
        kwargs = {**header["kwargs"], **{name: {"$tensor": name} for name in further}}
        request = {**header, "kwargs": kwargs, "mode": "eval", "output": output, "watch": False}
        return self._ask(request, {**tensors, **further})[1]["out"]

    def trace(self, *inputs: Array) -> tuple[dict[str, Any], Array]:
        """Call in eval mode; return the operation `trace`'s report of what happened inside, and the output."""
        header, tensors = self._call_header(inputs)
        shape, keys = inputs[0].shape, inputs[min(1, len(inputs) - 1)].shape
        ids = not {"ids", "src"}.isdisjoint(self.subject.bound.component.inputs)
        rows = int(np.prod(shape if ids else shape[:-1], dtype=np.int64))
        seen = keys[-1] if ids else keys[-2]
        if "patch_size" in self.sizes:  # an image is its patches, and a token for the class
            seen = (self.sizes["image_size"] // self.sizes["patch_size"]) ** 2 + 1
            rows = shape[0] * seen
        header |= {"op": "trace", "mode": "eval", "rows": rows, "keys": seen}
        reply, arrays = self._ask(header, tensors)
        out = self.subject.bound.from_theirs(arrays["out"])
        self._check_extent(inputs, out, reply)
        return reply, out

    def observe(self, *inputs: Array) -> tuple[dict[str, Any], dict[str, Array]]:
        """Call in eval mode; return the operation `observe`'s record of every step, its numbers and the output."""
        header, tensors = self._call_header(inputs)
        reply, arrays = self._ask({**header, "op": "observe"}, tensors)
        return reply, {**arrays, "out": self.subject.bound.from_theirs(arrays["out"])}

    def vjp(
        self, *inputs: Array | None, cotangent: Array, mode: str = "eval", seed: int | None = None,
        wrt: Sequence[str] = ("x",), parameters: bool = True, method: str | None = None, device: str | None = None,
    ) -> Gradients:  # fmt: skip
        """Differentiate the sum of cotangent · output with respect to inputs (by name) and all trainable parameters."""
        self.subject.requires("gradients")
        header, tensors = self._call_header(inputs, method=method)
        header |= {"op": "vjp", "mode": mode, "seed": seed, "wrt": list(wrt), "parameters": parameters, "watch": False}
        header |= {"device": device, "seeing": None if device is None else "devices"}
        tensors["cotangent"] = self._cast(self.subject.bound.to_theirs(cotangent))
        _, arrays = self._ask(header, tensors)
        own = {p["name"]: p["shape"] for p in self.trainable}
        found = {n: arrays[f"grad:{n}"] for n in wrt if f"grad:{n}" in arrays}
        reached = {n: arrays[f"param:{n}"] for n in own if f"param:{n}" in arrays}
        for n, gradient in found.items():
            check_same_extent(f"the gradient of {n}", gradient, tensors[n].shape)
        for n, gradient in reached.items():
            check_same_extent(f"the gradient of {n}", gradient, own[n])
        check_same_extent("the output", arrays["out"], tensors["cotangent"].shape)
        bound = self.subject.bound
        return Gradients(
            out=bound.from_theirs(arrays["out"]),
            inputs={n: bound.from_theirs(found[n]) if n in found else None for n in wrt},
            parameters={n: reached.get(n) for n in sorted(own)} if parameters else {},
        )

    def generate(
        self, ids: Array, count: int, *, mode: str | None = "eval", seed: int | None = None, device: str | None = None,
        **options: Any,
    ) -> Outcome:  # fmt: skip
        """Generate `count` ids after the prompts ids (B, T); options: temperature, top_k, top_p, greedy."""
        keyed = {**self.sizes, **({} if seed is None else {"seed": seed}), **options}
        header, tensors = self.subject.bound.generate_request(ids, count, keyed)
        header |= {"handle": self.handle, "mode": mode, "seed": seed, "echo": True, "graph": True}
        header |= {"device": device, "seeing": None if device is None else "devices"}
        reply, arrays = self._ask(header, tensors)
        return Outcome.of(reply, arrays, self.subject.bound.generated(arrays["out"], ids))

    def example_inputs(self, draw: Draw, *, batch: int = 2, tokens: int = 5, further: int = 2) -> tuple[Array, ...]:
        """Return inputs: ids (B, T), x (B, T, D), or q (B, T, 4), k (B, T + further, 4), v (…, 7)."""
        return example_inputs(self.subject.bound, self.sizes, draw, batch=batch, tokens=tokens, further=further)

    def expected(self, *inputs: Array | None, method: str | None = None) -> Array:
        """Return the definition's output for the weights last written or read."""
        named = self.named(*inputs, method=method)
        want = self.defined(self.weights, named, method=method)
        if self.dtype in HALF:
            weights, definition = dict(self.weights), partial(self.defined, method=method)
            explains(want, lambda: room(definition, weights, named, want, self.dtype))
        return want

    def named(self, *inputs: Array | None, method: str | None = None) -> dict[str, Array]:
        """Return inputs by the names that the definition has for them, as the component sees them."""
        component = self.subject.bound.component
        definition = component.method(method) if method else component
        named = {n: self.held(a) for n, a in zip(definition.inputs, inputs, strict=False) if a is not None}
        if self.subject.bound.causal == "always" and {"x", "tgt_mask"} <= set(definition.inputs):
            tokens = named["x"].shape[1]  # a decoder that hides later positions by itself
            seen = named.get("tgt_mask", np.True_) if self.subject.offers("target-masks") else np.True_
            named["tgt_mask"] = seen & np.tri(tokens, dtype=np.bool_)[None, None]
        if not method and "memory_mask" in named and not self.subject.offers("memory-masks"):
            del named["memory_mask"]
        return named

    def defined(
        self, weights: Mapping[str, Array], named: Mapping[str, Array], *, method: str | None = None
    ) -> Array:  # fmt: skip
        """Return the definition's output for any weights and inputs."""
        component = self.subject.bound.component
        definition = component.method(method) if method else component
        assert definition.forward is not None
        return definition.forward(weights, named, self.sizes, self.subject.variant)

    def copy(self) -> Instance:
        """Deep-copy the object."""
        reply, _ = self._ask({"op": "copy"})
        return Instance(self.subject, dict(self.sizes), reply["handle"], self.listing, self.dtype, dict(self.weights))

    def move(self, device: str) -> Instance:
        """Move it to a device, as users do; from then on it is called with inputs there."""
        self._ask({"op": "move", "device": device})
        return self

    def restore(self, other: Instance) -> Instance:
        """Load the state of another object by its `load_state_dict`."""
        self._ask({"op": "restore", "of": other.handle})
        return self

    def _check_extent(
        self, arrays: Sequence[Array | None], out: Array, reply: Mapping[str, Any], method: str | None = None
    ) -> None:  # fmt: skip
        """Refuse an output whose shape no test can use."""
        others = () if method else self._other_items(reply)
        component = self.subject.bound.component
        definition = component.method(method) if method else component
        inputs, given = definition.inputs, arrays[0]
        if definition.extent is not None:
            named = {n: a for n, a in zip(inputs, arrays, strict=False) if a is not None}
            check_shape(f"{self.subject.name}'s output", out, definition.extent(named, self.sizes), *others)
            return
        if given is None or inputs[0] not in {"x", "ids"}:
            return
        rows = given.shape if inputs[0] == "ids" else given.shape[:-1]
        width = self.sizes.get("vocab_size") or self.sizes.get("d_v") or self.sizes["d_model"]
        if inputs[0] == "x" and given.shape[-1] != self.sizes["d_model"]:
            return
        check_shape(f"{self.subject.name}'s output", out, (*rows, width), *others)

    def _other_items(self, reply: Mapping[str, Any]) -> tuple[str, ...]:
        """Say that a result of several items may have its output elsewhere; nothing of a single one."""
        structure = str(reply.get("structure", ""))
        if ", " not in structure:
            return ()
        declared = self.subject.bound.config.output
        taken = f"conform.toml takes output = {declared!r}" if declared is not None else "the first array is taken"
        return (f"of {structure}, which it returns, {taken}: if another item is its output, declare that as `output`",)

    # -- the wire ----------------------------------------------------------------------------------------------

    def _call_header(
        self, inputs: Sequence[Array | None], *, strided: bool = False, cast: bool = True, form: str | None = None,
        method: str | None = None, options: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Array]]:  # fmt: skip
        bound = self.subject.bound
        names = bound.component.method(method).inputs if method else bound.component.inputs
        named = {n: a for n, a in zip(names, inputs, strict=False) if a is not None}
        values = {**self.sizes, "causal": self.sizes.get("causal", True), "T": positions_of(named), **(options or {})}
        if (lost := withheld_mask(bound, method, named)) is not None:
            withheld(lost)
        named |= further_inputs(bound, self.sizes, named)
        half = self.dtype if self.dtype in HALF else None
        header, tensors = bound.call_request(named, values, strided=strided, cast=form or half, method=method)
        if cast:
            tensors = {n: self._cast(a) for n, a in tensors.items()}
        return {**header, "dtype": self.dtype}, tensors

    def held(self, array: Array) -> Array:
        """Return the numbers as the component sees them: in half precision, rounded to it."""
        return rounded(array, self.dtype) if self.dtype in HALF else array

    def _cast(self, array: Array) -> Array:
        if array.dtype.kind != "f":
            return array
        form = np.float32 if self.dtype != "float64" else np.float64
        return np.ascontiguousarray(array, form).reshape(array.shape)  # NumPy adds an axis to a scalar

    def _ask(
        self, header: dict[str, Any], tensors: Mapping[str, Array] | None = None
    ) -> tuple[dict[str, Any], dict[str, Array]]:
        reply = self.subject.link.request({"handle": self.handle, "op": "call", **header}, tensors or {})
        return reply.header, reply.tensors
