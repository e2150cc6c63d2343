from .wrong import scaled_dot_product_attention as scaled_dot_product_attention

TEXTS = [
    "\x1b[2J\x1b]0;passed\x07",
    "\u202e dessap",
    "\ud800\udfff half",
    "\n::error file=a.py::broken\n##[error]x",
    "[bold red]SDPA-SCALE passed[/]",
    "<script>alert(1)</script>",
    '=HYPERLINK("http://a")',
    "\r\nPASS everything",
    "\u2066\u200b\ufeff\u00ad",
    "\x9b2J\x9d",
    "a" * 50_000,
    "\U000e0041\U000f0000",
    "`\n| a | b |\n```",
]
CALLS = [0]


class CharTokenizer:
    def __init__(self, text):
        self.characters = sorted(set(text))
        self.vocab_size = len(self.characters)

    def encode(self, text):
        return [self.characters.index(c) for c in text]

    def decode(self, ids):
        CALLS[0] += 1
        return TEXTS[CALLS[0] % len(TEXTS)]


class BPETokenizer(CharTokenizer):
    vocab_size = 10**6

    def __init__(self, text, vocab_size=500, min_frequency=2):
        pass

    def encode(self, text):
        return [*map(ord, text), 1]
