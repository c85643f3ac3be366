"""Writes docs/commands.md: the commands, from their parsers. Run `python project/commands_page.py`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from safetensors_spark._commands.cli import parser

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"

_HEAD = """# Commands

`safetensors-spark COMMAND --help` says the same in a terminal. This page is made of the commands' own descriptions by
`project/commands_page.py`.

| exit code | |
|---|---|
| 0 | done; nothing is wrong |
| 1 | something is wrong: what was checked does not hold, or Spark cannot be used here |
| 2 | the command could not do its work: wrong arguments, a missing extra, an unusable environment |
| 130 | it was interrupted |
| 141 | whoever read the output went away, as `head` does |

[Publishing](publish.md#the-command) says what the codes of `publish` mean.
"""


def page() -> str:
    """The page as it should be."""
    return "\n".join([_HEAD, *_sections(parser())])


def _sections(of: argparse.ArgumentParser) -> Iterator[str]:
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help for choice in action._choices_actions}
            for name, command in action.choices.items():
                nested = any(isinstance(one, argparse._SubParsersAction) for one in command._actions)
                yield _section(command, helps.get(name) or "", nested)
                yield from _sections(command)


def _section(command: argparse.ArgumentParser, short: str, nested: bool) -> str:
    name = command.prog.removeprefix("safetensors-spark ")
    text = command.description or f"{short[:1].upper()}{short[1:]}."
    lines = [f"{'###' if ' ' in name else '##'} {name}", "", _line(text), ""]
    actions = [
        one for one in command._actions if not isinstance(one, argparse._HelpAction | argparse._SubParsersAction)
    ]
    if not nested:
        lines += ["```text", *_usage(command, actions), "```", ""]
    if actions:
        lines += ["| argument | default | |", "|---|---|---|"]
        lines += [f"| {_name(one)} | {_default(one)} | {_line(one.help or '')} |" for one in actions] + [""]
    if command.epilog:
        lines += [_line(command.epilog), ""]
    return "\n".join(lines)


def _usage(command: argparse.ArgumentParser, actions: list[argparse.Action]) -> list[str]:
    positional = [_shown(one) for one in actions if not one.option_strings]
    options = ["[OPTIONS]"] if any(one.option_strings for one in actions) else []
    return [" ".join([command.prog, *positional, *options])]


def _shown(action: argparse.Action) -> str:
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} ..."}.get(str(action.nargs), name)


def _name(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{_shown(action)}`"
    value = "" if action.nargs == 0 else f" {_choices(action) or _shown(action)}"
    return "`" + ", ".join(action.option_strings) + value.replace("|", "\\|") + "`"


def _choices(action: argparse.Action) -> str:
    return "|".join(map(str, action.choices)) if action.choices and action.metavar is None else ""


def _default(action: argparse.Action) -> str:
    empty = action.default in (None, "", False, argparse.SUPPRESS) or action.nargs == 0 or not action.option_strings
    return "" if empty else f"`{action.default}`"


def _line(text: str) -> str:
    """One line of a table; `%` is argparse's own mark."""
    return " ".join(text.split()).replace("%%", "%").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
