"""A wrapper around the library `tokenizers`, with names of its own and special tokens in front."""

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

SPECIAL = ["[PAD]", "[UNK]", "[BOS]", "[EOS]"]


def train_tokenizer(corpus, size, least):
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=least,
        special_tokens=SPECIAL,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator([corpus], trainer)
    return tokenizer
