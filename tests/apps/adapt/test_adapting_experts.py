"""conform adapt on mixtures of experts, in which a plain network is found as well."""

import tomllib
from pathlib import Path

from tests.apps.adapt.test_adapting_styles import drafted

MIXTURE = """
    class FeedForward(nn.Module):
        def __init__(self, dim, hidden):
            super().__init__()
            self.up, self.down = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

        def forward(self, x):
            return self.down(F.relu(self.up(x)))

    class MoE(nn.Module):
        def __init__(self, dim, hidden, num_experts, top_k):
            super().__init__()
            self.top_k, self.router = top_k, nn.Linear(dim, num_experts, bias=False)
            self.experts = nn.ModuleList(FeedForward(dim, hidden) for _ in range(num_experts))

        def forward(self, x):
            largest, chosen = self.router(x).topk(self.top_k, dim=-1)
            weights = largest.softmax(dim=-1)
            shares = [((chosen == e) * weights).sum(-1, keepdim=True) for e in range(len(self.experts))]
            return sum(share * network(x) for share, network in zip(shares, self.experts)), weights
"""


def test_a_mixture_comes_before_the_network_that_it_is_made_of(tmp_path: Path) -> None:
    """Would break if the expert, which is called FeedForward, were taken for the whole."""
    table = tomllib.loads(drafted(tmp_path, MIXTURE).text())
    own = table["components"]["FeedForward"]
    assert own["path"] == "theirs:MoE"
    assert own["construct"] == {"dim": "d_model", "hidden": "d_ff", "num_experts": 4, "top_k": 2}
    assert table["variant"] == {"activation": "relu", "experts": 4}


def test_a_mixture_that_gives_no_variants_numbers_is_not_preferred(tmp_path: Path) -> None:
    """Would break if a sigmoid in the router cost the network, which is right as it is, its place."""
    other = MIXTURE.replace("largest.softmax(dim=-1)", "largest.sigmoid()")
    table = tomllib.loads(drafted(tmp_path, other).text())
    assert table["components"]["FeedForward"]["path"] == "theirs:FeedForward"
