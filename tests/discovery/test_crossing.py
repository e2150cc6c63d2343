"""What code of its author's does with what a model returns: torch's cross-entropy takes logits."""

from __future__ import annotations

import pytest

from conformkit.conformance.discovery.crossing import ANY, compared

COMPARED = {
    "own-method": (
        "import torch.nn.functional as F\nclass M:\n    def step(self, x, y):\n        y_hat = self(x)\n"
        "        return F.cross_entropy(y_hat.flatten(0, 1), y.flatten())\n"
    ),
    "at-once": "from torch.nn import functional as F\ndef f(net, x, y):\n    return F.cross_entropy(net(x)[0], y)\n",
    "object": (
        "from torch import nn\ndef train(model, criterion, x, y):\n    logits, _ = model(x)\n"
        "    logits = logits.view(-1, 9)\n    return criterion(logits, y)\ncriterion = nn.CrossEntropyLoss()\n"
    ),
    "script": "import torch\nout = net(x)\nloss = torch.nn.functional.cross_entropy(input=out.mT, target=y)\n",
    "attribute": (
        "from torch.nn import CrossEntropyLoss\nclass T:\n    def __init__(self, model):\n"
        "        self.model, self.a = model, 1\n        self.loss = CrossEntropyLoss()\n"
        "    def step(self, x, y):\n        return self.loss(self.model(x).transpose(1, 2), y)\n"
    ),
}
LEFT = {
    "logarithms": "import torch.nn.functional as F\ndef f(model, x, y):\n    p = model(x)\n    p = p.log()\n"
                  "    return F.cross_entropy(p, y)\n",
    "another-loss": "import torch.nn.functional as F\ndef f(model, x, y):\n    return F.nll_loss(model(x).log(), y)\n",
    "own-function": "def cross_entropy(p, y):\n    return -p[y].log()\ndef f(model, x, y):\n"
                    "    return cross_entropy(model(x), y)\n",
    "another-module": "import losses\ndef f(model, x, y):\n    return losses.cross_entropy(model(x), y)\n",
    "what-it-computes": "import torch.nn.functional as F\nclass M:\n    def forward(self, x, y):\n"
                        "        z = self.head(x)\n        return z.softmax(-1), F.cross_entropy(z, y)\n",
}  # fmt: skip


@pytest.mark.parametrize("source", COMPARED.values(), ids=COMPARED)
def test_what_is_compared_as_logits_is_seen(tmp_path, source):
    """Catches a form in which people write it, so that probabilities pass for a style."""
    (tmp_path / "own.py").write_text(source, encoding="utf-8")
    assert compared(tmp_path / "own.py") & {"M", "T", ANY}


@pytest.mark.parametrize("source", LEFT.values(), ids=LEFT)
def test_what_may_take_probabilities_says_nothing(tmp_path, source):
    """Catches a loss of the author's, or one on logarithms, that is taken for torch's on logits."""
    (tmp_path / "own.py").write_text(source, encoding="utf-8")
    assert not compared(tmp_path / "own.py")
