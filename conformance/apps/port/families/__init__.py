"""Families of public checkpoints, one TOML file each: their names of weights, and what their config.json means.

A file holds

    parent = "llama"                       # whose tables it has, with its own entries over them; none by default
    class = "transformers.….modeling_…:…"  # the class in transformers; absent: only files of weights are known
    config = "transformers:…Config"        # and that of its settings
    ignored = ["*.attn.bias"]              # tensors of its files that are no parameters
    call = { input_ids = "ids" }           # how a model is called, as in conform.toml

    [variant]                              # choices other than those of the preset of its name, in spec/presets.py
    [limits]                               # as in conform.toml
    [sizes]                                # key of config.json = the size, by its name in the contract
    [fixed]                                # further arguments of its settings, as in conform.toml
    [choices.KEY]                          # a key of config.json: the choices that it makes, by name
    choices = ["norm_eps"]
    values = { gelu_new = "gelu_tanh" }    # its words and ours, where they differ
    also = "rope_parameters.rope_theta"    # where newer files have it
    share_of = ["n_embd", "n_head"]        # it counts features of a head: a share of this width by this number of heads
    [only]                                 # key = { values = […], absent = … }: other values have no variant
                                           # {} takes the parent's line away
    [noted]                                # key = a sentence about a value that does not show in what is compared
    [weights]                              # names in files, as in conform.toml; "" takes the parent's line away
"""
