# From a fresh Debian 12 machine to a demonstration (make demo) or a tested build (make test), each by itself.
# Needs make and apt only; installs what is missing of packages.txt, with sudo where you are not root.
SHELL := /bin/bash
JOBS ?= 2
# Some wait: for signals, deadlines, ranks that were killed.
TEST_JOBS ?= $(shell expr $(JOBS) + 2)
FUZZ_RUNS ?= 1000000
PARTS ?= 48
PART ?= $(shell seq 0 $$(($(PARTS) - 1)))
FAULT_TRIALS ?= 600
RELEASE := build/release
# What `make test` builds and runs: release, the programs that users run; checked, with asserts and guards, as CI does.
PRESET ?= release
TESTED := build/$(PRESET)

.PHONY: help deps configure build everything demo pictures test test-pytorch recipes wheel wheel-test wheel-tested fresh test-full product mutants faults sanitize fuzz bench install lint clean
.DEFAULT_GOAL := help

help:
	@echo 'make demo       search, train, compare: the whole of it in half a minute after the build of the programs'
	@echo 'make test       build and run the tests'
	@echo 'make test-pytorch  the dry run on PyTorch from PyPI (TORCH="2.6.0 2.11.0"; downloads 6 GB each): half an hour'
	@echo 'make recipes    recipes that frameworks publish, dry, into docs/recipes.md (ENVIRONMENTS=FOLDER; INSTALL=1 makes them)'
	@echo 'make wheel      two files for pip in build/wheel: the programs and the Python module; shardscope-train and the C++ interface'
	@echo 'make wheel-test  install them into an environment of its own and run tests/python there (downloads pytest)'
	@echo 'make wheel-tested  the first of them, made and tried, of the objects of make test (PRESET=release), half a minute; forgets how that was configured'
	@echo 'make fresh      demo and test in a bare Debian 12 root, as root and as another user (FRESH="demo test user"); needs root'
	@echo 'make build      build the programs into $(RELEASE)/bin, without tests'
	@echo 'make install    install programs and libraries (PREFIX=/usr/local)'
	@echo 'make deps       only install the missing Debian packages of programs and tests (packages.txt)'
	@echo 'make pictures   draw the pictures of the documents again (docs/pictures)'
	@echo 'make test-full  all tests, the sanitizer builds and the fuzzers (two hours or three)'
	@echo 'make sanitize   of these the sanitizer builds alone'
	@echo 'make fuzz       of these the fuzzers alone (FUZZ_RUNS=1000000 inputs each)'
	@echo 'make product    every strategy against every other: hours, in parts (PARTS=48 PART="0 1"); docs/agreement.md'
	@echo 'make mutants    plant bugs one by one and see that the tests catch them: two hours; docs/planted_bugs.md'
	@echo 'make faults     errors, kills and damage during training, by the thousand: half an hour; docs/reliability.md'
	@echo 'make bench      measure (tests/bench); figures are in docs/performance.md'
	@echo 'make lint       clang-format and clang-tidy (FILES="a.cpp b.cpp" for some only)'
	@echo 'make clean      remove build/'

deps:
	@cmake/install_packages.sh build run test

# Once, and again where packages have come since: a part that was left out may be built now.
configure:
	@if ! test -f $(RELEASE)/build.ninja; then cmake --preset release; \
	elif test /var/lib/dpkg/status -nt $(RELEASE)/build.ninja; then cmake $(RELEASE) && touch $(RELEASE)/build.ninja; fi

# The programs alone, without the tests' packages. They are the same objects that `make test` links.
build:
	@cmake/install_packages.sh build run
	@$(MAKE) --no-print-directory configure
	@cmake --build $(RELEASE) --target programs --parallel $(JOBS)

everything: deps
	@if test $(PRESET) = release; then $(MAKE) --no-print-directory configure; else cmake --preset $(PRESET); fi
	@cmake --build $(TESTED) --parallel $(JOBS)

demo: build
	@PATH="$(CURDIR)/$(RELEASE)/bin:$$PATH" examples/01_first_light/run.sh
	@examples/compare_picture.sh

# The pictures of README.md and viewer/README.md, from traces that it makes.
pictures: build
	@PATH="$(CURDIR)/$(RELEASE)/bin:$$PATH" docs/pictures/make.sh build/pictures

test: everything
	@ctest --test-dir $(TESTED) --parallel $(TEST_JOBS) --output-on-failure --no-tests=error --label-exclude '^(full|product)$$' \
	  --output-junit test-results.xml

# PyTorch is no dependency: it comes from PyPI into environments outside of the tree (tests/pytorch/run.sh says where).
test-pytorch: build
	@SHARDSCOPE="$(CURDIR)/$(RELEASE)/bin/shardscope" tests/pytorch/run.sh

# Environments and clones are looked for in ENVIRONMENTS, by the names of recipes.toml; what is not there is left out.
ENVIRONMENTS ?= $(HOME)/.cache/shardscope/recipes
recipes: build
	@tests/pytorch/recipes/recipes.py --shardscope "$(CURDIR)/$(RELEASE)/bin/shardscope" --jobs $(JOBS) \
	  --environments "$(ENVIRONMENTS)" $(if $(INSTALL),--install) $(RECIPES)

# Their tools come from PyPI into environments outside of the tree (cmake/wheel.sh says where).
wheel:
	@cmake/install_packages.sh build wheel
	@JOBS=$(JOBS) cmake/wheel.sh

wheel-test: wheel
	@cmake/wheel.sh test

# Both, of the objects that `make test` has compiled (PRESET) and in half a minute: what .ci/run tries.
wheel-tested:
	@cmake/install_packages.sh build wheel
	@JOBS=$(JOBS) cmake/wheel.sh tested $(PRESET)

# What a bare machine makes of HEAD; .ci/run runs the tests so.
FRESH ?= demo test user
fresh:
	@cmake/install_packages.sh fresh
	@cmake/fresh.sh $(FRESH)

test-full: deps
	@cmake --preset release -DSHARDSCOPE_FULL_TESTS=ON && cmake --build $(RELEASE) --parallel $(JOBS)
	@SHARDSCOPE_TEST_SEED=all ctest --test-dir $(RELEASE) --parallel $(JOBS) --output-on-failure --no-tests=error --label-exclude '^product$$' \
	  --output-junit test-results.xml
	@$(MAKE) --no-print-directory sanitize fuzz

# The whole product of strategies in PARTS parts, of which PART names those to run (all); results stay in build/product,
# and the table is of all that are there.
product: deps
	@cmake --preset release -DSHARDSCOPE_FULL_TESTS=ON && cmake --build $(RELEASE) --parallel $(JOBS) --target product_test
	@mkdir -p build/product
	@for part in $(PART); do \
	  GTEST_TOTAL_SHARDS=$(PARTS) GTEST_SHARD_INDEX=$$part $(RELEASE)/tests/product_test --gtest_brief=1 \
	    --gtest_output=json:build/product/$(PARTS)-$$part.json || exit 1; \
	done
	@tests/agreement/product_table.py build/product/*.json

mutants:
	@cmake/install_packages.sh build run test mutants
	@SHARDSCOPE_TEST_SEED=all tests/mutants/plant.py --jobs $(JOBS)

# Over 10,000 faults of calls and files in one process, and FAULT_TRIALS of whole runs, which start a few each.
faults: deps
	@$(MAKE) --no-print-directory configure
	@cmake --build $(RELEASE) --target programs --target checkpoint_files_test --parallel $(JOBS)
	@tests/faults/run --build $(RELEASE) --trials $(FAULT_TRIALS)

# Address with undefined-behaviour, then thread sanitizer; the tests of the ordinary run.
sanitize: deps
	@for preset in asan tsan; do \
	  cmake --preset $$preset && cmake --build --preset $$preset --parallel $(JOBS) && \
	  ctest --preset $$preset --parallel $(JOBS) || exit 1; \
	done

# Each fuzzer for so many inputs, JOBS at a time; they start from tests/fuzz/corpus and leave a crash in build/fuzz. The
# targets themselves abort where a reader takes over a second of processor time or more memory than it may.
fuzz:
	@cmake/install_packages.sh build test fuzz
	@cmake --preset fuzz && cmake --build --preset fuzz --target fuzzers --parallel $(JOBS)
	@cd build/fuzz && ls fuzz | xargs -P $(JOBS) -I NAME sh -c 'mkdir -p corpus/NAME; \
	  seeds=../../tests/fuzz/corpus/NAME; test -d $$seeds || seeds=; \
	  echo "fuzzing NAME with $(FUZZ_RUNS) inputs"; \
	  fuzz/NAME -runs=$(FUZZ_RUNS) -max_len=8192 -timeout=60 -rss_limit_mb=2048 -artifact_prefix=NAME- -print_final_stats=1 \
	    corpus/NAME $$seeds >NAME.log 2>&1 || { tail -n 40 NAME.log; echo "the input is in build/fuzz/NAME-*"; exit 1; }; \
	  echo "NAME: $$(grep -E "executed_units|peak_rss" NAME.log | tr "\n" " ")"'

bench: deps
	@cmake --preset release -DSHARDSCOPE_BENCH=ON && cmake --build $(RELEASE) --parallel $(JOBS)
	@for bench in $(RELEASE)/bench/*; do test -x $$bench && { $$bench $(BENCH_FLAGS) || exit 1; }; done
	@tests/bench/viewer_curve.sh $(RELEASE)

install: build
	@cmake --install $(RELEASE) --prefix $${PREFIX:-/usr/local}

lint:
	@cmake/install_packages.sh build run test lint
	@cmake --preset lint >/dev/null
	@cmake/lint.sh build/lint $(JOBS) $(FILES)

clean:
	@rm -rf build
