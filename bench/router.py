"""Measures the router beside a direct connection, nginx and LiteLLM, in one run: `make bench-router`."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)  # or bench/queue.py would stand in for the standard library's queue

import json  # noqa: E402
import os  # noqa: E402
import re  # noqa: E402
import secrets  # noqa: E402
import shutil  # noqa: E402
import socket  # noqa: E402
import statistics  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
import urllib.error  # noqa: E402
import urllib.request  # noqa: E402
from collections.abc import Callable, Iterator  # noqa: E402
from contextlib import ExitStack, contextmanager  # noqa: E402

import psutil  # noqa: E402

CONNECTIONS, SECONDS, TURNS, TOKENS, SAMPLES, ROUNDS = 32, 8, 7, 500, 400, 20
CHAT = {"model": "bench", "messages": [{"role": "user", "content": "hello there"}]}
SMALL = {**CHAT, "stream": False, "options": {"num_predict": 1}, "max_tokens": 1}
LONG = {**CHAT, "stream": True, "options": {"num_predict": TOKENS}}
FIRST = {**CHAT, "stream": True, "options": {"num_predict": 1}}
# both proxies check a key, as they would in a house; LiteLLM does not start without one
KEY = f"sk-{secrets.token_hex(32)}"
PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- router:begin -->", "<!-- router:end -->"


# ── processes ───────────────────────────────────────────────────────────────


@contextmanager
def process(*command: str, env: dict[str, str] | None = None, quiet: bool = True) -> Iterator[subprocess.Popen[str]]:
    """A child that ends with the block, whatever happens in it."""
    errors = subprocess.DEVNULL if quiet else None
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        cwd=ROOT,
        env={**os.environ, **(env or {})},
    )
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


@contextmanager
def backend(script: str, *arguments: str) -> Iterator[int]:
    with process(sys.executable, "-P", str(ROOT / script), *arguments) as child:
        assert child.stdout is not None
        yield int(child.stdout.readline())


@contextmanager
def router(port: int, parallel: int, **settings: str) -> Iterator[tuple[int, int]]:
    """A router in front of one backend: its port and its process."""
    spec = [{"name": "gpu", "url": f"http://127.0.0.1:{port}", "parallel": parallel, "vram": "24GB"}]
    own = free_port()
    env = {
        "GRISTMILL_ROUTER_PORT": str(own),
        "GRISTMILL_ROUTER_GPU_BACKENDS": json.dumps(spec),
        "GRISTMILL_ROUTER_KEYS": json.dumps([{"name": "bench", "key": KEY}]),
        **settings,
    }
    with process(sys.executable, "-P", "-m", "gristmill.router", env=env) as child:
        answers(f"http://127.0.0.1:{own}/readyz", 20)
        yield own, child.pid


@contextmanager
def litellm(port: int) -> Iterator[int | None]:
    """LiteLLM's proxy in front of the same backend, or None when it is not installed."""
    program = ROOT / ".venv" / "litellm" / "bin" / "litellm"
    if not program.exists():
        print("LiteLLM is not there: `make .venv/litellm.stamp` installs it; going on without it.")
        yield None
        return
    own = free_port()
    model = {
        "model_name": "bench",
        "litellm_params": {
            "model": "openai/bench",
            "api_base": f"http://127.0.0.1:{port}/v1",
            "api_key": "x",
        },
    }
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        json.dump({"model_list": [model]}, config)  # JSON is YAML too
        config.flush()
        env = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR", "LITELLM_MASTER_KEY": KEY}
        with process(
            str(program),
            "--config",
            config.name,
            "--port",
            str(own),
            "--host",
            "127.0.0.1",
            "--num_workers",
            "1",
            env=env,
        ):
            answers(f"http://127.0.0.1:{own}/health/liveliness", 120)
            yield own


NGINX = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log crit;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  upstream backend {{ server 127.0.0.1:{port}; keepalive 64; }}
  server {{
    listen 127.0.0.1:{own};
    location / {{ proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection ""; }}
  }}
}}
"""


@contextmanager
def nginx(port: int) -> Iterator[int | None]:
    """nginx with one worker as a plain proxy in front of the same backend, or None when it is not installed."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        print("nginx is not there: `apt-get install nginx-light` installs it; going on without it.")
        yield None
        return
    own = free_port()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "nginx.conf")
        config.write_text(NGINX.format(folder=folder, port=port, own=own), encoding="utf-8")
        with process(program, "-p", folder, "-e", f"{folder}/error.log", "-c", str(config)):
            answers(f"http://127.0.0.1:{own}/api/version", 20)
            yield own


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def answers(url: str, patience: float) -> None:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except (OSError, urllib.error.URLError):
            threading.Event().wait(0.1)
    sys.exit(f"{url} did not answer within {patience:.0f} s.")


# ── measures ────────────────────────────────────────────────────────────────


def rate(url: str, body: dict[str, object], seconds: int = SECONDS) -> float:
    """Requests per second, by wrk, on kept connections."""
    script = (
        f"wrk.method='POST'; wrk.headers['Content-Type']='application/json';"
        f" wrk.headers['Authorization']='Bearer {KEY}'; wrk.body=[[{json.dumps(body)}]]"
    )
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as lua:
        lua.write(script)
        lua.flush()
        out = subprocess.run(
            ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout", "30s", "-s", lua.name, url],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    if wrong := re.search(r"Non-2xx or 3xx responses: (\d+)", out):
        sys.exit(f"{wrong[1]} requests to {url} failed.")
    found = re.search(r"Requests/sec:\s+([\d.]+)", out)
    assert found is not None
    return float(found[1])


def cpu(pid: int) -> float:
    """The processor time a process has used, in seconds: what the machine's other work cannot falsify."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


class Talker:
    """A client on one kept connection that notes when the first token arrives."""

    def __init__(self, port: int) -> None:
        self.connection = socket.create_connection(("127.0.0.1", port))
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def first_token(self, body: dict[str, object], headers: str = "") -> float:
        """Seconds from sending a request to the first byte of its answer's body."""
        text = json.dumps(body).encode()
        began = time.perf_counter()
        self.connection.sendall(
            f"POST /api/chat HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {len(text)}\r\n\r\n".encode()
            + text
        )
        seen, first = b"", 0.0
        while not seen.endswith(b"0\r\n\r\n"):
            data = self.connection.recv(65536)
            if not data:
                sys.exit("A connection closed in the middle of an answer.")
            seen += data
            if not first and b"\r\n\r\n" in seen and not seen.endswith(b"\r\n\r\n"):
                first = time.perf_counter() - began
        return first or time.perf_counter() - began


def added_first_token(direct: int, routed: int) -> tuple[float, float]:
    """The median time to the first token, direct and through the router, taken in turns."""
    near, far = Talker(direct), Talker(routed)
    for talker in (near, far):
        for _ in range(50):
            talker.first_token(FIRST)
    pairs = [(near.first_token(FIRST), far.first_token(FIRST)) for _ in range(SAMPLES)]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)


def critical_first_token() -> tuple[float, float]:
    """A P0's time to its first token on an idle GPU, and on one that background work saturates."""
    behaviour = json.dumps({"models": {"bench:latest": 1000}, "parallel": 2, "token": 0.01, "tokens": 400})
    settings = {"GRISTMILL_ROUTER_TRICKLE": "100ms", "GRISTMILL_ROUTER_MAX_PREEMPTIONS": "1000"}
    with (
        backend("tests/router/fake_backend.py", "--behaviour", behaviour) as port,
        router(port, 2, **settings) as (own, _),
    ):
        talker = Talker(own)
        critical = {**FIRST, "options": {"num_predict": 2}}
        ask: Callable[[], float] = lambda: talker.first_token(critical, "X-Ollama-Priority: P0\r\n")  # noqa: E731 one line, two uses
        ask()
        idle = [ask() for _ in range(ROUNDS)]
        saturated = list[float]()
        for _ in range(4):
            threading.Thread(target=keep_busy, args=(own,), daemon=True).start()
        for _ in range(ROUNDS):
            call(own, "POST", "/router/release", {"all": True})
            while (
                sum(
                    row["phase"] == "running" and row["priority"] == "P3"
                    for row in call(own, "GET", "/router/status")["running"]
                )
                < 2
            ):
                threading.Event().wait(0.01)
            saturated.append(ask())
    return statistics.median(idle), statistics.median(saturated)


def keep_busy(port: int) -> None:
    """Background requests, one after the other, until the router is gone."""
    try:
        while True:
            call(port, "POST", "/api/chat", {**CHAT, "stream": False}, {"X-Ollama-Priority": "P3"})
    except OSError:
        return


def call(
    port: int,
    method: str,
    path: str,
    body: dict[str, object] | None = None,
    headers: dict[str, str] | None = None,
) -> dict:
    data = json.dumps(body).encode() if body is not None else None
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}",
        data,
        {"Content-Type": "application/json", **(headers or {})},
        method=method,
    )
    with urllib.request.urlopen(asked, timeout=120) as answer:
        return json.loads(answer.read())


def in_turns(port: int, own: int, pid: int, plain: int | None) -> tuple[float, float, float | None, float]:
    """Requests per second, direct, routed and by nginx, and the router's processor time for one request.

    They are medians of rounds in turns: a machine that is shared is now faster, now slower, and every way meets the
    same of it.
    """
    rounds = list[tuple[float, float, float, float]]()
    for _ in range(TURNS):
        direct = rate(f"http://127.0.0.1:{port}/api/chat", SMALL, 1)
        peer = rate(f"http://127.0.0.1:{plain}/api/chat", SMALL, 1) if plain else 0.0
        before = cpu(pid)
        routed = rate(f"http://127.0.0.1:{own}/api/chat", SMALL, 2)
        rounds.append((direct, routed, peer, (cpu(pid) - before) / (routed * 2)))
    direct_rps, rps, nginx_rps, spent = (statistics.median(column) for column in zip(*rounds, strict=True))
    return direct_rps, rps, nginx_rps or None, spent


# ── the run ─────────────────────────────────────────────────────────────────


def measured() -> tuple[dict[str, float | None], float]:
    """The figures, and the processor time of one request in seconds."""
    with ExitStack() as stack:
        port = stack.enter_context(backend("bench/router_backend.py"))
        own, pid = stack.enter_context(router(port, 512))
        plain = stack.enter_context(nginx(port))
        direct_rps, rps, nginx_rps, spent = in_turns(port, own, pid, plain)
        tokens = rate(f"http://127.0.0.1:{own}/api/chat", LONG) * TOKENS
        direct_ttft, ttft = added_first_token(port, own)
    with ExitStack() as stack:
        port = stack.enter_context(backend("bench/router_backend.py"))
        peer = stack.enter_context(litellm(port))
        litellm_rps = rate(f"http://127.0.0.1:{peer}/v1/chat/completions", SMALL) if peer else None
    idle, saturated = critical_first_token()
    return {
        "rps": round(rps, 1),
        "direct_rps": round(direct_rps, 1),
        "nginx_rps": round(nginx_rps, 1) if nginx_rps is not None else None,
        "litellm_rps": round(litellm_rps, 1) if litellm_rps is not None else None,
        "tokens_per_s": round(tokens),
        "added_ttft_us": round((ttft - direct_ttft) * 1e6, 1),
        "p0_ttft_idle_ms": round(idle * 1e3, 2),
        "p0_ttft_saturated_ms": round(saturated * 1e3, 2),
    }, spent


def table(found: dict[str, float | None], spent: float) -> str:
    peer, plain = found["litellm_rps"], found["nginx_rps"]
    rows = [
        ("requests/s through the router (32 connections, one worker)", f"{found['rps']:,.0f}", "≥ 10,000"),
        ("processor time of the router per request", f"{spent * 1e6:,.0f} µs", "< 100 µs"),
        ("requests/s direct to the fake backend", f"{found['direct_rps']:,.0f}", "–"),
        ("requests/s through nginx (plain proxy, one worker)", f"{plain:,.0f}" if plain else "not installed", "–"),
        ("the router beside nginx", f"{(found['rps'] or 0) / plain:.0%}" if plain else "–", "≥ 25 %"),
        ("requests/s through LiteLLM's proxy", f"{peer:,.0f}" if peer else "not installed", "–"),
        ("times LiteLLM", f"{(found['rps'] or 0) / peer:,.0f}" if peer else "–", "≥ 100"),
        (f"relayed tokens/s (streams of {TOKENS})", f"{found['tokens_per_s']:,.0f}", "≥ 100,000"),
        ("added time to the first token", f"{found['added_ttft_us']:,.0f} µs", "≤ 200 µs"),
        ("P0: time to first token, idle GPU", f"{found['p0_ttft_idle_ms']:.1f} ms", "–"),
        ("P0: the same, GPU saturated with background work", f"{found['p0_ttft_saturated_ms']:.1f} ms", "–"),
    ]
    width = max(len(row[0]) for row in rows)
    lines = [
        f"| {'what':<{width}} | {'measured':>13} | {'goal':>9} |",
        f"|{'-' * (width + 2)}|{'-' * 14}:|{'-' * 10}:|",
    ]
    return "\n".join([*lines, *(f"| {what:<{width}} | {value:>13} | {goal:>9} |" for what, value, goal in rows)])


def main() -> None:
    if shutil.which("wrk") is None:
        sys.exit("The benchmark needs wrk: apt-get install wrk, then again.")
    load = os.getloadavg()[0]
    found, spent = measured()
    shown = table(found, spent)
    print(shown)
    cores = os.cpu_count()
    about = (
        f"`make bench-router` on {cores} cores, shared with the load generator and the backend "
        f"(load average before: {load:.1f})."
    )
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{about}\n\n{shown}\n{END}{after}", encoding="utf-8")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
