# make test       the fast tier: needs Go and a C compiler, nothing else
# make check      format, vet, lint, fast tests, five seconds per fuzz target, docs up to date
# make test-all   the slow tiers: simulated nights, kill -9, the real SGLang server on this CPU
GO ?= go
FUZZTIME ?= 5s
SGLANG_CPU ?= $(HOME)/.cache/sgtune-sglang-cpu
export CGO_ENABLED = 1

# make test-long  five quickstart nights; its last output is kept in docs/nights.txt
.PHONY: build test check test-all test-nights test-sglang test-rest test-long fmt vet lint fuzz docs clean
build:
	$(GO) build -o bin/sgtune ./cmd/sgtune

test:
	$(GO) test -race -short ./...

fmt:
	@out=$$($(GO) tool gofumpt -l .); if [ -n "$$out" ]; then echo "not formatted (go tool gofumpt -w .):"; echo "$$out"; exit 1; fi

vet:
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

lint:
	@if command -v golangci-lint >/dev/null; then golangci-lint run; else echo "golangci-lint is not installed: skipped (go vet, staticcheck and the import test ran)"; fi
	@if command -v hadolint >/dev/null; then hadolint Dockerfile; else echo "hadolint is not installed: Dockerfile not checked"; fi
	@if command -v shellcheck >/dev/null; then shellcheck .ci/run test/fuzz.sh test/diagnose-speed.sh test/sglang-cpu/setup.sh; else echo "shellcheck is not installed: scripts not checked"; fi

fuzz:
	test/fuzz.sh $(FUZZTIME)

# docs/failures.md and docs/knobs.md are written from the code's tables; make test fails when they are stale
docs:
	$(GO) test ./trial -run TestFailuresDoc -update
	$(GO) test ./sglang -run TestKnobsDoc -update

check: fmt vet lint test fuzz

test-nights:
	$(GO) test -timeout 20m -v ./test/nights/

test-sglang:
	test/sglang-cpu/setup.sh $(SGLANG_CPU)
	SGTUNE_SGLANG_CPU=$(SGLANG_CPU) $(GO) test -timeout 30m -v ./test/sglang/

# the long tests inside the packages; the two folders of slow tiers have their own targets
test-rest:
	$(GO) test -race -timeout 15m $$($(GO) list ./... | grep -v -e '/test/nights' -e '/test/sglang$$')

# what does not fit into CI: five nights with five seeds; the output is kept under docs/
test-long:
	SGTUNE_NIGHTS=5 $(GO) test -timeout 40m -v -run TestQuickstart ./test/nights/
	test/diagnose-speed.sh

test-all: test-nights test-sglang test-rest

clean:
	rm -rf bin
