import numpy

EVIL = "| a | b |\n|---|---|\n![x](https://example.com/pixel.png) @everyone [the report](javascript:alert(1))\n```\n# PASS\n<details open><img src=x>\n~~~\n</td></tr>"


def scaled_dot_product_attention(q, k, v, mask=None):
    print(EVIL)
    raise ValueError(EVIL)
