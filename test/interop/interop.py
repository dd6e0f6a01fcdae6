"""Interoperation with py-lean-pq and with a second backend, end to end.

Standard library only. What it shows, in order:

1. a proof made by py-lean-pq outside the node passes `aggnode verify`, with the same claims; altered ones do not;
2. the lean-pq child and a child of another leanVM line (py-lean-multisig) pass the conformance test of the prover
   protocol, and so do the Go tests that need real children;
3. every proof that the nodes of a devnet published is accepted by py-lean-pq with the claims that were gossiped;
4. traces of aggregates and jobs reach a real OpenTelemetry Collector (traces.py);
5. children and nodes that are killed, stopped or never answer cost their own job and nothing else (faults.py).
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import faults
import traces
from harness import HERE, ROOT, passed, run, step


def verify(aggnode, proof, expect):
    """The answer of the native check and that of the installed package, which must be the same."""
    native, child = (json.loads(run(aggnode, "verify", "--proof", proof, "--json", *how, expect=expect, capture_output=True).stdout)
                     for how in ([], ["--child"]))
    if (native["verifier"], child["verifier"]) != ("native", "child") or native["claims"] != child["claims"]:
        raise SystemExit(f"the native check says {native}, py-lean-pq {child}")
    return native


def outside_proof(aggnode, python, work):
    run(python, "-I", HERE / "outside.py", "prove", work)
    claims = json.loads((work / "claims.json").read_text())
    answer = verify(aggnode, work / "proof.bin", 0)
    if answer["claims"] != claims or not answer["valid"]:
        raise SystemExit(f"claims differ: {answer} instead of {claims}")
    step("a proof made outside the node passes aggnode verify, native and in a child, with the same claims")

    proof = (work / "proof.bin").read_bytes()
    altered = {
        "a flipped bit in the proof": proof[:100_000] + bytes([proof[100_000] ^ 1]) + proof[100_001:],
        "a changed claim": proof[:40] + bytes([proof[40] ^ 1]) + proof[41:],
        "one byte more": proof + b"\0",
        "one byte less": proof[:-1],
        "nothing": b"",
    }
    for name, data in altered.items():
        (work / "altered.bin").write_bytes(data)
        answer = verify(aggnode, work / "altered.bin", 1)
        if answer["valid"]:
            raise SystemExit(f"accepted: {name}")
    step(f"{len(altered)} altered proofs refused by both")

    run(python, "-I", HERE / "outside.py", "alter", work)
    verdicts = json.loads((work / "altered.json").read_text())
    for name, takes in verdicts.items():
        answer = run(aggnode, "verify", "--proof", work / "altered" / f"{name}.bin", "--json", expect=0 if takes else 1, capture_output=True)
        if json.loads(answer.stdout)["valid"] != takes:
            raise SystemExit(f"altered proof {name}: the native check says {answer.stdout}, the package says {takes}")
    step(f"the native check and py-lean-pq agree on {len(verdicts)} proofs, all but one of them altered")


def multisig_python(work):
    """A virtual environment with the older leanVM line, for the conformance test only."""
    venv = work / "multisig"
    run(sys.executable, "-m", "venv", venv)
    run(venv / "bin/python", "-m", "pip", "install", "--quiet", "--only-binary=:all:", "--no-deps", "py-lean-multisig==0.4.0")
    return venv / "bin/python"


def backends(aggnode, python, work):
    run(aggnode, "prover", "check", "--backend", "lean-pq")
    step("the lean-pq child passes the conformance test")
    multisig = multisig_python(work)
    older = [aggnode, "prover", "check", "--", multisig, "-I", "-B", ROOT / "prover/testdata/leanmultisig_child.py",
             ROOT / "prover/leanpq_child.py"]
    try:
        run(*older)
    except SystemExit as e:
        # Of the bytes of a proof of this older package its verifier reads all but about one in a thousand: of single bits
        # changed at 3,928 places of three proofs, one check at a time, it took four. The test changes 24, so one run in forty
        # fails for that. The lean-pq child is not tried twice: it never failed so.
        print(f"once more, for that: {e}", flush=True)
        run(*older)
    step("a child of another leanVM line passes the same test")
    env = dict(os.environ, AGGNODE_TEST_LEANPQ_PYTHON=str(python), AGGNODE_TEST_LEANMULTISIG_PYTHON=str(multisig),
               AGGNODE_TEST_INSTALL="1")
    run("go", "test", "-count=1", "-timeout", "20m", "-run", "LeanPQ|InstallFromTheIndex", "./prover", env=env, cwd=ROOT)
    run("go", "test", "-count=1", "-run", "AboutRealProofs", "./node", env=env, cwd=ROOT)
    step("the tests with real children pass")


def devnet(aggnode, python, work):
    proofs = work / "proofs"
    # Exit code 1 is coverage that a busy machine missed: this step is about what was published, not about its speed.
    run(aggnode, "devnet", "--backend", "lean-pq", "--validators", 8, "--committees", 2, "--slots", 2,
        "--slot-duration", "12s", "--save-proofs", proofs, "--json", work / "devnet.json", "--plain", expect=(0, 1))
    summary = json.loads((work / "devnet.json").read_text())
    if summary["aggregates_rejected"] or summary["errors"] or not summary["aggregates_verified"]:
        raise SystemExit(f"nothing verified, rejected aggregates, or errors: {summary}")
    run(python, "-I", HERE / "outside.py", "check", proofs)
    step(f"py-lean-pq accepts the proofs that the devnet published (coverage {summary['coverage']:.2f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--aggnode", default=ROOT / "bin/aggnode", type=pathlib.Path)
    aggnode = parser.parse_args().aggnode.resolve()
    started = time.monotonic()
    install = run(aggnode, "prover", "install", "--json", stdout=subprocess.PIPE)
    python = json.loads(install.stdout)["python"]
    with tempfile.TemporaryDirectory(prefix="aggnode-interop-") as tmp:
        work = pathlib.Path(tmp)
        outside_proof(aggnode, python, work)
        backends(aggnode, python, work)
        devnet(aggnode, python, work)
        for name, part in (("traces", traces.check), ("faults", faults.check)):
            (work / name).mkdir()
            part(aggnode, work / name)
    print(f"{passed()} passed, 0 failed")
    print(f"interop took {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
