"""The fork server: imports clemcore once, then forks one worker process for every connection to its socket.

It ends when its standard input closes, so that it never outlives the driver. Knows nothing of models or episodes.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import sys
from pathlib import Path


def main() -> None:
    """`python -m pairgen.clem.server SOCKET`: prints `ready` on standard output once workers can be had."""
    path = sys.argv[1]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides when to stop
    from pairgen.clem.openenv import leave_out_openenv

    leave_out_openenv()
    from pairgen.clem import worker

    gc.freeze()  # what is imported stays: neither looked through by each worker's collector, nor copied for that
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen(64)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        try:
            _accept(listener, worker.serve)
        finally:
            with contextlib.suppress(OSError):
                Path(path).unlink()


def _accept(listener: socket.socket, serve: object) -> None:
    while True:
        readable, _, _ = select.select([listener, sys.stdin], [], [], 1.0)
        _reap()
        if sys.stdin in readable and not os.read(sys.stdin.fileno(), 1):
            return
        if listener in readable:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _become_worker(connection, serve)
            connection.close()


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _become_worker(connection: socket.socket, serve: object) -> None:
    """Never returns. Games print and ask for input: both go nowhere, messages go to the log that is standard error."""
    code = 1
    try:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(2, 1)
        gc.set_threshold(100_000, 20, 100)  # games build large graphs that live on: look through them less often
        serve(connection)  # type: ignore[operator]
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
