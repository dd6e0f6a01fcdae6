# aggnode: build, test and run. `make devnet` and `make test` do everything on a fresh machine with Go and Python.
SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := build

GO       ?= go
PYTHON   ?= python3
BIN      := bin/aggnode
PACKAGES := ./...
TOOL     := $(GO) tool -modfile=tools/go.mod
FUZZTIME ?= 30s

.PHONY: build test norace unit race purego lint arch generated docs fuzz nightly golden keys bench cover devnet interop clean

build: ## build the node into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN) ./cmd/aggnode

test: lint arch generated norace race ## everything that must hold before a commit

lint: ## format, vet, staticcheck
	@out=$$($(TOOL) gofumpt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofumpt would change:"; echo "$$out"; exit 1; fi
	$(GO) vet $(PACKAGES)
	$(TOOL) staticcheck $(PACKAGES)

arch: ## the import table
	$(GO) test -count=1 ./internal/arch

generated: ## committed generated files are what their generators write
	$(GO) mod verify >/dev/null
	$(GO) test -count=1 -run Docs ./node
	$(GO) vet -C internal/lanes/_asm ./...
	@t=$$(mktemp -d); trap 'rm -rf "$$t"' EXIT; cp -r internal/lanes/_asm internal/lanes/generate.go "$$t"; \
	(cd "$$t" && $(GO) generate generate.go); \
	for f in "$$t"/*_amd64.*; do cmp "$$f" internal/lanes/$$(basename "$$f"); done
	$(GO) vet -C leanproof/internal/gf/_asm ./...
	@t=$$(mktemp -d); trap 'rm -rf "$$t"' EXIT; cp -r leanproof/internal/gf/_asm "$$t"; \
	(cd "$$t/_asm" && $(GO) run . -out ../kernels_amd64.s -pkg gf); cmp "$$t/kernels_amd64.s" leanproof/internal/gf/kernels_amd64.s

norace: ## packages with tests that the race detector rules out: key generation, allocation counts
	$(GO) test -count=1 ./xmss ./wire ./leanproof

unit: ## all tests, without the race detector
	$(GO) test $(PACKAGES)

race: ## all tests with the race detector
	CGO_ENABLED=1 $(GO) test -race -timeout 8m $(PACKAGES)

purego: ## hashes and proofs without assembly, and on the slower path of a CPU that has AVX-512
	$(GO) test -tags purego ./internal/lanes/... ./xmss/... ./leanproof/...
	AGGNODE_LANES=avx2 $(GO) test -count=1 ./internal/lanes/... ./xmss/...

docs: ## write docs/metrics.md and docs/reasons.md from the code
	$(GO) test -count=1 -run Docs ./node -update

golden: ## rewrite golden files and scripts' printed states; read the diff before committing it
	$(GO) test -count=1 ./aggregate ./netconfig ./pipeline ./prover ./scheduler ./verify ./xmss -update

fuzz: ## every fuzz target for FUZZTIME
	@$(GO) test -list '^Fuzz' $(PACKAGES) | awk '/^Fuzz/ {f[n++]=$$1} /^ok/ {for (i=0;i<n;i++) print $$2, f[i]; n=0}' | \
	while read -r pkg f; do echo "== $$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s "$$pkg"; done

nightly: ## over ten million random inputs of the kernels against another implementation, random batches of signatures, altered proofs
	LANES_CASES=350000 $(GO) test -count=1 -timeout 2h -run 'EqualsReference|EqualReference' ./internal/lanes
	XMSS_BATCHES=20000 $(GO) test -count=1 -timeout 2h -run 'OfEverySizeOnEveryPath' ./xmss
	LEANPROOF_CASES=100000 $(GO) test -count=1 -timeout 2h ./leanproof

bench: ## Go benchmarks with domain units
	$(GO) test -run '^$$' -bench . -benchmem $(PACKAGES)

cover:
	$(GO) test -coverprofile=build/cover.out $(PACKAGES) && $(GO) tool cover -func=build/cover.out | tail -1

keys: ## make the insecure devnet keys again and compare them with the embedded ones (minutes)
	$(GO) run ./netconfig/devkeys/gen -scheme blake2s -check
	$(GO) run ./netconfig/devkeys/gen -scheme keccak -check

devnet: build ## a network with real proofs on this machine
	$(BIN) prover install
	$(BIN) devnet $(DEVNET_FLAGS)

interop: build ## proofs made by the node and by py-lean-pq itself, each checked by the other
	$(PYTHON) test/interop/interop.py --aggnode $(BIN)

clean:
	rm -rf bin build
