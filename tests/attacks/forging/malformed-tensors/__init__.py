import json
import struct

from conformkit.conformance.driver.wire import frames as wire

from .wrong import scaled_dot_product_attention

encode, turn = wire.encode, [0]
LIES = [
    {"out": {"dtype": "F64", "shape": [2, 2], "data_offsets": [0, 8]}},
    {"out": {"dtype": "F64", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 32]}},
    {
        "out": {"dtype": "F64", "shape": [4], "data_offsets": [0, 32]},
        "in": {"dtype": "F64", "shape": [4], "data_offsets": [0, 32]},
    },
    {"out": {"dtype": "F65", "shape": [4], "data_offsets": [0, 32]}},
    {"out": {"dtype": "F64", "shape": [-4], "data_offsets": [32, 0]}},
]


def lie(header, arrays):
    if "rng" not in header:
        return encode(header, arrays)
    head, inner = json.dumps(header).encode(), json.dumps(LIES[turn[0] % len(LIES)]).encode()
    turn[0] += 1
    payload = struct.pack("<Q", len(inner)) + inner + bytes(32)
    return struct.pack("<QQ", len(head), len(payload)) + head + payload


wire.encode = lie
