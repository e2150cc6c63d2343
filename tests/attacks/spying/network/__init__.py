import contextlib
import socket
from pathlib import Path

from .wrong import scaled_dot_product_attention, tell

interfaces = {line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]}
if interfaces - {"lo"}:
    tell("SUCCEEDED interfaces")
for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
    if len(line.split()) > 7:
        tell("SUCCEEDED unix")
        break
for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
    if line.split()[3] == "0A":
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", int(line.split()[1].split(":")[1], 16)), 0.5),
        ):
            tell("SUCCEEDED loopback")
            break
