"""The installed wheel: its programs find each other, need no library but the C library, and say what is left out."""

import importlib.util
import os
import pathlib
import subprocess
import sysconfig
import tempfile
import unittest

import shardscope

SCRIPTS = pathlib.Path(sysconfig.get_path("scripts"))


def run(*words, **how):
    return subprocess.run([str(SCRIPTS / "shardscope"), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)


@unittest.skipUnless(os.environ.get("INSTALLED"), "for the environment of make wheel-test")
class Wheel(unittest.TestCase):
    def test_the_module_runs_the_program_beside_it(self):
        self.assertEqual(shardscope.program(), str(SCRIPTS / "shardscope"))

    def test_pictures_and_reports_need_no_window(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(run("simulate", "--model", "gpt2-nano", "--trace", "p.sst", cwd=folder).returncode, 0)
            shown = run("view", "p.sst", "--screenshot", "p.png", cwd=folder)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.assertTrue(pathlib.Path(folder, "p.png").read_bytes().startswith(b"\x89PNG"))
            told = run("report", "p.sst", "--output", "p.html", cwd=folder)
            self.assertEqual(told.returncode, 0, told.stderr)
            self.assertIn("<html", pathlib.Path(folder, "p.html").read_text())

    @unittest.skipIf(importlib.util.find_spec("shardscope_train"), "shardscope[train] is installed")
    def test_what_is_left_out_says_how_to_get_it(self):
        ended = run("train", "--model", "gpt2-nano")
        self.assertEqual(ended.returncode, 69)
        self.assertIn("shardscope[train]", ended.stderr)

    def test_programs_need_the_c_library_alone(self):
        for name in ("shardscope", "shardscope-profile", "shardscope-view"):
            ended = subprocess.run(["ldd", str(SCRIPTS / name)], stdout=subprocess.PIPE, text=True)
            needed = {line.split()[0].split("/")[-1].split(".")[0] for line in ended.stdout.splitlines()}
            self.assertLessEqual(needed, {"linux-vdso", "libc", "libm", "ld-linux-x86-64"})

    def test_libraries_inside_the_profiler_ask_for_no_newer_c_library_than_the_tag_says(self):
        # Loaded into programs of others from within shardscope-profile, where auditwheel does not see them.
        content = (SCRIPTS / "shardscope-profile").read_bytes()
        for newer in range(35, 60):
            self.assertNotIn(b"\0GLIBC_2.%d\0" % newer, content)


if __name__ == "__main__":
    unittest.main()
