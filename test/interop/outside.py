"""Uses py-lean-pq directly, without any code of this project.

    outside.py prove OUT        make a proof of two signatures, write OUT/proof.bin and OUT/claims.json
    outside.py check DIR        check every DIR/*.proof and compare its claims with DIR/*.json

Runs with the Python of the prover environment.
"""

import json
import pathlib
import sys

import py_lean_pq as pq


def prove(out: pathlib.Path) -> None:
    pq.setup()
    message = bytes(range(32))
    inputs = []
    for seed in (b"\x11" * 32, b"\x22" * 32):
        key = pq.XmssSecretKey.from_seed(seed)
        inputs.append((key.public_key, message, key.sign(message, 3)))
    proof = pq.aggregate(xmss=inputs)
    (out / "proof.bin").write_bytes(proof.to_bytes())
    claims = [{"public_key": k.hex(), "message": m.hex()} for k, m in proof.xmss_claims]
    (out / "claims.json").write_text(json.dumps(claims))
    print(f"proof of {len(claims)} signatures, {len(proof.to_bytes())} bytes")


def check(folder: pathlib.Path) -> None:
    pq.setup()
    files = sorted(folder.glob("*.proof"))
    if not files:
        raise SystemExit(f"no *.proof in {folder}")
    for file in files:
        want = json.loads(file.with_suffix(".json").read_text())
        proof = pq.Aggregate.from_bytes(file.read_bytes())
        got = sorted((k.hex(), m.hex()) for k, m in proof.xmss_claims)
        root = want["data_root"].removeprefix("0x")
        expected = sorted((key.removeprefix("0x"), root) for key in want["public_keys"])
        if got != expected:
            raise SystemExit(f"{file.name}: claims differ: {got} instead of {expected}")
        if proof.sphincs_claims:
            raise SystemExit(f"{file.name}: claims of another scheme: {proof.sphincs_claims}")
        print(f"{file.name}: accepted, {len(got)} claims as published")


if __name__ == "__main__":
    command, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    {"prove": prove, "check": check}[command](folder)
