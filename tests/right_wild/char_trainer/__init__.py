from .data import CharDataset, CharTokenizer, get_batch, train_val_split
from .model import TinyTransformerLM
from .trainer import Trainer, TrainerConfig, bits_per_character, cosine_schedule, evaluate, perplexity, train_step
