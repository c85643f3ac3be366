# From a fresh clone, `make demo` and `make test` need Python 3.10+ and a JDK 17+. They fetch the rest.
PYTHON ?= python3
SBT := $(PYTHON) project/sbt.py
UV := $(or $(shell command -v uv 2>/dev/null),.tools/uv/bin/uv)

# `.venv` has Spark 4.1; each other version has an environment of its own beside it. PySpark 4.3 needs
# Python 3.11, so a machine that has only 3.10 tests without it. (Expanded in recipes, when uv is there.)
SPARKS = 40 42 $(if $(shell $(UV) python find '>=3.11' 2>/dev/null),43)
PYSPARK_JARS = .venv/lib/python*/site-packages/pyspark/jars .venv-spark4?/lib/python*/site-packages/pyspark/jars

LOADERS = UV_PROJECT_ENVIRONMENT=.venv-loaders $(UV)
LOADERS_GROUPS = --quiet --no-default-groups --group spark41 --group loaders

.DEFAULT_GOAL := test
.NOTPARALLEL:
.PHONY: demo test fuzz bench jmh check format test-scala test-python test-torch environments test-sparks links build jar clean

# The main job on real images: DataFrame, safetensors, DataFrame.
demo: jar $(UV)
	@$(UV) run safetensors-spark demo

# Tables of how fast it is beside what else one could use; takes three quarters of an hour on a machine that does nothing else.
# What loads training data runs in an environment of its own.
bench: jar $(UV)
	@$(if $(filter loaders lookups,$(BENCH)),true,$(UV) run python -m benchmarks $(BENCH))
	@$(if $(filter write read shards,$(BENCH)),true,$(LOADERS) sync $(LOADERS_GROUPS))
	@$(if $(filter write read shards,$(BENCH)),true,.venv-loaders/bin/python -m benchmarks $(BENCH))

# A table of how fast the functions are beside copying the same floats: some minutes, or as JMH says.
jmh:
	@$(SBT) "benchmarks/Jmh/runMain io.github.semyonsinchenko.safetensors.functions.FunctionsTable $(JMH)"

# Everything that must hold before a merge.
test: jar check test-scala links test-python test-sparks test-torch

# Files of every kind, put to the reader and to the official library until the time is over: ten minutes, or as FUZZ says.
fuzz: jar $(UV)
	@PYTHONPATH=project $(UV) run python tests/pyspark_interop/fuzz.py $(FUZZ)

# Format, lint and types.
check: jar $(UV)
	@echo "== check"
	$(UV) run ruff format --check
	$(UV) run ruff check
	$(UV) run mypy
	$(SBT) scalafmtCheckAll scalafmtSbtCheck

format: jar $(UV)
	$(UV) run ruff check --fix
	$(UV) run ruff format
	$(SBT) scalafmtAll scalafmtSbt

test-scala:
	@echo "== ScalaTest"
	$(SBT) test

# Whether every reference in the jar resolves in each Spark version.
links: environments
	@echo "== links"
	$(SBT) "tests/Test/runMain io.github.semyonsinchenko.safetensors.linkage.LinkCheck $$($(PYTHON) project/jar.py) $$(echo $(PYSPARK_JARS))"

# Python unit tests, packaging, and the interop tests in full.
test-python: jar $(UV)
	@echo "== pytest, Spark 4.1"
	$(UV) run pytest

test-sparks: environments
	@for spark in $(SPARKS); do \
	  echo "== pytest, short interop tests, Spark $$spark"; \
	  .venv-spark$$spark/bin/python -m pytest -m short --ignore tests/pyspark_interop/test_mlflow.py tests/pyspark_interop || exit 1; \
	done

# Training: in an environment of its own, since PyTorch takes gigabytes.
test-torch: jar $(UV)
	@echo "== pytest, PyTorch"
	UV_PROJECT_ENVIRONMENT=.venv-torch $(UV) sync --no-group mlflow --group training
	.venv-torch/bin/python -m pytest tests/training

environments: jar $(UV)
	@echo "== environments"
	$(UV) sync
	@for spark in $(SPARKS); do \
	  echo "$(UV) sync: Spark $$spark"; \
	  UV_PROJECT_ENVIRONMENT=.venv-spark$$spark $(UV) sync --no-group mlflow --no-group spark41 --group spark$$spark || exit 1; \
	done

# The sdist and the wheel, in dist/.
build: jar $(UV)
	$(UV) build

jar:
	@$(PYTHON) project/sbt.py --check-java
	@$(PYTHON) project/jar.py >/dev/null

.tools/uv/bin/uv: project/uv.txt
	$(PYTHON) -m venv --clear .tools/uv
	.tools/uv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r project/uv.txt
	@touch $@

# What builds and tests leave behind; `.tools` stays, since it is only fetched.
clean:
	rm -rf dist demo target scala/target scala/src/test/target scala/benchmarks/target project/target project/project
	rm -rf python/safetensors_spark/jars .venv .venv-spark4? .venv-torch .venv-loaders .mypy_cache .pytest_cache .hypothesis .ruff_cache
