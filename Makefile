# SPDX-License-Identifier: Apache-2.0
#
# `make demo` and `make test` do all their own set-up on a Debian 12 machine that has a Swift
# toolchain. BUILD_FLAGS goes to every `swift build`, with the trait of all that is not for apps.

SHELL := /bin/bash
SWIFT ?= swift
PLIST ?=
DATABASE ?=
BUILD_FLAGS ?=
override BUILD_FLAGS += --traits Server

.PHONY: help setup build demo example test test-javascript test-python test-documents test-lan conformance test-api test-web page engine snippets test-tsan simulate mutations torture torture-postgresql fuzz fuzz-build \
	fuzz-corpus format lint docs protobuf benchmark nightly clean \
	package test-package test-reproducible test-monitoring

help:
	@echo "make demo                  two devices and a server on this machine, with a sample file"
	@echo "make demo PLIST=FILE       the same with your own preferences file"
	@echo "make demo DATABASE=postgresql  with two servers on a PostgreSQL, one of which is killed"
	@echo "make example NAME=Cloudy   an example app on two devices; see Examples/README.md"
	@echo "make test                  all tests"
	@echo "make test FILTER=Reopening tests whose suite, name or file matches a regular expression"
	@echo "make test-javascript       the tests of the JavaScript client, which are part of make test"
	@echo "make test-python           the tests of the Python client, which are part of make test"
	@echo "make test-lan              a phone and a server on a local network, which are part of make test"
	@echo "make test-documents        the commands of README, the guides and docs, which are part of make test"
	@echo "make test-api              the OpenAPI file against a running server, with schemathesis"
	@echo "make test-web              the page for people in Chromium and Firefox: TEST=name tries those of that name"
	@echo "make page                  puts the files of Web/ into the server, after a change"
	@echo "make engine                compiles the engine to WebAssembly, for the JavaScript client"
	@echo "make snippets              puts the code of Snippets/ into the guides, after a change"
	@echo "make test-tsan             all tests under the thread sanitizer, in a build of their own"
	@echo "make simulate              tries to lose data in the simulator, until stopped"
	@echo "make simulate SEEDS=1...9  the same for these seeds"
	@echo "make conformance           tries to make the library and the other clients lose data: SEEDS=1...200"
	@echo "make mutations             breaks the engine on purpose, which the simulator must detect"
	@echo "make torture               real servers and devices under kills and faults: TORTURE_SECONDS=60"
	@echo "make torture DATABASE=postgresql  the same with three nodes on PostgreSQL and a standby"
	@echo "make fuzz                  fuzzes all parsers of foreign bytes: FUZZ_SECONDS=60 per entry, ENTRY=all"
	@echo "make fuzz-corpus           merges what make fuzz found into the corpus"
	@echo "make lint                  checks the format, which make format corrects, scripts/layers, make page and make snippets"
	@echo "make docs                  a site of all guides, pages and the reference, into .build/docs"
	@echo "make benchmark             measures beside etcd, Redis and NATS, and writes docs/BENCHMARKS.md"
	@echo "make benchmark QUICK=1     the same in three minutes, printed only"
	@echo "make package               a Debian package and an archive, reproducibly, into .build/package"
	@echo "make test-package          what make package made, in a bare Debian 12 (needs root)"
	@echo "make test-reproducible     the same of two clones of the commit, if their bytes are equal"
	@echo "make test-monitoring       the alerts and the dashboard, with Debian's promtool"
	@echo "make nightly               all long checks, about five hours, with a report at the end"
	@echo "make protobuf              generates the Swift code of Protocol/ubiquity.proto"

setup:
	@scripts/setup

build: setup
	@$(SWIFT) build $(BUILD_FLAGS) --product ubiquity

demo: setup
	@$(if $(filter postgresql,$(DATABASE)),scripts/setup postgresql)
	@for product in ubiquity Demo; do \
		scripts/build-quietly $(SWIFT) build $(BUILD_FLAGS) --product $$product || exit 1; \
	done
	@"$$($(SWIFT) build $(BUILD_FLAGS) --show-bin-path)/Demo" \
		$(if $(PLIST),--plist "$(PLIST)") $(if $(DATABASE),--database "$(DATABASE)")

# The apps among the examples, each a folder with its name.
EXAMPLES := $(filter-out Demo Screen Stage,$(patsubst Examples/%/,%,$(wildcard Examples/*/)))
NAME ?=
EXAMPLE_FLAGS ?=

example: setup
	@[ -n "$(filter $(EXAMPLES),$(NAME))" ] || \
		{ echo "make example NAME=...: there are $(EXAMPLES)" >&2; exit 1; }
	@for product in ubiquity $(NAME); do \
		scripts/build-quietly $(SWIFT) build $(BUILD_FLAGS) --product $$product || exit 1; \
	done
	@"$$($(SWIFT) build $(BUILD_FLAGS) --show-bin-path)/$(NAME)" $(EXAMPLE_FLAGS)

FILTER ?=
# Tests that run at once, where the toolchain can limit them (Swift 6.3). Otherwise a thousand share the
# cores, and on a busy machine real requests wait so long for their turn that they time out.
TEST_WIDTH ?= 16
WIDTH_OPTION := --experimental-maximum-parallelization-width
TEST_WIDTH_FLAGS = $(if $(shell $(SWIFT) test --help-hidden 2> /dev/null | grep -e $(WIDTH_OPTION)), \
	$(WIDTH_OPTION) $(TEST_WIDTH))

# PostgreSQL is one of the server's storages; the tests start one of their own.
test:
	@scripts/setup curl jq postgresql zbar-tools
	$(SWIFT) build $(BUILD_FLAGS) --build-tests
	@scripts/failures-last $(SWIFT) test $(BUILD_FLAGS) --skip-build \
		$(TEST_WIDTH_FLAGS) $(if $(FILTER),--filter "$(FILTER)")
	$(if $(FILTER),,@$(MAKE) --no-print-directory --jobs --keep-going --output-sync=target $(TESTED_BESIDE) \
		PROGRAM="$$($(SWIFT) build $(BUILD_FLAGS) --show-bin-path)/ubiquity")

# What `make test` tests at once, with a built program: most of it waits.
TESTED_BESIDE := $(addprefix beside-,javascript python documents lan)
.PHONY: $(TESTED_BESIDE)
$(TESTED_BESIDE): beside-%:
	@scripts/test-$* "$(PROGRAM)"

test-javascript: build
	@scripts/test-javascript "$$($(SWIFT) build $(BUILD_FLAGS) --show-bin-path)/ubiquity"

test-python: build
	@scripts/test-python "$$($(SWIFT) build $(BUILD_FLAGS) --show-bin-path)/ubiquity"

# In Chromium too, where `make test-web` has installed what it needs.
test-lan: build
	@scripts/setup iproute2 libnss3-tools python3
	@scripts/test-lan "$$($(SWIFT) build $(BUILD_FLAGS) --show-bin-path)/ubiquity"

test-documents: build
	@scripts/setup curl jq python3
	@scripts/test-documents "$$($(SWIFT) build $(BUILD_FLAGS) --show-bin-path)/ubiquity"

# Takes some two minutes; API_SECONDS says otherwise. schemathesis comes from PyPI into .build.
test-api: setup
	@scripts/build-quietly $(SWIFT) build $(BUILD_FLAGS) --product ubiquity
	@scripts/test-api "$$($(SWIFT) build $(BUILD_FLAGS) --show-bin-path)/ubiquity"

# Chromium and its driver come from Debian, selenium from PyPI into .build.
TEST ?=

test-web: setup
	@scripts/build-quietly $(SWIFT) build $(BUILD_FLAGS) --product ubiquity
	@scripts/test-web "$$($(SWIFT) build $(BUILD_FLAGS) --show-bin-path)/ubiquity" $(TEST)

page:
	@scripts/embed-page

# What the engine of the JavaScript client is made of. Takes minutes.
ENGINE := Clients/JavaScript/src/engine.wasm

engine: $(ENGINE)

$(ENGINE): scripts/engine $(shell find Sources/UbiquityCore Sources/UbiquityEngine -type f)
	@scripts/engine $@

snippets:
	@scripts/embed-snippets

# A build folder of its own, for every file is compiled anew. The first report ends the run.
test-tsan:
	@scripts/setup postgresql
	UBIQUITY_TSAN=1 $(SWIFT) build $(BUILD_FLAGS) --sanitize=thread --scratch-path .build-tsan \
		--build-tests
	UBIQUITY_TSAN=1 \
	TSAN_OPTIONS="halt_on_error=1 die_after_fork=0 suppressions=$(CURDIR)/Tests/ThreadSanitizer/suppressions.txt" \
	scripts/failures-last \
		$(SWIFT) test $(BUILD_FLAGS) --sanitize=thread --scratch-path .build-tsan --skip-build \
		--no-parallel

SEEDS ?=
STEPS ?= 500

simulate: setup
	@scripts/build-quietly $(SWIFT) build $(BUILD_FLAGS) -c release --product ubiquity-simulator
	@"$$($(SWIFT) build $(BUILD_FLAGS) -c release --show-bin-path)/ubiquity-simulator" \
		$(if $(SEEDS),--seeds $(SEEDS)) --steps $(STEPS)

# The programs that the tests build too.
conformance: setup engine
	@for product in ubiquity-conformance ConformanceClient; do \
		scripts/build-quietly $(SWIFT) build $(BUILD_FLAGS) --product $$product || exit 1; \
	done
	@scripts/conformance "$$($(SWIFT) build $(BUILD_FLAGS) --show-bin-path)" $(or $(SEEDS),1...200) --faults

# Each patch of Tests/Mutations/ is built, and the simulator must find fault with it, and none with what
# the patches break: in SEEDS=1...3000, unless told otherwise. MUTATION=name tries one.
MUTATION ?=

mutations: setup
	@SWIFT="$(SWIFT)" BUILD_FLAGS="$(BUILD_FLAGS)" SEEDS=$(SEEDS) STEPS=$(STEPS) \
		MUTATION=$(MUTATION) scripts/mutations

# Real processes, real sockets, real files; the simulator's checkers.
TORTURE_SECONDS ?= 60
TORTURE_FLAGS ?=

# DATABASE=postgresql: three nodes on a primary with a synchronous standby.

torture:
	@scripts/setup faketime $(filter postgresql,$(DATABASE))
	@for product in ubiquity UbiquityTestWorker UbiquityTorture; do \
		scripts/build-quietly $(SWIFT) build $(BUILD_FLAGS) --product $$product || exit 1; \
	done
	@"$$($(SWIFT) build $(BUILD_FLAGS) --show-bin-path)/UbiquityTorture" \
		--seconds $(TORTURE_SECONDS) $(if $(DATABASE),--database $(DATABASE)) $(TORTURE_FLAGS)

torture-postgresql:
	@$(MAKE) torture DATABASE=postgresql

# A release build of its own, for every file is compiled anew, with what tells libFuzzer which parts
# of the code an input reached. Tests/Fuzz/README.md says what the entries are.
FUZZ_SECONDS ?= 60
ENTRY ?=

fuzz-build: setup
	@UBIQUITY_FUZZ=1 scripts/build-quietly $(SWIFT) build $(BUILD_FLAGS) -c release \
		--sanitize=fuzzer --scratch-path .build-fuzz --product FuzzProgram

fuzz: fuzz-build
	@FUZZ_SECONDS=$(FUZZ_SECONDS) ENTRY=$(ENTRY) scripts/fuzz .build-fuzz/release/FuzzProgram

fuzz-corpus: fuzz-build
	@ENTRY=$(ENTRY) scripts/fuzz --merge .build-fuzz/release/FuzzProgram

# What is formatted.
FORMATTED := Package.swift Examples Snippets Sources Tests

lint:
	@scripts/setup python3
	@scripts/layers
	@scripts/embed-page --check
	@scripts/embed-snippets --check
	@scripts/engine --check
	$(SWIFT) format lint --strict --parallel --recursive $(FORMATTED)

format:
	$(SWIFT) format --in-place --parallel --recursive $(FORMATTED)

# From what a build leaves, so that it takes seconds.
docs: setup
	@scripts/setup python3
	@for library in Ubiquity UbiquityDefaults UbiquityTesting; do \
		scripts/build-quietly $(SWIFT) build $(BUILD_FLAGS) --target $$library || exit 1; \
	done
	@scripts/site "$$($(SWIFT) build $(BUILD_FLAGS) --show-bin-path)" .build/docs
	@echo "To read it: python3 -m http.server --directory .build/docs 8080, and then"
	@echo "http://127.0.0.1:8080"

# Writes docs/BENCHMARKS.md and its pictures; QUICK=1, or BENCHMARK_FLAGS="--only latency", prints
# figures only.
QUICK ?=
BENCHMARK_FLAGS ?=

benchmark:
	@scripts/setup etcd-server nats-server openssl postgresql python3 redis-server redis-tools wrk
	@scripts/build-quietly $(SWIFT) build $(BUILD_FLAGS) -c release --product ubiquity
	@UBIQUITY_BENCHMARKS=1 scripts/build-quietly $(SWIFT) build $(BUILD_FLAGS) -c release \
		--product ubiquity-benchmarks
	@folder="$$($(SWIFT) build $(BUILD_FLAGS) -c release --show-bin-path)"; \
		scripts/benchmark --program "$$folder/ubiquity" --client "$$folder/ubiquity-benchmarks" \
			--folder .build --results .build/benchmark.json --docs docs --command "make benchmark" $(if $(QUICK),--quick) \
			$(BENCHMARK_FLAGS)

# The first time, every file is compiled anew, in a folder of its own.
package: setup
	@scripts/setup dpkg-dev libstdc++-12-dev python3
	@SWIFT="$(SWIFT)" BUILD_FLAGS="$(BUILD_FLAGS)" scripts/package

test-package:
	@scripts/test-package

test-reproducible: setup
	@scripts/setup dpkg-dev libstdc++-12-dev python3
	@SWIFT="$(SWIFT)" BUILD_FLAGS="$(BUILD_FLAGS)" scripts/package --twice

test-monitoring: setup
	@scripts/setup prometheus python3
	@scripts/build-quietly $(SWIFT) build $(BUILD_FLAGS) --product ubiquity
	@scripts/test-monitoring "$$($(SWIFT) build $(BUILD_FLAGS) --show-bin-path)/ubiquity"

# Each goes on where the one before has failed; NIGHTLY="torture fuzz" runs some of them.
nightly:
	@scripts/nightly $(NIGHTLY)

# The generated code is committed: building the generator takes longer than building the project.
# It needs Debian's protobuf-compiler.
protobuf: setup
	$(SWIFT) package resolve --traits Server
	$(SWIFT) build -c release --package-path .build/checkouts/swift-protobuf \
		--scratch-path .build/protoc --product protoc-gen-swift
	protoc --plugin=.build/protoc/release/protoc-gen-swift --proto_path=Protocol \
		--swift_out=Sources/UbiquityWire/Generated --swift_opt=Visibility=Package \
		--swift_opt=UseAccessLevelOnImports=true ubiquity.proto

clean:
	rm -rf .build .build-fuzz .build-mutations .build-package .build-tsan
