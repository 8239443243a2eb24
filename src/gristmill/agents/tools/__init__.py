"""The tools of agents, one file each, and the one seam through which they are called."""

from gristmill.agents.tools import (
    add_event,
    draft_event,
    draft_mail,
    fetch_page,
    git_branch,
    git_commit,
    git_diff,
    git_log,
    git_push,
    git_status,
    list_files,
    patch_file,
    read_document,
    read_file,
    run_command,
    run_tests,
    search_files,
    search_knowledge,
    send_mail,
    write_document,
    write_file,
)
from gristmill.agents.tools.model import AnyTool, Arguments, Bench, Prepared, Search, Tool, ToolResult
from gristmill.agents.tools.toolbox import Calls, PastCall, Toolbox

MODULES = (
    search_knowledge,
    read_document,
    write_document,
    list_files,
    read_file,
    search_files,
    write_file,
    patch_file,
    git_status,
    git_diff,
    git_log,
    git_branch,
    git_commit,
    git_push,
    run_tests,
    run_command,
    fetch_page,
    draft_mail,
    send_mail,
    draft_event,
    add_event,
)
TOOLS: dict[str, AnyTool] = {module.TOOL.name: module.TOOL for module in MODULES}

__all__ = [
    "TOOLS",
    "AnyTool",
    "Arguments",
    "Bench",
    "Calls",
    "PastCall",
    "Prepared",
    "Search",
    "Tool",
    "ToolResult",
    "Toolbox",
]
