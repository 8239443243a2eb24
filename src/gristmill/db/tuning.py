"""The settings of the embedded server: safe, and sized for the machine."""

import shutil
from contextlib import suppress
from pathlib import Path

import psutil

MB = 1024 * 1024


def server_settings(socket_folder: Path) -> dict[str, str]:
    """The settings of the server; they leave memory for the other work of the machine."""
    small = not Path("/dev/shm").exists() or shutil.disk_usage("/dev/shm").total < 1024 * MB
    return {
        "listen_addresses": "",
        "port": "5432",
        "unix_socket_directories": str(socket_folder),
        "unix_socket_permissions": "0700",
        "max_connections": "200",
        "shared_buffers": f"{max(128, min(2048, memory() // 8 // MB))}MB",
        "maintenance_work_mem": "256MB",
        # the /dev/shm of containers often has 64 MB, which is too little for a parallel index build
        "dynamic_shared_memory_type": "mmap" if small else "posix",
        "fsync": "on",
        "synchronous_commit": "on",
        "max_wal_size": "4GB",
        "min_wal_size": "256MB",
        "checkpoint_timeout": "15min",
        "autovacuum_naptime": "10s",
        "random_page_cost": "1.1",
        "jit": "off",
        "log_min_messages": "warning",
        "log_checkpoints": "off",
        "log_line_prefix": "%m [%p] ",
        "log_timezone": "UTC",
        "timezone": "UTC",
        "lc_messages": "C",
    }


def memory() -> int:
    """The memory of this machine in bytes, or the part of it that its container may use."""
    with suppress(OSError, ValueError):
        return min(psutil.virtual_memory().total, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return psutil.virtual_memory().total
