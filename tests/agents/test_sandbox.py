"""The sandbox: commands have no network, write nothing but the workspace, and have limits."""

import shutil
from pathlib import Path

import pytest
from desk_work import states
from workbench import Workbench

from gristmill.agents import sandbox
from gristmill.agents.runs import WaitingForUser
from gristmill.agents.sandbox import SandboxLimits, find_excess, run_in_sandbox
from gristmill.errors import Refused

needs_bubblewrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
LIMITS = SandboxLimits(20, 1 << 30, 100)


async def say(folder: Path, script: str, limits: SandboxLimits = LIMITS) -> str:
    ended = await run_in_sandbox(["sh", "-c", script], folder, limits)
    return f"{ended.reason or ended.code}: {ended.said}".strip()


@needs_bubblewrap
async def test_a_command_works_in_the_workspace(tmp_path: Path) -> None:
    assert await say(tmp_path, "pwd; echo ground > flour; exit 3") == "3: /workspace"
    assert (tmp_path / "flour").read_text() == "ground\n"


@needs_bubblewrap
async def test_a_command_has_no_network(tmp_path: Path) -> None:
    script = "cat /proc/net/dev | tail -n +3 | grep -cv ' lo:'; cat /proc/net/route | wc -l"
    assert await say(tmp_path, script) == "0: 0\n1"


@needs_bubblewrap
async def test_a_command_writes_and_reads_nothing_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRISTMILL_KEY", "secret")
    workspace, secret = tmp_path / "workspace", tmp_path / "secret"
    workspace.mkdir()
    secret.write_text("secret")
    said = await say(
        workspace, f"touch /usr/x /x /etc/x; cat {secret}; env; ls /home /root /etc; ls /proc | grep -c '^[0-9]'"
    )
    assert "GRISTMILL" not in said
    assert "secret\n" not in said
    assert "passwd" not in said
    assert said.count("Read-only file system") == 3


@needs_bubblewrap
async def test_a_command_does_not_change_gits_own_files(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("mine")
    said = await say(tmp_path, "echo evil > .git/config; mv .git other; rm -rf .git")
    assert "Read-only file system" in said
    assert (tmp_path / ".git/config").read_text() == "mine"


@needs_bubblewrap
@pytest.mark.parametrize(
    ("script", "limits", "reason"),
    [
        ("sleep 60", SandboxLimits(0.5, 1 << 30, 100), "longer than 0.5 s"),
        ("for n in $(seq 50); do sleep 60 & done; wait", SandboxLimits(30, 1 << 30, 20), "20 are allowed"),
        (
            "exec python3 -c 'x = bytearray(300 << 20); import time; time.sleep(60)'",
            SandboxLimits(30, 200 << 20, 100),
            "bytes",
        ),
        (
            "for n in 1 2 3 4; do head -c 10M /dev/zero > f$n; done; sleep 60",
            SandboxLimits(30, 1 << 30, 100, 25 << 20),
            "bytes of disk; 26,214,400 are allowed (agents.command_disk)",
        ),
        (
            "head -c 10M /dev/zero > quick",  # it ends before anybody looks
            SandboxLimits(30, 1 << 30, 100, 5 << 20),
            "bytes of disk",
        ),
    ],
)
async def test_a_command_beyond_its_limits_is_ended(
    tmp_path: Path, script: str, limits: SandboxLimits, reason: str
) -> None:
    assert reason in await say(tmp_path, script, limits)


@needs_bubblewrap
async def test_only_the_end_of_much_output_is_kept(tmp_path: Path) -> None:
    ended = await run_in_sandbox(["sh", "-c", "yes a | head -c 3000000; echo the end"], tmp_path, LIMITS)
    assert len(ended.said) <= sandbox.LARGEST_OUTPUT
    assert ended.said.endswith("the end\n")


@needs_bubblewrap
async def test_a_workspace_that_is_too_large_runs_no_further_command(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/pack").write_bytes(bytes(9 << 20))
    small = SandboxLimits(20, 1 << 30, 100, 5 << 20)
    assert await say(tmp_path, "echo fits", small) == "0: fits"
    (tmp_path / "full").write_bytes(bytes(6 << 20))
    with pytest.raises(Refused, match="Remove what nobody needs"):
        await run_in_sandbox(["true"], tmp_path, small)


def test_limits_count_all_processes_together() -> None:
    assert find_excess([100, 100], SandboxLimits(1, 250, 2)) == ""
    assert "processes" in find_excess([1, 1, 1], SandboxLimits(1, 250, 2))
    assert "bytes" in find_excess([200, 100], SandboxLimits(1, 250, 2))


async def test_without_bubblewrap_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(Refused, match="bubblewrap is not installed"):
        await run_in_sandbox(["true"], tmp_path, LIMITS)


async def test_where_the_kernel_refuses_a_sandbox_nothing_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(fake))
    monkeypatch.setattr("os.defpath", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(Refused, match="No permissions to create new namespace"):
        await run_in_sandbox(["touch", "x"], tmp_path, LIMITS)
    assert not (tmp_path / "x").exists()


@needs_bubblewrap
async def test_a_sandbox_that_could_not_be_made_once_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine that had no process left for a moment, or whose kernel was told meanwhile to allow it."""
    real, fake = shutil.which("bwrap"), tmp_path / "bwrap"
    fake.write_text(f'#!/bin/sh\n[ -e {tmp_path}/allowed ] || exit 1\nexec {real} "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(fake))
    monkeypatch.setattr("os.defpath", f"{tmp_path}:/usr/bin:/bin")
    (tmp_path / "work").mkdir()
    with pytest.raises(Refused, match="does not let bubblewrap make a sandbox"):
        await run_in_sandbox(["true"], tmp_path / "work", LIMITS)
    (tmp_path / "allowed").touch()
    assert (await run_in_sandbox(["true"], tmp_path / "work", LIMITS)).code == 0


@needs_bubblewrap
async def test_a_command_that_a_person_named_runs_and_another_is_asked_for(bench: Workbench) -> None:
    await bench.begin("Run `sh run.sh` and tell me.")
    assert "ground" in (await bench.call("run_command", "1#0", command="sh run.sh")).text
    with pytest.raises(WaitingForUser):
        await bench.call("run_command", "1#1", command="sh -c 'echo evil'")
    await bench.allow(commands=("python3 *",))
    said = await bench.call("run_tests", "1#2", command="python3 -c 'import main; assert main.add(2, 2) == 4'")
    assert "AssertionError" in said.text
    assert await states(bench.db, bench.run) == ["done", "intended", "done"]
