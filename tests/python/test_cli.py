"""The command line: subcommands, exit codes, and what it says."""

import sys
from pathlib import Path

import pytest

import safetensors_spark as sts
from command import run
from safetensors_spark import _commands
from safetensors_spark._commands.cli import main


def test_jar_path_prints_the_path_alone() -> None:
    done = run("jar-path")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{sts.jar_path()}\n", "")
    assert Path(sts.jar_path()).is_file()


def test_version_is_the_package_s() -> None:
    assert run("--version").stdout == f"safetensors-spark {sts.__version__}\n"


def test_help_names_every_command() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert all(command in done.stdout for command in ("jar-path", "doctor", "demo"))


def test_no_command_is_a_usage_error() -> None:
    done = run()
    assert done.returncode == 2
    assert "required: COMMAND" in done.stderr


def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("pyspark", "sklearn"):
        monkeypatch.setitem(sys.modules, name, None)  # the import system's own mark for "not there"
    assert main(["demo"]) == 2
    assert capsys.readouterr().err == (
        "safetensors-spark: not installed: pyspark, sklearn. Install the extra `demo`:\n"
        '    pip install "safetensors-spark[demo]"\n'
    )


def test_a_damaged_installation_is_told_without_a_stack_trace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_jar() -> str:
        raise FileNotFoundError("jars holds no jar")

    monkeypatch.setattr(_commands.jar_path, "jar_path", no_jar)
    assert main(["jar-path"]) == 2
    assert capsys.readouterr().err == "safetensors-spark: jars holds no jar\n"


@pytest.mark.parametrize("workers", ["0", "-1", "many"])
def test_verify_with_no_number_of_files(workers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(tmp_path), "--workers", workers])
    assert ended.value.code == 2
    assert f"'{workers}' is not a number of files, expected 1 or more" in capsys.readouterr().err
