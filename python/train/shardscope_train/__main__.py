"""The command shardscope-train: becomes the program, which lies in this package beside the libraries that it needs."""

import os
import sys

from . import prefix


def become() -> None:
    if sys.argv[1:] == ["--prefix"]:
        print(prefix)
        return
    path = os.path.join(prefix, "bin", "shardscope-train")
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    become()
