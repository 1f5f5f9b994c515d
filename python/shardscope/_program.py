"""Finds the program, runs it, and makes an exception of what it says when it fails."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sysconfig
from importlib import metadata
from typing import Any, Mapping, Optional, Sequence

DOES_NOT_FIT = 3


class Error(Exception):
    """A command failed, and its message in parts; str() of it is the whole message.

    code: the exit code (2 usage, 65 malformed file, 66 absent file, 69 something needed is absent, 78 values that
      contradict each other; 'shardscope --help' lists all); negative: the signal that ended it
    what: what happened
    where: the option, file or part that it is about, or ""
    help: the smallest change that helps, or ""
    stderr: everything that the command wrote there, a dry-run program's own output included
    raw: the command's JSON where it wrote one nevertheless, or None
    """

    def __init__(self, code: int, message: str, stderr: str = "", raw: Optional[dict[str, Any]] = None):
        super().__init__(message)
        self.code = code
        said = (raw or {}).get("error")
        if isinstance(said, dict):
            self.what, self.where, self.help = said["what"], said["where"] or "", said["help"] or ""
        else:
            text, _, self.help = message.partition("\n  try: ")
            # A place is one word; words before a colon are part of the sentence.
            place = re.match(r"(\S+): (.*)", text, re.DOTALL)
            self.where, self.what = place.groups() if place else ("", text)
        self.stderr = stderr
        self.raw = raw


def program() -> str:
    """The path of the program: $SHARDSCOPE, else the one that was installed with this module, else that on PATH."""
    if os.environ.get("SHARDSCOPE"):
        return os.environ["SHARDSCOPE"]
    beside = os.path.join(sysconfig.get_path("scripts"), "shardscope")
    if os.access(beside, os.X_OK):
        return beside
    try:
        # pip's --user and --target have another folder for programs, which its record of files names.
        for file in metadata.files("shardscope") or ():
            if file.name == "shardscope" and os.access(file.locate(), os.X_OK):
                return os.path.normpath(file.locate())
    except metadata.PackageNotFoundError:
        pass
    found = shutil.which("shardscope")
    if found is None:
        raise Error(69, "the program shardscope is not installed\n  try: pip install the wheel again, or set $SHARDSCOPE")
    return found


@functools.lru_cache(maxsize=None)
def described(path: str, command: str) -> dict[str, dict[str, Any]]:
    """The command's options by name, as the program itself describes them."""
    said = subprocess.run([path, command, "--help=json"], stdout=subprocess.PIPE, check=True)
    return {option["name"]: option for group in json.loads(said.stdout)["groups"] for option in group["options"]}


def words(path: str, command: str, options: Mapping[str, Any]) -> list[str]:
    """Keyword arguments as a command line: True is a flag, None is left out, a list is what the option has for lists."""
    line: list[str] = []
    for key, value in options.items():
        name = key.rstrip("_").replace("_", "-")
        if value is None:
            continue
        if value is True:
            line.append("--" + name)
        elif value is False:
            if described(path, command).get(name, {}).get("negatable"):
                line.append("--no-" + name)
        elif isinstance(value, (list, tuple, range)):
            option = described(path, command).get(name, {})
            values = [_word(each) for each in value]
            if option.get("several"):
                for each in values:
                    line += ["--" + name, each]
            else:
                line += ["--" + name, (option.get("list_separator") or ",").join(values)]
        else:
            line += ["--" + name, _word(value)]
    return line


def _word(value: Any) -> str:
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def ask(command: str, positionals: Sequence[str], options: Mapping[str, Any], behind: Sequence[str] = ()) -> tuple[dict[str, Any], str]:
    """Runs the command with --json: its answer, and what it wrote to stderr. That something does not fit is an answer."""
    path = program()
    line = [path, command, *positionals, *words(path, command, options), "--json", *(["--", *behind] if behind else [])]
    try:
        ended = subprocess.run(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        raise Error(69, f"{path}: cannot be started: {error.strerror}") from None
    stderr = ended.stderr.decode(errors="replace")
    try:
        raw = json.loads(ended.stdout)
    except ValueError:
        raw = None
    if ended.returncode in (0, DOES_NOT_FIT) and isinstance(raw, dict):
        return raw, stderr
    _, found, message = ("\n" + stderr).rpartition("\nshardscope: ")
    if not found and isinstance(raw, dict):
        message = f"the program ended with exit code {raw.get('exit_code', ended.returncode)}; what it wrote is in stderr"
    elif not found:
        message = stderr.strip() or f"'{command}' ended with {ended.returncode} and said nothing"
    raise Error(ended.returncode, message.strip(), stderr, raw)
