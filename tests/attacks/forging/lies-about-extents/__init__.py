import numpy as np

from conformkit.conformance.driver.wire import frames as wire

from .wrong import scaled_dot_product_attention

encode, turn = wire.encode, [0]


def lie(header, arrays):
    if "rng" in header and "out" in arrays:
        turn[0] += 1
        shapes = [(), (0,), (1,), (*arrays["out"].shape, 1), arrays["out"].shape[::-1], (3, 0, 5)]
        formats = [np.bool_, np.int64, np.float32, np.float64]
        lie = np.ones(shapes[turn[0] % len(shapes)], formats[turn[0] % len(formats)])
        header, arrays = {**header, "dtypes": {"out": "float64"}}, {**arrays, "out": lie}
    return encode(header, arrays)


wire.encode = lie
