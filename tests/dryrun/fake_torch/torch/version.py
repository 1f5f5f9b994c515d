__version__ = "0.0+fake"
cuda = "12.4"
