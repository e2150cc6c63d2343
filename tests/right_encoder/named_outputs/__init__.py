from .configuration_bert import BertConfig
from .data_collator import mask_tokens
from .modeling_bert import BertEmbeddings, BertForPreTraining, BertModel
