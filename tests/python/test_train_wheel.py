"""The installed wheel that trains: it trains without a library of the machine's, and other projects build against it."""

import importlib.metadata
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sysconfig
import tempfile
import unittest

try:
    import shardscope_train
except ImportError:
    shardscope_train = None

SHARDSCOPE = os.path.join(sysconfig.get_path("scripts"), "shardscope")
ONE_RANK = ["--model", "gpt2-nano", "--data", "random", "--sequence", "32", "--global-batch", "2", "--steps", "2", "--json"]


def run(*words, **how):
    return subprocess.run(list(words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)


@unittest.skipUnless(os.environ.get("INSTALLED") and shardscope_train, "for make wheel-test, which installs shardscope[train]")
class TrainWheel(unittest.TestCase):
    def test_ranks_that_share_the_model_end_in_the_bits_of_one(self):
        one = run(SHARDSCOPE, "train", *ONE_RANK)
        self.assertEqual(one.returncode, 0, one.stderr)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        # As torchrun would start them.
        of = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        ranks = [
            subprocess.Popen(
                [SHARDSCOPE, "train", *ONE_RANK, "--stage", "3"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env={**os.environ, **of, "RANK": str(rank), "LOCAL_RANK": str(rank)}
            )
            for rank in range(2)
        ]
        said = [each.communicate() for each in ranks]
        self.assertEqual([each.returncode for each in ranks], [0, 0], said)
        self.assertEqual(json.loads(one.stdout)["state_sha256"], json.loads(said[0][0])["state_sha256"])

    def test_without_mpi_it_says_who_starts_ranks(self):
        ended = run(SHARDSCOPE, "train", *ONE_RANK, "--world-size", "2")
        self.assertEqual(ended.returncode, 69)
        self.assertIn("torchrun", ended.stderr)

    def test_a_strategy_is_verified(self):
        ended = run(SHARDSCOPE, "verify", "--model", "gpt2-nano", "--world-size", "2", "--stage", "2", "--sequence", "32", "--data", "random")
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)

    def test_its_libraries_are_its_own(self):
        folder = pathlib.Path(shardscope_train.prefix)
        of_the_system = {"linux-vdso", "ld-linux-x86-64", "libc", "libm", "libgcc_s", "libstdc++", "libpthread", "libdl", "librt", "libz"}
        for file in (folder / "bin/shardscope-train", folder / "lib/libshardscope.so"):
            ended = run("ldd", str(file))
            for line in ended.stdout.splitlines():
                name = line.split()[0].split("/")[-1].split(".")[0]
                if name not in of_the_system:
                    self.assertIn(str(folder.parent), line.partition("=>")[2])

    def test_build_tools_are_told_where_the_package_is(self):
        entries = importlib.metadata.entry_points()
        found = entries.select(group="cmake.prefix") if hasattr(entries, "select") else entries["cmake.prefix"]
        self.assertIn("shardscope_train", {each.value for each in found})
        printed = run(os.path.join(sysconfig.get_path("scripts"), "shardscope-train"), "--prefix")
        self.assertEqual(printed.stdout.strip(), shardscope_train.prefix)

    @unittest.skipUnless(shutil.which("cmake") and shutil.which("c++"), "there is no CMake or no compiler")
    def test_a_program_of_another_project_trains_as_the_command_does(self):
        source = pathlib.Path(__file__).parents[1] / "api/program"
        with tempfile.TemporaryDirectory() as folder:
            configured = run("cmake", "-S", str(source), "-B", folder, "-DCMAKE_PREFIX_PATH=" + shardscope_train.prefix)
            self.assertEqual(configured.returncode, 0, configured.stderr)
            built = run("cmake", "--build", folder)
            self.assertEqual(built.returncode, 0, built.stdout + built.stderr)
            trained = run(os.path.join(folder, "two_steps"))
            self.assertEqual(trained.returncode, 0, trained.stderr)
            expected = json.loads(run(SHARDSCOPE, "train", *ONE_RANK).stdout)["state_sha256"]
            self.assertIn("state " + expected, trained.stdout)


if __name__ == "__main__":
    unittest.main()
