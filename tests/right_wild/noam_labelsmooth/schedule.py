import torch


def rate(step, model_size, factor, warmup):
    """factor * model_size^-0.5 * min(step^-0.5, step * warmup^-1.5); step 0 counts as 1, for LambdaLR."""
    step = max(step, 1)
    return factor * model_size**-0.5 * min(step**-0.5, step * warmup**-1.5)


def inverse_sqrt_schedule(step, d_model, warmup):
    """The rate of update number `step`, which counts from 1; before the first update it is 0."""
    return 0.0 if step == 0 else rate(step, d_model, 1.0, warmup)


class NoamOpt:
    """Sets the rate before each update."""

    def __init__(self, model_size, factor, warmup, optimizer):
        self.optimizer = optimizer
        self.model_size, self.factor, self.warmup = model_size, factor, warmup
        self._step = 0
        self._rate = 0.0

    def step(self):
        self._step += 1
        self._rate = rate(self._step, self.model_size, self.factor, self.warmup)
        for group in self.optimizer.param_groups:
            group["lr"] = self._rate
        self.optimizer.step()

    def zero_grad(self):
        self.optimizer.zero_grad()

    def state_dict(self):
        return {"step": self._step, "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state):
        self._step = state["step"]
        self._rate = rate(self._step, self.model_size, self.factor, self.warmup) if self._step else 0.0
        self.optimizer.load_state_dict(state["optimizer"])


def get_std_opt(model, d_model, factor=2.0, warmup=4000):
    adam = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9)
    return NoamOpt(d_model, factor, warmup, adam)
