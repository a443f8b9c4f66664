# Everything a developer or a machine runs here. `make` alone lists it.
# Needs Python >= 3.11, make and git; the rest, uv included, comes into .venv.

# A second interpreter gets an environment of its own, such as .venv-3.13: make test-fast PYTHON=python3.13
version_of   = $(shell $(1) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
VENV        := .venv
ifneq ($(origin PYTHON),undefined)
ifneq ($(filter-out $(call version_of,$(PYTHON)),$(call version_of,.venv/bin/python)),)
VENV        := .venv-$(call version_of,$(PYTHON))
endif
endif
PYTHON      ?= python3
UV_VERSION  := 0.13.8
GHZ_VERSION := 0.121.0
BIN         := $(VENV)/bin
PROMETHEUS  := github.com/prometheus/prometheus@v0.307.3
MEMBERS     := $(wildcard protos/pyproject.toml libs/*/pyproject.toml services/*/pyproject.toml \
                 sdk/pyproject.toml console/pyproject.toml cli/pyproject.toml pipeline/*/pyproject.toml)
SOURCES     := protos/src $(wildcard libs/*/src services/*/src) sdk/src console/src cli/src $(wildcard pipeline/*/src)
FAST_TESTS  := $(wildcard tests libs/*/tests services/*/tests sdk/tests console/tests cli/tests)
DESCRIPTORS := protos/src/semel/descriptors.binpb
RELEASED    := protos/released.binpb
JOURNALS    := $(patsubst protos/%,--path %,$(wildcard protos/semel/*/journal))
SYNCED      := $(VENV)/.synced
SPARK       := $(VENV)/.synced-with-spark
BENCHED     := $(VENV)/.synced-with-kafka
KUBERNETES  := $(VENV)/.synced-with-kubernetes
SITE        := $(VENV)/.synced-with-site
JAEGER_AT   := v1.76.0
JAEGER      := build/jaeger/$(JAEGER_AT)/jaeger-all-in-one
GHZ         := build/tools/ghz-$(GHZ_VERSION)/ghz

# Processes that run tests side by side: two for each core, for many tests wait, and at most eight, each of
# which has clusters of its own. WORKERS=0: tests run one after the other in the process of pytest itself.
WORKERS     ?= $(shell $(PYTHON) -c 'import os; print(min(8, 2 * (os.cpu_count() or 1)))')
SIDE_BY_SIDE = --numprocesses=$(WORKERS) --dist=loadfile

# uv must take the environment that is here, whatever environment the caller has active, and bring no Python.
export UV_PROJECT_ENVIRONMENT := $(CURDIR)/$(VENV)
export UV_PYTHON_DOWNLOADS := never
unexport VIRTUAL_ENV

# Nothing here uses gRPC in a process that was forked; its handlers abort children that are to run something else.
export GRPC_ENABLE_FORK_SUPPORT := 0

# What builds images.
ENGINE      ?= $(firstword $(foreach each,docker podman buildah,$(shell command -v $(each))))

.DEFAULT_GOAL := help
.PHONY: help demo demo-database test test-fast test-journals simulate simulate-journal simulate-database defects explore fuzz hostile untrusted damage chaos \
        database-chaos pipeline pipeline-chaos coverage check format protos docs console-shots site release-protos bench bench-growth \
        bench-growth-docs bench-kafka bench-spark from-kafka jaeger trace-demo \
        alerts-check dist dist-check clean images audit k8s-check crd-schemas k8s-test test-clients loadtest

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
		awk -F'|' '{ printf "%-22s %s\n", $$1, $$2 }'

demo: $(SYNCED) ## all set-up, then the main job: 49,574 real order lines, processes killed, income exact
	$(BIN)/semel demo pizza

demo-database: $(SYNCED) ## the same orders into a PostgreSQL and a topic, all killed, exact in both: SEED=n
	PYTHONPATH=tests $(BIN)/python -m demo_database $(if $(SEED),--seed $(SEED))

pipeline: $(SPARK) ## both pipelines on a cluster of Spark, processes killed, income exact: SEED=n
	$(BIN)/python -m semel_pipelines.proof $(if $(SEED),--seed $(SEED))

test: $(SPARK) ## all set-up, then all tests: WORKERS=n
	$(BIN)/pytest $(SIDE_BY_SIDE)

test-fast: $(KUBERNETES) ## the quick tests, without Spark, PostgreSQL and processes: PYTHON=python3.13
	@# Spark's folder is not named: its conftest.py imports PySpark, which this target does not install.
	$(BIN)/pytest --fast --quiet $(SIDE_BY_SIDE) $(FAST_TESTS)

test-journals: $(SYNCED) ## what every journal must do, on each engine: SQLite, PostgreSQL, in memory
	$(BIN)/pytest -v libs/runtime/tests/journal

simulate: $(SYNCED) ## the whole cluster under faults: SEEDS=n FROM=k, or one: SEED=x VERBOSE=1
	PYTHONPATH=tests $(BIN)/python -m simulation $(if $(SEED),--seed $(SEED) $(if $(VERBOSE),--verbose), \
		--seeds $(or $(SEEDS),100) --from $(or $(FROM),0))

fuzz: $(SYNCED) ## hostile messages at all services: MESSAGES=n SEED=k
	PYTHONPATH=tests $(BIN)/python -m fuzz --messages $(or $(MESSAGES),100000) --seed $(or $(SEED),0)

hostile: $(SYNCED) ## attacks on real processes, and what each took: ATTACKS="a b" MESSAGES=n SEED=k
	PYTHONPATH=tests $(BIN)/python -m hostile --messages $(or $(MESSAGES),10000) --seed $(or $(SEED),0) $(ATTACKS)
	$(if $(ATTACKS),,PYTHONPATH=tests $(BIN)/python -m call_costs)

damage: $(SYNCED) ## flip bits in each kind of page of journals, and look what is served: TRIALS=n SEED=k
	PYTHONPATH=tests $(BIN)/python -m damage --trials $(or $(TRIALS),8) --seed $(or $(SEED),0)

untrusted: $(SYNCED) ## the SDK against a server that lies: ANSWERS=n SEED=k
	PYTHONPATH=tests $(BIN)/python -m untrusted --answers $(or $(ANSWERS),20000) --seed $(or $(SEED),0)

simulate-journal: $(SYNCED) ## one journal alone, with a crash in most writes: SEEDS=n FROM=k
	PYTHONPATH=tests $(BIN)/python -m simulation.alone --seeds $(or $(SEEDS),2000) --from $(or $(FROM),0)

simulate-database: $(SYNCED) ## applications with a database, which restarts and is restored: as simulate; DEFECTS="a b" or all
	PYTHONPATH=tests $(BIN)/python -m database_simulation $(if $(DEFECTS),--defects $(filter-out all,$(DEFECTS)), \
		$(if $(SEED),--seed $(SEED) $(if $(VERBOSE),--verbose),--seeds $(or $(SEEDS),100) --from $(or $(FROM),0)))

defects: $(SYNCED) ## in which seed the simulation finds each planted defect: all, or NAMES="one two"
	PYTHONPATH=tests $(BIN)/python -m defects $(NAMES)

explore: $(SYNCED) ## every order of events over the real machines, breadth first: MINUTES=n
	PYTHONPATH=tests $(BIN)/python -m exploration --minutes $(or $(MINUTES),10)

chaos: $(SYNCED) ## real processes under real faults, and a checked history: SECONDS=n SEED=k ON=postgres
	PYTHONPATH=tests $(BIN)/python -m chaos --seconds $(or $(SECONDS),60) --seed $(or $(SEED),0) \
		--engine $(or $(ON),sqlite)

database-chaos: $(SYNCED) ## calls with a database, killed at each step of theirs: ROUNDS=n SEED=k ON=mariadb
	PYTHONPATH=tests $(BIN)/python -m database_chaos --rounds $(or $(ROUNDS),20) --seed $(or $(SEED),0) \
		--engine $(or $(ON),sqlite)

pipeline-chaos: $(SPARK) ## jobs of Spark that are killed, and exact topics: SCENARIOS="k1 k2" SEED=k
	PYTHONPATH=pipeline/tests $(BIN)/python -m crashes --seed $(or $(SEED),0) $(SCENARIOS)

k8s-check: $(SPARK) ## k8s/ without a cluster: schemas, rules, and mistakes that must be found; needs kubectl
	@command -v kubectl >/dev/null || { echo "kubectl IS NOT THERE: k8s/ is not checked"; exit 1; }
	$(BIN)/pytest tests/manifests -q

crd-schemas: $(SPARK) ## fetch what k8s-check knows of the kinds of others; needs Go
	$(BIN)/python tools/fetch_crd_schemas.py

k8s-test: $(KUBERNETES) ## k8s/ on the cluster of KUBECTL, under its faults: IMAGE=semel-cli's there, OVERLAY=ha
	@test -n "$(IMAGE)" || { echo "IMAGE=name:tag: an image of semel-cli that the cluster can pull"; exit 1; }
	PYTHONPATH=tests $(BIN)/python -m real_cluster --kubectl "$(or $(KUBECTL),kubectl)" --image "$(IMAGE)" \
		--overlay $(or $(OVERLAY),dev) --postgres "$(POSTGRES)" \
		--outside "$(OUTSIDE)" --cut-node "$(CUT_NODE)" --cut "$(CUT)" --heal "$(HEAL)"

images: ## build the images of k8s/ with docker, podman or buildah: TAG=0.1.0 REGISTRY=registry.example.com/
	@test -n "$(ENGINE)" || { echo "no docker, podman or buildah is here: ENGINE=/path/to/one"; exit 1; }
	set -e; for package in coordinator broker group; do \
		$(ENGINE) build --build-arg PACKAGE=semel-$$package --tag $(REGISTRY)semel-$$package:$(or $(TAG),0.1.0) .; done; \
	$(ENGINE) build --build-arg PACKAGE=semel --tag $(REGISTRY)semel-cli:$(or $(TAG),0.1.0) .; \
	$(ENGINE) build --target cluster --build-arg PACKAGE=semel --tag $(REGISTRY)semel:$(or $(TAG),0.1.0) .

test-clients: $(SYNCED) ## examples/ in Go, TypeScript and Java: built, and run on a cluster with trouble
	PYTHONPATH=tests $(BIN)/python -m foreign $(LANGUAGES)

loadtest: $(SYNCED) $(GHZ) ## all of loadtest/ with ghz against a cluster: SCENARIOS="one two"; needs Go
	$(BIN)/python -m loadtest --ghz $(GHZ) $(if $(BOOTSTRAP),--bootstrap $(BOOTSTRAP)) $(SCENARIOS)

coverage: $(SPARK) ## all tests with branch coverage: pure modules must reach 100 %
	$(BIN)/pytest --cov --cov-report= $(SIDE_BY_SIDE)
	$(BIN)/coverage report --include=$$(PYTHONPATH=tests $(BIN)/python -m pure_modules) --fail-under=100

check: $(SPARK) ## format, lint, types, dependency contracts, tidiness, protos (lint, compatibility, fresh)
	$(BIN)/uv lock --quiet --check --offline
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest --quiet tests/test_tidy.py tests/test_prose.py
	$(BIN)/buf lint
	$(BIN)/python tools/generate_protos.py --check
	$(BIN)/python tools/generate_docs.py --check
	$(BIN)/buf breaking --against $(RELEASED)
	$(BIN)/buf breaking $(DESCRIPTORS) --config buf.journal.yaml --against $(RELEASED) $(JOURNALS)

audit: $(SPARK) ## licences and known holes of what Semel depends on; needs osv.dev
	$(BIN)/uv sync --quiet --frozen --inexact --only-group audit
	$(BIN)/python tools/audit.py

format: $(SYNCED) ## format the code, and repair what the linter can repair
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

protos: $(SYNCED) ## generate the code and the descriptor set from protos/semel
	$(BIN)/python tools/generate_protos.py

docs: $(SYNCED) ## generate the pages of docs/ that are tables of the code
	$(BIN)/python tools/generate_docs.py
	PYTHONPATH=tests $(BIN)/python -m scenarios
	PYTHONPATH=tests $(BIN)/python -m pure_modules_page

console-shots: $(SPARK) ## the pictures of docs/run/console.md, by Chromium, light and dark
	PYTHONPATH=tests:console/tests $(BIN)/python -m web_console.console_shots docs/run/console

site: $(SITE) ## build the pages of docs/ as a site in build/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

release-protos: protos ## with a release: what is declared now becomes what later changes must not break
	cp $(DESCRIPTORS) $(RELEASED)

bench: $(SYNCED) ## measure speed and memory; prints medians, and the machine they were taken on
	$(BIN)/python -m bench

bench-growth: $(SYNCED) ## how cost grows, curve by curve: CURVES="partitions groups" LOG_GB=n
	$(BIN)/python -m bench.growth $(if $(LOG_GB),--log-gb $(LOG_GB)) $(CURVES)

bench-growth-docs: $(SPARK) ## docs/internals/growth.md and its charts, from what bench-growth has measured: JSON=file
	$(BIN)/python -m bench.growth.docs $(or $(JSON),build/growth.json)

bench-kafka: $(BENCHED) ## the same work on Semel and on Apache Kafka: CELLS="a b" RUNS=n WRITE=1 JSON=file; needs Java and Maven
	$(BIN)/python -m bench.kafka --runs $(or $(RUNS),3) $(if $(JSON),--json $(JSON)) $(if $(READ),--read $(READ)) \
		$(if $(WRITE),--write) $(CELLS)

bench-spark: $(SPARK) ## Spark's pipelines on Semel and on Apache Kafka, taking turns; needs Java and Maven
	$(BIN)/python -m bench.spark

from-kafka: $(SPARK) ## the scripts of docs/use/from-kafka.md, between a real Kafka and a real Semel; needs Java and Maven
	$(BIN)/python -m bench.kafka_node
	$(BIN)/pytest -v tests/from_kafka

alerts-check: build/promtool ## show that each alert of Prometheus fires when it should; needs Go
	cd observability && ../build/promtool test rules alerts_test.yml

# Prometheus's module cannot be installed by its name: it is built in its own folder.
build/promtool:
	mkdir -p build
	cd "$$(go mod download -json $(PROMETHEUS) | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')" \
		&& go build -o $(CURDIR)/$@ ./cmd/promtool

trace-demo: $(SYNCED) $(JAEGER) ## a coordinator killed in the middle, seen in a real Jaeger: KEEP=1 leaves it open
	PYTHONPATH=tests $(BIN)/python -m tracing --jaeger $(JAEGER) $(if $(KEEP),--keep)

jaeger: $(JAEGER) ## build Jaeger all-in-one without its pages, for `semel up --jaeger`; needs Go; minutes
	@echo "put it on the PATH: export PATH=\"$(CURDIR)/$(dir $(JAEGER)):\$$PATH\""

dist: $(SYNCED) ## build the wheels that users install into dist/
	rm -rf dist
	$(BIN)/uv build --quiet --all-packages --wheel --out-dir dist
	rm dist/semel_pipelines-*

dist-check: dist ## the wheels as an index would take them; tests/test_dist.py installs them
	$(BIN)/uv sync --quiet --frozen --inexact --only-group dist
	$(BIN)/twine check --strict dist/*.whl

clean: ## remove the environment and everything that was built or cached
	rm -rf .venv .venv-* dist build htmlcov .coverage .coverage.* .hypothesis
	rm -rf .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Jaeger comes as a Go module with a `replace` of its own, which `go install` refuses: a scratch module
# with the same requirements and checksums builds it. Nothing of it is kept but the program.
$(JAEGER):
	@go version >/dev/null || { echo "Jaeger is built with Go: install it first"; exit 1; }
	@echo "building Jaeger $(JAEGER_AT): minutes, once"
	mkdir -p $(@D)/module
	set -e; cd $(@D)/module; \
	from=$$(go mod download -json github.com/jaegertracing/jaeger@$(JAEGER_AT) | \
		sed -n 's/.*"Dir": "\(.*\)",/\1/p'); \
	sed -e '/^replace/d' -e 's,^module .*,module scratch,' -e '/^toolchain/d' "$$from/go.mod" > go.mod; \
	cat "$$from/go.sum" > go.sum; \
	GOFLAGS=-mod=mod nice go get github.com/jaegertracing/jaeger@$(JAEGER_AT); \
	GOFLAGS=-mod=mod nice go build -trimpath -o ../jaeger-all-in-one \
		github.com/jaegertracing/jaeger/cmd/all-in-one
	rm -rf $(@D)/module

# pip brings uv at its pinned version, uv brings the rest as locked. (uv sync leaves itself and pip alone in
# an environment that uv did not make.) PySpark and what it needs are 1 GB: they come with the targets that
# want them. The smaller set-up takes nothing away (--inexact), so neither undoes the other.
$(SYNCED): uv.lock pyproject.toml $(MEMBERS)
	$(set-up)
	@echo "set-up: packages of uv.lock into $(VENV) (where they must be downloaded, a minute)"
	@$(BIN)/uv sync --quiet --frozen --inexact --all-extras --no-group spark --no-group kubernetes --compile-bytecode \
		--package semel-workspace --package semel
	@echo "set-up: bytecode of $(words $(SOURCES)) packages"
	@$(BIN)/python -m compileall -q $(SOURCES)
	@touch $@

# What k8s/ is read and checked with.
$(KUBERNETES): uv.lock pyproject.toml $(MEMBERS) $(SYNCED)
	@echo "set-up: validators of Kubernetes"
	@$(BIN)/uv sync --quiet --frozen --inexact --only-group kubernetes
	@touch $@

# What only `make site` needs: MkDocs with its theme and plugins.
$(SITE): uv.lock pyproject.toml $(MEMBERS) $(SYNCED)
	@echo "set-up: MkDocs"
	@$(BIN)/uv sync --quiet --frozen --inexact --only-group site
	@touch $@

# What only `make bench-kafka` needs: Kafka's clients in Python, and charts.
$(BENCHED): uv.lock pyproject.toml $(MEMBERS) $(SYNCED)
	@echo "set-up: clients of Kafka, and charts"
	@$(BIN)/uv sync --quiet --frozen --inexact --only-group bench
	@touch $@

$(GHZ):
	@command -v go >/dev/null || { echo "ghz is built by Go, which this machine does not have"; exit 1; }
	GOBIN=$(CURDIR)/$(@D) go install github.com/bojand/ghz/cmd/ghz@v$(GHZ_VERSION)

$(SPARK): uv.lock pyproject.toml $(MEMBERS)
	$(set-up)
	@echo "set-up: packages of uv.lock into $(VENV), with PySpark (where they must be downloaded, minutes: 1 GB)"
	@$(BIN)/uv sync --quiet --frozen --all-packages --all-extras --compile-bytecode
	@echo "set-up: bytecode of $(words $(SOURCES)) packages"
	@$(BIN)/python -m compileall -q $(SOURCES)
	@touch $(SYNCED) $(KUBERNETES) $@
	@rm -f $(BENCHED) $(SITE)

# Bytecode is made once, here: every process that is started imports in half the time.
define set-up
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "Semel needs Python 3.11 or newer as $(PYTHON); set PYTHON=/path/to/one"; exit 1; }
@test -x $(BIN)/python || { echo "set-up: a Python environment in $(VENV)"; $(PYTHON) -m venv $(VENV); }
@$(BIN)/uv --version 2>/dev/null | grep -qF 'uv $(UV_VERSION) ' || { echo "set-up: uv $(UV_VERSION)"; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION); }
endef
