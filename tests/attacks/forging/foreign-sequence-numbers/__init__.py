from conformkit.conformance.driver.wire import frames as wire

from .wrong import scaled_dot_product_attention

encode = wire.encode
wire.encode = lambda header, arrays: encode({**header, "seq": header["seq"] + 1}, arrays)
