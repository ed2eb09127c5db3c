"""Bundles: a trained model as a folder.

manifest           the files of a bundle of any kind, and their checksums
checksums          SHA256SUMS, the checksum of each file byte for byte
network_bundle     the bundle of a network that writes summaries
encoder_bundle     the bundle of an encoder alone
summarizer_bundle  an extractor and a writer together
card, card_text    the model card of a bundle
converters         checkpoints of other projects, read as networks and encoders
exporters          networks, written as checkpoints of transformers
"""
