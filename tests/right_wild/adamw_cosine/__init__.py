from .metrics import Meter, bits_per_character, exponential_moving_average, perplexity, rolling_mean
from .network import FeedForward, MultiHeadAttention, PositionalEncoding, TinyTransformerLM, TransformerBlock
from .optim import AdamW, clip_grad_norm, cosine_schedule
from .steps import cross_entropy, evaluate, load_checkpoint, save_checkpoint, train_step
