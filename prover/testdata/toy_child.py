# Test only: a backend in a few lines of Python that shows the frames of the shipped child to be right without its package.
# A signature is a hash, a proof lists its claims and ends with a hash. Run:
#
#     python -I -B toy_child.py PATH-OF-leanpq_child.py
import hashlib
import importlib.util
import sys
import time

spec = importlib.util.spec_from_file_location("child", sys.argv[1])
child = importlib.util.module_from_spec(spec)
spec.loader.exec_module(child)


def digest(*parts):
    return hashlib.sha256(b"|".join(parts)).digest()


class Toy:
    name, revision, scheme, signature_size = "toy", "python", "toy", 32
    max_children, max_raw, min_inputs = 3, 20, 1
    flags = child.OVERLAP_FLAG | child.CLAIMS_FLAG | child.SAMPLES_FLAG
    memory = (16 << 20, 1 << 20, 1 << 10, 1 << 20)

    def own_answers(self):
        return 1, 1

    def sign(self, key, message, epoch):
        return digest(b"signature", key, message, epoch.to_bytes(4, "little"))

    def signature_fault(self, epoch, message, key, signature):
        return None if signature == self.sign(key, message, epoch) else "another hash"

    def check(self, claim, proof):
        body, tail = proof[:-32], proof[-32:]
        if not body or len(body) % 64 or tail != digest(b"proof", body):
            raise child.Refusal(child.INVALID_PROOF, "another hash")
        return [(body[i:i + 32], body[i + 32:i + 64]) for i in range(0, len(body), 64)], 0

    def prove(self, epoch, message, raws, children):
        until = time.process_time() + 0.1
        while time.process_time() < until:
            pass
        keys = sorted({k for k, _ in raws} | {k for claim, _ in children for k in claim[2]})
        body = b"".join(k + message for k in keys)
        return [(k, message) for k in keys], 0, body + digest(b"proof", body)

    def sample(self, n, epoch, message):
        keys = [digest(b"key", bytes([i])) for i in range(n)]
        return [(k, self.sign(k, message, epoch)) for k in keys]


child.main(Toy)
