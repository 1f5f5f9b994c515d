"""Sharded training on CPU ranks: the program shardscope-train, which `shardscope train` starts, and the C++ interface.

`prefix` is the folder for CMAKE_PREFIX_PATH, with which find_package(shardscope) finds the C++ interface;
`python -m shardscope_train --prefix` prints it.
"""

import os

prefix = os.path.dirname(os.path.abspath(__file__))
