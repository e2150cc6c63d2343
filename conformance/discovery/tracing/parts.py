"""What attention, networks and norms that were found mean: choices, canonical weights, and what no variant has."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from conformkit.conformance.discovery.tracing.activations import FoundNetwork
from conformkit.conformance.discovery.tracing.attending import CallShape, Core, merged_columns
from conformkit.conformance.discovery.tracing.distances import read_slopes
from conformkit.conformance.discovery.tracing.heads import HeadSource
from conformkit.conformance.discovery.tracing.norms import FoundNorm
from conformkit.conformance.discovery.tracing.reading import ReadOff
from conformkit.conformance.discovery.tracing.record import CallRecord
from conformkit.conformance.discovery.tracing.stream import FoundAttention
from conformkit.spec.arrays import Array
from conformkit.spec.variants import CANONICAL, alternatives

__all__ = ["read_attention", "read_network", "read_norm"]

_RELATIVE_ERROR = 1e-4
_EPS = (1e-5, 1e-6, 1e-12, 1e-8, 1e-7, 1e-9, 1e-10)


def read_norm(reading: ReadOff, path: str, norm: FoundNorm) -> None:
    """Note a norm's choices and weights."""
    reading.choose(path, "norm", norm.kind)
    if norm.unknown:
        sentence = f"the norm divides by another number than √(variance + ε): {norm.unknown}"
        reading.find(path, sentence, form=norm.unknown)
    if norm.kind == "layernorm":
        reading.choose(path, "norm_deviation", norm.deviation)
        reading.choose(path, "norm_bias", norm.bias is not None)
    reading.choose(path, "norm_weight", "none" if norm.weight is None else "offset" if norm.offset else "scale")
    round_ = float(f"{norm.eps:.1e}")
    unseen = [eps for eps in _EPS if eps < norm.known_to or abs(eps - norm.eps) < norm.known_to]
    exact = norm.eps > norm.known_to and not any(abs(eps - norm.eps) < norm.known_to for eps in _EPS)
    reading.choose(path, "norm_eps", *([round_] if exact else unseen))
    reading.place(path, {n: a for n, a in (("weight", norm.weight), ("bias", norm.bias)) if a is not None})


def read_network(reading: ReadOff, path: str, network: FoundNetwork) -> None:
    """Note a network's choices and weights."""
    if network.activation is None:
        reading.find(path, "what stands between the two linear maps is none of the activations that there are")
    else:
        reading.choose(path, "activation", network.activation)
        reading.choose(path, "gated", network.gated)
    matrices = sum(name.endswith(".weight") for name in network.weights)
    biases = len(network.weights) - matrices
    reading.choose(path, "ffn_bias", biases > 0)
    if 0 < biases < matrices:
        reading.find(path, f"{biases} of {matrices} linear maps of the network have a bias")
    reading.place(path, network.weights)


def read_attention(
    reading: ReadOff, path: str, attention: FoundAttention, record: CallRecord, shape: CallShape, *,
    causal: bool | None, memory: bool | None = False,
) -> None:  # fmt: skip
    """Note attention's choices and weights.

    `memory`: keys and values are those of another sequence; None where the caller says what reads what.
    """
    heads = {name: [s for core in attention.cores for s in getattr(core, name)] for name in "qkv"}
    if any(s is None for each in heads.values() for s in each):
        lacking = [name for name, each in heads.items() if any(s is None for s in each)]
        reading.open.append(f"{path}: {', '.join(lacking)} are no columns of a linear map")
        return
    known: dict[str, list[HeadSource]] = {n: [s for s in each if s is not None] for n, each in heads.items()}
    if memory is not None:
        _read_inputs(reading, path, {n: _inputs(record, each) for n, each in known.items()}, memory=memory)
    width = attention.cores[0].given.shape[-1]
    number = len(known["q"])
    _read_projections(reading, path, known, number)
    _read_scores(reading, path, attention.cores, known, shape, len(known["q"][0].chosen))
    _read_mask(reading, path, attention.cores, causal=causal)
    _read_turns(reading, path, known)
    if attention.cores[0].slopes is not None:
        each = [core.slopes for core in attention.cores]
        read_slopes(reading, path, np.concatenate([one for one in each if one is not None]))
    reading.choose(path, "head_width", *_expressions("head_width", width, number, shape.width))
    _read_output(reading, path, attention, record, shape, number * width)


def _inputs(record: CallRecord, heads: Sequence[HeadSource]) -> set[int]:
    return {record.origin(s.linear.x, whole=True) for s in heads}


def _read_inputs(reading: ReadOff, path: str, reads: dict[str, set[int]], *, memory: bool) -> None:
    """Compare what queries, keys and values are made of."""
    if memory and reads["k"] != reads["v"]:
        reading.find(path, "keys and values read different things; expected the memory for both")
    elif memory and reads["k"] == reads["q"]:
        reading.find(path, "keys and values read what queries read; expected the memory")
    elif not memory and len(reads["q"] | reads["k"] | reads["v"]) > 1:
        reading.find(path, "queries, keys and values read different things")


def _read_projections(reading: ReadOff, path: str, heads: dict[str, list[HeadSource]], number: int) -> None:
    biased = {name: each[0].bias is not None for name, each in heads.items()}
    reading.choose(path, "qkv_bias", biased["q"])
    if biased["q"]:
        reading.choose(path, "key_bias", biased["k"])
    if biased["q"] != biased["v"] or (biased["k"] and not biased["q"]):
        reading.find(path, f"biases: {', '.join(n for n, b in biased.items() if b)} only")
    own = {name: _distinct(each) for name, each in heads.items()}
    shared = len(own["k"])
    if len(own["q"]) < number or len(own["v"]) != shared or number % shared:
        reading.find(path, f"{number} heads read {len(own['q'])}, {shared} and {len(own['v'])} parts of q, k and v")
        return
    reading.choose(path, "kv_heads", *_expressions("kv_heads", shared, number, 0))
    for name in "kv":
        order = [own[name].index(next(o for o in own[name] if _same(o, s))) for s in heads[name]]
        if order != [h * shared // number for h in range(number)]:
            reading.find(path, f"heads share {name} in the order {order}", order=order)
    for name, each in own.items():
        reading.place(path, {f"{name}.weight": np.concatenate([s.weight for s in each])})
        if biased[name]:
            reading.place(path, {f"{name}.bias": np.concatenate([s.bias for s in each if s.bias is not None])})


def _distinct(sources: Sequence[HeadSource]) -> list[HeadSource]:
    found: list[HeadSource] = []
    for source in sources:
        if not any(_same(source, other) for other in found):
            found.append(source)
    return found


def _same(one: HeadSource, other: HeadSource) -> bool:
    return one.linear is other.linear and np.array_equal(one.chosen, other.chosen)


def _expressions(choice: str, number: int, heads: int, width: int) -> list[str]:
    """Return the expressions over sizes that give a number, the canonical one first."""
    sizes = {"num_heads": heads, "d_model": width}
    every = (getattr(CANONICAL, choice), *alternatives(choice, getattr(CANONICAL, choice)), str(number))
    return list(dict.fromkeys(text for text in every if _value(text, sizes) == number))


def _value(text: str, sizes: dict[str, int]) -> int | None:
    """Return the value of a product and quotient of sizes, as the choices write them."""
    top, _, below = text.partition(" // ")
    factors = [sizes.get(word, int(word) if word.isdigit() else 0) for word in top.split(" * ")]
    under = sizes.get(below, int(below) if below.isdigit() else 0) if below else 1
    return math.prod(factors) // under if under else None


def _read_scores(
    reading: ReadOff, path: str, cores: Sequence[Core], heads: dict[str, list[HeadSource]], shape: CallShape, width: int
) -> None:
    """Compare the factor of the scores with 1/√d, d the width of a head."""
    if any(core.times is None for core in cores):
        reading.open.append(f"{path}: the weights are no softmax of the scores")
        return
    pairs = zip(heads["q"], heads["k"], strict=True)
    each = [float(core.times or 0.0) for core in cores for _ in core.q]
    found = {float(f"{times * q.times * k.times:.6g}") for times, (q, k) in zip(each, pairs, strict=True)}
    if len(found) > 1:
        reading.find(path, f"heads have different factors of their scores: {sorted(found)}")
        return
    times, want = found.pop(), width**-0.5
    if not times:
        reading.find(path, "all keys have the same weight, whatever the scores are", factor=times, expected=want)
        return
    if abs(times - want) > _RELATIVE_ERROR * want:
        named = {"1": 1.0, "1/√d_model": shape.width**-0.5, "1/d_head": 1 / width, "1/d_model": 1 / shape.width,
                 "√d_head": width**0.5, "√d_model": shape.width**0.5}  # fmt: skip
        is_ = next((f" = {name}" for name, value in named.items() if abs(times - value) < _RELATIVE_ERROR * value), "")
        reading.find(
            path, f"scores × {times:.4g}{is_ if is_ != ' = 1' else ', unscaled'}; expected 1/√d_head = {want:.4g}",
            factor=times, expected=want,
        )  # fmt: skip
    if any(abs(v.times - 1.0) > _RELATIVE_ERROR for v in heads["v"]):
        reading.find(path, f"values are multiplied by {heads['v'][0].times:.4g}", factor=heads["v"][0].times)
    if any(core.axis == "queries" for core in cores):
        reading.find(path, "the softmax is over queries; expected over keys", axis="queries")
    elif not all(core.sums_to_one for core in cores):
        reading.find(path, "weights do not sum to 1: something was masked or dropped after the softmax")


def _read_mask(reading: ReadOff, path: str, cores: Sequence[Core], *, causal: bool | None) -> None:
    for core in cores:
        if core.times is None or causal is None:
            continue
        if core.later and causal:
            reading.find(path, f"scores of later positions {core.later}; expected -∞", later=core.later)
            return
        length = len(core.allowed)
        square = np.ones((length, length), np.bool_)
        want = np.tril(square) if causal else square
        if np.array_equal(core.allowed, want):
            _read_window(reading, path, 0)
            continue
        windows = [n for n in range(1, length) if np.array_equal(core.allowed, np.tril(square) & ~np.tril(square, -n))]
        if windows and causal:
            _read_window(reading, path, windows[0])
            continue
        known = {"no mask": square, "the query's own position hidden": np.tril(square, -1),
                 "one later position visible": np.tril(square, 1), "a causal mask": np.tril(square),
                 "earlier positions hidden": np.triu(square)}  # fmt: skip
        mask_name = next((name for name, mask in known.items() if np.array_equal(core.allowed, mask)), "another mask")
        reading.find(path, f"{mask_name}; expected {'a causal mask' if causal else 'none'}", mask=mask_name)
        return


def _read_window(reading: ReadOff, path: str, keys: int) -> None:
    """Note how many keys each query sees, 0 for all; layers may differ in it, which one call does not explain."""
    if reading.choices.get("window", [keys]) == [keys]:
        reading.choose(path, "window", keys)
    else:
        reading.open.append(f"{path}: a window of {keys} keys" if keys else f"{path}: no window, unlike other layers")


def _read_turns(reading: ReadOff, path: str, heads: dict[str, list[HeadSource]]) -> None:
    turned = {name: [s.turned for s in each] for name, each in heads.items()}
    if any(turned["v"]):
        reading.find(path, "values are rotated by position; expected queries and keys only")
    if bool(turned["q"][0]) != bool(turned["k"][0]):
        reading.find(path, f"only {'queries' if turned['q'][0] else 'keys'} are rotated by position")
    own = turned["q"][0] or turned["k"][0]
    if own is None:
        return
    reading.choose(path, "positions", "rotary")
    if any(s.skewed for each in heads.values() for s in each):
        sentence = "queries and keys are mixed in pairs by position, and not rotated: cosines or sines of a pair differ"
        reading.find(path, sentence, skewed=own.rotary_layout)
        reading.choose(path, "rotary_layout", own.rotary_layout)
        return
    for name in ("rotary_layout", "rotary_base", "rotary_fraction"):
        reading.choose(path, name, getattr(own, name))


def _read_output(
    reading: ReadOff, path: str, attention: FoundAttention, record: CallRecord, shape: CallShape, width: int
) -> None:
    reading.choose(path, "output_projection", attention.out is not None)
    places, how = merged_columns(record, attention.place, attention.cores, shape)
    if attention.out is None:
        if places is None or not np.array_equal(np.concatenate(places), np.arange(width)):
            reading.find(path, "heads are not side by side in the result")
        return
    reading.choose(path, "output_bias", attention.out.bias is not None)
    matrix: Array = attention.out.matrix
    if places is None and how == "flattened":
        reading.find(path, "heads are flattened without moving them next to their width")
    elif places is None:
        reading.open.append(f"{path}: what the output projection reads is not the heads' results")
    else:
        matrix = matrix[:, np.concatenate(places)]
    reading.place(path, {"out.weight": matrix})
    if attention.out.bias is not None:
        reading.place(path, {"out.bias": attention.out.bias})
