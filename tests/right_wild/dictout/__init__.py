from .config import DEFAULTS, complete
from .network import Attention, Block, FeedForward, Network, Positions
