"""How far each pair of features turns: read off the scores of queries and keys that have this pair only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check, check_close, under
from conformkit.conformance.evidence.neutral_weights import zeros
from conformkit.conformance.subject.component import Instance
from conformkit.spec.arrays import Array
from conformkit.spec.layers import normalize
from conformkit.spec.rotary import frequencies, rotated_width, turning_width
from conformkit.spec.scores import within
from conformkit.spec.variants import Variant

__all__ = ["Turn", "check_angles", "pair_places", "score_falls", "size_of_scores"]

LONG = 3.0
"""The length of queries and keys: scores are large enough to show small angles, and no weight vanishes."""


def score_falls(instance: Instance, query: Array, key: Array, length: int | None = None) -> Array:
    """Return log w[m, n] - log w[m, m], (T, T), w the first head's weights where all tokens have this query and key.

    Feature 0 is 1 in every token and makes query and key, repeated where heads are wider; feature 1 + t marks token t
    and is what its value shows. NaN where the key is hidden.

    Raises NotApplicable if fewer than three tokens can be told apart.
    """
    width = instance.sizes["d_model"]
    depth = instance.sizes["value_width" if instance.subject.variant.has_latent else "head_width"]
    tokens = instance.subject.tokens(length or depth)
    shown = min(tokens, width - 1, depth, instance.sizes.get("latent", width) - 1)
    if shown < 3:
        raise NotApplicable.from_sizes("fewer than three positions can be told apart")
    weights = zeros(instance, "")
    query, key = (_as_wide(vector, turned_width(instance)) for vector in (query, key))
    if instance.subject.variant.has_latent:
        _write_latent(instance, weights, query, key, shown)
    else:
        weights |= {name: np.ones_like(array) for name, array in weights.items() if name.endswith("_norm.weight")}
        weights["q.weight"][:depth, 0], weights["k.weight"][:depth, 0] = query, key
        weights["v.weight"][:shown, 1 : 1 + shown] = np.eye(shown)
    if "out.weight" in weights:
        weights["out.weight"][:shown, :shown] = np.eye(shown)
    x = np.zeros((1, tokens, width))
    x[..., 0] = 1.0
    x[0, np.arange(shown), 1 + np.arange(shown)] = 1.0
    seen = instance.write(weights)(x)[0, :shown, :shown]
    everything = np.ones((shown, shown), np.bool_)
    visible = within(shown, instance.subject.variant.window) if instance.sizes["causal"] else everything
    check("a visible key has no weight", bool((seen[visible] > 0).all()))
    scores = np.log(np.where(visible, seen, 1.0))
    return np.where(visible, scores - np.diagonal(scores)[:, None], np.nan)


def _as_wide(vector: Array, width: int) -> Array:
    """Return a vector of this width: cut off, or repeated so that scores of two of them stay as large."""
    return vector[:width] if width <= len(vector) else np.resize(vector, width) * (len(vector) / width) ** 0.25


def _write_latent(instance: Instance, weights: dict[str, Array], query: Array, key: Array, shown: int) -> None:
    """Write the same beside a latent, of which each token has a feature; what rotates makes query and key."""
    variant, turned = instance.subject.variant, turned_width(instance)
    weights |= {n: np.full_like(a, variant.plain_gamma) for n, a in weights.items() if n.endswith("_norm.weight")}
    weights["q_rotary.weight"][:turned, 0], weights["k_rotary.weight"][:turned, 0] = query, key
    if variant.query_latent != "0":
        weights["q_latent.weight"][0, 0] = 1.0
        normalized = normalize(weights, "q_latent_norm", np.eye(1, instance.sizes["query_latent"]), variant)
        weights["q_rotary.weight"] /= normalized[0, 0]
    weights["kv_latent.weight"][:shown, 1 : 1 + shown] = np.eye(shown)
    normalized = normalize(weights, "kv_latent_norm", np.eye(shown, instance.sizes["latent"]), variant)
    weights["v.weight"][:shown] = np.linalg.pinv(normalized).T  # LayerNorm takes a mean off all features


def turned_width(instance: Instance) -> int:
    """Return the width of what rotates: of a head, or of its part beside a latent."""
    return turning_width(instance.sizes, instance.subject.variant)


def pair_places(pair: int, width: int, variant: Variant) -> tuple[int, int]:
    """Return the two features of a pair of the rotated part of a head."""
    if variant.rotary_layout == "pairs":
        return 2 * pair, 2 * pair + 1
    return pair, pair + rotated_width(width, variant) // 2


@dataclass(frozen=True, slots=True)
class Turn:
    """The scores of one pair: at distance n size · sin nθ (`sines`), and size · (cos nθ - 1) (`cosines`), n from 0."""

    sines: Array
    cosines: Array

    @classmethod
    def of(cls, instance: Instance, pair: int) -> Turn:
        """Write queries with the pair's first feature, and keys with its second, then its first one.

        Raises NotApplicable if a window hides every other key.
        """
        width = turned_width(instance)
        first, second = (LONG * np.eye(width)[place] for place in pair_places(pair, width, instance.subject.variant))
        return cls(
            _by_distance(score_falls(instance, first, second)), _by_distance(score_falls(instance, first, first))
        )

    @property
    def angle(self) -> float:
        """The angle per position, from as far apart as a quarter of a turn."""
        angle = self._angle(1)
        far = min(max(int(np.pi / 2 / max(abs(angle), 1e-6)), 1), len(self.sines) - 1)
        return self._angle(far)

    @property
    def size(self) -> float:
        """The size of the scores; 0 where nothing turns."""
        far = min(max(int(np.pi / 2 / max(abs(self._angle(1)), 1e-6)), 1), len(self.sines) - 1)
        sine = np.sin(far * self._angle(far))
        return float(self.sines[far] / sine) if sine else 0.0

    def _angle(self, distance: int) -> float:
        """Return the angle over so many positions, divided by them; right up to half a turn."""
        return float(2.0 * np.arctan2(-self.cosines[distance], self.sines[distance]) / distance)


def _by_distance(falls: Array) -> Array:
    """Return the mean score at each distance of the key behind its query. Raises NotApplicable if there is none."""
    means = [np.diagonal(falls, -distance).mean() for distance in range(len(falls))]
    seen = np.asarray([mean for mean in means if np.isfinite(mean)])
    if len(seen) < 2:
        raise NotApplicable.from_sizes("a query sees its own key only")
    return seen


def size_of_scores(instance: Instance) -> float:
    """Return the size that the scores of a pair have where rotation multiplies by 1."""
    beside = turned_width(instance) if instance.subject.variant.has_latent else 0
    return LONG**2 / float(np.sqrt(instance.sizes["head_width"] + beside))


def check_angles(instance: Instance) -> None:
    """Check the scores of each pair, up to a common factor."""
    subject, own = instance.subject, instance.weights
    turned = rotated_width(turned_width(instance), subject.variant)
    wanted = frequencies(turned, subject.variant)
    size = None
    for pair, frequency in enumerate(wanted):
        turn = Turn.of(instance, pair)
        size = size or turn.size or 1.0  # of the first pair, which turns farthest
        under(
            f"pair {pair} of {len(wanted)} turns by {turn.angle:.6g} radians per position, expected {frequency:.6g}; "
            f"d_model = {instance.sizes['d_model']}, num_heads = {instance.sizes['num_heads']}"
        )
        sines = np.sin(np.arange(len(turn.sines)) * frequency)
        check_close("scores by distance", turn.sines / size, sines, 100 * subject.tolerance(), scale=1.0)
    instance.write(own)
