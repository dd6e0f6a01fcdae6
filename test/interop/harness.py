"""What the end-to-end tests share: commands, steps, and programs that leave nothing behind. Standard library only."""

import collections
import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
TAIL = 40  # last lines of a log that a failure shows

_passed = 0


def run(*args, expect=0, **kw):
    args = [str(a) for a in args]
    print("$", " ".join(args), flush=True)
    done = subprocess.run(args, text=True, **kw)
    if done.returncode not in (expect if isinstance(expect, tuple) else (expect,)):
        print((done.stdout or "") + (done.stderr or ""))
        raise SystemExit(f"exit code {done.returncode}, expected {expect}: {' '.join(args)}")
    return done


def step(text):
    global _passed
    _passed += 1
    print(f"ok {_passed}: {text}", flush=True)


def passed():
    return _passed


def fail(text, *programs):
    """Ends the test, after the ends of the programs' logs."""
    for p in programs:
        print(f"--- {p.name} ({p.state()}), the end of its log:")
        print("\n".join(p.text().splitlines()[-TAIL:]), flush=True)
    raise SystemExit(f"not ok {_passed + 1}: {text}")


def until(what, seconds, probe, *programs):
    """Asks probe until its answer is true, and returns that. Fails with the logs of the programs when time is over."""
    deadline = time.monotonic() + seconds
    while not (answer := probe()):
        if time.monotonic() > deadline:
            fail(f"not within {seconds:.1f} s: {what}", *programs)
        time.sleep(0.03)
    return answer


_Stat = collections.namedtuple("_Stat", "state parent group start")


def _stat(pid):
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return _Stat(fields[0], int(fields[1]), int(fields[2]), int(fields[19]))


@dataclasses.dataclass(frozen=True)
class Process:
    """One process for life: a number is given again, but not with the same start time."""

    pid: int
    start: int

    def is_alive(self):
        """Whether it runs or is stopped. One that only waits to be reaped does neither."""
        now = _stat(self.pid)
        return now is not None and now.start == self.start and now.state not in "ZX"

    def signal(self, number):
        """Signals it, and everybody else of its process group where it leads one."""
        now = _stat(self.pid)
        if now is None or now.start != self.start:
            return
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if now.group == self.pid else os.kill)(self.pid, number)


def descendants(pid):
    """All processes below one, as a set."""
    children = collections.defaultdict(list)
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        if stat := _stat(path.name):
            children[stat.parent].append(Process(int(path.name), stat.start))
    found, todo = set(), [pid]
    while todo:
        below = children[todo.pop()]
        found.update(below)
        todo += [p.pid for p in below]
    return found


class Program:
    """A started program in a process group of its own, its output in a file."""

    def __init__(self, name, args, log, **kw):
        args = [str(a) for a in args]
        print("$", " ".join(args), "&", flush=True)
        self.name, self.log = name, log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as out:
            self.popen = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=out, stderr=out, process_group=0, **kw)
        self.seen = set()  # everybody that was ever found below it

    def text(self):
        return self.log.read_text(errors="replace")

    def state(self):
        code = self.popen.poll()
        return "running" if code is None else f"exit code {code}"

    def tree(self):
        """Everybody below it now."""
        below = descendants(self.popen.pid) if self.popen.poll() is None else set()
        self.seen |= below
        return below

    def left(self):
        """Who of those that were ever found below it still lives."""
        return sorted(p.pid for p in self.seen if p.is_alive())

    def signal(self, number):
        self.tree()
        self.popen.send_signal(number)

    def kill(self):
        """kill -9 of the program alone: what happens to those below it is its own affair."""
        self.signal(signal.SIGKILL)
        self.popen.wait()

    def exit_code(self, seconds):
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            fail(f"{self.name} has not ended within {seconds} s", self)


class Programs:
    """The programs of a test; leaving the context ends them and everybody that was found below them."""

    def __init__(self):
        self.started = []

    def start(self, *args, **kw):
        self.started.append(Program(*args, **kw))
        return self.started[-1]

    def __enter__(self):
        # A test that is told to end must still come by here.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        return self

    def __exit__(self, *_):
        for p in self.started:
            p.tree()
        for p in self.started:
            p.kill()
            for below in p.seen:
                below.signal(signal.SIGKILL)
