# syntax=docker/dockerfile:1
#
# Images for Dataflow, built from the root of the repository:
#
#     docker build --file deploy/dataflow.Dockerfile --target cpu --tag IMAGE .
#
#     cpu        workers without an accelerator
#     gpu        workers with a GPU of NVIDIA
#
# The workers hold the packages that a worker imports, with what those need; docs/ENGINES.md has
# the sizes. PYTHON and BEAM are the versions of requirements-*.txt.
ARG PYTHON=3.11
ARG BEAM=2.77.0

FROM apache/beam_python${PYTHON}_sdk:${BEAM} AS beam

FROM python:${PYTHON}-slim-bookworm AS wheel
WORKDIR /source
COPY setup.py pyproject.toml MANIFEST.in README.md LICENSE ./
COPY precis precis
RUN python -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:${PYTHON}-slim-bookworm AS worker
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    TF_CPP_MIN_LOG_LEVEL=3
# The program that starts Beam's workers. It is no package of Python.
COPY --from=beam /opt/apache/beam /opt/apache/beam
ENTRYPOINT ["/opt/apache/beam/boot"]

FROM worker AS cpu
COPY deploy/requirements-cpu.txt /tmp/requirements.txt
RUN python -m pip install --no-cache-dir --require-hashes --requirement /tmp/requirements.txt
COPY --from=wheel /wheels /wheels
RUN python -m pip install --no-cache-dir --no-deps /wheels/*.whl

FROM worker AS gpu
COPY deploy/requirements-gpu.txt /tmp/requirements.txt
RUN python -m pip install --no-cache-dir --require-hashes --requirement /tmp/requirements.txt
COPY --from=wheel /wheels /wheels
RUN python -m pip install --no-cache-dir --no-deps /wheels/*.whl
