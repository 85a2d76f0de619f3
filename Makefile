# SPDX-License-Identifier: Apache-2.0
#
# `make demo` and `make test` do all their own set-up on a Debian 12 machine that has a Swift
# toolchain. BUILD_FLAGS goes to every `swift build`.

SHELL := /bin/bash
SWIFT ?= swift
PLIST ?=
BUILD_FLAGS ?=

.PHONY: help setup build demo test format lint protobuf benchmark clean

help:
	@echo "make demo                  two devices and a server on this machine, with a sample file"
	@echo "make demo PLIST=FILE       the same with a preferences file of your own"
	@echo "make test                  all tests"
	@echo "make lint                  the format check; make format corrects it"
	@echo "make benchmark             the figures of docs/BENCHMARKS.md, release build"
	@echo "make protobuf              generates the Swift code of Protocol/ubiquity.proto"

setup:
	@scripts/setup

build: setup
	@$(SWIFT) build $(BUILD_FLAGS) --product ubiquity

demo: setup
	@scripts/build-quietly $(SWIFT) build $(BUILD_FLAGS) --product ubiquity
	@"$$($(SWIFT) build $(BUILD_FLAGS) --show-bin-path)/ubiquity" demo $(if $(PLIST),--plist "$(PLIST)")

test: setup
	$(SWIFT) build $(BUILD_FLAGS) --build-tests
	$(SWIFT) test $(BUILD_FLAGS) --skip-build

lint:
	$(SWIFT) format lint --strict --recursive Package.swift Sources Tests Benchmarks/Package.swift Benchmarks/Sources

format:
	$(SWIFT) format --in-place --recursive Package.swift Sources Tests Benchmarks/Package.swift Benchmarks/Sources

benchmark: setup
	$(SWIFT) build -c release --package-path Benchmarks
	"$$($(SWIFT) build -c release --package-path Benchmarks --show-bin-path)/ubiquity-benchmarks"

# The generated code is committed: building the generator takes longer than building the project.
# It needs Debian's protobuf-compiler.
protobuf: setup
	$(SWIFT) package resolve
	$(SWIFT) build -c release --package-path .build/checkouts/swift-protobuf \
		--scratch-path .build/protoc --product protoc-gen-swift
	protoc --plugin=.build/protoc/release/protoc-gen-swift --proto_path=Protocol \
		--swift_out=Sources/UbiquityWire/Generated --swift_opt=Visibility=Package \
		--swift_opt=UseAccessLevelOnImports=true ubiquity.proto

clean:
	rm -rf .build Benchmarks/.build
