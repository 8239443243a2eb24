"""Child processes: run calls in them within limits, and know of any process whether it is gone."""

from gristmill.processes.child import OutOfMemory, call_context, tell
from gristmill.processes.forks import ForkSafe, drop_signals_in_copies, end_copy, fork_generation
from gristmill.processes.parent import ParentWatch
from gristmill.processes.pool import Crashed, ProcessPool, TimedOut
from gristmill.processes.presence import find_gone_processes, process_key
from gristmill.processes.programs import run_program

__all__ = [
    "Crashed",
    "ForkSafe",
    "OutOfMemory",
    "ParentWatch",
    "ProcessPool",
    "TimedOut",
    "call_context",
    "drop_signals_in_copies",
    "end_copy",
    "find_gone_processes",
    "fork_generation",
    "process_key",
    "run_program",
    "tell",
]
