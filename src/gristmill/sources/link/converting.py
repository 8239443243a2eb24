"""Has a page converted in a child process, with limits: its author may want to attack us."""

from gristmill.errors import Permanent
from gristmill.processes import Crashed, OutOfMemory, ProcessPool, TimedOut
from gristmill.sources.fetch import FetchedPage
from gristmill.sources.link.pages import PageMarkdown, convert_page

CHILD_FAILURES = (Crashed, OutOfMemory, TimedOut)


async def convert_apart(processes: ProcessPool, page: FetchedPage, *, seconds: float, memory: int) -> PageMarkdown:
    """The readable part of a page; Permanent if it ends the process that looks into it."""
    try:
        return await processes.run(convert_page, page.body, page.charset, page.url, timeout=seconds, memory=memory)
    except CHILD_FAILURES as error:
        raise Permanent(f"The page ended the process that looked into it: {error}") from error
