"""Models whose layers with a window rotate by a base of their own: attention shows that base, the model the other.

Searched for in the model, whose parts have shown a window and rotary positions, and in no component else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from conformkit.conformance.diagnosis.looked_for import SHAPING
from conformkit.conformance.diagnosis.search_rare import changed
from conformkit.spec.variants import Variant, alternatives

__all__ = ["in_all_layers", "two_bases"]

_OTHERS = ("embedding_scale", "logit_cap", "log_probabilities", "norm_eps", "norm_deviation")
"""Choices of the model that add no parameters, of which one may differ as well."""
_SHAPED = 16


def two_bases(base: Variant, own: Sequence[str], fits: Callable[[Variant], bool]) -> Iterator[Variant]:
    """Yield variants in which the other layers rotate by another base, or scale their frequencies, the nearest first.

    The base that is known is that of layers with the window. `own` are the model's choices that may differ as well.
    """
    if not base.window or base.positions != "rotary" or base.rotary_scaling != "none":
        return
    shapes = [choice for choice in own if choice in SHAPING and choice != "positions"]
    shaped = list(islice((v for v in changed(base, shapes, 3) if fits(v)), _SHAPED))
    others = [choice for choice in _OTHERS if choice in own]
    own_base = {"window_rotary_base": base.window_rotary_base or base.rotary_base}
    rests = list(_of_the_others(base))
    yield from (one.but(**own_base, **rest) for rest in rests for one in shaped)
    yield from (v.but(**own_base, **rest) for rest in rests for one in shaped for v in changed(one, others, 1))


def in_all_layers(found: Variant, whole: Variant) -> Variant:
    """Return a part's variant with both bases, where it shows that of layers with the window alone."""
    if not (whole.window_rotary_base and found.window):
        return found
    names = ("rotary_base", "window_rotary_base", "rotary_scaling", "rotary_factor")
    return found.but(**{name: getattr(whole, name) for name in names})


def _of_the_others(base: Variant) -> Iterator[dict[str, Any]]:
    """Yield how layers without the window may rotate, and which these are."""
    known = (base.window_layers, *alternatives("window_layers", base.window_layers))
    layers = [each for each in known if each != "all"]
    bases = alternatives("rotary_base", base.rotary_base)
    factors = (base.rotary_factor, *alternatives("rotary_factor", base.rotary_factor))
    for each in layers:
        yield from ({"window_layers": each, "rotary_base": other} for other in bases)
    for each in layers:
        for other in (*bases, base.rotary_base):
            scaled = {"window_layers": each, "rotary_base": other, "rotary_scaling": "linear"}
            yield from ({**scaled, "rotary_factor": factor} for factor in factors)
