"""The encoder alone: BERT, from its embeddings to the heads that it is pretrained with. Devlin et al. 2019."""
