"""python -m shardscope: becomes the program."""

import os
import sys

from ._program import Error, program

try:
    path = program()
except Error as error:
    sys.exit(f"shardscope: {error}")
os.execv(path, [path, *sys.argv[1:]])
