# aggnode prover child for lean-pq: speaks the frames of docs/prover-protocol.md on file descriptors 3 and 4 and
# answers them with PyPI py_lean_pq. Standard library and py_lean_pq only; Python 3.11 to 3.14; run with -I -B.
#
# The main thread reads frames and ends the process at the end of input, so the child never outlives its parent. A
# prover has one worker thread, a verifier one for each call it may serve at once; py_lean_pq releases the interpreter
# lock inside its calls. A last thread sends progress while a request runs.
import os
import queue
import resource
import struct
import sys
import threading
import time

MAGIC = b"aggprove"
VERSION = 1
HEADER = struct.Struct("<IB3sQ")
PROVE, VERIFY = 1, 2
HELLO, PING, JOB, CHECK, INSPECT, SAMPLE, BYE = range(1, 8)
READY, PONG, STARTED, PROGRESS, RESULT, SAMPLES, ERROR, GONE = range(0x81, 0x89)
LIMITS = {HELLO: 4 << 20, PING: 64, JOB: 64 << 20, CHECK: 4 << 20, INSPECT: 4 << 20, SAMPLE: 64, BYE: 0}
(INVALID_PROOF, BAD_SIGNATURE, BAD_CHILD, BAD_LENGTH, TOO_MANY_RAW, TOO_MANY_CHILDREN, TOO_FEW_INPUTS, OVERLAP,
 BAD_FRAME, UNSUPPORTED, NO_VERSION, CPU_UNSUPPORTED, BACKEND_MISSING, MEMORY, INTERNAL) = range(1, 16)
PHASE_SETUP, PHASE_CHECK, PHASE_PROVE, PHASE_SIGN = 1, 2, 3, 4
NO_INDEX = 0xFFFFFFFF

KEY, MESSAGE = 32, 32
PROOF_MAX = 524288  # the cap of the network's containers
MAX_SAMPLES = 4     # making a key may cost seconds
OVERLAP_FLAG, CLAIMS_FLAG, SAMPLES_FLAG = 1, 2, 4


class Refusal(Exception):
    def __init__(self, code, text, index=NO_INDEX):
        super().__init__(text)
        self.code, self.text, self.index = code, text, index


class Reader:
    """Takes fields off a frame's body; every fault is a Refusal."""

    def __init__(self, body):
        self.body, self.at = body, 0

    def take(self, n):
        if n > len(self.body) - self.at:
            raise Refusal(BAD_FRAME, "body ends early")
        self.at += n
        return self.body[self.at - n:self.at]

    def number(self, fmt):
        return struct.unpack("<" + fmt, self.take(struct.calcsize("<" + fmt)))[0]

    def count(self, unit):
        n = self.number("I")
        if n * unit > len(self.body) - self.at:
            raise Refusal(BAD_FRAME, "count beyond the end of the body")
        return n

    def text(self):
        return self.take(self.number("H")).decode("utf-8", "replace")

    def blob(self):
        return self.take(self.count(1))

    def claim(self):
        epoch, message = self.number("I"), self.take(MESSAGE)
        keys = self.take(self.count(KEY) * KEY)
        return epoch, message, [keys[i:i + KEY] for i in range(0, len(keys), KEY)]

    def raws(self):
        size = self.number("I")
        return size, [(self.take(KEY), self.take(size)) for _ in range(self.count(KEY + size))]

    def end(self):
        if self.at != len(self.body):
            raise Refusal(BAD_FRAME, "bytes after the body")


def text(s):
    b = s.encode("utf-8", "replace")[:1024]
    return struct.pack("<H", len(b)) + b


def blob(b):
    return struct.pack("<I", len(b)) + b


class Pipe:
    """Whole frames in and out. Reading is for the main thread alone, writing for every thread."""

    def __init__(self, fd_in, fd_out):
        self.input = os.fdopen(fd_in, "rb", buffering=1 << 16)
        self.fd_out = fd_out
        self.lock = threading.Lock()

    def exactly(self, n):
        b = self.input.read(n)
        if len(b) != n:
            os._exit(0)  # end of input: the parent is gone or wants no more
        return b

    def read(self):
        size, kind, reserved, call = HEADER.unpack(self.exactly(HEADER.size))
        if size > LIMITS.get(kind, -1) or reserved != bytes(3):
            sys.stderr.write(f"frame of kind {kind:#x} and {size} bytes: not the protocol\n")
            sys.stderr.flush()
            os._exit(3)
        return kind, call, self.exactly(size)

    def write(self, kind, call, body=b""):
        b = memoryview(HEADER.pack(len(body), kind, bytes(3), call) + body)
        with self.lock:
            try:
                while b:
                    b = b[os.write(self.fd_out, b):]
            except OSError:
                os._exit(0)  # nobody reads any more


def cpu_fault():
    """Names what this processor lacks: the package would end with an illegal instruction."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
            flags = next((set(line.split(":", 1)[1].split()) for line in f if line.startswith("flags")), None)
    except OSError:
        return None
    if flags is None:
        return None  # another architecture
    missing = [f for f in ("avx2", "pclmulqdq") if f not in flags]
    return "this processor lacks " + " and ".join(missing) if missing else None


def resident():
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


class LeanPQ:
    """What is asked of py_lean_pq. Another backend is another class with these attributes and methods."""

    name, scheme, signature_size = "lean-pq", "keccak", 2404
    max_children = 16  # the package refuses 17
    max_raw = 512      # a guess, no limit of the package: 64 take 1.4 s and 779 MiB on two cores, and it grows in steps
    min_inputs = 1
    flags = OVERLAP_FLAG | CLAIMS_FLAG | SAMPLES_FLAG
    # Peak resident memory in bytes, measured with 0.7.0 on two cores: after set-up, and what a proof of few signatures, a
    # further signature and a child add.
    memory = (340 << 20, 160 << 20, 5 << 20, 560 << 20)

    def __init__(self):
        """Loads the package and sets it up: seconds."""
        fault = cpu_fault()
        if fault:
            raise Refusal(CPU_UNSUPPORTED, fault)
        target = os.environ.get("AGGNODE_PROVER_TARGET")
        if target:
            sys.path.insert(0, target)
        try:
            import py_lean_pq
        except ImportError as e:
            raise Refusal(BACKEND_MISSING, f"import py_lean_pq: {e}") from None
        self.lib = py_lean_pq
        self.revision = "py_lean_pq " + py_lean_pq.__version__
        self.keys = []
        self.lib.setup()

    def own_answers(self):
        """Sound proofs accepted and altered ones refused, of those made for a scheme without known proofs."""
        return 0, 0

    def signature_fault(self, epoch, message, key, signature):
        """None where the signature is sound, else why not."""
        leaf = int.from_bytes(signature[:4], "little")
        if leaf != epoch:
            return f"a signature at epoch {leaf}, must be {epoch}"
        try:
            self.lib.xmss_verify(key, message, signature)
        except (self.lib.LeanPqError, ValueError) as e:
            return str(e)
        return None

    def check(self, claim, proof):
        """Checks a proof; the (key, message) pairs that it claims, and the number of its claims of other kinds. The
        wanted claim is None for inspect; a proof that lists its claims needs none."""
        _, claims, others = self.load(proof)
        return claims, others

    def load(self, proof):
        try:
            aggregate = self.lib.Aggregate.from_bytes(proof)
        except (self.lib.LeanPqError, ValueError) as e:
            raise Refusal(INVALID_PROOF, str(e)) from None
        if aggregate.to_bytes() != proof:
            raise Refusal(INVALID_PROOF, "not the canonical encoding of the aggregate")
        claims, others = aggregate.xmss_claims, len(aggregate.sphincs_claims)
        # Roots of data availability are in the proof's head, after both lists of claims; the package does not list them.
        at = 8 + 64 * len(claims) + 8 + 64 * others
        roots = struct.unpack_from("<Q", proof, at)[0] if len(proof) >= at + 8 else 1
        return aggregate, claims, others + min(roots, 1 << 20)

    def prove(self, epoch, message, raws, children):
        """Proves checked inputs: claims, others and the proof."""
        inner = [self.load(proof)[0] for _, proof in children]
        try:
            aggregate = self.lib.aggregate(children=inner, xmss=[(k, message, s) for k, s in raws])
        except (self.lib.LeanPqError, ValueError) as e:
            raise Refusal(INTERNAL, str(e)) from None
        return aggregate.xmss_claims, len(aggregate.sphincs_claims), aggregate.to_bytes()

    def sample(self, n, epoch, message):
        """n (key, signature) pairs of throw-away keys."""
        while len(self.keys) < n:
            self.keys.append(self.lib.XmssSecretKey.from_seed(bytes([len(self.keys) + 1]) * 32))
        return [(k.public_key, k.sign(message, epoch)) for k in self.keys[:n]]


class Child:
    def __init__(self, pipe, backend_class):
        self.pipe = pipe
        self.backend_class = backend_class
        self.backend = None
        self.role = 0
        self.work = queue.Queue(maxsize=256)  # the parent has at most as many requests open as it has slots
        self.running = {}  # call -> phase
        self.running_lock = threading.Lock()
        self.active = threading.Event()
        self.every = 0.25

    def serve(self):
        kind, call, body = self.pipe.read()
        if kind != HELLO:
            os._exit(3)
        hello = self.greeting(call, body)
        threading.Thread(target=self.report, daemon=True).start()
        for _ in range(hello["calls"] if self.role == VERIFY else 1):
            threading.Thread(target=self.worker, daemon=True).start()
        # Set-up takes seconds: it runs on a worker, so that the end of input is seen meanwhile.
        self.work.put((HELLO, call, hello))
        while True:
            kind, call, body = self.pipe.read()
            if kind == PING:
                self.pipe.write(PONG, call, body)
            elif kind == BYE:
                self.pipe.write(GONE, call)
                os._exit(0)
            elif kind == HELLO:
                self.refuse(call, Refusal(BAD_FRAME, "second hello"))
            else:
                self.work.put((kind, call, body))

    def greeting(self, call, body):
        try:
            r = Reader(body)
            if r.take(8) != MAGIC:
                raise Refusal(BAD_FRAME, "no prover protocol")
            low, high, role = r.number("H"), r.number("H"), r.number("B")
            r.take(1)
            threads, calls, every, _ = r.number("H"), r.number("H"), r.number("I"), r.text()
            known = [(r.text(), r.number("B"), r.claim(), r.blob()) for _ in range(r.number("H"))]
            r.end()
            if not low <= VERSION <= high:
                raise Refusal(NO_VERSION, f"this child speaks version {VERSION}, the parent {low} to {high}")
            if role not in (PROVE, VERIFY) or not 1 <= calls <= 64:
                raise Refusal(BAD_FRAME, f"role {role} with {calls} calls")
            if threads:
                os.environ["LEANVM_NUM_THREADS"] = str(threads)  # read once, when the pool is first used
            self.role, self.every = role, max(every, 10) / 1000
            return {"calls": calls, "threads": threads or len(os.sched_getaffinity(0)), "known": known}
        except Refusal as e:
            self.refuse(call, e)
            self.farewell()

    def farewell(self):
        """Waits for the end of input: the parent reads the refusal and then closes."""
        while True:
            self.pipe.read()

    def worker(self):
        while True:
            kind, call, body = self.work.get()
            try:
                self.answer(kind, call, body)
            except Refusal as e:
                self.refuse(call, e)
            except MemoryError:
                self.refuse(call, Refusal(MEMORY, "out of memory"))
            except BaseException as e:  # a panic of the library is a BaseException: the process lives on
                self.refuse(call, Refusal(INTERNAL, f"{type(e).__name__}: {e}"))

    def answer(self, kind, call, body):
        phases = {HELLO: PHASE_SETUP, JOB: PHASE_PROVE, SAMPLE: PHASE_SIGN}
        with self.running_lock:
            self.running[call] = phases.get(kind, PHASE_CHECK)
            self.active.set()
        try:
            self.pipe.write(STARTED, call)
            if kind == HELLO:
                out = (READY, self.ready(body))
            elif kind == JOB:
                out = (RESULT, self.prove(Reader(body)))
            elif kind in (CHECK, INSPECT):
                out = (RESULT, self.check(kind, Reader(body)))
            else:
                out = (SAMPLES, self.sample(Reader(body)))
        finally:
            with self.running_lock:
                del self.running[call]
                if not self.running:
                    self.active.clear()
        self.pipe.write(out[0], call, out[1])

    def refuse(self, call, e):
        self.pipe.write(ERROR, call, struct.pack("<HI", e.code, e.index) + text(e.text))

    def ready(self, hello):
        b = self.backend = self.backend_class()
        verdicts = bytes(self.verdict(*k) if k[0] == b.scheme else 0 for k in hello["known"])
        return b"".join([
            MAGIC, struct.pack("<H", VERSION), text(b.name), text(b.revision), text(b.scheme),
            struct.pack("<9I", KEY, b.signature_size, b.max_children, b.max_raw, 0, b.min_inputs, PROOF_MAX,
                        hello["threads"], b.flags),
            struct.pack("<4Q", *b.memory),
            struct.pack("<H", len(verdicts)), verdicts, struct.pack("<2H", *b.own_answers()),
        ])

    def verdict(self, _, what, claim, material):
        try:
            if what == 1:
                sound = len(claim[2]) == 1 and self.signature_fault(*claim[:2], claim[2][0], material) is None
            else:
                sound = self.makes_claim(claim, material)
        except Refusal:
            sound = False
        return 1 if sound else 2

    def signature_fault(self, epoch, message, key, signature):
        if len(signature) != self.backend.signature_size:
            return f"a signature of {len(signature)} bytes, must be {self.backend.signature_size}"
        return self.backend.signature_fault(epoch, message, key, signature)

    def check_proof(self, claim, proof):
        if not 0 < len(proof) <= PROOF_MAX:
            raise Refusal(INVALID_PROOF, f"a proof of {len(proof)} bytes")
        return self.backend.check(claim, proof)

    def makes_claim(self, claim, proof):
        claims, others = self.check_proof(claim, proof)
        return not others and claims == [(k, claim[1]) for k in claim[2]]

    def prove(self, r):
        b = self.backend
        if self.role != PROVE:
            raise Refusal(UNSUPPORTED, "this child is a verifier")
        r.number("I")  # the deadline: the parent keeps it
        epoch, message = r.number("I"), r.take(MESSAGE)
        size, raws = r.raws()
        children = [(r.claim(), r.blob()) for _ in range(r.count(KEY + 12))]
        r.end()
        if len(raws) > b.max_raw:
            raise Refusal(TOO_MANY_RAW, f"{len(raws)} raw signatures, limit {b.max_raw}")
        if len(children) > b.max_children:
            raise Refusal(TOO_MANY_CHILDREN, f"{len(children)} children, limit {b.max_children}")
        if len(raws) + len(children) < max(1, b.min_inputs):
            raise Refusal(TOO_FEW_INPUTS, f"{len(raws) + len(children)} inputs, at least {max(1, b.min_inputs)}")
        if raws and size != b.signature_size:
            raise Refusal(BAD_LENGTH, f"signatures of {size} bytes, must be {b.signature_size}", 0)
        if not b.flags & OVERLAP_FLAG:
            keys = [k for k, _ in raws] + [k for claim, _ in children for k in claim[2]]
            if len(set(keys)) != len(keys):
                raise Refusal(OVERLAP, "inputs share a public key")
        wall, cpu = time.monotonic_ns(), time.process_time_ns()
        for i, (key, signature) in enumerate(raws):
            fault = self.signature_fault(epoch, message, key, signature)
            if fault:
                raise Refusal(BAD_SIGNATURE, fault, i)
        for i, (claim, proof) in enumerate(children):
            try:
                fits = claim[:2] == (epoch, message) and self.makes_claim(claim, proof)
            except Refusal as e:
                raise Refusal(BAD_CHILD, e.text, i) from None
            if not fits:
                raise Refusal(BAD_CHILD, "the child's proof makes another claim than given", i)
        claims, others, proof = b.prove(epoch, message, raws, children)
        return self.result(time.process_time_ns() - cpu, time.monotonic_ns() - wall, claims, others, proof)

    def check(self, kind, r):
        r.number("I")
        claim, proof = r.claim(), r.blob()
        r.end()
        if kind == INSPECT:
            if not self.backend.flags & CLAIMS_FLAG:
                raise Refusal(UNSUPPORTED, "proofs of this backend do not list their claims")
            claim = None
        wall, cpu = time.monotonic_ns(), time.thread_time_ns()
        claims, others = self.check_proof(claim, proof)
        return self.result(time.thread_time_ns() - cpu, time.monotonic_ns() - wall, claims, others, b"")

    def sample(self, r):
        n, epoch, message = r.number("I"), r.number("I"), r.take(MESSAGE)
        r.end()
        if not 1 <= n <= MAX_SAMPLES:
            raise Refusal(UNSUPPORTED, f"{n} samples, limit {MAX_SAMPLES}")
        samples = self.backend.sample(n, epoch, message)
        return struct.pack("<II", self.backend.signature_size, n) + b"".join(k + s for k, s in samples)

    def result(self, cpu, wall, claims, others, proof):
        return b"".join([struct.pack("<QQII", cpu, wall, others, len(claims)),
                         *(k + m for k, m in claims), blob(proof)])

    def report(self):
        while True:
            self.active.wait()
            time.sleep(self.every)
            with self.running_lock:
                running = list(self.running.items())
            if running:
                cpu, rss = time.process_time_ns(), resident()
                for call, phase in running:
                    with self.running_lock:  # never after the answer
                        if call in self.running:
                            self.pipe.write(PROGRESS, call, struct.pack("<BQQ", phase, cpu, rss))


def main(backend_class):
    try:
        with open("/proc/self/comm", "w", encoding="ascii") as f:
            f.write("aggnode-prover")
    except OSError:
        pass
    Child(Pipe(3, 4), backend_class).serve()


if __name__ == "__main__":
    main(LeanPQ)
