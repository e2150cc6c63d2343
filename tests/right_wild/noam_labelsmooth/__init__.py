from .batching import collate, create_causal_mask, create_masks, create_padding_mask, shift_right
from .layers import CrossAttention, DecoderLayer, EncoderLayer
from .loss import LabelSmoothingLoss, SimpleLossCompute
from .model import Transformer
from .schedule import NoamOpt, inverse_sqrt_schedule, rate
