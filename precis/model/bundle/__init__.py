"""Bundles: a trained model as a folder.

manifest           the files of a bundle of any kind, and their checksums
network_bundle     the bundle of a network that writes summaries, or of an encoder
summarizer_bundle  a selector and a writer together
ctranslate2_model  the network of a bundle in the format of CTranslate2
address            of a model behind an endpoint, in place of a folder
card               the model card of a bundle
checkpoints        checkpoints of Hugging Face, read as networks and written from them
"""
