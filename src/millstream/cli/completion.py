"""`millstream completion bash|zsh|fish`: a script with which a shell completes commands and options.

Promises: the script contains all commands and options, and does not start Python to complete them. Other words are
completed as file names.
Does not know: what commands do; it reads their parsers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_ABOUT = """\
Prints a script for a shell. To load it in each session:

  bash:  millstream completion bash > ~/.local/share/bash-completion/completions/millstream
  zsh:   millstream completion zsh > "${fpath[1]}/_millstream"
  fish:  millstream completion fish > ~/.config/fish/completions/millstream.fish"""

_BASH = """\
_millstream() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" key="" words="" word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$key $word" in
{steps}
    esac
  done
  case "$key" in
{words}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _millstream millstream
"""


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "completion",
        help="print a script that completes commands in a shell",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    parser.set_defaults(run=partial(_run, subparsers))


def _run(subparsers: _SubParsersAction[argparse.ArgumentParser], args: argparse.Namespace) -> int:
    write = {"bash": write_bash, "zsh": write_zsh, "fish": write_fish}[args.shell]
    sys.stdout.write(write(list_words(subparsers.choices)))
    return 0


def list_words(commands: Mapping[str, argparse.ArgumentParser]) -> dict[tuple[str, ...], list[str]]:
    """Return the words that can follow each command: its actions and its options."""
    words: dict[tuple[str, ...], list[str]] = {(): [*commands, "--help", "--version"]}
    for name, parser in commands.items():
        words.update(_walk((name,), parser))
    return words


def _walk(path: tuple[str, ...], parser: argparse.ArgumentParser) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    words: list[str] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            words += action.choices
            for name, inner in action.choices.items():
                yield from _walk((*path, name), inner)
        elif action.help is not argparse.SUPPRESS:
            words += action.option_strings or [str(choice) for choice in action.choices or ()]
    yield path, [word for word in words if word.isprintable()]


def _steps(words: Mapping[tuple[str, ...], list[str]], indent: str) -> str:
    """Return the cases that find the command among the words before the cursor."""
    lines = [f'{indent}"{" ".join(path[:-1])} {path[-1]}") key="{" ".join(path)}" ;;' for path in words if path]
    return "\n".join(lines)


def write_bash(words: Mapping[tuple[str, ...], list[str]]) -> str:
    """Return the script for bash."""
    cases = "\n".join(f'    "{" ".join(path)}") words="{" ".join(following)}" ;;' for path, following in words.items())
    return _BASH.format(steps=_steps(words, "      "), words=cases)


def write_zsh(words: Mapping[tuple[str, ...], list[str]]) -> str:
    """Return the script for zsh."""
    cases = "\n".join(
        f'    "{" ".join(path)}") following=({" ".join(following)}) ;;' for path, following in words.items()
    )
    lines = [
        "#compdef millstream",
        "_millstream() {",
        '  local key="" word',
        "  local -a following",
        '  for word in "${(@)words[2,CURRENT-1]}"; do',
        '    case "$key $word" in',
        _steps(words, "      "),
        "    esac",
        "  done",
        '  case "$key" in',
        cases,
        "  esac",
        "  compadd -- $following",
        "  _files",
        "}",
        "compdef _millstream millstream",
    ]
    return "\n".join(lines) + "\n"


def write_fish(words: Mapping[tuple[str, ...], list[str]]) -> str:
    """Return the script for fish."""
    lines = [
        "function __millstream_key",
        '    set -l key ""',
        "    for word in (commandline -opc)[2..]",
        '        switch "$key $word"',
        *(
            f"            case '{' '.join(path[:-1])} {path[-1]}'\n                set key '{' '.join(path)}'"
            for path in words
            if path
        ),
        "        end",
        "    end",
        '    test "$key" = "$argv"',
        "end",
    ]
    for path, following in words.items():
        condition = f"__millstream_key {' '.join(path)}".strip()
        argument = '""' if not path else ""
        lines.append(f"complete -c millstream -n '{condition} {argument}' -a '{' '.join(following)}'")
    return "\n".join(lines) + "\n"
