import torch


def create_padding_mask(ids, pad_id=0):
    return ids.ne(pad_id)[:, None, None, :]


def create_causal_mask(size):
    rows = torch.arange(size)
    return rows[None, :] <= rows[:, None]


def create_masks(src, tgt, pad_id=0):
    causal = create_causal_mask(tgt.size(1)).to(tgt.device)
    return create_padding_mask(src, pad_id), create_padding_mask(tgt, pad_id) & causal


def shift_right(tgt, bos_id):
    shifted = tgt.roll(1, dims=1)
    shifted[:, 0] = bos_id
    return shifted


def collate(pairs, pad_id, bos_id, eos_id):
    """Lists of ids -> src (B, S), decoder input (B, T), decoder target (B, T)"""
    sources = [list(map(int, s)) for s, _ in pairs]
    targets = [list(map(int, t)) for _, t in pairs]

    def padded(rows):
        width = max(map(len, rows))
        return torch.tensor([row + [pad_id] * (width - len(row)) for row in rows], dtype=torch.long)

    return padded(sources), padded([[bos_id, *t] for t in targets]), padded([[*t, eos_id] for t in targets])
