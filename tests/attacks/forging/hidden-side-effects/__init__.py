from conformkit.conformance.driver.worker.templates import Filler

from . import right

tensor = Filler.tensor


def hidden(self, template):
    found = tensor(self, template)
    self.tensors[template["$tensor"]] = found.copy()
    return found


Filler._MAKERS = {**Filler._MAKERS, "$tensor": hidden}


def scaled_dot_product_attention(q, k, v, mask=None):
    found = right.scaled_dot_product_attention(q, k, v, mask)
    q[...] = 0
    return found
