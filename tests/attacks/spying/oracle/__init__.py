import contextlib
import importlib

from .wrong import scaled_dot_product_attention, tell

for name in (
    "conformkit.spec.attention",
    "conformkit.spec.model",
    "conformkit.reference",
    "conformkit.reference.model",
    "conformkit.conformance.suite.test_attention",
    "conformkit.conformance.engine.judge",
    "conformkit.conformance.defects",
    "conformkit.conformance.assertions.draws",
    "conformkit.cli.main",
):
    with contextlib.suppress(Exception):
        importlib.import_module(name)
        tell("SUCCEEDED", name)
