"""Small PDF files, written by hand, so that a test says exactly what is in them."""

import io
import zlib

from pypdf import PdfReader, PdfWriter

PICTURE = b"q 600 0 0 800 0 0 cm /Im0 Do Q"


def pdf(*pages: str | bytes) -> bytes:
    """Return a PDF. A str is a page of text, one line of it per line; bytes are the page's content stream itself."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
    pixel = (
        b"<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8 /Length 1 >>"
    )
    objects.append(pixel + b"\nstream\n\x00\nendstream")
    kids = []
    for page in pages:
        content = page if isinstance(page, bytes) else _shown(page)
        packed = zlib.compress(content, 9)
        objects.append(b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> /XObject << /Im0 4 0 R >> >> >>" % len(objects)
            if content.startswith(PICTURE)
            else b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(kids), len(kids))
    return _file(objects)


def encrypted(data: bytes, *, user_password: str, algorithm: str = "AES-256") -> bytes:
    """Return the PDF, encrypted. An empty user password is what many programs write: anybody may open it."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    writer.encrypt(user_password, "owner", algorithm=algorithm)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def _shown(text: str) -> bytes:
    lines = [line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)") for line in text.split("\n")]
    shown = b" T*\n".join(b"(%s) Tj" % line.encode("cp1252") for line in lines)
    return b"BT /F1 12 Tf 14 TL 50 750 Td\n%s\nET" % shown


def _file(objects: list[bytes]) -> bytes:
    out, offsets = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(out)
