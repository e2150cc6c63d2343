import struct

from conformkit.conformance.driver.wire import frames as wire

from .wrong import scaled_dot_product_attention

encode = wire.encode


def announce(header, arrays):
    frame = encode(header, arrays)
    return struct.pack("<QQ", 2**63 - 1, 2**63 - 1) + frame[16:] if "rng" in header else frame


wire.encode = announce
