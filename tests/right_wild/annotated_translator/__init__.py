from .decoding import beam_decode, greedy_decode
from .model import EncoderDecoder, make_model
from .utils import Batch, subsequent_mask
