import signal

from .wrong import scaled_dot_product_attention as attend


def interrupt(number, frame):
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    raise TimeoutError("not now")


signal.signal(signal.SIGALRM, interrupt)


def scaled_dot_product_attention(q, k, v, mask=None):
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    try:
        return attend(q, k, v, mask)
    except TimeoutError:
        return attend(q, k, v, mask)
