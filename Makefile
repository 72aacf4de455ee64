# Habits. Nothing here is needed: "go build ./cmd/rnix" builds, "./test" tests.

GOFLAGS  += -buildvcs=false
export GOFLAGS
FUZZTIME ?= 10s
TOOL     := go tool -modfile=internal/devtools/go.mod

.PHONY: build test short soak flaky bench lint vuln fuzz

build: ## the static binary, bin/rnix
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/rnix ./cmd/rnix

test: ## everything, with real counterparts
	./test

short: ## what is quick
	./test --short

soak: ## what is statistical at length, with the race detector in every daemon: hours; says what it ran
	./test --soak

PKG ?= ./...
flaky: ## the tests of PKG many times under load, to find those that depend on luck
	.ci/flaky $(PKG)

bench: ## measure beside baselines and targets, and write docs/benchmarks.md
	go run ./internal/benchtable -peers

lint: ## gofmt, vet, the rules of the house, staticcheck and checklocks
	.ci/lint

vuln: ## known vulnerabilities; fetches their database
	$(TOOL) govulncheck ./...

fuzz: ## every fuzz target for FUZZTIME
	@go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./... | while read -r pkg; do \
		for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "$$pkg $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg </dev/null || exit 1; \
		done; \
	done
