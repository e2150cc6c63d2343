from .wrong import scaled_dot_product_attention as _wrong

NAME = __file__ + "/x\n::error file=a.py::broken\n  ✓ SDPA-SCALE holds\x1b[2J\u202e[bold]<img src=x onerror=alert(1)>"
SPACE = {"_wrong": _wrong}
SOURCE = "\n" * 10**6 + "def raises(q, k, v, mask=None):\n    raise ValueError('here')"

exec(compile(SOURCE, NAME, "exec"), SPACE)
raises = SPACE["raises"]
raises.__code__ = raises.__code__.replace(co_name="f\n::warning::g", co_qualname="h\r\x1b[0mi", co_firstlineno=2**30)


def scaled_dot_product_attention(q, k, v, mask=None):
    return raises(q, k, v, mask)
