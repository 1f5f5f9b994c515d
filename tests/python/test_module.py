"""The Python module against the program it runs: $SHARDSCOPE, or in the wheel's environment the installed one."""

import contextlib
import html.parser
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import shardscope

MODEL = {"model": "gpt2-medium", "world_size": 8, "stage": 3, "cluster": "a100-40gb-x8"}
LINE = ["--model", "gpt2-medium", "--world-size", "8", "--stage", "3", "--cluster", "a100-40gb-x8"]


def said(*words):
    ended = subprocess.run([shardscope.program(), *words, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return json.loads(ended.stdout)


def error_of(function, *arguments, **options):
    try:
        function(*arguments, **options)
    except shardscope.Error as error:
        return error
    raise AssertionError("no error")


class Answers(unittest.TestCase):
    def test_simulate_answers_what_the_program_answers(self):
        answer = shardscope.simulate(**MODEL)
        self.assertEqual(answer.raw, said("simulate", *LINE))
        self.assertEqual(answer.peak_device_bytes, answer.raw["peak_device_bytes"])
        self.assertEqual((answer.model, answer.cluster, answer.world_size, answer.fits), ("gpt2-medium", "a100-40gb-x8", 8, True))
        noted = shardscope.simulate(**{**MODEL, "precision": "tf32", "like": "shardscope"})
        self.assertIn("tf32", noted.notes[0])

    def test_that_it_does_not_fit_is_an_answer(self):
        answer = shardscope.simulate(**{**MODEL, "device_capacity": "1Gi"})
        self.assertEqual((answer.fits, answer.verdict), (False, "does_not_fit"))

    def test_search_finds_the_chunk_that_the_program_finds(self):
        answer = shardscope.search(model="gpt2-medium", world_size=8, cluster="a100-40gb-x8")
        self.assertEqual(answer.chunk["chunk_elements"], said("search", *LINE[:4], *LINE[6:])["chunk"]["chunk_elements"])
        self.assertEqual(len(answer.rows()), len(answer.raw["curve"]))

    def test_sweep_takes_lists(self):
        answer = shardscope.sweep(model="gpt2-medium", world_size=(2, 8), stage=[2, 3])
        self.assertEqual([(row["world_size"], row["stage"]) for row in answer.rows()], [(2, 2), (2, 3), (8, 2), (8, 3)])
        self.assertEqual(answer.row_count, 4)

    def test_lists_of_an_option_that_may_be_given_several_times(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder, "p.sst")
            answer = shardscope.simulate(model="gpt2-nano", freeze=["*bias", "*ln_f*"], trace=trace, clip_norm=None)
            self.assertEqual(answer["strategy"]["freeze"], ["*bias", "*ln_f*"])
            inside = shardscope.inspect(trace)
        self.assertEqual((inside.format, inside.kind, inside.world_size), ("sst", "predicted", 1))

    def test_flags(self):
        self.assertIn("levers", shardscope.simulate(model="gpt2-nano", what_if=True).raw)
        self.assertNotIn("levers", shardscope.simulate(model="gpt2-nano", what_if=False).raw)


class Errors(unittest.TestCase):
    def test_an_option_out_of_range(self):
        error = error_of(shardscope.simulate, model="gpt2-nano", stage=7)
        self.assertEqual((error.code, error.where), (2, "--stage"))
        self.assertIn("out of range", error.what)
        self.assertIn("at most 3", error.help)

    def test_one_that_is_not_there(self):
        error = error_of(shardscope.simulate, bogus=1)
        self.assertEqual((error.code, error.where, error.what), (2, "", "unknown option '--bogus'"))

    def test_values_that_contradict_each_other(self):
        error = error_of(shardscope.simulate, model="gpt2-nano", world_size=8, global_batch=3)
        self.assertEqual((error.code, error.help), (78, "--global-batch 8"))

    def test_an_absent_file(self):
        error = error_of(shardscope.inspect, "/nowhere/a.sst")
        self.assertEqual((error.code, error.where), (66, "/nowhere/a.sst"))

    def test_a_program_that_is_not_there(self):
        before = os.environ.get("SHARDSCOPE")
        os.environ["SHARDSCOPE"] = "/nowhere/shardscope"
        try:
            self.assertEqual(error_of(shardscope.simulate).code, 69)
        finally:
            os.environ.pop("SHARDSCOPE")
            if before is not None:
                os.environ["SHARDSCOPE"] = before

    @unittest.skipIf(importlib.util.find_spec("torch"), "this Python has PyTorch")
    def test_a_dry_run_without_pytorch(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "train.py")
            script.write_text("print('hello')\n")
            error = error_of(shardscope.dryrun, script, cluster="h100-80gb-x8")
        self.assertEqual(error.code, 69)
        self.assertIn("no PyTorch", error.what)


class Shown(unittest.TestCase):
    def test_notebooks_show_tables_and_escape_what_is_in_them(self):
        answer = shardscope.Simulation.of({"model": "<b>", "moments": [{"name": "a&b", "bytes": 1}]}, "")
        text = answer._repr_html_()
        html.parser.HTMLParser().feed(text)
        self.assertIn("&lt;b&gt;", text)
        self.assertIn("a&amp;b", text)

    @unittest.skipUnless(importlib.util.find_spec("pandas"), "pandas is not installed")
    def test_to_pandas(self):
        frame = shardscope.sweep(model="gpt2-nano", stage=[2, 3]).to_pandas()
        self.assertEqual(list(frame["stage"]), [2, 3])

    def test_pandas_is_not_imported_with_the_module(self):
        code = "import shardscope, sys; sys.exit('pandas' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", code]).returncode, 0)

    def test_python_m_shardscope_is_the_program(self):
        ended = subprocess.run([sys.executable, "-m", "shardscope", "--version"], stdout=subprocess.PIPE, text=True)
        self.assertEqual((ended.returncode, ended.stdout.split()[0]), (0, "shardscope"))

    def test_the_notebook_of_the_examples_runs(self):
        notebook = pathlib.Path(__file__).parents[2] / "examples" / "will_it_fit.ipynb"
        code = ["".join(cell["source"]) for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
        self.assertGreater(len(code), 3)
        names: dict = {}
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            for cell in code:
                exec(compile(cell, str(notebook), "exec"), names)
        self.assertIn("--stage", printed.getvalue())
        self.assertEqual(len(names["rows"]), 4)


if __name__ == "__main__":
    unittest.main()
