# Test only: PyPI py_lean_multisig 0.4.0, an older leanVM over KoalaBear, as a second backend of the prover protocol. Run:
#
#     python -I -B leanmultisig_child.py PATH-OF-leanpq_child.py
#
# The frames are those of the shipped child; this file is what differs: proofs do not list their claims, keys stand in
# the order of their field elements, and inputs must not overlap.
import importlib.util
import struct
import sys

spec = importlib.util.spec_from_file_location("child", sys.argv[1])
child = importlib.util.module_from_spec(spec)
spec.loader.exec_module(child)


def order(key):
    return struct.unpack("<8I", key)


class LeanMultisig:
    name, scheme, signature_size = "lean-multisig", "koalabear", 1212
    max_children, max_raw, min_inputs = 2, 256, 1
    flags = child.SAMPLES_FLAG
    memory = (1300 << 20, 200 << 20, 5 << 20, 600 << 20)

    def __init__(self):
        try:
            import py_lean_multisig
        except ImportError as e:
            raise child.Refusal(child.BACKEND_MISSING, str(e)) from None
        self.lib = py_lean_multisig
        self.revision = "py_lean_multisig " + py_lean_multisig.__version__
        self.prover, self.verifier = self.lib.Prover(), self.lib.Verifier()

    def own_answers(self):
        message = bytes(range(32))
        raws = self.sample(2, 1, message)
        claims, _, proof = self.prove(1, message, raws, [])
        claim = (1, message, [k for k, _ in claims])
        accepted = self.check(claim, proof)[0] == claims
        altered = bytearray(proof)
        altered[len(proof) // 2] ^= 1
        try:
            self.check(claim, bytes(altered))
            refused = False
        except child.Refusal:
            refused = True
        return int(accepted), int(refused)

    def signature_fault(self, epoch, message, key, signature):
        try:
            self.lib.verify(self.lib.PublicKey.from_bytes(key), message, self.lib.Signature.from_bytes(signature), epoch)
        except (self.lib.LeanMultisigError, ValueError) as e:
            return str(e)
        return None

    def keys(self, keys):
        return [self.lib.PublicKey.from_bytes(k) for k in sorted(keys, key=order)]

    def check(self, claim, proof):
        epoch, message, keys = claim
        try:
            aggregate = self.lib.AggregatedSignature.from_bytes(proof)
            if aggregate.to_bytes() != proof:
                raise child.Refusal(child.INVALID_PROOF, "not the canonical encoding")
            self.verifier.verify(self.keys(keys), message, aggregate, epoch)
        except (self.lib.LeanMultisigError, ValueError) as e:
            raise child.Refusal(child.INVALID_PROOF, str(e)) from None
        return [(k, message) for k in keys], 0

    def prove(self, epoch, message, raws, children):
        inner = [(self.keys(claim[2]), self.lib.AggregatedSignature.from_bytes(proof)) for claim, proof in children]
        try:
            keys, aggregate = self.prover.aggregate(
                [self.lib.PublicKey.from_bytes(k) for k, _ in raws],
                [self.lib.Signature.from_bytes(s) for _, s in raws], message, epoch, children=inner)
        except self.lib.LeanMultisigError as e:
            raise child.Refusal(child.INTERNAL, str(e)) from None
        return [(k, message) for k in sorted(k.to_bytes() for k in keys)], 0, aggregate.to_bytes()

    def sample(self, n, epoch, message):
        out = []
        for i in range(n):
            secret, public = self.lib.keygen(bytes([i + 1]) * 32, 0, 8)
            out.append((public.to_bytes(), self.lib.sign(secret, message, epoch, rng_seed=bytes(32)).to_bytes()))
        return out


child.main(LeanMultisig)
