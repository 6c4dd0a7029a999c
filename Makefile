# make test       the fast tier: needs Go and a C compiler, nothing else
# make check      format, vet, lint, fast tests, five seconds per fuzz target, docs up to date
# make test-all   the slow tiers: simulated nights, kill -9, exact counts of replay, the real SGLang server on this CPU
GO ?= go
FUZZTIME ?= 5s
SGLANG_CPU ?= $(HOME)/.cache/sgtune-sglang-cpu
BROWSER ?= $(HOME)/.cache/sgtune-browser
AGENT_DIR ?= internal/agent/bin
CONTAINERS ?= try
PEER_PAGE ?= $(HOME)/.cache/sgtune-optuna-dashboard
SHA256SUM ?= $(shell command -v sha256sum >/dev/null && echo sha256sum || echo shasum -a 256)
export CGO_ENABLED = 1

# make test-long  a thousand trials in one process by two samplers, five quickstart nights, whose last output is kept in
#                 docs/nights.txt, and twenty nights of each study in virtual time (docs/search-nights.md)
.PHONY: build agent test check test-all test-nights test-hosts test-slurm test-containers test-replay test-search test-sglang test-browser test-webspeed test-rest test-long fmt vet lint fuzz docs docs-img clean
build: agent
	$(GO) build -o bin/sgtune ./cmd/sgtune

# the static programs for the servers' machines, which sgtune embeds; the same tree gives the same bytes
agent:
	@set -e; mkdir -p $(AGENT_DIR); tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	for arch in amd64 arm64; do \
	  CGO_ENABLED=0 GOOS=linux GOARCH=$$arch $(GO) build -trimpath -ldflags "-s -w" -o "$$tmp/sgtune-agent-linux-$$arch" ./cmd/sgtune-agent; \
	done; \
	(cd "$$tmp" && $(SHA256SUM) sgtune-agent-linux-*) >"$$tmp/SHA256SUMS"; \
	gzip -9n "$$tmp"/sgtune-agent-linux-*; chmod 644 "$$tmp"/*; \
	mv "$$tmp"/*.gz "$$tmp/SHA256SUMS" $(AGENT_DIR)/; \
	cat $(AGENT_DIR)/SHA256SUMS

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
	@if command -v shellcheck >/dev/null; then shellcheck .ci/run test/fuzz.sh test/diagnose-speed.sh test/search/run_search.sh test/sglang-cpu/setup.sh test/browser/setup.sh test/webspeed/setup.sh test/testbed/sshd.sh test/gpu/smoke.sh; else echo "shellcheck is not installed: scripts not checked"; fi

fuzz:
	test/fuzz.sh $(FUZZTIME)

# docs/failures.md and docs/knobs.md are written from the code's tables; make test fails when they are stale
docs:
	$(GO) test ./trial -run TestFailuresDoc -update
	$(GO) test ./sglang -run TestKnobsDoc -update

# the pictures of the documentation, taken from the pages of the tests
docs-img:
	test/browser/setup.sh $(BROWSER)
	mkdir -p docs/img
	SGTUNE_SHOTS=$(CURDIR)/docs/img SGTUNE_BROWSER=required SGTUNE_BROWSER_DIR=$(BROWSER) $(GO) test -count=1 -timeout 10m -run TestShots ./test/browser/

check: fmt vet lint test fuzz

test-nights:
	$(GO) test -timeout 20m -v ./test/nights/
	$(GO) test -timeout 10m -v ./test/nights/virtual/

# Most of what the next two tiers do is waiting, so more of it is done at once than there are processors.
# a host over a real sshd, directly and through a jump host, and the guard in a real memory cgroup; needs openssh-server
test-hosts:
	SGTUNE_TESTBED=required $(GO) test -timeout 25m -parallel 8 -v ./test/hosts/

# a host in a job of a real Slurm, directly and through ssh; needs Slurm's daemons and root
test-slurm:
	SGTUNE_TESTBED=required $(GO) test -timeout 15m -parallel 8 -v ./test/slurm/

# servers in containers: SGTUNE_CONTAINERS=podman demands a real runtime, try takes a fake one where there is none and says so
test-containers:
	SGTUNE_CONTAINERS=$(CONTAINERS) $(GO) test -timeout 15m -v ./test/containers/

# the load generator against a mock server that counts what really happened
test-replay:
	$(GO) test -timeout 10m -v ./test/replay/

# the search on the six public problems of test/search, two fresh seeds, strict about the protocol; plain python3
test-search:
	PYTHONDONTWRITEBYTECODE=1 python3 test/search/check_test.py
	@set -e; tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; $(GO) build -o "$$tmp/sgtune" ./cmd/sgtune; \
	PYTHONDONTWRITEBYTECODE=1 python3 test/search/check.py --cmd "$$tmp/sgtune suggest"

test-sglang:
	test/sglang-cpu/setup.sh $(SGLANG_CPU)
	SGTUNE_SGLANG_CPU=$(SGLANG_CPU) $(GO) test -timeout 30m -v ./test/sglang/

# every page in a real Chromium: axe-core, layout, charts, tasks; needs apt's chromium and npm, which setup.sh uses
test-browser:
	test/browser/setup.sh $(BROWSER)
	SGTUNE_BROWSER=required SGTUNE_BROWSER_DIR=$(BROWSER) $(GO) test -timeout 15m -v ./test/browser/

# the page beside optuna-dashboard: chromium, python3 with venv, and a quarter of an hour of a machine that does nothing else
test-webspeed:
	test/webspeed/setup.sh $(PEER_PAGE)
	SGTUNE_PEER=$(PEER_PAGE) $(GO) test -count=1 -timeout 40m -v ./test/webspeed/

# the long tests inside the packages; the folders of slow tiers have their own targets
test-rest:
	$(GO) test -race -timeout 15m $$($(GO) list ./... | grep -v -e '/test/nights' -e '/test/hosts' -e '/test/slurm' -e '/test/containers' -e '/test/replay' -e '/test/sglang$$' -e '/test/browser$$' -e '/tuner/physics$$')
	$(GO) test -timeout 15m ./tuner/physics # arithmetic in one goroutine; the fast tier runs it with -race

# what does not fit into CI: five nights with five seeds, one of the nights in virtual time through HTTP as well, and all of
# those with 20 seeds each; ten studies over a real sshd with a kill -9 each; what came out is kept under docs/
test-long:
	@echo '# docs/nights.txt, the first part (on an idle machine; rerun after a change to tuner, trial, benchmark or the simulator):'
	SGTUNE_NIGHTS=5 $(GO) test -timeout 40m -v -run 'TestQuickstart|TestNightAgrees' ./test/nights/
	@echo '# docs/performance.md, "A thousand trials":'
	SGTUNE_TRIALS=1000 SGTUNE_SAMPLERS='random physics' $(GO) test -timeout 3h -v -run TestEndurance ./test/nights/
	@echo '# docs/reliability.md, studies over ssh and Slurm:'
	SGTUNE_TESTBED=required SGTUNE_KILLS=10 SGTUNE_LONG=1 $(GO) test -timeout 90m -v -run 'TestStudyOver' ./test/hosts/
	SGTUNE_TESTBED=required SGTUNE_KILLS=10 $(GO) test -timeout 90m -v -run 'TestStudyOver' ./test/slurm/
	@echo '# docs/search-nights.md, the nights in virtual time:'
	SGTUNE_SEEDS=20 $(GO) test -timeout 3h -v ./test/nights/virtual/
	@echo '# docs/performance.md, the log reader:'
	test/diagnose-speed.sh
	@echo '# docs/performance.md, the page beside optuna-dashboard:'
	$(MAKE) test-webspeed

test-all: test-nights test-hosts test-slurm test-containers test-replay test-search test-sglang test-browser test-rest

clean:
	rm -rf bin $(AGENT_DIR)/*.gz $(AGENT_DIR)/SHA256SUMS
