#!/usr/bin/env python3
# Has every recipe of recipes.toml what a run needs, and a row in docs/recipes.md that says what the data file says?
import json
import pathlib
import tempfile
import tomllib
import unittest

import table

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[2]
DOCUMENT = TOP / "docs" / "recipes.md"
SAID = tomllib.loads((HERE / "recipes.toml").read_text())
KEYS = {"name", "environment", "framework", "card", "world_size", "strategy", "source", "arguments"}
OPTIONAL = {"training_args", "device_memory_bytes", "note"}


def row(**changed):
    said = {"name": "a", "framework": "f 1", "card": "h100-80gb-x8", "ranks": 2, "strategy": "ZeRO 3", "first": 3 << 30,
            "last": 1 << 30, "verdict": "fits", "seconds": 4, "date": "2026-01-02", "error": ""}
    return table.Row(**{**said, **changed})


class Recipes(unittest.TestCase):
    def test_have_what_a_run_needs(self):
        for recipe in SAID["recipe"]:
            with self.subTest(recipe["name"]):
                self.assertEqual(set(recipe) - OPTIONAL, KEYS)
                self.assertIn(recipe["environment"], SAID["environments"])
                self.assertGreater(recipe["world_size"], 0)
                self.assertTrue((TOP / "examples" / "clusters" / f"{recipe['card']}.json").is_file())
                self.assertNotIn("|", recipe["name"] + recipe["strategy"])

    def test_are_named_once(self):
        names = [recipe["name"] for recipe in SAID["recipe"]]
        self.assertEqual(len(names), len(set(names)))

    def test_name_files_that_are_there_and_no_file_is_left_over(self):
        named = {each.format(files=HERE, megatron="") for recipe in SAID["recipe"] for each in recipe["arguments"]
                 if "{files}" in each}
        for path in named:
            self.assertTrue(pathlib.Path(path).is_file(), path)
        # LLaMA-Factory's files name DeepSpeed's.
        named |= {str((HERE / "llama-factory" / line.split()[1]).resolve()) for path in HERE.glob("llama-factory/*.yaml")
                  for line in path.read_text().splitlines() if line.startswith("deepspeed: ")}
        self.assertEqual({str(path) for path in HERE.glob("*/*.[tyj]*ml")} - named, set())
        self.assertEqual({str(path) for path in HERE.glob("*/*.json")} - named, set())

    def test_give_files_that_can_be_read(self):
        for path in HERE.glob("*/*.json"):
            json.loads(path.read_text())
        for path in HERE.glob("*/*.toml"):
            tomllib.loads(path.read_text())

    def test_environments_ask_for_a_framework_that_they_install(self):
        for recipe in SAID["recipe"]:
            environment = SAID["environments"][recipe["environment"]]
            self.assertTrue(recipe["framework"] in environment["needs"] or "clone" in environment, recipe["name"])
            self.assertIn(environment.get("clone"), {None, *SAID["clones"]})


class Document(unittest.TestCase):
    def test_has_a_row_for_every_recipe_in_their_order(self):
        self.assertEqual(list(table.read(DOCUMENT)), [recipe["name"] for recipe in SAID["recipe"]])

    def test_says_what_the_data_file_says(self):
        rows = table.read(DOCUMENT)
        for recipe in SAID["recipe"]:
            said = rows[recipe["name"]]
            self.assertEqual((said.ranks, said.strategy), (recipe["world_size"], recipe["strategy"]), recipe["name"])
            self.assertEqual(said.card.split(" of ")[0], recipe["card"], recipe["name"])

    def test_has_peaks_or_says_why_not(self):
        for said in table.read(DOCUMENT).values():
            if said.verdict in ("error", "not run"):
                self.assertTrue(said.error, said.name)
            else:
                self.assertGreater(said.first, 0, said.name)
                self.assertGreater(said.last, 0, said.name)

    def test_names_the_versions_of_every_environment_that_ran(self):
        rows = table.read(DOCUMENT)
        ran = {recipe["environment"] for recipe in SAID["recipe"] if rows[recipe["name"]].verdict != "not run"}
        self.assertEqual(set(table.environments(DOCUMENT)), ran)


class Table(unittest.TestCase):
    def written(self, rows):
        recipes = [{"name": each.name, "source": "its source"} for each in rows]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "recipes.md"
            table.write(path, rows, {"e": {"torch": "2.11.0", "f": "1"}}, recipes)
            return path.read_text(), table.read(path), table.environments(path)

    def test_is_read_as_it_was_written(self):
        rows = [row(), row(name="b", verdict="error", first=None, last=None, error="rank 0: KeyError: 'x'"),
                row(name="c", verdict="does not fit", first=100 << 30)]
        _, read, versions = self.written(rows)
        self.assertEqual(list(read.values()), rows)
        self.assertEqual(versions, {"e": {"torch": "2.11.0", "f": "1"}})

    def test_lists_what_does_not_fit_with_its_larger_peak(self):
        text, _, _ = self.written([row(), row(name="c", verdict="does not fit", first=1 << 30, last=100 << 30)])
        self.assertIn("- `c` (its source): 100.000 GiB on h100-80gb-x8.", text)
        self.assertNotIn("- `a`", text)

    def test_of_other_columns_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "recipes.md"
            path.write_text(f"{table.HEADER}\n{table.LINE}\n| a | b |\n")
            with self.assertRaises(ValueError):
                table.read(path)

    def test_that_is_not_there_has_no_rows(self):
        self.assertEqual(table.read(pathlib.Path("/nonexistent/recipes.md")), {})


if __name__ == "__main__":
    unittest.main()
