# What the dry run reads to learn which PyTorch it is.
__version__ = "0.0+fake"
cuda = "12.4"
