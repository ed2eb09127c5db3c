# The image of a training, without Beam. From the root of the repository:
#
#     docker build -f deploy/train.Dockerfile -t REGISTRY/precis-train .
#     docker build -f deploy/train.Dockerfile -t REGISTRY/precis-train-gpu --build-arg TENSORFLOW='tensorflow[and-cuda]' .
FROM python:3.11-slim

ARG TENSORFLOW=tensorflow
WORKDIR /opt/precis
COPY requirements.lock setup.py pyproject.toml README.md LICENSE ./
COPY precis precis
# The versions that the tests run with. Hashes are left out, as pip takes them only for all packages or none.
RUN grep -E '^[a-z0-9]' requirements.lock | sed 's/ \\$//' > versions.txt \
    && pip install --no-cache-dir --constraint versions.txt "$TENSORFLOW" '.[train,gcs]' \
    && rm -rf build

RUN useradd --create-home precis
USER precis
WORKDIR /home/precis
ENV PYTHONUNBUFFERED=1
# The form with brackets, so that SIGTERM reaches the training.
ENTRYPOINT ["precis", "train"]
