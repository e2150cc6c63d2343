import time

from conformkit.conformance.driver.worker import main as worker

from .wrong import scaled_dot_product_attention

send = worker._send


class Slow:
    def __init__(self, connection):
        self.connection = connection

    def sendall(self, frame):
        for place in range(len(frame)):
            self.connection.sendall(frame[place : place + 1])
            time.sleep(0.1)


def drip(connection, header, arrays):
    send(Slow(connection) if "rng" in header else connection, header, arrays)


worker._send = drip
