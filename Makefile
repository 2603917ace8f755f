# SPDX-License-Identifier: Apache-2.0
# `make help` lists what there is.

GO          ?= go
BIN         := bin
KUBERNETES_VERSION := $(shell $(GO) list -m -f '{{.Version}}' k8s.io/kubernetes 2>/dev/null)
# The same in every clone: tags and the length of short names depend on what was fetched.
VERSION     ?= $(shell git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null || echo unknown)
# The tag of images that the chart asks for.
APPVERSION  := $(shell awk '/^appVersion:/ {print $$2}' charts/moorage/Chart.yaml)
# The Kubernetes components report the release they are; Moorage's its own.
LDFLAGS     := -s -w -X k8s.io/component-base/version.gitVersion=$(KUBERNETES_VERSION) \
               -X github.com/moorage-dev/moorage/internal/report.Version=$(VERSION)
comma       := ,
space       := $(subst ,, )
SANDBOX     := $(BIN)/moorage-sandbox
ATTACHER    := $(BIN)/csi-attacher
# csi-addons' definitions come from its module; nothing of it is compiled.
CSIADDONS_VERSION := v0.14.0
CSIADDONS   := $(BIN)/csi-addons/$(CSIADDONS_VERSION).yaml
# The other sidecars are a module of their own, so that the main one's versions stay.
SIDECARS    := $(addprefix $(BIN)/,csi-provisioner csi-resizer csi-snapshotter snapshot-controller)
SNAPSHOTS_VERSION := $(shell awk '/external-snapshotter\/client\/v8 v/ {print $$2}' test/sidecars/go.mod)
SNAPSHOTS   := $(BIN)/external-snapshotter/$(SNAPSHOTS_VERSION).yaml
# What real nodes run besides the kubelet: their container runtime, a module of its own, and
# images of Debian's packages.
RUNTIME     := $(addprefix $(BIN)/real/,containerd containerd-shim-runc-v2 ctr runc host-local loopback ptp)
IMAGES      := $(addprefix $(BIN)/real/images/,busybox.tar debian.tar agnhost.tar etcd.tar postgresql.tar redis.tar)
COMPONENTS  := moorage moorage-attacher moorage-node

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show what can be made
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: $(SANDBOX) $(ATTACHER) $(SIDECARS) $(CSIADDONS) $(SNAPSHOTS) ## Build the sandbox: a real cluster and Moorage in one binary
	@ls -sh $^

.PHONY: binaries
binaries: $(addprefix $(BIN)/,$(COMPONENTS)) $(BIN)/kubectl-moorage ## Build the binaries that a cluster and its users run

# Go knows better than make what is out of date, and is quick to say so.
.PHONY: FORCE
FORCE:

$(SANDBOX): FORCE
	@$(GO) build -ldflags '$(LDFLAGS)' -o $@ ./cmd/moorage-sandbox

# external-attacher registers a feature gate that kube-apiserver registers
# too, with another specification: it can't be in the same binary.
$(ATTACHER): FORCE
	@$(GO) build -ldflags '-s -w' -o $@ github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher

$(CSIADDONS):
	@rm -rf $(@D) && mkdir -p $(@D)
	@dir="$$($(GO) mod download -json github.com/csi-addons/kubernetes-csi-addons@$(CSIADDONS_VERSION) | sed -n 's/.*"Dir": "\(.*\)",/\1/p')" && \
	  cat "$$dir"/config/crd/bases/csiaddons.openshift.io_networkfences.yaml "$$dir"/config/crd/bases/csiaddons.openshift.io_networkfenceclasses.yaml \
	  "$$dir"/config/crd/bases/csiaddons.openshift.io_csiaddonsnodes.yaml > $@.part && mv $@.part $@

# One call of Go for all: they have most packages in common.
$(SIDECARS) &: FORCE
	@$(GO) build -C test/sidecars -ldflags '-s -w' -o $(abspath $(BIN))/ tool

$(SNAPSHOTS):
	@rm -rf $(@D) && mkdir -p $(@D)
	@dir="$$($(GO) mod download -C test/sidecars -json github.com/kubernetes-csi/external-snapshotter/client/v8 | sed -n 's/.*"Dir": "\(.*\)",/\1/p')" && \
	  cat "$$dir"/config/crd/*snapshot.storage.k8s.io_*.yaml > $@.part && mv $@.part $@

# The first build takes two minutes.
$(RUNTIME) &: FORCE
	@$(GO) build -C test/sandbox/real/runtime -ldflags '-s -w' -o $(abspath $(BIN))/real/ tool

$(IMAGES): $(wildcard test/sandbox/real/image/*.go test/sandbox/real/images/*.go)
	@rm -f $@ && $(GO) run ./test/sandbox/real/images -out $(@D) $(basename $(@F))

.PHONY: real
real: build $(RUNTIME) $(IMAGES) ## Build what real nodes need: moorage-sandbox up --real runs containers on real disks, as root

$(BIN)/moorage: FORCE
	@$(GO) build -ldflags '$(LDFLAGS)' -o $@ ./cmd/moorage

$(BIN)/moorage-%: FORCE
	@$(GO) build -ldflags '$(LDFLAGS)' -o $@ ./cmd/moorage-$*

$(BIN)/kubectl-moorage: FORCE
	@$(GO) build -ldflags '$(LDFLAGS)' -o $@ ./cmd/kubectl-moorage

# No more than the demo runs: the sidecars of snapshots, clones and expansions are not in it.
.PHONY: demo-programs
demo-programs:
	@hack/progress $(GO) build -ldflags '$(LDFLAGS)' -o $(SANDBOX) ./cmd/moorage-sandbox
	@hack/progress $(GO) build -ldflags '-s -w' -o $(ATTACHER) github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher

.PHONY: demo
demo: $(if $(REAL),real,demo-programs) ## Watch Moorage do its work on a real cluster on this machine; REAL=1: PostgreSQL, etcd and Redis lose their machine, as root
	@$(SANDBOX) $(if $(REAL),run real-databases --mode upstream$(comma)standalone,demo)

.PHONY: sandbox
sandbox: build ## Start a cluster to play with; Ctrl-C ends it
	@$(SANDBOX) up

# cert-manager's module has no commands; this one composes its packages.
$(BIN)/certmanager: FORCE
	@$(GO) build -C test/install/certmanager -ldflags '-s -w' -o $(abspath $@) .

# At least one scenario for each rule. The searches compute for minutes, and the scenarios mostly wait: they
# run side by side.
MAIN := path rollout limit full-node no-room handover handover-failing readd drain volume-kinds kubectl \
        tickets ticket-order ticket-detached volume-wait pod-groups kubelet-hole node-made-again name-reused \
        reboot-in-grace node-failure two-schedulers attacher-handover extender-rollout adopt-and-leave \
        cooperative-path cooperative-handover operation-snapshot path-1-34
.PHONY: test
test: packages ## Run the unit tests, the short searches, and the main scenarios
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target searches main-scenarios

.PHONY: main-scenarios
main-scenarios: build ## Run a scenario or two for each rule; PARALLEL=N
	$(SANDBOX) run $(MAIN) --parallel $(or $(PARALLEL),3)

.PHONY: test-rest
test-rest: ## Run all that make test leaves out: the other scenarios, and the story of the chart
	@$(MAKE) --no-print-directory systems EXCEPT='$(MAIN)'

.PHONY: test-all
test-all: test test-rest ## Run all tests that need no browser and no root

.PHONY: unit
unit: packages searches ## Run the unit tests, those of modules of their own too

.PHONY: searches
searches: ## Run the short searches of simulator and explorer, and the mutants that they must find
	nice -n 19 $(GO) test -vet=all -timeout 60m ./test/sim/...

# With all analyzers, as go vet runs in make verify: what that has looked at is not looked at anew.
.PHONY: packages
packages: ## Run the unit tests without the searches
	$(GO) test -vet=all -timeout 30m $$($(GO) list ./... | grep -v /test/sim)
	$(GO) test -C hack/release ./...
	$(GO) test -C test/promql ./...
	$(GO) test -C test/karpenter ./...
	$(GO) test -C controller/attacher/realdriver ./...

# Each package with random properties, searched with seeds never tried.
CHECKS ?= 10000
.PHONY: search
search: ## Search every random property further, with fresh seeds; CHECKS=N of each
	PROPTEST_SEEDS=fresh $(GO) test -count=1 -timeout 60m \
	  $$(git grep -l -e 'proptest[.]Check' -e 'rapid[.]Check' -- '*_test.go' ':!test/proptest' | xargs -n1 dirname | sort -u | sed 's|^|./|') \
	  -rapid.checks=$(CHECKS)

.PHONY: test-realdriver
test-realdriver: ## Run the attacher against a driver that somebody else wrote
	cd controller/attacher/realdriver && $(GO) test ./...

# The tests drive a real browser, which apt-get install chromium-headless-shell brings;
# without one they fail. What finds faults for screen readers comes from the npm registry.
.PHONY: test-web
test-web: ## Open the page of kubectl moorage web in a real Chromium; CHROMIUM=PATH, SCREENSHOTS=1 to make those of docs anew
	$(GO) test -C test/web -count=1 -timeout 30m ./... $(if $(SCREENSHOTS),-args -screenshots $(abspath docs))

# Of the releases that are emulated the oldest: what the others serve lies between. make test-skew has all.
.PHONY: scenarios
scenarios: build ## Run the scenarios on real clusters, as many side by side as the machine has room for; PARALLEL=N, EXCEPT='A B' for all but these
	$(SANDBOX) run --all --kubernetes own,1.34 $(if $(PARALLEL),--parallel $(PARALLEL)) $(if $(EXCEPT),--except '$(subst $(space),$(comma),$(strip $(EXCEPT)))')

# The control plane and the nodes of another release, from the modules that are pinned in
# test/kubernetes. A cold build takes ten minutes and more.
$(BIN)/kubernetes-%: FORCE
	@$(GO) build -modfile=test/kubernetes/$*/go.mod -tags kubernetes$* -o $@ \
	  -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$$(sed -n 's/^\tk8s.io\/kubernetes //p' test/kubernetes/$*/go.mod)" ./test/kubernetes

# CONTROLPLANE and KUBELETS are releases that test/kubernetes pins; KUBERNETES is both.
CONTROLPLANE ?= $(KUBERNETES)
KUBELETS     ?= $(KUBERNETES)
OTHERS       := $(addprefix $(BIN)/kubernetes-,$(sort $(CONTROLPLANE) $(KUBELETS)))
OTHER_FLAGS  := $(addprefix --control-plane $(BIN)/kubernetes-,$(CONTROLPLANE)) $(addprefix --kubelets $(BIN)/kubernetes-,$(KUBELETS))

# Part of the scenarios as far as the oldest release is emulated; alone, for who changes what is
# read of the API server.
.PHONY: test-skew
test-skew: build $(OTHERS) ## Run the main scenarios where Kubernetes emulates 1.34, 1.35 and 1.36; KUBERNETES=1.35 for all on that release itself, KUBELETS=1.34 for nodes of another
	$(SANDBOX) run --all $(if $(OTHERS),--mode standalone$(comma)cooperative $(OTHER_FLAGS),--kubernetes 1.34$(comma)1.35$(comma)1.36) $(if $(PARALLEL),--parallel $(PARALLEL))

.PHONY: test-upgrade
test-upgrade: build $(BIN)/kubernetes-$(FROM) ## Upgrade Kubernetes from FROM=1.36 to the release of this tree while pods come and go
	$(SANDBOX) run upgrade --control-plane $(BIN)/kubernetes-$(FROM) --kubelets $(BIN)/kubernetes-$(FROM)

.PHONY: chaos
chaos: build ## Churn pods while everything is killed and broken, for ten minutes; SEED=N, MODE=upstream, LENIENT=1, OUT=FILE
	$(SANDBOX) bench-chaos $(if $(SEED),--seed $(SEED)) $(if $(MODE),--mode $(MODE)) $(if $(LENIENT),--lenient) $(if $(OUT),--out $(OUT))

.PHONY: kubelet-kills
kubelet-kills: build ## Kill kubelets at every step of mounting; KILLS=N, SEED=N, MODE=upstream, WITHOUT_NODE=1, OUT=FILE
	$(SANDBOX) bench-kubelet-kills $(if $(KILLS),--kills $(KILLS)) $(if $(SEED),--seed $(SEED)) $(if $(MODE),--mode $(MODE)) $(if $(WITHOUT_NODE),--without-node) $(if $(OUT),--out $(OUT))

# kubectl as it is released, for the commands of the documentation.
$(BIN)/kubectl: FORCE
	@$(GO) build -ldflags '$(LDFLAGS)' -o $@ k8s.io/kubernetes/cmd/kubectl

.PHONY: test-install
test-install: build binaries $(BIN)/certmanager $(BIN)/kubectl $(OTHERS) ## Install, use, upgrade and uninstall the chart on a real cluster, with the commands of docs/operate; KUBERNETES=1.35 for that release
	$(GO) run ./test/install --binaries $(BIN) $(OTHER_FLAGS) \
	  --cert-manager "$$($(GO) list -C test/install/certmanager -m -f '{{.Dir}}' github.com/cert-manager/cert-manager)"

# Kubernetes' own storage suites: their binary links the whole e2e framework, and is built for this alone.
.PHONY: $(BIN)/storage-suites.test
$(BIN)/storage-suites.test:
	$(GO) build -o $(BIN)/ginkgo github.com/onsi/ginkgo/v2/ginkgo
	$(GO) test -c -vet=off -tags storagesuites -ldflags '-s -w' -o $@ ./test/storage
	cp test/storage/driver.yaml $(BIN)/storage-suites.yaml

.PHONY: test-e2e-storage
test-e2e-storage: build $(BIN)/kubectl $(BIN)/storage-suites.test ## Run Kubernetes' own storage suites on the sandbox, beside upstream; MODES=cooperative for one mode, FOCUS='volumeLimits' for other specs
	FOCUS='$(FOCUS)' $(SANDBOX) run storage-suites --mode $(or $(MODES),upstream$(comma)standalone$(comma)cooperative)

# The images that the suites name.
SUITE_IMAGES := $(addprefix $(BIN)/real/images/,busybox.tar debian.tar agnhost.tar)

.PHONY: test-e2e-storage-real
test-e2e-storage-real: build $(BIN)/kubectl $(RUNTIME) $(SUITE_IMAGES) $(BIN)/storage-suites.test ## Run a selection of Kubernetes' storage suites on real nodes, as root; MODES=upstream, FOCUS='volumeLimits' for other specs
	FOCUS='$(FOCUS)' $(SANDBOX) run storage-suites-some --mode $(or $(MODES),standalone)

.PHONY: storage-suites
storage-suites: real $(BIN)/kubectl $(BIN)/storage-suites.test ## Run all of Kubernetes' storage suites on real nodes, as root, and count what passes: two hours; MODE=upstream, FOCUS='volumeLimits', OUT=FILE; TOPOLOGY=1 for nodes in zones
	FOCUS='$(FOCUS)' $(SANDBOX) bench-storage-$(if $(TOPOLOGY),topology,suites) $(if $(MODE),--mode $(MODE)) $(if $(OUT),--out $(OUT))

.PHONY: data
data: real ## Play faults while PostgreSQL writes on real disks, as root; MODE=upstream, REPEAT=10, LENIENT=1, OUT=FILE; CUTS=1 for nodes that are cut off, KILLS=1 for ten databases and random kills
	$(SANDBOX) bench-data$(if $(CUTS),-cuts)$(if $(KILLS),-kills) $(if $(MODE),--mode $(MODE)) $(if $(REPEAT),--repeat $(REPEAT)) $(if $(LENIENT),--lenient) $(if $(OUT),--out $(OUT))

.PHONY: test-real
test-real: real ## Run csi-sanity and the scenarios where nodes run containers and mount disks, as root
	$(GO) test ./test/sandbox/disk -run TestSanity -real-disks
	$(GO) test ./test/sandbox/disk -run TestSanity -real-disks -access-type=block
	$(SANDBOX) run real-move real-power-off real-databases

# Each of the two waits more than it computes; BESIDE is a target that runs with them. What
# the story and that print is shown when all are over, and that one fails stops no other
# sooner. What failed is said once more at the end, where people look first.
.PHONY: systems
systems: build binaries $(BIN)/certmanager $(BIN)/kubectl ## Run every scenario, and the story of the chart beside them
	@touch $(BIN)/scenarios.failed || exit; beside=; failed=; \
	  for target in test-install $(BESIDE); do \
	    $(MAKE) --no-print-directory $$target >$(BIN)/$$target.log 2>&1 & beside="$$beside $$!"; \
	  done; \
	  { $(MAKE) --no-print-directory scenarios && rm -f $(BIN)/scenarios.failed; } 2>&1 | tee $(BIN)/scenarios.log; \
	  for job in $$beside; do wait $$job || failed=1; done; \
	  for target in test-install $(BESIDE); do cat $(BIN)/$$target.log; done; \
	  if test "$$failed" -o -e $(BIN)/scenarios.failed; then \
	    grep -h -e '^FAIL' -e '^--- FAIL' -e '^Error: ' $(foreach target,scenarios test-install $(BESIDE),$(BIN)/$(target).log); false; \
	  fi

RELEASE := $(GO) run -C hack/release .
# Digests are the same for everybody who builds with this release of Go.
images krew release: export GOTOOLCHAIN := $(shell awk '/^toolchain/ {print $$2}' go.mod)

.PHONY: images
images: ## Build the OCI images of all components, for all platforms, into bin/images; CHECK=1: twice, and run them
	$(RELEASE) images --repository $(CURDIR) --out $(abspath $(BIN))/images --version $(VERSION) --tag $(APPVERSION) \
	  $(if $(CHECK),--check) $(if $(PLATFORMS),--platforms $(PLATFORMS))

.PHONY: krew
krew: ## Build the archives of kubectl moorage for all platforms, and the krew manifest, into bin/krew; VERSION=v1.2.3
	$(RELEASE) krew --repository $(CURDIR) --version $(VERSION) --out $(abspath $(BIN))/krew

.PHONY: release
release: ## Build, check, push and sign a release; REGISTRY=registry.example.com/team VERSION=v1.2.3, SIGN=cosign.key or SIGN=keyless, PLATFORMS=linux/amd64
	$(RELEASE) release --repository $(CURDIR) --out $(abspath $(BIN))/release --version $(VERSION) --registry '$(REGISTRY)' \
	  $(if $(SIGN),--sign $(if $(filter keyless,$(SIGN)),$(SIGN),$(abspath $(SIGN)))) $(if $(PLATFORMS),--platforms $(PLATFORMS))

# helm as it is released.
$(BIN)/helm: FORCE
	@$(GO) build -ldflags '-s -w' -o $@ helm.sh/helm/v4/cmd/helm

.PHONY: cluster
cluster: demo-programs $(BIN)/certmanager $(BIN)/kubectl $(BIN)/helm $(BIN)/kubectl-moorage ## Start a cluster without Moorage, with cert-manager and a registry on this machine, to install the chart by hand; Ctrl-C ends it
	$(GO) run ./test/install --by-hand --binaries $(BIN) \
	  --cert-manager "$$($(GO) list -C test/install/certmanager -m -f '{{.Dir}}' github.com/cert-manager/cert-manager)"

.PHONY: guards
guards: build ## Show that every scenario fails without the rule it guards; ONLY=SCENARIO for one
	$(GO) run ./test/guards --attacher $(ATTACHER) $(ONLY)

.PHONY: bench
bench: build ## Measure Moorage beside upstream; QUICK=1 for a cut of it, OUT=FILE to keep it
	$(SANDBOX) bench $(if $(QUICK),--quick) $(if $(OUT),--out $(OUT))

.PHONY: bench-attach
bench-attach: build $(BIN)/moorage-attacher ## Measure attachers alone: ours, stock and tuned; CUT=1 for a cut, ATTACHERS=A,B for some, OUT=FILE to keep it, ADD=1 to add to it
	$(SANDBOX) bench-attach --moorage-attacher $(BIN)/moorage-attacher $(if $(CUT),--cut) $(if $(ATTACHERS),--attachers $(ATTACHERS)) \
	  $(if $(OUT),--out $(OUT) --render docs/internals/benchmarks-attach.md) $(if $(ADD),--add)

.PHONY: bench-scale
bench-scale: build ## Measure a zone's failure, a drain and a change of leader with 100 nodes without machines; NODES=1000,2000, REPEAT=3, OUT=FILE to keep it
	$(SANDBOX) bench-scale $(if $(NODES),--nodes $(NODES)) $(if $(REPEAT),--repeat $(REPEAT)) $(if $(ATTACHER),--attacher $(ATTACHER)) \
	  $(if $(OUT),--out $(OUT) --render docs/internals/benchmarks-scale.md)

.PHONY: bench-node
bench-node: build $(BIN)/moorage-node ## Measure moorage-node at rest at a node with 128 volumes; needs root; OUT=FILE to keep it
	$(SANDBOX) bench-node --moorage-node $(BIN)/moorage-node $(if $(OUT),--out $(OUT) --render docs/internals/node-at-rest.md)

.PHONY: bench-core
bench-core: ## Run the benchmarks of the pure core; SLOPE=1 with up to 15,000 nodes instead, OUT=FILE to keep the result
	@$(GO) run ./test/bench/core $(if $(SLOPE),--slope) $(if $(OUT),--out $(OUT))

.PHONY: bench-web
bench-web: ## Measure the frames of kubectl moorage web at 1,000 nodes with 40 slots in a real browser; OUT=FILE to keep the result
	@$(GO) run ./test/bench/web $(if $(OUT),--out $(OUT))

.PHONY: bench-scheduler
bench-scheduler: ## Run kube-scheduler's own benchmark with its profile and with Moorage's; ONLY='*CSI*,PreemptionPVs', SIZE=5000, REPEAT=3, PROFILE=moorage, OUT=FILE
	@$(GO) run ./test/bench/scheduler $(if $(ONLY),--workloads '$(ONLY)') $(if $(SIZE),--size $(SIZE)) $(if $(REPEAT),--repeat $(REPEAT)) $(if $(PROFILE),--profile $(PROFILE)) $(if $(OUT),--out $(OUT))

.PHONY: soak
soak: ## Play schedules that nobody has seen, for as long as SOAK says
	SOAK=$(or $(SOAK),10m) $(GO) test -run TestSoak -timeout 0 -v ./test/sim

.PHONY: explore
explore: ## Search every interleaving in small worlds; EXPLORE=NAME for one of the large ones
	EXPLORE="$(or $(EXPLORE),all)" $(GO) test -timeout 0 -v ./test/sim/explore

.PHONY: mutants
mutants: ## Take rules out of the core: simulator and explorer must notice; write down which does
	$(GO) test ./test/sim/mutants -timeout 0 -v -args -rewrite

.PHONY: verify
verify: ## Check format, lint, import law and generated files
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	  if [ -n "$$unformatted" ]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) test ./internal/arch/...
	$(MAKE) --no-print-directory lint kubeconform
	hack/verify-generated

# golangci-lint is a module of its own: its dependencies would move Kubernetes'.
# The sandbox and what runs on it import all of Kubernetes, and are left out until the
# time and memory of that are measured: staticcheck reads all that is imported.
LINTED := ./api/... ./controller/... ./internal/... ./plugins/... ./test/mutate/... ./webhook/...
$(BIN)/golangci-lint: FORCE
	@$(GO) build -C hack/lint -ldflags '-s -w' -o $(abspath $@) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

# So is actionlint, whose YAML library golangci-lint wants in another version.
$(BIN)/actionlint: FORCE
	@$(GO) build -C hack/actionlint -ldflags '-s -w' -o $(abspath $@) github.com/rhysd/actionlint/cmd/actionlint

.PHONY: lint
lint: $(BIN)/golangci-lint $(BIN)/actionlint ## Check the code with the linters of .golangci.yaml, and the workflows
	$(BIN)/golangci-lint run $(LINTED)
	$(BIN)/actionlint -shellcheck= -pyflakes= .github/workflows/*.yaml
	@! grep -nE 'uses: [^.]' .github/workflows/*.yaml | grep -vE '@[0-9a-f]{40} # v[0-9]' || { echo "pin each action by the digest of its commit"; false; }

# The releases that are served; docs/internals/compatibility.md says what was tried with them.
RELEASES := 1.34.4,1.35.4,1.36.3,1.37.1

.PHONY: kubeconform
kubeconform: ## Check what the chart renders, with each pair of values, against the published API of each release
	@rm -rf $(BIN)/rendered && mkdir -p $(BIN)/rendered && cp manifests/crds.yaml $(BIN)/rendered
	$(GO) test ./manifests -run TestEveryPairOfValues -args -rendered $(abspath $(BIN))/rendered
	$(GO) run -C hack/kubeconform . --releases $(RELEASES) $(abspath $(BIN))/rendered

.PHONY: generate
generate: ## Generate deep copies, CRDs and manifests/
	hack/generate
	hack/render

.PHONY: clean
clean: ## Remove what was built
	rm -rf $(BIN)
