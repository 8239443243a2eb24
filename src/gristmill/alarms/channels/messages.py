"""What is said of an alarm: one sentence, as Slack takes it, as a mail, and as JSON for programs."""

from dataclasses import dataclass
from email.headerregistry import Address
from email.message import EmailMessage
from typing import Any

from gristmill.alarms.model import Alarm, Event
from gristmill.wording import format_span

COLOURS = {"warning": "warning", "critical": "danger"}
GOOD = "good"


@dataclass(frozen=True)
class AlarmMessage:
    """An alarm, and why it is told now."""

    alarm: Alarm
    event: Event
    number: int

    @property
    def key(self) -> str:
        """The same for every attempt to tell it."""
        return f"gristmill-alarm-{self.alarm.id}-{self.event}-{self.number}"

    @property
    def headline(self) -> str:
        match self.event:
            case "fired":
                return f"{self.alarm.level.capitalize()}: {self.alarm.rule} ({self.alarm.subject})"
            case "repeated":
                return f"Still {self.alarm.level}: {self.alarm.rule} ({self.alarm.subject})"
            case "over":
                return f"Over: {self.alarm.rule} ({self.alarm.subject})"

    @property
    def lines(self) -> list[str]:
        alarm = self.alarm
        lines = [alarm.sentence]
        if self.event == "over":
            end = alarm.over_at or alarm.seen_at
            return [*lines, f"It is well again after {format_span(end - alarm.fired_at)}."]
        if alarm.advice:
            lines.append(alarm.advice)
        if self.event == "repeated":
            lines.append(f"It has been so since {alarm.fired_at:%Y-%m-%d %H:%M} UTC.")
        return [*lines, f"Acknowledge it with: gristmill alarms ack {alarm.id}"]


def write_slack(message: AlarmMessage) -> dict[str, Any]:
    """As incoming webhooks of Slack, Mattermost and Rocket.Chat take it."""
    colour = GOOD if message.event == "over" else COLOURS[message.alarm.level]
    text = "\n".join(map(_escape, message.lines))
    return {
        "text": _escape(message.headline),
        "attachments": [
            {
                "color": colour,
                "fallback": _escape(message.alarm.sentence),
                "text": text,
                "footer": f"gristmill · alarm {message.alarm.id}",
                "ts": int(message.alarm.fired_at.timestamp()),
            }
        ],
    }


def _escape(text: str) -> str:
    """Names of files must not become links or call everybody: `<!channel>`."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def write_json(message: AlarmMessage) -> dict[str, Any]:
    """For programs."""
    alarm = message.alarm
    return {
        "key": message.key,
        "event": message.event,
        "alarm": alarm.id,
        "rule": alarm.rule,
        "subject": alarm.subject,
        "level": alarm.level,
        "sentence": alarm.sentence,
        "advice": alarm.advice,
        "client": alarm.client,
        "project": alarm.project,
        "fired_at": alarm.fired_at.isoformat(),
        "over_at": alarm.over_at.isoformat() if alarm.over_at else None,
    }


def write_mail(message: AlarmMessage, *, sender: str, to: tuple[str, ...]) -> EmailMessage:
    """A plain mail; its Message-ID is the same for every attempt, and answers stand under the first one."""
    domain = sender.rpartition("@")[2]
    mail = EmailMessage()
    mail["Subject"] = " ".join(f"[gristmill] {message.headline}".split())[:200]
    mail["From"] = Address("Gristmill", addr_spec=sender)
    mail["To"] = ", ".join(to)
    mail["AlarmMessage-ID"] = f"<{message.key}@{domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    first = f"<gristmill-alarm-{message.alarm.id}-fired-1@{domain}>"
    if mail["AlarmMessage-ID"] != first:
        mail["In-Reply-To"] = mail["References"] = first
    mail.set_content("\n\n".join(message.lines) + "\n")
    return mail
