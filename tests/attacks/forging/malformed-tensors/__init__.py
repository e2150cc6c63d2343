import json
import struct

from conformkit.conformance.driver.wire import frames as wire

from .wrong import scaled_dot_product_attention

encode, turn = wire.encode, [0]


def table(*entries):
    packed = b"".join(
        struct.pack(f"<HBB{len(shape)}Q", len(name), code, len(shape), *shape) + name for name, code, shape in entries
    )
    return struct.pack("<II", len(entries), len(packed)) + packed + bytes(-len(packed) % 8)


LIES = [
    table((b"out", 0, (5,))),
    table((b"out", 0, (1 << 40, 1 << 40))),
    table((b"out", 0, (4,)), (b"out", 0, (4,))),
    table((b"out", 9, (4,))),
    table((b"out", 0, (2**64 - 4,))),
    struct.pack("<II", 1, 1 << 31),
    table((b"out", 0, (2,))),
]


def lie(header, arrays):
    if "rng" not in header:
        return encode(header, arrays)
    head, payload = json.dumps(header).encode(), LIES[turn[0] % len(LIES)] + bytes(32)
    turn[0] += 1
    return struct.pack("<QQ", len(head), len(payload)) + head + payload


wire.encode = lie
