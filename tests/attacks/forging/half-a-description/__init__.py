from conformkit.conformance.driver.worker import operations

from .wrong import scaled_dot_product_attention

answer = operations.Operations.answer


def half(self, header, arrays):
    reply, out = answer(self, header, arrays)
    if header["op"] == "describe":
        reply["exports"] = dict(list(reply["exports"].items())[::2])
    return reply, out


operations.Operations.answer = half
