"""What only calls show of an encoder-decoder: the shapes of its masks, its causality, the results of its methods.

If nothing is declared, the shape of a mask is the first that the component accepts. Only shapes are tried: an
implementation that reads True the other way round, or hides nothing, is wrong unless conform.toml declares it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.binding.config import MASK_SHAPES, MaskConfig
from conformkit.conformance.binding.masks import MASKS, NAMES, MaskForm
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.probing.refusals import is_refusal
from conformkit.conformance.subject.component import Instance
from conformkit.conformance.text import one_line
from conformkit.spec.arrays import Array

__all__ = [
    "accepted_shape",
    "is_causal_by_itself",
    "is_causal_with_mask",
    "mask_forms",
    "other_polarity",
    "own_forms",
    "reads_as_boolean",
    "refuses_floats",
    "unfit_methods",
]


_OF_KEYS = ("", "B 1 T", "B T T", "B H T T", "B T")
_OF_PAIRS = ("", "B T T", "B H T T", "T T", "B T")


def mask_forms(instance: Instance) -> Mapping[str, MaskForm]:
    """Return the forms in which the masks of a call are accepted, with the contract's shapes if none is."""
    bound = instance.subject.bound
    names = [name for name in bound.component.inputs if name in MASKS and name in bound.call.names()]
    open_ = [name for name in names if not bound.masks[name].shape]
    if not open_:
        return bound.masks
    inputs = with_masks(instance, Draw(0, "masks"))
    for shapes in _combinations(open_):
        alike = {"memory_mask": shapes["src_mask"]} if "src_mask" in shapes else {}
        tried = {name: replace(bound.masks[name], shape=shape) for name, shape in {**shapes, **alike}.items()}
        forms = {**bound.masks, **tried}
        try:
            instance.with_bound(replace(bound, masks=forms))(*inputs)
        except (ImplementationFailure, ClauseFailure):
            continue
        return forms
    return bound.masks


def own_forms(instance: Instance) -> Mapping[str, MaskForm]:
    """Return the forms in which `encode` hides padding by a mask, where the whole takes none and makes its own.

    Its author passes what that code makes, so both meanings of True are right. The usual ones if none hides anything.
    """
    bound = instance.subject.bound
    encode = bound.methods.get("encode")
    if encode is None or not _makes_its_masks(bound) or "src_mask" not in encode.call.names():
        return bound.masks
    if bound.masks["src_mask"] != MaskForm():
        return bound.masks
    for shape, true in itertools.product(_OF_KEYS, ("attend", "hide")):
        form = MaskForm(true=true, shape=shape)
        forms = {**bound.masks, "src_mask": form, "memory_mask": form}
        if _encodes_without_the_hidden(instance.with_bound(replace(bound, masks=forms))):
            return forms
    return bound.masks


def _makes_its_masks(bound: Bound) -> bool:
    """Whether a call of the whole passes no mask in any form."""
    return bound.component.several and not {*NAMES}.intersection(bound.call.names())


def _encodes_without_the_hidden(instance: Instance) -> bool:
    src, _, mask, _ = instance.example_inputs(Draw(0, "own masks"))
    hidden = mask.copy()
    hidden[..., -1] = False
    other = src.copy()
    other[:, -1] = instance.example_inputs(Draw(1, "own masks"))[0][:, -1]
    try:
        before, after = (instance.call(ids, hidden, method="encode").out[:, :-1] for ids in (src, other))
    except (ImplementationFailure, ClauseFailure):
        return False
    return bool(np.allclose(before, after, rtol=1e-6, atol=1e-9))


def accepted_shape(instance: Instance, inputs: Sequence[Array]) -> str:
    """Return the first shape in which a call of core takes the mask that it refuses as (T, T); nothing if none is."""
    bound = instance.subject.bound
    passes = bound.causal == "mask" or bound.mask.required
    if bound.component.several or not passes or bound.mask.shape != MaskConfig().shape:
        return ""
    for shape in (shape for shape in MASK_SHAPES if shape != bound.mask.shape):
        try:
            instance.with_bound(replace(bound, mask=replace(bound.mask, shape=shape)))(*inputs)
        except (ImplementationFailure, ClauseFailure):
            continue
        return shape
    return ""


def refuses_floats(instance: Instance) -> str:
    """Return in which words attention that takes a Boolean mask refuses one of 0 and -∞; nothing if it takes it.

    Words count if they are the code's own or say what a mask has to be; any other error is for clauses to find.
    """
    q, k, v = instance.example_inputs(Draw(0, "mask kinds"))
    seen = np.tri(q.shape[-2], k.shape[-2], dtype=np.bool_)
    try:
        instance(q, k, v, seen)
    except (ImplementationFailure, ClauseFailure):
        return ""
    try:
        instance(q, k, v, np.where(seen, 0.0, -np.inf))
    except ImplementationFailure as failure:
        says = failure.kind == "exception" and "bool" in failure.message.lower()
        return one_line(f"{failure.type}: {failure.message}", 100) if says or is_refusal(failure) else ""
    except ClauseFailure:
        return ""
    return ""


def reads_as_boolean(instance: Instance) -> bool:
    """Whether attention does not add a mask of numbers that its documentation calls Boolean."""
    if not instance.subject.bound.boolean:
        return False
    q, k, v = instance.example_inputs(Draw(0, "mask kinds"))
    seen = np.tri(q.shape[-2], k.shape[-2], dtype=np.bool_)
    try:
        read, added = instance(q, k, v, seen), instance(q, k, v, np.where(seen, 0.0, -np.inf))
    except (ImplementationFailure, ClauseFailure):
        return False
    return not np.allclose(read, added, equal_nan=True)


def other_polarity(instance: Instance) -> str:
    """Return what True means in its masks if a causal one hides later positions only then; nothing if it does."""
    bound = instance.subject.bound
    if bound.component.several or bound.causal != "mask" or "bool" not in bound.mask.kinds:
        return ""
    one, other = (instance.example_inputs(Draw(seed, "polarity"), further=0)[0] for seed in (0, 1))
    other = np.concatenate([one[:, :-1], other[:, -1:]], axis=1)
    true = "attend" if bound.mask.true == "hide" else "hide"
    turned = instance.with_bound(replace(bound, mask=replace(bound.mask, true=true)))
    try:
        inverted = not _earlier_stay(instance, one, other) and _earlier_stay(turned, one, other)
    except (ImplementationFailure, ClauseFailure):
        return ""
    return true if inverted else ""


def is_causal_by_itself(instance: Instance) -> bool:
    """Whether a decoder without a mask for later positions hides them by itself."""
    bound = instance.subject.bound
    names = bound.component.inputs
    if "memory" not in names or "tgt_mask" not in names or {"tgt_mask", "causality"} & bound.call.names():
        return False
    draw = Draw(0, "causality")
    x, memory = instance.example_inputs(draw)
    other = x.copy()
    other[:, -1] = draw.values(*x[:, -1].shape)
    return _earlier_stay(lambda inputs: instance(inputs, memory), x, other)


def is_causal_with_mask(masked: Instance, plain: Instance) -> bool:
    """Whether a model lets earlier positions read later ids, unless its call has a causal mask."""
    (ids,) = plain.example_inputs(Draw(0, "causality"))
    other = ids.copy()
    other[:, -1] = (ids[:, -1] + 1) % plain.sizes["vocab_size"]
    try:
        return _earlier_stay(masked, ids, other) and not _earlier_stay(plain, ids, other)
    except (ImplementationFailure, ClauseFailure):
        return False


def _earlier_stay(call: Callable[[Array], Array], one: Array, other: Array) -> bool:
    """Whether the outputs at all positions but the last are the same for two inputs that differ in the last."""
    before, after = (call(inputs)[:, :-1] for inputs in (one, other))
    return bool(np.allclose(before, after, rtol=1e-6, atol=1e-9))


def unfit_methods(instance: Instance) -> Iterator[tuple[str, str]]:
    """Yield methods with the contract's names but other results (features, one row), and these results.

    Each is called when the next one is requested.
    """
    methods = instance.subject.bound.methods
    if "src" not in instance.subject.bound.component.inputs:
        yield from _unfit_seconds(instance)
        return
    src, tgt, src_mask, tgt_mask = instance.example_inputs(Draw(0, "methods"))
    memory = Draw(0, "memory").values(*src.shape, instance.sizes["d_model"])
    inputs = {"encode": (src, src_mask), "decode": (tgt, memory, tgt_mask, src_mask)}
    for name in sorted(methods.keys() & inputs.keys()):
        try:
            instance.call(*inputs[name], method=name)
        except ImplementationFailure:
            continue  # for clauses to find
        except ClauseFailure as failure:
            yield name, f"{methods[name].name} is not judged as the contract's {name}: {failure.message}"


def _unfit_seconds(instance: Instance) -> Iterator[tuple[str, str]]:
    """Yield what a call should return besides its first result and does not.

    What has the parameters for it and another shape is for clauses to find.
    """
    bound = instance.subject.bound
    has = {"pool": bound.variant.pooler, "next_sentence": bound.variant.next_sentence_head}
    inputs = instance.example_inputs(Draw(0, "methods"))
    for name in sorted(bound.methods):
        try:
            instance.call(*inputs, method=name)
        except (ImplementationFailure, ClauseFailure) as failure:
            if isinstance(failure, ClauseFailure) and has[name]:
                continue
            why = f"{name} of {bound.component.name} is not judged, for a call returns no such result"
            yield name, f"{why}: {failure.message}"


def with_masks(instance: Instance, draw: Draw) -> tuple[Array, ...]:
    """Return example inputs, and masks that hide little: the last key of every sequence, or later positions."""
    found = instance.example_inputs(draw)
    names = instance.subject.bound.component.inputs
    if len(found) == len(names):
        return found
    arrays = dict(zip(names, found, strict=False))
    keys = {"mask": arrays.get("key", found[0]), "memory_mask": arrays.get("memory", found[0]), "tgt_mask": found[0]}
    for name in names[len(found) :]:
        batch, tokens = keys[name].shape[:2]
        rows = tokens if name == "tgt_mask" else 1
        seen = np.tri(tokens, dtype=np.bool_) if rows > 1 else np.arange(tokens)[None] < max(tokens - 1, 1)
        arrays[name] = np.repeat(seen[None, None], batch, axis=0)
    return tuple(arrays.values())


def _combinations(names: list[str]) -> Iterator[dict[str, str]]:
    kinds = [_OF_PAIRS if name == "tgt_mask" else _OF_KEYS for name in names]
    for shapes in itertools.product(*kinds):
        yield dict(zip(names, shapes, strict=True))
