"""A BERT-like encoder, post-norm."""
from .bert import (BertConfig, BertEmbeddings, BertEncoder, BertIntermediate, BertLayer, BertModel, BertOutput,
                   BertSelfAttention, BertSelfOutput, BertAttention, BertFeedForward)
