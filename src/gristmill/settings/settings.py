"""All settings together: a room adds its own by a file in this folder and a field below."""

from pydantic import Field, SecretStr
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)
from typing_extensions import override

from gristmill.settings.agents import AgentsSettings
from gristmill.settings.alarms import AlarmSettings
from gristmill.settings.documents import DocumentSettings
from gristmill.settings.embedding import EmbeddingSettings
from gristmill.settings.explain import FILE, map_variables
from gristmill.settings.fetch import FetchSettings
from gristmill.settings.knowledge import KnowledgeSettings
from gristmill.settings.llm import LlmSettings
from gristmill.settings.log import LogSettings
from gristmill.settings.qualifier import QualifierSettings
from gristmill.settings.queue import QueueSettings
from gristmill.settings.records import RecordsSettings
from gristmill.settings.router import RouterSettings
from gristmill.settings.sources import SourceSettings
from gristmill.settings.values import Folder
from gristmill.settings.variables import default_data_folder
from gristmill.settings.web import WebSettings


class Settings(BaseSettings):
    """Everything that a person can set."""

    model_config = SettingsConfigDict(
        env_prefix="GRISTMILL_",
        env_nested_delimiter="_",
        env_nested_max_split=1,
        toml_file=FILE,
        extra="forbid",
        frozen=True,
    )

    database_url: str | None = Field(
        default=None,
        description="A PostgreSQL ≥ 14 with pgvector ≥ 0.8; without it, one is started in the data folder.",
    )
    row_security: bool = Field(
        default=True,
        description="Whether the database itself keeps clients apart, by a role of its own (gristmill_tenant).",
    )
    data: Folder = Field(default_factory=default_data_folder, description="The data folder of the embedded PostgreSQL.")
    app: str = Field(
        default="gristmill.app:handlers",
        description="Where the handlers are that workers run: module:name or file.py:name.",
    )
    server: str | None = Field(
        default=None,
        description="A gristmill up elsewhere that add, search, documents, document, queue and task talk to.",
    )
    key: SecretStr | None = Field(default=None, description="The key for that server, made there by gristmill key add.")
    queue: QueueSettings = QueueSettings()
    router: RouterSettings = RouterSettings()
    documents: DocumentSettings = DocumentSettings()
    llm: LlmSettings = LlmSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    knowledge: KnowledgeSettings = KnowledgeSettings()
    sources: SourceSettings = SourceSettings()
    records: RecordsSettings = RecordsSettings()
    qualifier: QualifierSettings = QualifierSettings()
    web: WebSettings = WebSettings()
    fetch: FetchSettings = FetchSettings()
    alarms: AlarmSettings = AlarmSettings()
    agents: AgentsSettings = AgentsSettings()
    log: LogSettings = LogSettings()

    @classmethod
    @override
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # A variable that sets nothing is left out here: `unknown_names` reports it, and the program goes on.
        if isinstance(env_settings, EnvSettingsSource):
            known = {name.lower() for name in map_variables(cls)}
            env_settings.env_vars = {name: value for name, value in env_settings.env_vars.items() if name in known}
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)
