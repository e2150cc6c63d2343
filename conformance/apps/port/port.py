"""Convert a checkpoint, prove the conversion, or name the first mistake in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from conformkit.conformance.apps.port.checkpoint import ArrayStore, WeightStore, files_read, opened_checkpoint
from conformkit.conformance.apps.port.code import Code
from conformkit.conformance.apps.port.comparing import BLOCKWISE, said_in_blocks
from conformkit.conformance.apps.port.converting import Conversion
from conformkit.conformance.apps.port.definition import Definition
from conformkit.conformance.apps.port.family import family_of_class
from conformkit.conformance.apps.port.moves import MovePlan, planned
from conformkit.conformance.apps.port.naming import misplaced
from conformkit.conformance.apps.port.opening import code_side, definition_of, in_ratios, settings_of
from conformkit.conformance.apps.port.problems import Unportable
from conformkit.conformance.apps.port.proof import Proof, Questions, allowed_error, compared, drawn_weights, said
from conformkit.conformance.apps.port.python_map import python_map
from conformkit.conformance.apps.port.replay import replayed
from conformkit.conformance.apps.port.request import NamedMistake, PortReport, PortRequest
from conformkit.conformance.apps.port.safetensors_files import write_safetensors
from conformkit.conformance.apps.port.sides import HEADS, parameters_of
from conformkit.conformance.apps.port.sizes import sizes_of
from conformkit.conformance.apps.port.source import CanonicalWeights
from conformkit.conformance.binding.rules import folded
from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.driver.spawn.warm import worker_factory
from conformkit.spec.arrays import Array

__all__ = ["port"]

_TINY = {"d_model": 24, "num_heads": 4, "d_ff": 96, "vocab_size": 19, "num_layers": 3, "block_size": 17}
"""Sizes for random weights: more than one of everything, and equal numbers only where families demand it."""
_IN_FLOAT64 = 30_000_000
"""Numbers up to which a checkpoint is compared in float64, with its whole vocabulary."""
_IDS = 512
"""Ids of a large vocabulary that are compared."""
_STORED = 5e-6
"""What a file's own format does to numbers that a conversion computed: 1 + w is rounded once more to float32."""
_GATES = ("feed_forward.gate.weight", "feed_forward.up.weight")
"""Weights that are made so large that limits of gates are reached."""
Progress = Callable[[str, int], None]
Sizes = dict[str, Any]


def port(request: PortRequest, progress: Progress = lambda _what, _total: None) -> PortReport:
    """Convert, compare, and name what is wrong. Raises Unportable, ConfigError, OSError.

    `progress` is told what happens and in how many steps; an empty text is one step.
    """
    if request.converted is not None and request.weights is None:
        raise Unportable("--converted needs the weights that it was made from: --weights", usage=True)
    _check_out(request)
    with ExitStack() as closing:
        settings = settings_of(request)
        weights = _checkpoint(request.weights, "the weights", closing)
        converted = _checkpoint(request.converted, "the converted weights", closing)
        warm = _warm(closing) if request.isolation == "process" else None
        progress("binding theirs", 1)
        theirs: Code | Definition
        if request.like:
            theirs = definition_of(request.like, settings, weights)
        else:
            theirs = closing.enter_context(
                code_side(request.theirs, warm, like=None, settings=settings, isolation=request.isolation)
            )
        progress("binding ours", 1)
        own = settings if theirs.family is not None and theirs.family is family_of_class(request.ours) else {}
        ours = closing.enter_context(
            code_side(request.ours, warm, like=theirs.variant, settings=own, isolation=request.isolation, step=progress)
        )
        return _Port(request, theirs, ours, progress, settings).report(weights, converted)


def _check_out(request: PortRequest) -> None:
    """Raise Unportable if the file to be written is one that is read: it would be lost."""
    given = [path for path in (request.weights, request.converted) if isinstance(path, Path) and path.exists()]
    if request.out is not None and request.out.exists():
        out = request.out
        if any(file.exists() and file.samefile(out) for path in given for file in files_read(path)):
            raise Unportable(f"--out: {out} is one of the files that are read; name another one", usage=True)


def _warm(closing: ExitStack) -> LentFactory:
    """Return a process that makes the workers of both sides; a sandbox holds each by itself."""
    made = worker_factory(1, torch=True)
    closing.callback(made.close)
    return LentFactory(made)


def _checkpoint(given: Path | Mapping[str, Array] | None, place: str, closing: ExitStack) -> WeightStore | None:
    if given is None:
        return None
    found = opened_checkpoint(given) if isinstance(given, Path) else ArrayStore(given, place)
    closing.callback(found.close)
    return found


@dataclass
class _Port:
    """One conversion: both sides, and what is to be done."""

    request: PortRequest
    theirs: Code | Definition
    ours: Code
    progress: Progress
    settings: Mapping[str, Any]
    stored: Mapping[str, str] = field(default_factory=dict)
    """The names in the checkpoint by those of theirs: one of them may have a prefix."""

    def report(self, weights: WeightStore | None, converted: WeightStore | None) -> PortReport:
        """Compare with small random weights, then with those of the checkpoint."""
        sizes, own = self._tiny()
        code, plan, mistakes = self._code(sizes, own)
        if weights is not None and not code.compared:  # other shapes: perhaps not at the checkpoint's sizes
            with suppress(Unportable):
                code, plan, mistakes = self._code(*self._sizes(weights))
        found = PortReport(
            self.theirs.title, self.ours.title, code, None, "", dict(plan.obstacles),
            tuple(f"ours has no place for {name} of theirs" for name in plan.missing), tuple(mistakes),
            (*self.theirs.notes, *self.ours.notes),
        )  # fmt: skip
        if weights is not None and not code.compared:  # other shapes: nothing of a file can be moved
            return found
        if weights is not None:
            sizes, own = self._sizes(weights)
            plan = planned(self.theirs.variant, self.ours.variant, sizes, own)
            found = self._with_checkpoint(found, plan, weights, converted, sizes, own)
        return replace(found, map=python_map(self.theirs, self.ours, plan, sizes, own, self.stored))

    # -- with small random weights -------------------------------------------------------------------------------

    def _tiny(self) -> tuple[Sizes, Sizes]:
        """Return small sizes that both sides take, near those given if there are no weights. Raises Unportable."""
        given = self.request.sizes if self.request.weights is None else {}
        wanted: Sizes = {**_TINY, **{name: size for name, size in given.items() if name in _TINY}}
        for _ in range(4):
            one = self.theirs.sizes(wanted)
            other = self.ours.sizes({name: one[name] for name in _TINY})
            if all(one[name] == other[name] for name in _TINY):
                return self._agreed(one, other)
            wanted = {name: other[name] for name in _TINY}
        raise Unportable(f"{self.theirs.title} and {self.ours.title} take no sizes in common")

    def _agreed(self, one: Sizes, other: Sizes) -> tuple[Sizes, Sizes]:
        """Give a side whose heads can be any number those of the other."""
        for name in HEADS:
            if name in self.theirs.free and not self.settings:
                one = {**one, name: other[name]}
            elif name in self.ours.free:
                other = {**other, name: one[name]}
        return one, other

    def _code(self, sizes: Sizes, own: Sizes) -> tuple[Proof, MovePlan, list[NamedMistake]]:
        """Compare both with random weights, at small sizes, and replay known mistakes if they differ."""
        plan = planned(self.theirs.variant, self.ours.variant, sizes, own)
        drawn = drawn_weights(parameters_of(self.theirs, sizes), self.request.seed)
        limit = max(self.theirs.variant.gate_limit, self.ours.variant.gate_limit)
        drawn |= {n: a * (8 * limit or 1.0) for n, a in drawn.items() if n.endswith(_GATES)}
        if self.request.weights is not None:
            drawn = _lightened(drawn, plan)
        if any(plan.array(n, drawn.__getitem__).shape != p.shape for n, p in plan.parameters.items()):
            return Proof((), "float64", dict(sizes), 0), plan, []
        scene = self._questions(sizes, self._widest(), _IDS)
        self.progress("comparing with small random weights", 2)
        one = said(self.theirs, sizes, scene, drawn.__getitem__)
        self.progress("", 0)
        other = said(self.ours, own, scene, lambda name: plan.array(name, drawn.__getitem__))
        proof = self._proof(one, other, scene, sizes)
        if proof.holds:
            return proof, plan, []
        canonical = {name: plan.array(name, drawn.__getitem__).astype(np.float64) for name in plan.parameters}
        named = replayed(
            plan, drawn, canonical, self.theirs.variant, self.ours, sizes, own, scene, other, self.progress
        )
        return proof, plan, named

    # -- with those of the checkpoint ----------------------------------------------------------------------------

    def _with_checkpoint(
        self, found: PortReport, plan: MovePlan, weights: WeightStore, converted: WeightStore | None, sizes: Sizes,
        own: Sizes,
    ) -> PortReport:  # fmt: skip
        tied, further = self.theirs.others(sizes), self.ours.others(own)
        source = CanonicalWeights(self.theirs, sizes, weights, tied)
        self.stored = source.checkpoint.names
        _check_tied(source, tied)
        lifted = set(self._lifted(plan, source))
        left = [name for name in plan.missing if name not in lifted]
        differences = {choice: words for choice, words in plan.obstacles.items() if choice not in lifted}
        problems = [f"ours has no place for {name} of theirs, which is not zero" for name in left]
        conversion = Conversion(plan, source, self.ours, own, {n: of for n, of in further.items() if of})
        mistakes, read = list(found.mistakes), conversion.canonical
        mine: Callable[[str], Array | None] = read
        if converted is not None:
            got = CanonicalWeights(self.ours, own, converted, further, lenient=True)
            if len(got.missing) == len(got.parameters):
                got.refuse(self.ours.title)
            variants = self.theirs.variant, self.ours.variant
            mistakes += misplaced(plan, source, conversion, got, *variants, sizes, own)
            problems += _incomplete(got)

            def mine(name: str) -> Array | None:
                return got.read(name) if got.has(name) else None

        stored = {entry.dtype for entry in converted.entries.values()} if converted is not None else {"float64"}
        proof = self._compared(sizes, own, source.read, mine, least=0.0 if stored == {"float64"} else _STORED)
        if not np.isfinite(proof.worst):
            problems += _not_finite(source)
        found = replace(found, checkpoint=proof, differences=differences, problems=tuple(problems))
        if found.proved:
            said_ = tuple(f"numbers differ, outputs do not: {m.sentence}" for m in mistakes)
            written, arrays = self._kept(conversion) if converted is None else ("", {})
            return replace(found, notes=(*found.notes, *said_), mistakes=(), written=written, converted=arrays)
        return replace(found, mistakes=tuple(mistakes))

    def _sizes(self, weights: WeightStore) -> tuple[Sizes, Sizes]:
        """Return the sizes of the checkpoint, for both sides. Raises Unportable."""
        known = self.theirs.family.sizes(self.settings) if self.theirs.family else {}
        sizes = sizes_of(self.theirs, weights, {**known, **self.request.sizes})
        if isinstance(self.theirs, Definition):
            self.theirs = replace(self.theirs, variant=in_ratios(self.theirs.variant, sizes))
        there = self.theirs.at(sizes)
        return there, self.ours.at(there)

    @staticmethod
    def _lifted(plan: MovePlan, source: CanonicalWeights) -> Iterator[str]:
        """Yield the obstacles that the numbers of this file take away: an equal head, biases that are zero."""
        if "tied" in plan.obstacles and np.array_equal(source.read("head.weight"), source.read("embedding.weight")):
            yield from ("tied", "head.weight")
        for name in plan.missing:
            places = [other for other in source.parameters if folded(other) == name]
            if name.endswith("bias") and not any(np.any(source.read(other)) for other in places):
                yield name

    def _compared(
        self, sizes: Sizes, own: Sizes, read: Callable[[str], Array], mine: Callable[[str], Array | None],
        *, least: float,
    ) -> Proof:  # fmt: skip
        """Compare both with the weights of the checkpoint: whole, or block by block where it is too large."""
        numbers = sum(int(np.prod(p.shape)) for p in parameters_of(self.theirs, sizes).values())
        small = numbers <= _IN_FLOAT64
        dtype = self._widest() if small else "float32"
        most = sizes["vocab_size"] if small else _IDS
        scene = self._questions(sizes, dtype, most)
        speak = said if numbers <= BLOCKWISE else said_in_blocks
        self.progress("comparing with the checkpoint's weights", 2)
        one = speak(self.theirs, sizes, scene, read)
        self.progress("", 0)
        other = speak(self.ours, own, scene, mine)
        return self._proof(one, other, scene, sizes, least)

    def _questions(self, sizes: Sizes, dtype: str, most: int) -> Questions:
        variants = self.theirs.variant, self.ours.variant
        return Questions.drawn(sizes, seed=self.request.seed, dtype=dtype, most=most, variants=variants)

    def _widest(self) -> str:
        """Return the number format in which both sides are compared."""
        bounds = [side.bound.dtype for side in (self.theirs, self.ours) if isinstance(side, Code)]
        return "float64" if all(dtype == "float64" for dtype in bounds) else "float32"

    def _proof(
        self, one: Mapping[str, Array], other: Mapping[str, Array], scene: Questions, sizes: Sizes, least: float = 0.0
    ) -> Proof:
        allowed = max(least, allowed_error((self.theirs, self.ours), scene.dtype))
        chances = self.theirs.variant.log_probabilities != self.ours.variant.log_probabilities
        comparisons = tuple(compared(one, other, allowed, probabilities=chances))
        return Proof(comparisons, scene.dtype, dict(sizes), len(scene.rows))

    def _kept(self, conversion: Conversion) -> tuple[str, dict[str, Array]]:
        """Write the converted file, or return its arrays."""
        if self.request.out is None and not self.request.keep:
            return "", {}
        self.progress("converting", len(conversion.entries))
        arrays = conversion.arrays(lambda _: self.progress("", 0))
        if self.request.out is None:
            return "", dict(arrays)
        write_safetensors(self.request.out, conversion.entries, arrays)
        return str(self.request.out), {}


def _lightened(drawn: dict[str, Array], plan: MovePlan) -> dict[str, Array]:
    """Return weights as a checkpoint may have them whose numbers take obstacles away: its own are looked at later."""
    found = {n: np.zeros_like(a) if folded(n) in plan.missing and n.endswith("bias") else a for n, a in drawn.items()}
    if "tied" in plan.obstacles and "head.weight" in found:
        found["head.weight"] = found["embedding.weight"]
    return found


def _check_tied(source: CanonicalWeights, tied: Mapping[str, str]) -> None:
    """Raise Unportable if a file has two tensors for weights that are tied, and they differ."""
    for name, of in tied.items():
        there = source.checkpoint.entries
        if (
            of
            and name in there
            and of in there
            and not np.array_equal(source.checkpoint.read(name), source.checkpoint.read(of))
        ):
            raise Unportable(
                f"{source.checkpoint.place}: {name} differs from {of}, although theirs ties them",
                advice=("say tie_word_embeddings = false in config.json, or tied = false in conform.toml",),
            )


def _not_finite(source: CanonicalWeights) -> list[str]:
    """Name the first tensor of theirs with numbers that are not finite."""
    name = next((name for name in source.parameters if not np.isfinite(source.read(name)).all()), None)
    if name is None:
        return []
    return [f"{source.checkpoint.place}: {', '.join(source.places(name))} has numbers that are not finite"]


def _incomplete(got: CanonicalWeights) -> list[str]:
    """Say what a converted file lacks, or holds in another shape."""
    place = got.checkpoint.place
    found = [f"{place} lacks {name}" for name in got.missing]
    found += [f"{place}: {name} has shape {one}, expected {want}" for name, (one, want) in got.misshapen.items()]
    return found + [f"{place}: your code has no {name}" for name in got.left_over]
