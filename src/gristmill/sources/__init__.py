"""Sources: where documents come from: folders of this machine, places that are polled, and the web."""

from gristmill.sources.calendar.caldav import put_event
from gristmill.sources.clearing import clear_folder
from gristmill.sources.fetch import FetchedPage, Fetcher, Location, NotThere, Posted, check_address, read_location
from gristmill.sources.folder import (
    FileIntake,
    Reporter,
    check_folder,
    files_at,
    files_in,
    find_first_files,
    watch_folder,
)
from gristmill.sources.git.connector import GitOptions, open_repository, prepare_clone
from gristmill.sources.git.program import Git, RepositoryLocked
from gristmill.sources.items import ItemRow, list_items, load_item, load_item_bytes, retry_set_aside
from gristmill.sources.kinds import KINDS
from gristmill.sources.link import STATES as LINK_STATES
from gristmill.sources.link import (
    Effect,
    FoundLink,
    Link,
    LinkDecision,
    LinkedDocument,
    LinkId,
    LinkPlace,
    NotedLinks,
    ShownRule,
    State,
    convert_apart,
    count_waiting_links,
    decide_one,
    explain_url,
    extract_links,
    find_link,
    list_links,
    list_places,
    list_rules,
    load_link,
    note_links,
    refresh_one,
    remove_rule,
    set_rule,
)
from gristmill.sources.listing import Comparison, compare_ids, note_listing
from gristmill.sources.mail.smtp import send_mail
from gristmill.sources.model import Kind, Source
from gristmill.sources.opening import Opener
from gristmill.sources.poller import ask_for_poll
from gristmill.sources.register import (
    Wanted,
    add_source,
    check_options,
    drop_source,
    find_kind,
    find_source,
    get_source,
    list_sources,
    pause_source,
)
from gristmill.sources.sending import find_sent
from gristmill.sources.site import show_options
from gristmill.sources.status import SourceStanding, count_items, find_stopped_sources, load_standings
from gristmill.sources.threads import join_thread, lock_threads
from gristmill.sources.tracker.changing import ChangeableTracker, Made, open_tracker
from gristmill.sources.wiki.changing import Confluence, FoundPage, open_wiki

__all__ = [
    "KINDS",
    "LINK_STATES",
    "ChangeableTracker",
    "Comparison",
    "Confluence",
    "Effect",
    "FetchedPage",
    "Fetcher",
    "FileIntake",
    "FoundLink",
    "FoundPage",
    "Git",
    "GitOptions",
    "ItemRow",
    "Kind",
    "Link",
    "LinkDecision",
    "LinkId",
    "LinkPlace",
    "LinkedDocument",
    "Location",
    "Made",
    "NotThere",
    "NotedLinks",
    "Opener",
    "Posted",
    "Reporter",
    "RepositoryLocked",
    "ShownRule",
    "Source",
    "SourceStanding",
    "State",
    "Wanted",
    "add_source",
    "ask_for_poll",
    "check_address",
    "check_folder",
    "check_options",
    "clear_folder",
    "compare_ids",
    "convert_apart",
    "count_items",
    "count_waiting_links",
    "decide_one",
    "drop_source",
    "explain_url",
    "extract_links",
    "files_at",
    "files_in",
    "find_first_files",
    "find_kind",
    "find_link",
    "find_sent",
    "find_source",
    "find_stopped_sources",
    "get_source",
    "join_thread",
    "list_items",
    "list_links",
    "list_places",
    "list_rules",
    "list_sources",
    "load_item",
    "load_item_bytes",
    "load_link",
    "load_standings",
    "lock_threads",
    "note_links",
    "note_listing",
    "open_repository",
    "open_tracker",
    "open_wiki",
    "pause_source",
    "prepare_clone",
    "put_event",
    "read_location",
    "refresh_one",
    "remove_rule",
    "retry_set_aside",
    "send_mail",
    "set_rule",
    "show_options",
    "watch_folder",
]
