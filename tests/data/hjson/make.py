#!/usr/bin/env python3
# What the package hjson (3.1.0, with which DeepSpeed reads its configurations) makes of random texts: cases.json, a list of
# [text, value as JSON text, or null where it is refused]. Run with that package installed: ./make.py > cases.json
import json
import random

import hjson

random.seed(20261123)


def once(pairs):
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a key twice")
    return table


SPACE = ["", " ", "\n", "  \n  ", "\t", " # more\n", "// and\n", "/* here */", "\r\n"]
KEYS = ['"stage"', "stage", "'stage'", "a-b", '"a b"', '"a/b~c"', "bf16", "x", "y", "z", "", "'''k'''", "é"]
SCALARS = ["1", "-1", "0", "01", "1.5", "5e8", "5E+9", "5e10", "2e-5", "-0", "1.", ".5", "1e", "12345678901234567890", "true",
           "false", "null", "True", '"text"', "'text'", '"a\\nb\\u00e9\\ud83d\\ude00"', '"\\x"', '"open', "bare words", "auto",
           "GB_SIZE", "1 2", "true false", "'''a\n  b'''", "'''\n  a\n    b\n  '''", "1 # one", "2 // two", "http://a.b/c#d",
           "- 1", "+1", "NaN", "Infinity", "1e400x", '""', "''"]


def value(depth):
    kind = random.random()
    if depth > 3 or kind < 0.6:
        return random.choice(SCALARS)
    space = lambda: random.choice(SPACE) if random.random() < 0.3 else ""
    comma = lambda: random.choice([",", ",", ",", "\n", "\n", ",\n", "", ",,"] if random.random() < 0.5 else [",\n"])
    count = random.randrange(4)
    if kind < 0.75:
        return "[" + "".join(space() + value(depth + 1) + space() + comma() for _ in range(count)) + space() + "]"
    keys = random.sample(KEYS, count) if random.random() < 0.9 else random.choices(KEYS, k=count)
    return "{" + "".join(space() + k + space() + ":" + space() + value(depth + 1) + space() + comma() for k in keys) + space() + "}"


def top():
    text = value(0)
    while not text.startswith("{"):
        text = value(0)
    if random.random() < 0.15:
        text = text[1:-1]  # a table without its braces
    if random.random() < 0.2 and text:
        at = random.randrange(len(text))
        text = text[:at] + random.choice(["", "}", "]", ",", ":", '"', "'", "/", "\n"]) + text[at + 1:]
    return random.choice(["", "", "", "// first\n", "\ufeff"]) + text


cases = {}
refused = 0
while len(cases) < 600:
    text = top()
    try:
        read = hjson.loads(text.replace("\r\n", "\n").replace("\r", "\n"), object_pairs_hook=once)
        answer = json.dumps(read, allow_nan=False)
        if not isinstance(read, dict):
            continue
    except Exception:
        answer = None
        refused += 1
        if refused > 200:
            continue
    if len(text) < 400:
        cases[text] = answer
print("[" + ",\n".join(json.dumps([text, answer]) for text, answer in cases.items()) + "]")
