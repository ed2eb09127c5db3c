"""Bundles: a bundle is a folder with a trained model.

manifest           the files of a bundle of any kind, and their checksums
network_bundle     the bundle of a writer, or of an encoder
summarizer_bundle  the bundle of a selector and a writer
ctranslate2_model  the network of a bundle in the format of CTranslate2
address            addresses of endpoints and of bundles in the package
card               the model card of a bundle
checkpoints        imports and exports checkpoints of Hugging Face
"""
