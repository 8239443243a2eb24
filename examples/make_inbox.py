"""Writes examples/inbox: one small story in seven files, the same bytes every time.

Weir & Wheel restores the mill of Aldermoor for the Harrow Trust; an invoice is late, a bearing breaks, and a paper
explains why. All people, companies and places are invented. Needs Pillow and nothing else.
"""
# ruff: noqa: E501 the lines of the story are as long as they are

import io
import random
from email.message import EmailMessage
from pathlib import Path
from textwrap import wrap

from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont

INBOX = Path(__file__).parent / "inbox"
PAGE = (595, 842)
WIDTHS = 0.5  # of a letter of Helvetica, in parts of its size: enough to wrap lines


# --- a writer of PDF, just large enough


class Pdf:
    """Pages of text in Helvetica."""

    def __init__(self, title: str, author: str, created: str) -> None:
        self.info = f"<</Title({title})/Author({author})/CreationDate(D:{created})>>"
        self.pages: list[list[str]] = []

    def page(self) -> None:
        self.pages.append([])

    def line(self, text: str, x: float, y: float, size: float = 10.5, font: str = "F") -> None:
        shown = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
        self.pages[-1].append(f"BT /{font} {size} Tf {x} {y:.1f} Td ({shown}) Tj ET")

    def block(self, text: str, x: float, y: float, width: float, size: float = 10.5, font: str = "F") -> float:
        """A paragraph; where the next may begin."""
        for row in wrap(text, int(width / (size * WIDTHS))):
            self.line(row, x, y, size, font)
            y -= size * 1.3
        return y - size * 0.7

    def data(self) -> bytes:
        fonts = "<</F 3 0 R/B 4 0 R>>"
        objects = ["<</Type/Catalog/Pages 2 0 R>>", ""]
        for name in ("Helvetica", "Helvetica-Bold"):
            objects.append(f"<</Type/Font/Subtype/Type1/BaseFont/{name}/Encoding/WinAnsiEncoding>>")
        kids: list[str] = []
        for page in self.pages:
            content = "\n".join(page)
            objects.append(f"<</Length {len(content.encode('cp1252'))}>>stream\n{content}\nendstream")
            box = f"/MediaBox[0 0 {PAGE[0]} {PAGE[1]}]/Resources<</Font{fonts}>>"
            objects.append(f"<</Type/Page/Parent 2 0 R{box}/Contents {len(objects)} 0 R>>")
            kids.append(f"{len(objects)} 0 R")
        objects[1] = f"<</Type/Pages/Kids[{' '.join(kids)}]/Count {len(kids)}>>"
        return _assembled([*objects, self.info])


def _assembled(objects: list[str]) -> bytes:
    out = io.BytesIO()
    out.write(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    places: list[int] = []
    for number, content in enumerate(objects, 1):
        places.append(out.tell())
        out.write(f"{number} 0 obj\n{content}\nendobj\n".encode("cp1252"))
    table = out.tell()
    out.write(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode())
    out.write("".join(f"{place:010d} 00000 n \n" for place in places).encode())
    out.write(f"trailer<</Size {len(objects) + 1}/Root 1 0 R/Info {len(objects)} 0 R>>\n".encode())
    out.write(f"startxref\n{table}\n%%EOF\n".encode())
    return out.getvalue()


# --- the contract

CONTRACT = [
    [
        ("h1", "Restoration Contract HT-2026-014"),
        (
            "p",
            "This contract is made on 12 January 2026 between the Harrow Trust, 4 Chapel Row, Aldermoor, represented "
            "by its chair Margaret Oakes (the Client), and Weir & Wheel Ltd, 17 Sluice Lane, Brackwater, represented "
            "by its director Tomas Lindqvist (the Contractor).",
        ),
        ("h2", "1. Subject"),
        (
            "p",
            "The Contractor restores the water wheel, the main shaft and the stone floor of Aldermoor Mill, project "
            "name Aldermoor. The mill is a listed building; its permit bears the number LB-7731 of the Brackwater "
            "District Council.",
        ),
        ("h2", "2. Work"),
        (
            "p",
            "The work has three stages. Stage one covers the survey and the removal of the old wheel. Stage two covers "
            "a new wheel of oak, 5.2 metres across with 40 buckets, and two main bearings made by Corvane Bearings. "
            "Stage three covers the stones, the hopper and a trial run with 500 kilograms of wheat.",
        ),
        (
            "p",
            "Site manager is Priya Raman. She keeps the site diary and reports to Margaret Oakes every second Friday.",
        ),
    ],
    [
        ("h2", "3. Price and payment"),
        (
            "p",
            "The price is EUR 184,500.00 without tax. It is due in three parts: EUR 55,350.00 on signature, EUR "
            "73,800.00 when the new wheel hangs, and EUR 55,350.00 after the trial run.",
        ),
        (
            "p",
            "Invoices are payable within 30 days. The first invoice bears the number INV-2026-031, the second "
            "INV-2026-058. Whoever pays late owes 8 percent interest a year on the open amount.",
        ),
        ("h2", "4. Time"),
        (
            "p",
            "Work begins on 2 February 2026. The wheel hangs by 30 April 2026. The trial run is on 19 June 2026. For each "
            "week of delay that the Contractor causes the price falls by EUR 1,200.00, at most by EUR 9,600.00.",
        ),
        ("h2", "5. Warranty"),
        (
            "p",
            "The Contractor answers for wheel and shaft for ten years, and for bearings for five years, if the "
            "lubrication plan in annex B is kept. Damage by flood or frost is excluded.",
        ),
    ],
    [
        ("h2", "6. Insurance"),
        (
            "p",
            "The Contractor is insured with Northmere Mutual, policy NM-552-0098, for EUR 2,000,000.00 for each event.",
        ),
        ("h2", "7. Termination"),
        (
            "p",
            "Either side may terminate with four weeks' notice in writing if the other breaks a material duty and does "
            "not mend it within two weeks after it was asked to.",
        ),
        ("h2", "8. Place of jurisdiction"),
        ("p", "The courts of Brackwater decide. Changes of this contract need writing."),
        ("p", "Aldermoor, 12 January 2026"),
        ("p", "Margaret Oakes, for the Harrow Trust"),
        ("p", "Tomas Lindqvist, for Weir & Wheel Ltd"),
    ],
]


def contract() -> bytes:
    pdf = Pdf("Restoration Contract HT-2026-014", "Weir & Wheel Ltd", "20260112100000Z")
    for number, blocks in enumerate(CONTRACT, 1):
        pdf.page()
        y = 770.0
        for kind, text in blocks:
            size, font, before = {"h1": (20, "B", 0), "h2": (14, "B", 8), "p": (10.5, "F", 0)}[kind]
            y = pdf.block(text, 70, y - before, 455, size, font)
        pdf.line(f"HT-2026-014, page {number} of {len(CONTRACT)}", 70, 50, 8)
    return pdf.data()


# --- the paper

ABSTRACT = (
    "Slow bearings of restored water mills fail early when they are greased like fast ones. We measured 14 mills over three "
    "years and found that a thicker grease, given twice as often, prolongs their life by a factor of 2.6."
)
PAPER = [
    ("h", "1 Introduction"),
    (
        "p",
        "A water wheel turns six to ten times a minute. At such speeds no film of oil builds up between shaft and "
        "bearing, and metal touches metal. Lubrication plans of makers assume a hundred turns and more. Weir & Wheel has "
        "restored 31 mills since 2009; nine of them lost a bearing within five years.",
    ),
    ("p", "We ask whether the choice of grease explains these failures, and what a mill owner can do about it."),
    ("h", "2 Method"),
    (
        "p",
        "Fourteen mills were fitted with thermometers and acoustic sensors. Seven were greased with the usual "
        "lithium grease NLGI 2 every four weeks, seven with calcium sulfonate grease NLGI 3 every two weeks. Wear was "
        "measured each spring as play of the shaft in micrometres.",
    ),
    ("h", "3 Results"),
    (
        "p",
        "With lithium grease the play grew by 210 micrometres a year, with calcium sulfonate grease by 81. Two "
        "bearings of the first group broke, both of type Corvane CB-410, both in the first warm week of the year. None "
        "of the second group broke.",
    ),
    (
        "p",
        "Temperature did not warn: both bearings broke within an hour after the first rise. Sound did, eleven days "
        "before, by a tone near 340 hertz.",
    ),
    ("h", "4 Discussion"),
    (
        "p",
        "The factor of 2.6 is larger than the price of the better grease, which is about EUR 140 a year for each "
        "mill. We advise owners of slow wheels to change their plan, and makers of bearings to state the speed for "
        "which a plan was written.",
    ),
    ("p", "Our sample is small, and all mills stand in one river valley. Water with more sand may give other figures."),
    ("h", "Acknowledgements"),
    ("p", "We thank the Harrow Trust and Priya Raman for access to Aldermoor Mill."),
]


def paper() -> bytes:
    """Two columns, filled one after the other."""
    pdf = Pdf("Grease for slow bearings", "Ingrid Solberg, Tomas Lindqvist", "20251103090000Z")
    pdf.page()
    pdf.line("Grease for slow bearings", 60, 775, 22, "B")
    pdf.line("Ingrid Solberg (Brackwater College) and Tomas Lindqvist (Weir & Wheel Ltd)", 60, 752, 10)
    top = pdf.block(ABSTRACT, 60, 726, 475, 10, "B") - 8
    x, y = 60.0, top
    for kind, text in PAPER:
        size, font = (13, "B") if kind == "h" else (10.0, "F")
        rows = wrap(text, int(225 / (size * WIDTHS)))
        if kind == "h" and y < 130:
            x, y = 310.0, top
        for row in rows:
            if y < 70:
                x, y = 310.0, top
            pdf.line(row, x, y, size, font)
            y -= size * 1.3
        y -= size * 0.7
    return pdf.data()


# --- the letter and the receipt

LETTER = """Harrow Trust
4 Chapel Row, Aldermoor

Weir & Wheel Ltd
Attn. Mr Tomas Lindqvist
17 Sluice Lane, Brackwater

Aldermoor, 11 May 2026

Your invoice INV-2026-058

Dear Mr Lindqvist,

we received your invoice INV-2026-058 of 4 May 2026
over EUR 73,800.00. According to clause 3 of contract
HT-2026-014 this part is due when the new wheel hangs.
The wheel was hung on 7 May, one week late.

We therefore reduce the amount by EUR 1,200.00 and
will pay EUR 72,600.00 by 3 June 2026.

Please send us a corrected invoice.

Yours sincerely,
Margaret Oakes
Chair of the Harrow Trust"""

RECEIPT = """CORVANE BEARINGS
Trade counter Brackwater
9 Foundry Street

Receipt 88-20417
21 May 2026   16:42

1 x bearing CB-410      EUR 412.00
2 x grease NLGI 3       EUR  37.80
1 x seal ring 120 mm    EUR  18.50
----------------------------------
Total                   EUR 468.30
VAT 20 % included       EUR  78.05
Paid by card     Weir & Wheel Ltd

Customer: P. Raman
Project: Aldermoor
Thank you!"""


def drawn(text: str, size: tuple[int, int], points: int, margin: int, step: float) -> Image.Image:
    """Black on white, with the font that Pillow brings along."""
    page = Image.new("L", size, 255)
    draw = ImageDraw.Draw(page)
    font = ImageFont.load_default(points)
    for number, row in enumerate(text.split("\n")):
        draw.text((margin, margin + number * points * step), row, fill=20, font=font)
    return page


def noisy(page: Image.Image, strength: int, seed: int) -> Image.Image:
    """Grain as of paper and sensor; our own numbers, for Pillow's noise is another every time."""
    numbers = random.Random(seed)
    small = Image.frombytes(
        "L", (256, 256), bytes(128 + numbers.randint(-strength, strength) for _ in range(256 * 256))
    )
    grain = Image.new("L", page.size)
    for left in range(0, page.width, 256):
        for top in range(0, page.height, 256):
            grain.paste(small.rotate(numbers.choice((0, 90, 180, 270))), (left, top))
    return ImageChops.add(page, grain, scale=1, offset=-128)


def shaded(page: Image.Image, dark: int) -> Image.Image:
    """Darker towards one corner, as under a lamp."""
    shade = Image.linear_gradient("L").rotate(30).resize(page.size).point(lambda grey: 255 - grey * dark // 255)
    return ImageChops.multiply(page, shade)


def letter() -> bytes:
    """A scan: a little skewed, a little grainy."""
    page = drawn(LETTER, (1240, 1754), 30, 130, 1.5)
    page = page.rotate(0.8, Image.Resampling.BICUBIC, fillcolor=255)
    page = noisy(shaded(page.filter(ImageFilter.GaussianBlur(0.6)), 25), 10, 1)
    buffer = io.BytesIO()
    page.point(lambda grey: grey // 16 * 17).save(buffer, "TIFF", compression="tiff_lzw", dpi=(150, 150))
    return buffer.getvalue()


def receipt() -> bytes:
    """A photo: paper on a table, seen askew under a lamp."""
    paper = drawn(RECEIPT, (900, 1000), 34, 60, 1.5)
    table = Image.new("L", (1200, 1400), 92)
    table.paste(paper, (150, 180))
    tilted = table.transform(
        table.size,
        Image.Transform.QUAD,
        (10, 40, 40, 1390, 1180, 1370, 1160, 10),
        Image.Resampling.BICUBIC,
        fillcolor=92,
    ).rotate(-3, Image.Resampling.BICUBIC, fillcolor=92)
    photo = noisy(shaded(tilted.filter(ImageFilter.GaussianBlur(0.8)), 90), 12, 2)
    colour = Image.merge(
        "RGB", (photo, photo.point(lambda grey: grey * 97 // 100), photo.point(lambda grey: grey * 88 // 100))
    )
    buffer = io.BytesIO()
    colour.save(buffer, "JPEG", quality=80)
    return buffer.getvalue()


# --- mail, wiki, meeting

MAIL = """Hello Tomas,

the bearing on the upstream side broke this morning at 10:20, two weeks after we hung the wheel. It is the CB-410 from
Corvane Bearings. I bought a replacement at their counter (receipt 88-20417, EUR 468.30 with grease and a seal) and will fit
it tomorrow with Jonas Petersen.

The site diary of the last days is attached. Look at the tone at 340 hertz since 10 May: it is what Ingrid Solberg describes
in her paper. We greased with NLGI 2 every four weeks, as annex B of HT-2026-014 says. I think annex B is wrong.

Best regards
Priya

> On 20 May 2026 Tomas Lindqvist wrote:
> Priya, the Harrow Trust keeps back EUR 1,200.00 of INV-2026-058 because the wheel came a week late. Can we still
> make the trial run on 19 June?
>
> Tomas

>> On 18 May 2026 Priya Raman wrote:
>> The wheel turns well. There is a hum in the upstream bearing that I do not like.
"""

DIARY = """date,event,tone_hz,bearing_c,by
2026-05-07,wheel hung,0,14,Priya Raman
2026-05-10,first hum upstream,338,15,Jonas Petersen
2026-05-14,greased with NLGI 2,341,15,Jonas Petersen
2026-05-18,hum louder,340,16,Priya Raman
2026-05-21,upstream bearing CB-410 broke,342,48,Priya Raman
2026-05-22,new bearing fitted; greased with NLGI 3,0,15,Jonas Petersen
"""


def mail() -> bytes:
    message = EmailMessage()
    message["From"] = "Priya Raman <priya.raman@weirwheel.example.com>"
    message["To"] = "Tomas Lindqvist <tomas.lindqvist@weirwheel.example.com>"
    message["Cc"] = "Ingrid Solberg <i.solberg@brackwater-college.example.com>"
    message["Date"] = "Thu, 21 May 2026 18:05:00 +0200"
    message["Subject"] = "Re: Aldermoor: bearing CB-410 broke"
    message["Message-ID"] = "<20260521-3@weirwheel.example.com>"
    message["In-Reply-To"] = "<20260520-9@weirwheel.example.com>"
    message["References"] = "<20260518-2@weirwheel.example.com> <20260520-9@weirwheel.example.com>"
    message.set_content(MAIL)
    message.add_attachment(DIARY, subtype="csv", filename="site-diary.csv")
    message.set_boundary("aldermoor-0521")
    return message.as_bytes()


WIKI = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Aldermoor Mill – Weir &amp; Wheel wiki</title></head>
<body>
<h1>Aldermoor Mill</h1>
<p>Restoration for the <b>Harrow Trust</b> under contract <a href="https://wiki.example.com/contracts/HT-2026-014">HT-2026-014</a>.
Listed building, permit LB-7731 of the Brackwater District Council.</p>
<h2>People</h2>
<table>
<tr><th>Role</th><th>Name</th><th>Reach</th></tr>
<tr><td>Client</td><td>Margaret Oakes</td><td>m.oakes@harrowtrust.example.com</td></tr>
<tr><td>Director</td><td>Tomas Lindqvist</td><td>tomas.lindqvist@weirwheel.example.com</td></tr>
<tr><td>Site manager</td><td>Priya Raman</td><td>priya.raman@weirwheel.example.com</td></tr>
<tr><td>Millwright</td><td>Jonas Petersen</td><td>jonas.petersen@weirwheel.example.com</td></tr>
</table>
<h2>Lubrication plan (annex B)</h2>
<p>Main bearings Corvane CB-410: lithium grease NLGI 2, 120 grams every four weeks. <i>Under review since 21 May 2026, see the
paper by Ingrid Solberg: slow bearings want NLGI 3 every two weeks.</i></p>
<h2>Money</h2>
<ul>
<li>INV-2026-031: EUR 55,350.00, paid on 9 February 2026</li>
<li>INV-2026-058: EUR 73,800.00, disputed; the Trust keeps back EUR 1,200.00</li>
</ul>
<h2>Safety</h2>
<p>Close the sluice and chain the wheel before anybody enters the wheel pit. The key of the sluice hangs at the office of the
site manager.</p>
</body>
</html>
"""

MEETING = """# Site meeting Aldermoor, 26 May 2026

Present: Margaret Oakes (Harrow Trust), Tomas Lindqvist, Priya Raman and Jonas Petersen (Weir & Wheel), Ingrid Solberg
(Brackwater College) by telephone.

## Bearing

**Priya Raman:** The new CB-410 has run since 22 May with NLGI 3. No tone so far.

**Ingrid Solberg:** Please leave the acoustic sensor in. A tone near 340 hertz came eleven days before every break we saw.

**Tomas Lindqvist:** Corvane Bearings must say for which speed their plan was written. I will write to their engineer, Paul
Adeyemi.

**Margaret Oakes:** Is the broken bearing a case for the warranty? Clause 5 says five years if annex B is kept.

**Tomas Lindqvist:** It was kept. We pay for the bearing, EUR 468.30, and change annex B.

## Invoice

**Margaret Oakes:** We have asked for a corrected invoice instead of INV-2026-058, over EUR 72,600.00.

**Tomas Lindqvist:** You will have it as INV-2026-061 this week. The week of delay is ours.

## Trial run

The trial run stays on 19 June 2026. The wheat, 500 kilograms, comes from Fenwick Farm.

## Decisions

1. Annex B changes to NLGI 3 every two weeks. (Priya Raman, by 29 May)
2. Corrected invoice INV-2026-061 over EUR 72,600.00. (Tomas Lindqvist, by 29 May)
3. Letter to Corvane Bearings about the CB-410. (Tomas Lindqvist, by 5 June)
4. Acoustic sensor stays until the end of the year. (Ingrid Solberg)
"""


def files() -> dict[str, bytes]:
    return {
        "contract-HT-2026-014.pdf": contract(),
        "letter-harrow-trust.tiff": letter(),
        "receipt-photo.jpg": receipt(),
        "bearing-broke.eml": mail(),
        "wiki-aldermoor-mill.html": WIKI.encode(),
        "meeting-2026-05-26.md": MEETING.encode(),
        "paper-slow-bearings.pdf": paper(),
    }


def main() -> None:
    INBOX.mkdir(exist_ok=True)
    for name, data in files().items():
        (INBOX / name).write_bytes(data)
        print(f"{len(data):>9,}  {name}")


if __name__ == "__main__":
    main()
