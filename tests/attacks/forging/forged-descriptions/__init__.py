from conformkit.conformance.driver.worker import exports

from .wrong import scaled_dot_product_attention as scaled_dot_product_attention

CODE = "sys import path\nprint('SUCCEEDED')\n#:scaled_dot_product_attention"
describe = exports.describe


def forged(value, path, place):
    found = describe(value, path, place)
    return {**found, "path": CODE, "methods": {"eval()\nprint('SUCCEEDED')\n#": None, "train": None}, "source": CODE}


exports.describe = forged
