"""Does a network leak? Runs `aggnode devnet` for some minutes and watches everything that it is made of.

Standard library only. Each --every seconds the whole process tree below the devnet is added up: resident memory (RSS, and
PSS, which counts shared pages once), threads, processes, open files, the goroutines of all nodes (go_goroutines of their
/metrics) and the control groups below the group that the devnet was started in. The first --settle seconds are left out:
caches, windows and the heap itself fill then (bundle, slots of 4 s, five nodes: from 120 to 280 MiB in 150 s). Of the rest the
medians of the first and of the last third are compared:

    memory      flat when the last third is at most 5 % and 8 MiB above the first
    threads     5 % and 4; a Go program keeps the threads that a burst made
    files       5 % and 4
    goroutines  5 % and 10
    processes, control groups: not one more

Afterwards no process of the tree may be alive, and no control group be left. Whether the network did well is the devnet's
own verdict, which is printed and is not this one: on a busy machine it may cover too few votes and leak nothing.

Exit code: 0 flat, 1 not flat or something left behind, 2 no verdict (too few samples, or no devnet at all).

    python3 test/soak/soak.py --minutes 30 --json soak.json
    python3 test/soak/soak.py --minutes 3 --backend bundle
    python3 test/soak/soak.py --minutes 60 --backend lean-pq -- --validators 8 --nodes 3
"""

import argparse
import json
import math
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "interop"))

from harness import Programs  # noqa: E402

MIB = 1 << 20

# What is compared: the allowed growth as a share, and besides that in the unit of the figure.
FIGURES = {
    "rss_bytes": (0.05, 8 * MIB),
    "pss_bytes": (0.05, 8 * MIB),
    "threads": (0.05, 4),
    "files": (0.05, 4),
    "goroutines": (0.05, 10),
    "processes": (0, 0),
    "cgroups": (0, 0),
}
LEAST = 6  # samples after settling: two in each third
START = 120  # seconds until all nodes answer: provers take 3 to 17 s each to set up
WARM_UP = 2  # slots that the devnet runs besides those asked for
GRACE = 120  # seconds from the last slot until the devnet has ended


def kib(path, names):
    """The sum of the lines "name: N kB" of a file of /proc, in bytes."""
    total = 0
    for line in pathlib.Path(path).read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in names:
            total += int(rest.split()[0]) << 10
    return total


def process(pid):
    """Memory, threads and open files of one process; None for one that is gone, or only waits to be reaped."""
    try:
        rollup = f"/proc/{pid}/smaps_rollup"
        return {
            "rss_bytes": kib(rollup, ["Rss"]),
            "pss_bytes": kib(rollup, ["Pss"]),
            "threads": len(os.listdir(f"/proc/{pid}/task")),
            "files": len(os.listdir(f"/proc/{pid}/fd")),
        }
    except (FileNotFoundError, ProcessLookupError):
        return None


def metrics_port(pid):
    """The port of a node's /metrics, from its command line; None for what is no node."""
    try:
        args = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return None
    if "run" not in args[1:2]:
        return None
    for at, arg in enumerate(args):
        if arg == "--metrics-port" and at + 1 < len(args):
            return int(args[at + 1])
        if arg.startswith("--metrics-port="):
            return int(arg.partition("=")[2])
    return None


def goroutines(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            found = re.search(rb"^go_goroutines (\S+)$", answer.read(), re.M)
            return int(float(found[1])) if found else None
    except (urllib.error.URLError, OSError):
        return None


def own_group():
    """The directory of this process's group in the v2 hierarchy; None where there is none."""
    mounts = [line.split()[1] for line in pathlib.Path("/proc/mounts").read_text().splitlines() if line.split()[2] == "cgroup2"]
    own = [line[3:] for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")]
    return pathlib.Path(mounts[0] + own[0]) if mounts and own else None


def groups(top):
    return sum(len(dirs) for _, dirs, _ in os.walk(top)) if top else 0


def sample(devnet, top, began):
    """One look at everything."""
    tree = [devnet.popen.pid, *(p.pid for p in devnet.tree())]
    each = [found for pid in tree if (found := process(pid))]
    nodes = [n for pid in tree if (port := metrics_port(pid)) and (n := goroutines(port)) is not None]
    out = {"at_s": round(time.monotonic() - began, 1), "nodes": len(nodes), "processes": len(each), "cgroups": groups(top)}
    out["goroutines"] = sum(nodes)
    for name in ("rss_bytes", "pss_bytes", "threads", "files"):
        out[name] = sum(p[name] for p in each)
    return out


def judge(samples):
    """For each figure the medians of both thirds, the growth in an hour, and whether it is flat."""
    third = len(samples) // 3
    first, last = samples[:third], samples[-third:]
    hours = (statistics.median(s["at_s"] for s in last) - statistics.median(s["at_s"] for s in first)) / 3600
    out = {}
    for name, (share, slack) in FIGURES.items():
        a, b = (statistics.median(s[name] for s in part) for part in (first, last))
        out[name] = {"first": a, "last": b, "per_hour": round((b - a) / hours, 1), "flat": b <= a * (1 + share) + slack}
    return out


def show(name, value):
    return f"{value / MIB:10.1f} MiB" if name.endswith("_bytes") else f"{value:10.0f}    "


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--aggnode", default=ROOT / "bin" / "aggnode", type=pathlib.Path, help="the program (default: bin/aggnode)")
    p.add_argument("--minutes", default=30.0, type=float, help="length of the measured slots (default: 30)")
    p.add_argument("--backend", default="lean-pq", choices=["lean-pq", "bundle"], help="prover of the nodes (default: lean-pq)")
    p.add_argument("--slot-duration", default=0, type=int, help="seconds (default: 12 with lean-pq, 4 with bundle)")
    p.add_argument("--every", default=10.0, type=float, help="seconds between samples (default: 10)")
    p.add_argument("--settle", default=180.0, type=float, help="seconds left out once all nodes answer (default: 180)")
    p.add_argument("--json", type=pathlib.Path, help="write figures, verdict and all samples to this file")
    p.add_argument("devnet", nargs="*", metavar="-- FLAG", help="more flags of `aggnode devnet`")
    args = p.parse_args()
    slot = args.slot_duration or {"lean-pq": 12, "bundle": 4}[args.backend]
    slots = max(1, math.ceil(args.minutes * 60 / slot))
    top = own_group()
    groups_before = groups(top)

    with tempfile.TemporaryDirectory(prefix="aggnode-soak-") as folder, Programs() as programs:
        folder = pathlib.Path(folder)
        devnet = programs.start(
            "devnet",
            [args.aggnode, "devnet", "--plain", "--backend", args.backend, "--slots", slots, "--slot-duration", f"{slot}s",
             "--json", folder / "summary.json", *args.devnet],
            folder / "devnet.log",
        )  # fmt: skip
        began = time.monotonic()
        end = began + START + (slots + WARM_UP) * slot + GRACE
        samples, settled = [], None
        for n in range(1, 1 << 30):
            time.sleep(max(0.0, began + n * args.every - time.monotonic()))
            if devnet.popen.poll() is not None or time.monotonic() > end:
                break
            now = sample(devnet, top, began)
            samples.append(now)
            if settled is None and now["nodes"] > 0 and now["nodes"] == max(s["nodes"] for s in samples[-3:]) and len(samples) > 2:
                settled = now["at_s"] + args.settle
            print(f"{now['at_s']:7.0f} s  {now['nodes']} nodes  pss {now['pss_bytes'] / MIB:7.1f} MiB  rss {now['rss_bytes'] / MIB:7.1f} MiB  "
                  f"{now['threads']} threads  {now['processes']} processes  {now['goroutines']} goroutines  {now['files']} files  "
                  f"{now['cgroups']} groups", flush=True)  # fmt: skip
        code = devnet.popen.poll()
        left = devnet.left()
        groups_left = groups(top) - groups_before
        print("\n".join(devnet.text().splitlines()[-12:]))
        summary = folder / "summary.json"
        report = {
            "backend": args.backend, "minutes": args.minutes, "slot_s": slot, "settle_s": args.settle,
            "devnet_exit": code, "processes_left": left, "cgroups_left": groups_left,
            "devnet": json.loads(summary.read_text()) if summary.exists() else None,
        }  # fmt: skip

    # The last samples may have met a network that was going down.
    full = max((s["nodes"] for s in samples), default=0)
    kept = [s for s in samples if settled is not None and s["at_s"] >= settled]
    while kept and kept[-1]["nodes"] < full:
        kept.pop()
    report["samples"] = samples
    enough = len(kept) >= LEAST and code is not None
    if enough:
        report["figures"] = judge(kept)
        report["flat"] = all(f["flat"] for f in report["figures"].values()) and not left and groups_left == 0
        print(f"\n{'medians':12}{'first third':>14}{'last third':>14}{'growth an hour':>18}")
        for name, f in report["figures"].items():
            print(f"{name:12}{show(name, f['first'])}{show(name, f['last'])}    {show(name, f['per_hour'])}  {'flat' if f['flat'] else 'GROWS'}")
        print(f"left behind: {len(left)} processes, {groups_left} control groups")
        print("flat" if report["flat"] else "not flat")
    else:
        print(f"no verdict: {len(kept)} samples after settling, {LEAST} needed; the devnet's exit code is {code}")
    if args.json:
        args.json.write_text(json.dumps(report, indent=1) + "\n")
    return (0 if report["flat"] else 1) if enough else 2


if __name__ == "__main__":
    sys.exit(main())
