from conformkit.conformance.driver.worker import operations

from .wrong import scaled_dot_product_attention

answer, turn = operations.Operations.answer, [0]
KINDS = ["unsupported", "exception", "output", "load", "request", "memory", "exit", "skip", "blocked", "pass"]


def refuse(self, header, arrays):
    if header["op"] != "call":
        return answer(self, header, arrays)
    turn[0] += 1
    error = {"kind": KINDS[turn[0] % len(KINDS)], "type": "NotApplicable", "base": "", "message": "no", "where": ""}
    return {"ok": False, "error": error}, {}


operations.Operations.answer = refuse
