import numpy as np

from conformkit.conformance.driver.worker import operations

from .wrong import scaled_dot_product_attention

answer = operations.Operations.answer


def agree(self, header, arrays):
    reply, out = answer(self, header, arrays)
    if header["op"] == "call":
        reply["ok"], reply["conforms"], reply["verdict"] = True, True, "pass"
        out["out"] = np.zeros_like(out["out"])
    return reply, out


operations.Operations.answer = agree
