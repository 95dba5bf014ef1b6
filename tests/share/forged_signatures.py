"""A package with the signature of another one, or with none."""

import io
import zipfile

from isorun.packages.container import Writer


def with_signature_of(path, other):
    with zipfile.ZipFile(path) as package:
        members = {name: package.read(name) for name in package.namelist() if name != "signature.json"}
    if other is not None:
        with zipfile.ZipFile(other) as package:
            members["signature.json"] = package.read("signature.json")
    file = io.BytesIO()
    writer = Writer(file)
    for name, content in members.items():
        writer.add(name, [content])
    writer.finish()
    return file.getvalue()
