"""Traces of a devnet in a real OpenTelemetry Collector.

Standard library only. What it shows, in order:

1. over OTLP/gRPC and over OTLP/HTTP the spans of every node arrive at a collector built from the collector's own
   modules (test/otelcol): the jobs and the checks of aggregates, complete, with their attributes, in whole trees, as many
   as the devnet itself counted; jobs over one data root share a trace whoever ran them;
2. a collector that accepts connections and never answers holds up neither the network nor the end of a node.
"""

import argparse
import collections
import contextlib
import datetime
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from harness import ROOT, passed, step

COLLECTOR = ROOT / "build/otelcol"
NODES = {"aggnode_0", "aggnode_1", "aggnode_2", "aggnode_3", "observer_0"}
SLOT = 4  # seconds, the shortest that a network may have
WARMUP = 2  # slots that a devnet runs before it measures
CLOCK_SLACK = 1_000_000  # ns between times of one node: span ends come from the monotonic clock, stated times do not
STOP_LIMIT = 10  # seconds from the signal to the last line of a node: 4 are the exporter's, and a devnet kills after 15
SHORT_ROOT = re.compile("[0-9a-f]{8}")

Span = collections.namedtuple("Span", "node scope name trace id parent start end attributes failed")


def require(condition, text):
    if not condition:
        raise SystemExit(f"traces: {text}")


# --- processes


def build_collector():
    """Builds the collector once; that takes minutes, so at the lowest priority."""
    sources = [ROOT / "test/otelcol" / name for name in ("go.mod", "go.sum", "main.go")]
    if COLLECTOR.exists() and COLLECTOR.stat().st_mtime >= max(s.stat().st_mtime for s in sources):
        return
    print("building the collector, once, some minutes", flush=True)
    subprocess.run(["nice", "-n", "19", "go", "build", "-C", ROOT / "test/otelcol", "-o", COLLECTOR, "."],
                   check=True, timeout=1800)
    os.utime(COLLECTOR)  # go keeps the file when its content is the same


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]


@contextlib.contextmanager
def collector(work):
    """A running collector: yields its process, endpoints and files by transport. Each transport has a file of its own."""
    endpoints, files, config = {}, {}, {"receivers": {}, "exporters": {}, "service": {"pipelines": {}, "telemetry": {
        "metrics": {"level": "none"}, "logs": {"level": "warn"}}}}
    ports = free_ports(2)
    for transport, port in zip(("grpc", "http"), ports):
        endpoints[transport], files[transport] = f"{transport}://127.0.0.1:{port}", work / f"{transport}.jsonl"
        config["receivers"][f"otlp/{transport}"] = {"protocols": {transport: {"endpoint": f"127.0.0.1:{port}"}}}
        config["exporters"][f"file/{transport}"] = {"path": str(files[transport])}
        config["service"]["pipelines"][f"traces/{transport}"] = {
            "receivers": [f"otlp/{transport}"], "exporters": [f"file/{transport}"]}
    (work / "otelcol.yaml").write_text(json.dumps(config, indent=2))  # JSON is YAML
    with open(work / "otelcol.log", "w") as log:
        process = subprocess.Popen([COLLECTOR, work / "otelcol.yaml"], stdout=log, stderr=subprocess.STDOUT)
    try:
        for port in ports:
            wait_for_listener(process, port, work / "otelcol.log")
        yield process, endpoints, files
    finally:
        process.kill()  # does nothing to one that has ended
        process.wait()


def wait_for_listener(process, port, log):
    deadline = time.monotonic() + 30
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        require(process.poll() is None, f"the collector ended:\n{log.read_text()}")
        require(time.monotonic() < deadline, f"the collector does not listen:\n{log.read_text()}")
        time.sleep(0.1)


@contextlib.contextmanager
def silent_listener():
    """Yields a port that accepts every connection and answers nothing, and the list of what it accepted."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        accepted = []

        def accept():
            with contextlib.suppress(OSError):  # shutdown ends it
                while True:
                    accepted.append(stack.enter_context(listener.accept()[0]))

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield listener.getsockname()[1], accepted
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def devnet(aggnode, folder, slots, otlp):
    """Runs a devnet whose nodes send traces to otlp; returns its summary. Its coverage is not our subject."""
    folder.mkdir()
    args = [aggnode, "devnet", "--backend", "bundle", "--scheme", "blake2s", "--nodes", 4, "--validators", 8,
            "--committees", 2, "--slots", slots, "--slot-duration", f"{SLOT}s", "--plain", "--otlp", otlp,
            "--dir", folder / "network", "--json", folder / "summary.json"]
    args = [str(a) for a in args]
    print("$", " ".join(args), flush=True)
    done = subprocess.run(args, text=True, capture_output=True, timeout=SLOT * (WARMUP + slots) + 90)
    require(done.returncode in (0, 1), f"exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    summary = json.loads((folder / "summary.json").read_text())
    require(summary["errors"] == 0, f"errors in the devnet: {summary.get('error_lines')}")
    return summary


def node_log(folder, node):
    text = (folder / "network/data" / node / "stdout.log").read_text()
    return [json.loads(line) for line in text.splitlines()]


# --- spans


def attributes(pairs):
    out = {}
    for pair in pairs:
        (kind, value), = pair["value"].items()
        out[pair["key"]] = int(value) if kind == "intValue" else value
    return out


def read_spans(file):
    spans = []
    for line in file.read_text().splitlines():
        for batch in json.loads(line)["resourceSpans"]:
            resource = attributes(batch["resource"]["attributes"])
            require(resource["service.name"] == "aggnode" and resource["service.version"], f"resource {resource}")
            for scope in batch["scopeSpans"]:
                for s in scope["spans"]:
                    spans.append(Span(
                        resource["service.instance.id"], scope["scope"]["name"], s["name"], s["traceId"], s["spanId"],
                        s.get("parentSpanId") or None, int(s["startTimeUnixNano"]), int(s["endTimeUnixNano"]),
                        attributes(s.get("attributes", [])), s.get("status", {}).get("code", 0) == 2))
    return spans


def check_trees(spans):
    """Every span has its parent in the file, in its own node and trace; returns the children by span."""
    by_id = {s.id: s for s in spans}
    require(len(by_id) == len(spans), "a span was sent twice")
    orphans = collections.Counter(f"{s.scope} {s.name}" for s in spans if s.parent and s.parent not in by_id)
    require(not orphans, f"spans whose parent is not in the file: {dict(orphans)}")
    children = collections.defaultdict(list)
    for s in spans:
        require(s.start <= s.end, f"ends before it starts: {s}")
        if s.parent:
            parent = by_id[s.parent]
            require((s.node, s.trace) == (parent.node, parent.trace), f"of another node or trace than its parent: {s}")
            require(s.start >= parent.start - CLOCK_SLACK, f"starts before its parent: {s}")
            children[parent.id].append(s)
    return children


def of_kind(spans, scope, name, *keys):
    found = [s for s in spans if (s.scope, s.name) == (scope, name)]
    require(found, f"no span {name} of {scope}")
    for s in found:
        missing = [k for k in keys if k not in s.attributes]
        require(not missing, f"{scope} {name} without {missing}: {s}")
        require("data_root" not in keys or SHORT_ROOT.fullmatch(s.attributes["data_root"]), f"data root: {s}")
    return found


def check_jobs(spans, children, summary):
    """Jobs are roots with a child for each part; as many were published as the devnet counted."""
    jobs = of_kind(spans, "aggnode/aggregate", "job",
                   "slot", "data_root", "trigger", "raw", "children", "participants", "outcome")
    for job in jobs:
        require(job.parent is None, f"a job below another span: {job}")
        parts = collections.Counter(c.name for c in children[job.id])
        require(all(parts[name] == 1 for name in ("snapshot", "plan", "wait")), f"parts {dict(parts)} of {job}")
        if job.attributes["outcome"] == "published":
            require(parts["prove"] == parts["check"] == 1 and parts["publish"] >= 1, f"parts {dict(parts)} of {job}")
            require(not job.failed, f"published, but failed: {job}")
            require(all(c.end <= job.end + CLOCK_SLACK for c in children[job.id]), f"a part outlives {job}")
            check, = (c for c in children[job.id] if c.name == "check")
            require([c.name for c in children[check.id]] == ["aggregate"], f"the self-check went round the pipeline: {job}")
    published = [j for j in jobs if j.attributes["outcome"] == "published"]
    require(len(published) >= summary["aggregates_published"] > 0,
            f"{len(published)} jobs published, the devnet counted {summary['aggregates_published']}")
    return jobs


def check_aggregates(spans, children, summary):
    """Each aggregate has one span; where its proof was checked, the check is below it."""
    aggregates = of_kind(spans, "aggnode/pipeline", "aggregate", "slot", "data_root", "class", "size", "verdict", "reason")
    of_kind(spans, "aggnode/verify", "verify.aggregate", "slot", "data_root", "participants", "proof_bytes", "reason")
    for a in aggregates:
        if a.attributes["verdict"] == "accept":
            below = [(c.name, [(d.scope, d.name) for d in children[c.id]]) for c in children[a.id]]
            require(below == [("check", [("aggnode/verify", "verify.aggregate")])], f"accepted with {below} below: {a}")
    seen = [a for a in aggregates if a.node == "observer_0" and a.attributes["verdict"] == "accept"]
    require(len(seen) >= summary["aggregates_verified"] > 0,
            f"{len(seen)} aggregates accepted at the observer, the devnet counted {summary['aggregates_verified']}")
    return aggregates


def check_shared_traces(jobs, aggregates):
    """One data root, one trace, and the other way round, on all nodes: those that make aggregates and those that check."""
    traces, nodes = collections.defaultdict(set), collections.defaultdict(set)
    for s in jobs + aggregates:
        key = s.attributes["slot"], s.attributes["data_root"]
        traces[key].add(s.trace)
        nodes[key].add((s.name, s.node))
    require(all(len(t) == 1 for t in traces.values()), f"data roots with several traces: {dict(traces)}")
    require(len({t for ts in traces.values() for t in ts}) == len(traces), "a trace holds several data roots")
    shared = sum({("job", "aggnode_0"), ("job", "aggnode_1"), ("aggregate", "observer_0")} <= n for n in nodes.values())
    require(shared, f"no data root had jobs on both aggregators and was checked by the observer: {dict(nodes)}")
    return shared


def check_file(transport, file, summary):
    spans = read_spans(file)
    require({s.node for s in spans} == NODES, f"spans of {sorted({s.node for s in spans})}")
    children = check_trees(spans)
    jobs = check_jobs(spans, children, summary)
    aggregates = check_aggregates(spans, children, summary)
    shared = check_shared_traces(jobs, aggregates)
    return (f"OTLP/{transport}: {len(spans)} spans of {len(NODES)} nodes, {len(jobs)} jobs and {len(aggregates)} aggregates "
            f"in whole trees, {shared} data roots traced across nodes")


# --- checks


def answering(aggnode, work):
    with collector(work) as (process, endpoints, files):
        summaries = {}
        for transport, slots in (("grpc", 2), ("http", 1)):
            summaries[transport] = devnet(aggnode, work / transport, slots, endpoints[transport])
            for node in NODES:
                lost = [r for r in node_log(work / transport, node) if "spans" in r]
                require(not lost, f"{node} lost spans: {lost}")
        process.send_signal(signal.SIGTERM)
        require(process.wait(timeout=30) == 0, f"the collector failed:\n{(work / 'otelcol.log').read_text()}")
    for transport, summary in summaries.items():
        step(check_file(transport, files[transport], summary))


def silent(aggnode, work):
    for transport in ("grpc", "http"):
        folder = work / f"silent-{transport}"
        with silent_listener() as (port, accepted):
            summary = devnet(aggnode, folder, 1, f"{transport}://127.0.0.1:{port}")
            require(len(accepted) >= len(NODES), f"only {len(accepted)} connections to the silent collector")
        require(summary["aggregates_verified"] > 0, "nothing was aggregated")
        slowest = 0
        for node in NODES:
            log = node_log(folder, node)
            times = {r["msg"]: datetime.datetime.fromisoformat(r["time"]) for r in log}
            # The exporter is the last to stop, and says that it gave up: a node that was killed has no such line.
            require("stopped" in times and "trace spans dropped at shutdown" in times,
                    f"{node} did not stop by itself: {log[-3:]}")
            took = (max(times.values()) - times["stopping"]).total_seconds()
            require(took <= STOP_LIMIT, f"{node} took {took:.1f} s to stop")
            slowest = max(slowest, took)
        step(f"a silent collector ({transport}) holds nothing up: all nodes stopped within {slowest:.1f} s")


def check(aggnode, work):
    """Does everything in the folder work; ends the program with a text when something does not hold."""
    build_collector()
    answering(aggnode, work)
    silent(aggnode, work)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--aggnode", default=ROOT / "bin/aggnode", type=pathlib.Path)
    parser.add_argument("--keep", metavar="DIR", type=pathlib.Path, help="keep files here, an empty or new folder")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is stopped then, too
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        work = args.keep or pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="aggnode-traces-")))
        work.mkdir(parents=True, exist_ok=True)
        check(args.aggnode.resolve(), work.resolve())
    print(f"{passed()} passed, 0 failed")
    print(f"traces took {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
