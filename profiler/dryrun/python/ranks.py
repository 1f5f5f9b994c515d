# Starts a program once for each rank, as torchrun would, and ends with the first that fails.
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

FIRST_GRACE, LAST_GRACE = 2.0, 10.0  # seconds: for others to fail by themselves, and to write what they have


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def end(children, number):
    for child in children.values():
        try:
            os.kill(child.pid, number)
        except ProcessLookupError:
            pass


def main():
    spec, program = json.loads(pathlib.Path(sys.argv[1]).read_text()), sys.argv[2:]
    port = str(free_port())
    # A signal that comes to all of them is theirs; this process ends when they have.
    heard = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda which, frame: heard.append(which))
    children = {}
    for rank in spec["ranks"]:
        environment = {**os.environ, **rank["environment"], "MASTER_PORT": port}
        try:
            children[rank["rank"]] = subprocess.Popen(program, env=environment)
        except OSError as fault:
            print(f"{program[0]}: {fault.strerror}", file=sys.stderr)
            end(children, signal.SIGKILL)
            sys.exit(127)
    folders = {rank["rank"]: pathlib.Path(rank["folder"]) for rank in spec["ranks"]}
    by_process = {child.pid: rank for rank, child in children.items()}
    code, failed_at, told = 0, None, 0
    while children:
        try:
            process, status, usage = os.wait4(-1, os.WNOHANG if failed_at is not None else 0)
        except InterruptedError:
            continue
        if process == 0:
            waited = time.monotonic() - failed_at
            if told == 0 and waited > FIRST_GRACE:
                end(children, signal.SIGTERM)
                told = 1
            elif told == 1 and waited > FIRST_GRACE + LAST_GRACE:
                end(children, signal.SIGKILL)
                told = 2
            time.sleep(0.02)
            continue
        if process not in by_process:
            continue
        rank = by_process[process]
        children.pop(rank).returncode = 0  # reaped here
        ended = os.waitstatus_to_exitcode(status)
        (folders[rank] / "ended.json").write_text(json.dumps(
            {"exit_code": ended if ended >= 0 else 128 - ended, "signal": max(0, -ended),
             "peak_resident_bytes": usage.ru_maxrss * 1024, "ended_by_others": failed_at is not None and told > 0}))
        (pathlib.Path(spec["exchange"]) / f"ended-{rank}").touch()
        if ended != 0 and failed_at is None:
            code, failed_at = ended, time.monotonic()
            if heard:
                continue
            how = f"exit code {ended}" if ended > 0 else f"signal {-ended}"
            print(f"shardscope dryrun: rank {rank} ended with {how}; the others are ended", file=sys.stderr)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


main()
