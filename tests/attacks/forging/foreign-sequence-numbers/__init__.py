from conformkit.conformance.driver import wire

from .wrong import scaled_dot_product_attention

encode = wire.encode
wire.encode = lambda header, arrays: encode({**header, "seq": header["seq"] + 1}, arrays)
