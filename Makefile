# From a fresh Debian 12 machine to a demonstration (make demo) or a tested build (make test), each by itself.
# Needs make and apt only; installs what is missing of packages.txt, with sudo where you are not root.
SHELL := /bin/bash
JOBS ?= 2
FUZZ_SECONDS ?= 60
RELEASE := build/release

.PHONY: help deps build demo pictures test test-full sanitize fuzz bench install lint clean
.DEFAULT_GOAL := help

help:
	@echo 'make demo       search, train, compare: the whole of it in two minutes after the build'
	@echo 'make test       build and run the tests'
	@echo 'make pictures   draw the pictures of the documents again (docs/pictures)'
	@echo 'make test-full  all tests, the sanitizer builds and the fuzzers (an hour or two)'
	@echo 'make bench      measure (tests/bench); figures are in docs/performance.md'
	@echo 'make build      build all programs into $(RELEASE)/bin'
	@echo 'make install    install programs and libraries (PREFIX=/usr/local)'
	@echo 'make lint       clang-format and clang-tidy (FILES="a.cpp b.cpp" for some only)'
	@echo 'make deps       only install the missing Debian packages (packages.txt)'
	@echo 'make clean      remove build/'

deps:
	@cmake/install_packages.sh build run test

build: deps
	@test -f $(RELEASE)/build.ninja || cmake --preset release
	@cmake --build $(RELEASE) --parallel $(JOBS)

demo: build
	@PATH="$(CURDIR)/$(RELEASE)/bin:$$PATH" examples/01_first_light/run.sh
	@examples/compare_picture.sh

# The pictures of README.md and viewer/README.md, from traces that it makes.
pictures: build
	@PATH="$(CURDIR)/$(RELEASE)/bin:$$PATH" docs/pictures/make.sh build/pictures

test: build
	@ctest --test-dir $(RELEASE) --parallel $(JOBS) --output-on-failure --no-tests=error --label-exclude '^full$$' \
	  --output-junit test-results.xml

test-full: build
	@ctest --test-dir $(RELEASE) --parallel $(JOBS) --output-on-failure --no-tests=error --output-junit test-results.xml
	@$(MAKE) --no-print-directory sanitize fuzz

# Address with undefined-behaviour, then thread sanitizer; the tests of the ordinary run.
sanitize: deps
	@for preset in asan tsan; do \
	  cmake --preset $$preset && cmake --build --preset $$preset --parallel $(JOBS) && \
	  ctest --preset $$preset --parallel $(JOBS) || exit 1; \
	done

# Each fuzzer for a bounded time; it starts from its corpus in tests/fuzz/corpus and leaves a crash in build/fuzz.
fuzz:
	@cmake/install_packages.sh build test fuzz
	@cmake --preset fuzz && cmake --build --preset fuzz --target fuzzers --parallel $(JOBS)
	@cd build/fuzz && for fuzzer in fuzz/*; do \
	  name=$$(basename $$fuzzer); mkdir -p corpus/$$name; \
	  seeds=../../tests/fuzz/corpus/$$name; test -d $$seeds || seeds=; \
	  echo "fuzzing $$name for $(FUZZ_SECONDS) s"; \
	  $$fuzzer -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -artifact_prefix=$$name- -print_final_stats=1 \
	    corpus/$$name $$seeds >$$name.log 2>&1 || { tail -n 40 $$name.log; echo "the input is in build/fuzz/$$name-*"; exit 1; }; \
	  grep -E 'executed_units|peak_rss' $$name.log; \
	done

bench: deps
	@cmake --preset release -DSHARDSCOPE_BENCH=ON && cmake --build $(RELEASE) --parallel $(JOBS)
	@for bench in $(RELEASE)/bench/*; do test -x $$bench && { $$bench $(BENCH_FLAGS) || exit 1; }; done

install: build
	@cmake --install $(RELEASE) --prefix $${PREFIX:-/usr/local}

lint:
	@cmake/install_packages.sh build run test lint
	@test -f $(RELEASE)/build.ninja || cmake --preset release
	@cmake/lint.sh $(RELEASE) $(JOBS) $(FILES)

clean:
	@rm -rf build
