"""Uses py-lean-pq directly, without any code of this project.

    outside.py prove OUT        make a proof of two signatures, write OUT/proof.bin and OUT/claims.json
    outside.py check DIR        check every DIR/*.proof and compare its claims with DIR/*.json
    outside.py alter DIR        write altered copies of DIR/proof.bin as DIR/altered/*.bin, and what the package says of
                                each as DIR/altered.json

Runs with the Python of the prover environment.
"""

import json
import pathlib
import random
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


def alterations(proof: bytes):
    """Copies with one fault each: bits anywhere, bits of the head, cuts, words written over, moved or said twice."""
    rnd = random.Random(1)
    head = 8 + 2 * 64 + 3 * 8 + 23 * 24  # claims, two empty lists, deferred point
    for end, times in ((len(proof), 25), (head, 12)):
        for _ in range(times):
            at = rnd.randrange(end)
            yield proof[:at] + bytes([proof[at] ^ 1 << rnd.randrange(8)]) + proof[at + 1:]
    for _ in range(8):
        yield proof[:rnd.randrange(len(proof))]
    for _ in range(8):
        at, other = (head + 8 + 24 * rnd.randrange(2000) for _ in range(2))
        yield proof[:at] + proof[other:other + 24] + proof[at + 24:]
    for _ in range(8):
        at = rnd.randrange(len(proof) - 8)
        yield proof[:at] + b"\xff" * 8 + proof[at + 8:]
    claims = proof[8:136]
    yield proof[:8] + claims[64:] + claims[:64] + proof[136:]
    yield proof[:8] + claims[:64] * 2 + proof[136:]
    yield proof


def alter(folder: pathlib.Path) -> None:
    pq.setup()
    (folder / "altered").mkdir()
    verdicts = {}
    for i, data in enumerate(alterations((folder / "proof.bin").read_bytes())):
        (folder / "altered" / f"{i}.bin").write_bytes(data)
        try:
            pq.Aggregate.from_bytes(data)
            verdicts[str(i)] = True
        except pq.LeanPqError:
            verdicts[str(i)] = False
    (folder / "altered.json").write_text(json.dumps(verdicts))
    print(f"{len(verdicts)} proofs, of which the package takes {sum(verdicts.values())}")


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
    {"prove": prove, "check": check, "alter": alter}[command](folder)
