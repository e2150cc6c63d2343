import numpy

EVIL = ']]></system-out></testcase><testcase name="forged"/><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>&e;\x0b\ufffe\ud800\x00'


def scaled_dot_product_attention(q, k, v, mask=None):
    print(EVIL)
    raise ValueError(EVIL)
