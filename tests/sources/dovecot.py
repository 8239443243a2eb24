"""A real Dovecot for tests: IMAP and POP3 on loopback, with a folder of its own."""

import grp
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from imapclient import IMAPClient

PASSWORD = "milling"
PATIENCE = 30.0  # seconds until it answers
PROGRAM = shutil.which("dovecot") or ("/usr/sbin/dovecot" if Path("/usr/sbin/dovecot").exists() else None)
CONFIG = """
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
protocols = imap pop3
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
auth_mechanisms = plain xoauth2
mail_location = maildir:{folder}/mail/%u
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {user}
first_valid_uid = 1
mail_max_userip_connections = 100
# nobody guesses passwords here: no answer is held back
auth_failure_delay = 0
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={folder}/mail/%u
}}
namespace inbox {{
  inbox = yes
  separator = /
  mailbox Sent {{
    auto = create
    special_use = \\Sent
  }}
  mailbox Trash {{
    auto = create
    special_use = \\Trash
  }}
}}
service anvil {{
  chroot =
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {imap}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
service pop3-login {{
  chroot =
  inet_listener pop3 {{
    port = {pop3}
  }}
  inet_listener pop3s {{
    port = 0
  }}
}}
"""


@dataclass(frozen=True)
class Dovecot:
    """A running server; every user has the same password."""

    folder: Path
    imap: int
    pop3: int

    def client(self, user: str) -> IMAPClient:
        opened = IMAPClient("127.0.0.1", self.imap, ssl=False, timeout=PATIENCE)
        opened.login(user, PASSWORD)
        return opened

    def renumber(self, user: str, folder: str = "INBOX") -> None:
        """As after a restored backup: the same mails have other numbers."""
        place = self.folder / "mail" / user / ("" if folder == "INBOX" else f".{folder}")
        for file in place.glob("dovecot*"):
            if not file.name.startswith("dovecot-uidvalidity"):  # it counts on from there
                file.unlink(missing_ok=True)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@contextmanager
def a_dovecot() -> Generator[Dovecot]:
    """Left out where Dovecot is not installed."""
    if PROGRAM is None:
        pytest.skip("Dovecot is not installed: apt-get install dovecot-imapd dovecot-pop3d")
    folder = Path(tempfile.mkdtemp(prefix="gristmill-dovecot-", dir="/tmp"))  # short: sockets have short names
    server = Dovecot(folder, free_port(), free_port())
    _configure(server)
    process = subprocess.Popen([PROGRAM, "-F", "-c", str(folder / "dovecot.conf")])
    try:
        _await_port(server, process)
        yield server
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _configure(server: Dovecot) -> None:
    user = pwd.getpwuid(os.geteuid() or pwd.getpwnam("nobody").pw_uid)
    text = CONFIG.format(
        folder=server.folder,
        user=user.pw_name,
        group=grp.getgrgid(user.pw_gid).gr_name,
        uid=user.pw_uid,
        gid=user.pw_gid,
        password=PASSWORD,
        imap=server.imap,
        pop3=server.pop3,
    )
    (server.folder / "dovecot.conf").write_text(text)
    (server.folder / "mail").mkdir()
    if os.geteuid() == 0:  # Dovecot reads no mail as root
        server.folder.chmod(0o755)
        os.chown(server.folder / "mail", user.pw_uid, user.pw_gid)


def _await_port(server: Dovecot, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        assert process.poll() is None, (server.folder / "log").read_text()
        try:
            server.client("nobody").logout()
        except OSError:
            assert time.monotonic() < deadline, (server.folder / "log").read_text()
            time.sleep(0.05)
        else:
            return
