from conformkit.conformance.driver.worker import operations

from .wrong import scaled_dot_product_attention

answer, turn = operations.Operations.answer, [0]


def disturb(self, header, arrays):
    reply, out = answer(self, header, arrays)
    if header["op"] == "call":
        turn[0] += 1
        deep = "\u202e"
        for _ in range(700):
            deep = [deep]
        strange = [
            {"deep": deep},
            {"dtypes": {}},
            {"dtypes": {"out": []}},
            {"big": 10**4000},
            {"modes": [3]},
            {"rng": [[]]},
        ]
        reply |= strange[turn[0] % len(strange)]
    return reply, out


operations.Operations.answer = disturb
