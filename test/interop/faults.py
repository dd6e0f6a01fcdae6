"""Faults of the real program with real proofs, end to end.

Standard library only. One network of two nodes with lean-pq (node 0 aggregates) runs while its children are stopped and
killed, then the nodes themselves; a third node has a prover that never answers. In order:

1. while the network waits for its genesis: kill -9 and Ctrl-C of a devnet, of which nothing may be left;
2. an aggregate of all votes is published by node 0 and verified at node 1;
3. prover child stopped, then killed in mid-proof: votes are verified all the same, the job ends with its reason, a new
   child serves, the next slots have their aggregate; meanwhile the node with the silent prover does what it can;
4. verifier child of node 1 killed, then stopped: the aggregate is checked by the spare or ignored, never rejected;
5. kill -9 of node 0 in mid-proof leaves no child a second later; node 1 drains on SIGTERM;
6. two devnets at once.

Every wait has a deadline, and only processes that this program started, or that are below them, are signalled.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import sys
import tempfile
import time
import urllib.error
import urllib.request

from harness import ROOT, Programs, fail, passed, run, step, until

VALIDATORS = 4
SLOT = 8.0  # seconds
INTERVAL = SLOT / 5
SERVES_AGAIN = 30  # seconds: set-up of a child takes 2.5 s alone and 3 to 17 s under load (lean-pq 0.7.0, 2 cores)
GONE = 5  # seconds: a child is asked to end, and killed half a second later

# A backend that reads nothing, says nothing and does not mind being asked to end.
SILENT = """\
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    signal.pause()
"""


def free_ports(kind, n, in_a_row=False):
    """n ports of the loopback address that nobody holds at the moment."""
    for _ in range(100):
        with contextlib.ExitStack() as held:
            ports = []
            with contextlib.suppress(OSError, OverflowError):
                while len(ports) < n:
                    s = held.enter_context(socket.socket(socket.AF_INET, kind))
                    s.bind(("127.0.0.1", ports[-1] + 1 if in_a_row and ports else 0))
                    ports.append(s.getsockname()[1])
                return ports
    raise SystemExit("no free ports")


class Node:
    """A running node as its operator sees it."""

    def __init__(self, programs, aggnode, name, folder, gossip, *flags):
        self.api, self.metrics = free_ports(socket.SOCK_STREAM, 2)
        self.program = programs.start(name, [
            aggnode, "run", "--custom-network-config-dir", folder / "genesis", "--data-dir", folder / name,
            "--listen-address", "127.0.0.1", "--gossipsub-port", gossip, "--api-port", self.api,
            "--metrics-port", self.metrics, "--log-format", "json", *flags,
        ], folder / f"{name}.log")

    def get(self, port, path):
        """Status code and body; 0 from one that does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=3) as r:
                return r.status, r.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()
        except OSError:
            return 0, ""

    def ask(self, port, path):
        code, body = self.get(port, path)
        if code != 200:
            fail(f"{self.program.name}: {path} answered {code}: {body}", self.program)
        return body

    def failing(self):
        """The readiness checks that do not hold, by name; None without an answer."""
        code, body = self.get(self.metrics, "/readyz")
        return {c["name"]: c.get("detail", "") for c in json.loads(body)["failing"]} if code in (200, 503) else None

    def status(self):
        return json.loads(self.ask(self.api, "/aggnode/v1/status"))

    def total(self, name, **labels):
        """The sum of a metric's samples with these labels."""
        wanted = [f'{k}="{v}"' for k, v in labels.items()]
        samples = re.findall(rf"^{name}(?:{{(.*)}})? (\S+)", self.ask(self.metrics, "/metrics"), re.MULTILINE)
        return sum(float(v) for have, v in samples if all(w in have.split(",") for w in wanted))

    def verdicts(self, **labels):
        return int(self.total("aggnode_pipeline_verdicts_total", **labels))

    def children_ready(self, role):
        return int(self.total("aggnode_prover_ready_children", role=role))

    def aggregates(self, since):
        """Records of aggregates with this number and above, and the number of the next one."""
        page = json.loads(self.ask(self.api, f"/aggnode/v1/aggregates?since={since}&limit=256"))
        return page["aggregates"], page["next"]

    def lines(self, **fields):
        """The lines of the log with these fields."""
        found = []
        for text in self.program.text().splitlines():
            with contextlib.suppress(ValueError):
                line = json.loads(text)
                if all(line.get(k) == v for k, v in fields.items()):
                    found.append(line)
        return found

    def child(self, role):
        """The serving child: "prover" or "verifier"."""
        pid = self.status()[role].get("pid")
        for p in self.program.tree():
            if p.pid == pid:
                return p
        fail(f"{self.program.name}: {role} {pid} is no process below it", self.program)

    def serves(self, role, instead_of):
        """Whether a child of the role is ready that is not the given one."""
        now = self.status()[role]
        return now["ready"] and now.get("pid") != instead_of.pid


class Network:
    """Two nodes that share the validators; node 0 aggregates."""

    def __init__(self, programs, aggnode, folder):
        self.folder, self.aggnode, self.programs = folder, aggnode, programs
        gossip = free_ports(socket.SOCK_DGRAM, 2, in_a_row=True)
        run(aggnode, "genesis", "--out", folder / "genesis", "--insecure-devnet-keys", "--profile", "lean-pq", "--nodes", 2,
            "--committees", 1, "--validators", VALIDATORS, "--slot-duration", f"{SLOT:g}s", "--genesis-in", "25s",
            "--gossipsub-port", gossip[0])
        self.nodes = [
            # Proofs are checked in children, which natively there would be none of to lose.
            Node(programs, aggnode, f"aggnode_{i}", folder, port, "--node-id", f"aggnode_{i}", "--aggregate-verifier", "child", *flags)
            for i, (port, flags) in enumerate(zip(gossip, (["--is-aggregator"], [])))
        ]
        self.logs = [n.program for n in self.nodes]
        for n in self.nodes:
            until(f"{n.program.name} is ready", 60, lambda n=n: n.failing() == {}, *self.logs)
        self.genesis = self.nodes[0].status()["genesis_time"]

    def start_of(self, slot, interval=0):
        return self.genesis + slot * SLOT + interval * INTERVAL

    def left(self, slot, interval=0):
        """Seconds until then, and one for its traces to be there."""
        return max(self.start_of(slot, interval) - time.time(), 0) + 1

    def slot(self):
        return int((time.time() - self.genesis) // SLOT)

    def next_slot(self):
        """Waits for the start of the next slot. Its votes come an interval later."""
        slot = max(self.slot() + 1, 1)
        time.sleep(max(self.start_of(slot) + 0.1 - time.time(), 0))
        return slot

    def votes(self):
        """Votes of peers that each node accepted so far."""
        return [n.verdicts(**{"class": "attestation", "verdict": "accept"}) for n in self.nodes]

    def await_votes(self, before, slot):
        """Each node verifies the votes of the other one in a slot, all of them."""
        until(f"both nodes accept the votes of slot {slot}", self.left(slot + 1),
              lambda: all(now >= was + VALIDATORS // 2 for now, was in zip(self.votes(), before)), *self.logs)

    def await_aggregate(self, since, first, last):
        """An aggregate of all votes of one of these slots, verified at node 1 before the last of them has passed."""
        return until(f"node 1 verifies an aggregate of all votes of slot {first} to {last}", self.left(last + 1), lambda: [
            a for a in self.nodes[1].aggregates(since)[0]
            if a["source"] == "gossip" and first <= a["slot"] <= last and a["participants"] == VALIDATORS
        ], *self.logs)[0]["slot"]

    def await_job(self):
        """A job of the next slot that is past the checks of its signatures, and the prover that it runs in."""
        slot, node = self.next_slot(), self.nodes[0]
        time.sleep(max(self.start_of(slot, 1) - time.time(), 0))
        until(f"a job runs in slot {slot}", self.left(slot, 4), lambda: node.status()["prover"]["running"], *self.logs)
        time.sleep(0.2)
        child = node.child("prover")
        if not node.status()["prover"]["running"]:
            fail(f"the job of slot {slot} took too short to be disturbed", *self.logs)
        return slot, child

    def job_end(self, outcome, error):
        """The log line of a job that ended so."""
        return until(f"a job ends as {outcome} with {error!r}", SLOT, lambda: [
            line for line in self.nodes[0].lines(msg="job ended", outcome=outcome) if error in line.get("error", "")
        ], *self.logs)[-1]

    def rejects_nothing(self):
        for n in self.nodes:
            if n.verdicts(verdict="reject"):
                fail(f"{n.program.name} rejected honest messages", *self.logs)


def prover_stopped(net):
    slot, node = net.next_slot(), net.nodes[0]
    before, (_, since), child = net.votes(), net.nodes[1].aggregates(0), node.child("prover")
    child.signal(signal.SIGSTOP)
    net.await_votes(before, slot)
    if not child.is_alive():
        fail("the stopped prover was gone before the votes were verified", *net.logs)
    step("prover stopped: votes are verified at both nodes")
    line = net.job_end("timed_out", "stuck")
    until("a new prover serves", SERVES_AGAIN, lambda: node.serves("prover", child), *net.logs)
    until("the stopped prover is gone, whose spare serves already", GONE, lambda: not child.is_alive(), *net.logs)
    again = net.await_aggregate(since, slot, slot + 2)
    step(f"prover stopped in slot {slot}: job ended as {line['outcome']} ({line['error']}), aggregate of slot {again} verified")


def prover_killed(net):
    (_, since), node = net.nodes[1].aggregates(0), net.nodes[0]
    slot, child = net.await_job()
    before = net.votes()
    child.signal(signal.SIGKILL)
    line = net.job_end("crashed", "signal 9")
    until("a new prover serves", SERVES_AGAIN, lambda: node.serves("prover", child), *net.logs)
    net.await_votes(before, slot + 1)
    again = net.await_aggregate(since, slot, slot + 2)
    step(f"prover killed in mid-proof of slot {slot}: job ended as {line['outcome']} ({line['error']}), "
         f"votes verified, aggregate of slot {again} verified")


def verifier_gone(net, how):
    """The next aggregate is checked by the spare or ignored, one of a later slot is verified again."""
    node = net.nodes[1]
    until("verifier and spare are ready at node 1", SERVES_AGAIN, lambda: node.children_ready("verify") == 2, *net.logs)
    slot = net.next_slot()
    child, (_, since) = node.child("verifier"), node.aggregates(0)

    def fate():
        return (node.verdicts(**{"class": "aggregate", "verdict": "accept"}),
                node.verdicts(**{"class": "aggregate", "verdict": "ignore", "reason": "verifier_unavailable"}))

    before = fate()
    child.signal(how)
    # The new spare sets itself up on all cores before a prover of the lowest priority has its turn: the slot may pass.
    after = until("the next aggregate is checked or ignored", net.left(slot + 3),
                  lambda: (now := fate()) != before and now, *net.logs)
    told = "verified by the spare" if after[0] > before[0] else "ignored as verifier_unavailable"
    hit = max(a["slot"] for a in net.nodes[0].aggregates(0)[0] if a["source"] == "own")
    until("another verifier serves", SERVES_AGAIN, lambda: node.serves("verifier", child), *net.logs)
    later = net.await_aggregate(since, hit + 1, hit + 2)
    net.rejects_nothing()
    until("the lost verifier is gone", GONE, lambda: not child.is_alive(), *net.logs)
    step(f"{how.name} to the verifier in slot {slot}: aggregate of slot {hit} {told}, that of slot {later} verified")


def start_silent(net):
    """A node whose backend never says that it is ready."""
    script = net.folder / "silent.py"
    script.write_text(SILENT)
    node = Node(net.programs, net.aggnode, "silent", net.folder, free_ports(socket.SOCK_DGRAM, 1)[0], "--is-aggregator",
                "--aggregate-subnet-ids", 0, "--backend", "command", "--prover-command", f"{sys.executable},{script}")
    until("the silent node answers", 20, lambda: node.failing() is not None, node.program)
    return node


def silent_prover(net, node):
    accepted = until("the node without prover verifies votes", 2 * SLOT, lambda: (
        n := node.verdicts(**{"class": "attestation", "verdict": "accept"})) >= VALIDATORS and n, node.program)
    code, body = node.get(node.metrics, "/readyz")
    failing = node.failing()
    if code != 503 or not {"prover", "verifier"} <= failing.keys():
        fail(f"/readyz of the node without prover: {code} {body}", node.program)
    if node.verdicts(verdict="reject"):
        fail("the node without prover rejected honest messages", node.program)
    drain(node, "silent prover and verifier", f"{accepted} votes verified, /readyz names {sorted(failing)}, ")


def drain(node, name, text=""):
    """SIGTERM: the node drains and ends well, with nobody left below it."""
    began, children = time.monotonic(), len(node.program.tree())
    if not children:
        fail(f"{name}: no children were found", node.program)
    node.program.signal(signal.SIGTERM)
    if code := node.program.exit_code(10):
        fail(f"{name}: exit code {code} after SIGTERM", node.program)
    took = time.monotonic() - began
    if left := node.program.left():
        fail(f"{name}: processes {left} are left after SIGTERM", node.program)
    if (last := node.lines(level="INFO")[-1])["msg"] != "stopped":
        fail(f"{name}: its last words are {last}", node.program)
    step(f"{name}: {text}SIGTERM ended it and its {children} children in {took:.1f} s with code 0")


def node_killed(net):
    _, prover = net.await_job()
    program = net.nodes[0].program
    tree = program.tree()
    if prover not in tree or len(tree) < 3:
        fail(f"prover, verifier and spare should be below node 0, there is {tree}", program)
    program.kill()
    time.sleep(1)
    if left := program.left():
        fail(f"a second after kill -9 of node 0 in mid-proof, processes {left} are left", program)
    step(f"kill -9 of node 0 in mid-proof: none of its {len(tree)} children is there a second later")


class Devnets:
    """Devnets with the embedded backend, their temporary folders in a place of their own."""

    def __init__(self, programs, aggnode, work):
        self.programs, self.aggnode, self.work, self.tmp = programs, aggnode, work, work / "tmp"
        self.tmp.mkdir()

    def start(self, name, slots, *flags):
        return self.programs.start(name, [
            self.aggnode, "devnet", "--backend", "bundle", "--validators", 8, "--slots", slots, "--slot-duration", "4s", *flags,
        ], self.work / f"{name}.log", env={**os.environ, "TMPDIR": str(self.tmp)})

    def folders(self):
        return sorted(p.name for p in self.tmp.iterdir())

    def killed(self):
        p = self.start("devnet_killed", 3)
        until("the five nodes of the devnet run", 20, lambda: sum(
            f.stat().st_size > 0 for f in self.tmp.glob("*/data/*/stdout.log")) == 5, p)
        nodes = len(p.tree())
        if nodes < 5:
            fail(f"only {nodes} processes are below the devnet", p)
        p.kill()
        until("no process of the killed devnet is left", 2, lambda: not p.left(), p)
        step(f"kill -9 of a devnet: none of its {nodes} processes is there two seconds later")

    def interrupted(self):
        p = self.start("devnet_interrupted", 3)
        until("the devnet is past its genesis", 30, lambda: "genesis: " in p.text(), p)
        if (nodes := len(p.tree())) != 5:
            fail(f"{nodes} processes are below the devnet, expected 5", p)
        began = time.monotonic()
        p.signal(signal.SIGINT)
        if (code := p.exit_code(20)) != 130:
            fail(f"exit code {code} of the devnet after Ctrl-C, expected 130", p)
        took = time.monotonic() - began
        if left := p.left():
            fail(f"processes {left} of the devnet are left after Ctrl-C", p)
        if folders := self.folders():
            fail(f"temporary folders {folders} are left after Ctrl-C", p)
        step(f"Ctrl-C to a devnet: code 130 after {took:.2f} s, nothing is left, not even the folder of the one killed before")

    def two(self):
        files = [self.work / f"devnet_{i}.json" for i in (1, 2)]
        devnets = [self.start(f.stem, 2, "--json", f) for f in files]
        until("the devnets run", 30, lambda: all(len(p.tree()) >= 5 for p in devnets), *devnets)
        for p in devnets:
            if code := p.exit_code(60):
                fail(f"exit code {code} of {p.name}", *devnets)
        if left := [pid for p in devnets for pid in p.left()] or self.folders():
            fail(f"{left} is left after two devnets", *devnets)
        coverage = [json.loads(f.read_text())["coverage"] for f in files]
        step(f"two devnets at once: both end with code 0 (coverage {coverage[0]:.2f} and {coverage[1]:.2f}), nothing is left")


def check(aggnode, work):
    """Runs everything with a program whose prover is installed, in an empty folder."""
    with Programs() as programs:
        devnets = Devnets(programs, aggnode, work)
        net = Network(programs, aggnode, work / "network")
        devnets.killed()
        devnets.interrupted()
        slot = net.await_aggregate(0, 1, max(net.slot(), 0) + 3)
        step(f"aggregate of all {VALIDATORS} votes of slot {slot} published by node 0, verified at node 1")
        silent = start_silent(net)
        prover_stopped(net)
        silent_prover(net, silent)
        prover_killed(net)
        verifier_gone(net, signal.SIGKILL)
        verifier_gone(net, signal.SIGSTOP)
        errors = [line for n in net.nodes for line in n.lines(level="ERROR")]
        if errors:
            fail(f"lines of level error: {errors}", *net.logs)
        node_killed(net)
        drain(net.nodes[1], "node 1")
        devnets.two()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--aggnode", default=ROOT / "bin/aggnode", type=pathlib.Path)
    aggnode = parser.parse_args().aggnode.resolve()
    began = time.monotonic()
    run(aggnode, "prover", "install")
    with tempfile.TemporaryDirectory(prefix="aggnode-faults-") as work:
        check(aggnode, pathlib.Path(work))
    print(f"{passed()} passed, 0 failed")
    print(f"faults took {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
