"""What is true without Beam: text, tokens, records, networks, search, training,
extractive methods, quality.

Read in this order: text, tokenizer, record, config, network, decoding, training,
    bundle. Nothing here imports `pipelines` or Apache
Beam. docs/ARCHITECTURE.md has the floor plan.
"""
