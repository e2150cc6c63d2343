from .model import Seq2SeqTransformer, EncoderLayer, DecoderLayer, Attention
