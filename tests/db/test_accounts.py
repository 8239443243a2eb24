"""There is always a user who can run the server for root."""

from pathlib import Path

import pytest

from gristmill.db import accounts


def test_without_other_users_root_makes_one_or_falls_back_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[list[str | Path]] = []
    nobody = accounts.SystemUser("nobody", 65534, 65534)
    monkeypatch.setattr(accounts, "account", lambda name: nobody if name == "nobody" else None)
    monkeypatch.setattr(accounts, "run_as", lambda owner, command: made.append(command))
    assert accounts.system_account() == nobody
    assert [command[0] for command in made] == ["useradd"]
