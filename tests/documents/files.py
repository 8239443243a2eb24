"""Small real files of every format, written by hand."""

import io
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap

from PIL import Image, ImageDraw, ImageFont

XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
OFFICE = "http://schemas.openxmlformats.org"
WORD = f'xmlns:w="{OFFICE}/wordprocessingml/2006/main"'
LINKS = f'xmlns:r="{OFFICE}/officeDocument/2006/relationships"'
SLIDE = f'xmlns:p="{OFFICE}/presentationml/2006/main" xmlns:a="{OFFICE}/drawingml/2006/main" {LINKS}'
SHEET = f'xmlns="{OFFICE}/spreadsheetml/2006/main" {LINKS}'
RELATION = f"{OFFICE}/officeDocument/2006/relationships"
TYPES = "application/vnd.openxmlformats-officedocument"


def zipped(entries: dict[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def relations(*targets: tuple[str, str]) -> str:
    inner = "".join(
        f'<Relationship Id="rId{n}" Type="{RELATION}/{kind}" Target="{target}"/>'
        for n, (kind, target) in enumerate(targets, 1)
    )
    return f'{XML}<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{inner}</Relationships>'


def content_types(overrides: dict[str, str]) -> str:
    inner = "".join(f'<Override PartName="{part}" ContentType="{kind}"/>' for part, kind in overrides.items())
    return (
        f'{XML}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{inner}</Types>'
    )


CORE = (
    f'{XML}<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><dc:title>{title}</dc:title>'
    "<dc:creator>Ada Miller</dc:creator>"
    '<dcterms:created xsi:type="dcterms:W3CDTF">2026-03-04T05:06:07Z</dcterms:created></cp:coreProperties>'
)


def package(main: str, kind: str, entries: dict[str, str | bytes], title: str) -> bytes:
    return zipped(
        {
            "[Content_Types].xml": content_types({f"/{main}": f"{TYPES}.{kind}.main+xml"}),
            "_rels/.rels": f"{relations(('officeDocument', main))[:-16]}"
            f'<Relationship Id="rId9" Type="{OFFICE}/package/2006/relationships/metadata/core-properties" '
            'Target="docProps/core.xml"/></Relationships>',
            "docProps/core.xml": CORE.format(title=title),
            **entries,
        }
    )


def docx(*paragraphs: str, table: Sequence[Sequence[str]] = (), title: str = "") -> bytes:
    """A paragraph that opens with `# ` is a heading."""
    body = "".join(
        f'<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>{text[2:]}</w:t></w:r></w:p>'
        if text.startswith("# ")
        else f'<w:p><w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'
        for text in paragraphs
    )
    rows = "".join(
        f"<w:tr>{''.join(f'<w:tc><w:p><w:r><w:t>{cell}</w:t></w:r></w:p></w:tc>' for cell in row)}</w:tr>"
        for row in table
    )
    grid = f"<w:tbl>{rows}</w:tbl>" if rows else ""
    styles = (
        f'{XML}<w:styles {WORD}><w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/>'
        '<w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:style></w:styles>'
    )
    return package(
        "word/document.xml",
        "wordprocessingml.document",
        {
            "word/document.xml": f"{XML}<w:document {WORD}><w:body>{body}{grid}</w:body></w:document>",
            "word/_rels/document.xml.rels": relations(("styles", "styles.xml")),
            "word/styles.xml": styles,
        },
        title,
    )


def pptx(*slides: tuple[str, str], title: str = "") -> bytes:
    """Slides of a title and a text."""
    entries: dict[str, str | bytes] = {}
    for number, (heading, text) in enumerate(slides, 1):
        shapes = "".join(
            f'<p:sp><p:nvSpPr><p:cNvPr id="{n}" name="x"/><p:cNvSpPr/><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>'
            "<p:spPr/>"
            f"<p:txBody><a:bodyPr/><a:p><a:r><a:t>{content}</a:t></a:r></a:p></p:txBody></p:sp>"
            for n, (kind, content) in enumerate((("title", heading), ("body", text)), 2)
        )
        entries[f"ppt/slides/slide{number}.xml"] = (
            f"{XML}<p:sld {SLIDE}><p:cSld><p:spTree>"
            '<p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr>'
            f"<p:grpSpPr/>{shapes}</p:spTree></p:cSld></p:sld>"
        )
    ids = "".join(f'<p:sldId id="{255 + n}" r:id="rId{n}"/>' for n in range(1, len(slides) + 1))
    entries["ppt/presentation.xml"] = f"{XML}<p:presentation {SLIDE}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>"
    targets = [("slide", f"slides/slide{n}.xml") for n in range(1, len(slides) + 1)]
    entries["ppt/_rels/presentation.xml.rels"] = relations(*targets)
    return package("ppt/presentation.xml", "presentationml.presentation", entries, title)


def xlsx(sheets: dict[str, Sequence[Sequence[str | float]]], title: str = "") -> bytes:
    entries: dict[str, str | bytes] = {}
    for number, rows in enumerate(sheets.values(), 1):
        data = "".join(f"<row>{''.join(map(cell_xml, row))}</row>" for row in rows)
        entries[f"xl/worksheets/sheet{number}.xml"] = (
            f"{XML}<worksheet {SHEET}><sheetData>{data}</sheetData></worksheet>"
        )
    names = "".join(f'<sheet name="{name}" sheetId="{n}" r:id="rId{n}"/>' for n, name in enumerate(sheets, 1))
    entries["xl/workbook.xml"] = f"{XML}<workbook {SHEET}><sheets>{names}</sheets></workbook>"
    targets = [("worksheet", f"worksheets/sheet{n}.xml") for n in range(1, len(sheets) + 1)]
    entries["xl/_rels/workbook.xml.rels"] = relations(*targets)
    return package("xl/workbook.xml", "spreadsheetml.sheet", entries, title)


def cell_xml(value: str | float) -> str:
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
    return f"<c><v>{value}</v></c>"


# --- PDF


def pdf(pages: Sequence[str | Image.Image], info: str = "", more: Sequence[bytes] = ()) -> bytes:
    """Each page is text (set in lines of 80, `# ` sets a heading) or a picture that fills it, scanned at 150 dpi."""
    objects: list[bytes] = [b"", b"", b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"]
    kids: list[int] = []
    for page in pages:
        resources, paper = b"<</Font<</F 3 0 R>>>>", (595, 842)
        if isinstance(page, str):
            content = set_text(page)
        else:
            picture = page.convert("L")
            data = zlib.compress(picture.tobytes())
            size = b"/Width %d/Height %d" % picture.size
            grey = b"/ColorSpace/DeviceGray/BitsPerComponent 8"
            head = b"<</Type/XObject/Subtype/Image%b" + grey + b"/Filter/FlateDecode/Length %d>>"
            objects.append(head % (size, len(data)) + b"stream\n" + data + b"\nendstream")
            resources = b"<</XObject<</I %d 0 R>>>>" % len(objects)
            paper = picture.width * 72 // 150, picture.height * 72 // 150
            content = b"q %d 0 0 %d 0 0 cm /I Do Q" % paper
        objects.append(b"<</Length %d>>stream\n%b\nendstream" % (len(content), content))
        page_dict = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 %d %d]/Resources %b/Contents %d 0 R>>"
        objects.append(page_dict % (*paper, resources, len(objects)))
        kids.append(len(objects))
    objects[0] = b"<</Type/Catalog/Pages 2 0 R>>"
    objects[1] = b"<</Type/Pages/Kids[%b]/Count %d>>" % (b" ".join(b"%d 0 R" % kid for kid in kids), len(kids))
    objects += [*more, f"<<{info}>>".encode("latin-1")]
    return assembled(objects)


class Packed(bytes):
    """Bytes that need not be packed any more."""


def pack_zeros(megabytes: int) -> Packed:
    """So many zeros, packed without packing each of them: one megabyte is, and repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    one = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = (megabytes << 20) % 65521 << 16 | 1  # Adler-32
    return Packed(b"\x78\xda" + one * megabytes + b"\x03\x00" + checksum.to_bytes(4, "big"))


def attached(files: Sequence[tuple[str, bytes]]) -> bytes:
    """A PDF of one page with files in it, packed."""
    objects = [b"", b"<</Type/Pages/Kids[3 0 R]/Count 1>>", b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]>>"]
    names: list[bytes] = []
    for name, content in files:
        data = content if isinstance(content, Packed) else zlib.compress(content, 9)
        head = b"<</Type/EmbeddedFile/Filter/FlateDecode/Length %d>>" % len(data)
        objects.append(head + b"stream\n" + data + b"\nendstream")
        file = b"<</Type/Filespec/F(%b)/UF(%b)/EF<</F %d 0 R>>>>" % (name.encode(), name.encode(), len(objects))
        objects.append(file)
        names.append(b"(%b) %d 0 R" % (name.encode(), len(objects)))
    tree = b"<</EmbeddedFiles<</Names[%b]>>>>" % b" ".join(names)
    objects[0] = b"<</Type/Catalog/Pages 2 0 R/Names%b>>" % tree
    return assembled([*objects, b"<<>>"])


def set_text(text: str) -> bytes:
    y, out = 780.0, [b"BT"]
    for paragraph in text.split("\n\n"):
        size = 20 if paragraph.startswith("# ") else 11
        for line in wrap(paragraph.removeprefix("# "), 80):
            shown = line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
            out.append(f"/F {size} Tf 1 0 0 1 60 {y:.1f} Tm ({shown}) Tj".encode("cp1252"))
            y -= size * 1.25
        y -= 14
    return b"\n".join([*out, b"ET"])


def assembled(objects: Sequence[bytes]) -> bytes:
    """The first object is the catalogue, the last the information."""
    out = io.BytesIO()
    out.write(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    places: list[int] = []
    for number, content in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%b\nendobj\n" % (number, content))
    table = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    trailer = b"trailer<</Size %d/Root 1 0 R/Info %d 0 R>>\nstartxref\n%d\n%%%%EOF\n"
    out.write(trailer % (len(objects) + 1, len(objects), table))
    return out.getvalue()


# --- pictures


SLIP = (740, 740)  # pixels: reading takes as long as there is paper, and what is smaller or longer is enlarged for it


def scan(*lines: str) -> Image.Image:
    """A clean scan of a slip of paper, at 150 dpi."""
    picture = Image.new("L", SLIP, 255)
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(36)
    for number, line in enumerate(lines):
        draw.text((120, 150 + 60 * number), line, fill=0, font=font)
    return picture


def saved(picture: Image.Image, format: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, format, **options)  # pyright: ignore[reportArgumentType]
    return buffer.getvalue()


def put(folder: Path, name: str, data: bytes | str) -> str:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return str(path)
