from conformkit.conformance.driver.worker import main as worker

from .wrong import scaled_dot_product_attention

send = worker._send


def twice(connection, header, arrays):
    send(connection, header, arrays)
    send(connection, header, arrays)


worker._send = twice
