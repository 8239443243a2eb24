"""HTML to Markdown, for what providers and pages of the web give us; in a child process: strangers wrote it."""


def convert_html(html: str) -> str:
    import html_to_markdown  # noqa: PLC0415 only child processes that convert something need it

    return html_to_markdown.convert(html).content or ""
