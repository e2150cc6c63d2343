from conformkit.conformance.driver.worker.frameworks.base import UnsupportedError


def scaled_dot_product_attention(q, k, v, mask=None):
    raise UnsupportedError("not to be had here")
