"""Bundles: a trained model as a folder. `network_bundle` holds a network that writes,
`encoder_bundle` an encoder, and `converters` read the checkpoints of other projects.
"""
