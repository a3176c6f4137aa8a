#!/usr/bin/env python3
"""Makes the packages of `dotnet tool install tracequet`: one for each system with the native program, and one that leads to them.

    dotnet_tool.py OUT RID=DIRECTORY...

Each directory is an unpacked archive of a release: the program, and the library of the recorder if there is one. Needs .NET 10 to be
installed; nothing in the packages is .NET code. Layout:

    tracequet.VERSION.nupkg       type DotnetTool            tools/net10.0/any/DotnetToolSettings.xml, which names the others
    tracequet.RID.VERSION.nupkg   type DotnetToolRidPackage  tools/any/RID/DotnetToolSettings.xml, the program beside it

Source: "Create RID-specific, self-contained, and AOT .NET tools" (Microsoft Learn) and dotnet/sdk, src/Cli/dotnet/ToolPackage. The
same input gives the same bytes.
"""

import sys
import tomllib
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

ROOT = Path(__file__).resolve().parent.parent
ID = "tracequet"
# What `dotnet` knows of systems (its catalogue of runtime identifiers) and we make programs for.
RIDS = {
    "linux-x64", "linux-arm64", "linux-musl-x64", "linux-musl-arm64", "win-x64", "win-arm64", "osx-x64", "osx-arm64",
}
TEXTS = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"]
LIBRARIES = {"libtracequet_recorder.so", "libtracequet_recorder.dylib", "tracequet_recorder.dll"}

CONTENT_TYPES = """<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
{types}</Types>
"""
RELATIONS = """<?xml version="1.0" encoding="utf-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
  <Relationship Type="http://schemas.microsoft.com/packaging/2010/07/manifest" Target="/{id}.nuspec" Id="R1" />
</Relationships>
"""
NUSPEC = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://schemas.microsoft.com/packaging/2013/05/nuspec.xsd">
  <metadata>
    <id>{id}</id>
    <version>{version}</version>
    <authors>The authors of tracequet</authors>
    <description>{description}</description>
    <license type="expression">{license}</license>
    <readme>README.md</readme>
    <tags>dotnet-tool nettrace etl parquet profiling</tags>
    <packageTypes>
      <packageType name="{type}" />
    </packageTypes>
  </metadata>
</package>
"""
SETTINGS = """<?xml version="1.0" encoding="utf-8"?>
<DotNetCliTool Version="2">
  <Commands>
    <Command {command} />
  </Commands>
{packages}</DotNetCliTool>
"""


def package(out, identity, kind, facts, files):
    """Writes one package: `files` are (path in it, bytes, whether it is run)."""
    nuspec = NUSPEC.format(id=identity, type=kind, **facts)
    texts = [(name, (ROOT / name).read_bytes(), False) for name in TEXTS]
    content = [(f"{identity}.nuspec", nuspec.encode(), False), *texts, *files]
    types = [("Default", "Extension", "rels", "application/vnd.openxmlformats-package.relationships+xml")]
    seen = {"rels"}
    for path, _, _ in content:
        name, _, extension = Path(path).name.rpartition(".")
        if not name:
            # A file without an extension is named itself.
            types.append(("Override", "PartName", f"/{path}", "application/octet-stream"))
        elif extension not in seen:
            seen.add(extension)
            types.append(("Default", "Extension", extension, "application/octet-stream"))
    types = "".join(f"  <{tag} {key}={quoteattr(value)} ContentType={quoteattr(of)} />\n" for tag, key, value, of in types)
    head = [
        ("[Content_Types].xml", CONTENT_TYPES.format(types=types).encode(), False),
        ("_rels/.rels", RELATIONS.format(id=identity).encode(), False),
    ]
    path = out / f"{identity}.{facts['version']}.nupkg"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data, runs in head + content:
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = (0o100755 if runs else 0o100644) << 16
            archive.writestr(entry, data)
    print(path)


def main(out, systems):
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    facts = {
        "version": cargo["workspace"]["package"]["version"],
        "license": escape(cargo["workspace"]["package"]["license"]),
        "description": escape(cargo["package"]["description"]),
    }
    out.mkdir(parents=True, exist_ok=True)
    packages = ""
    for rid, directory in systems:
        program = "tracequet.exe" if rid.startswith("win-") else "tracequet"
        if rid not in RIDS or not (directory / program).is_file():
            raise SystemExit(f"{rid}={directory}: expected a known system, and {program} in the directory")
        command = f'Name="{ID}" EntryPoint="{program}" Runner="executable"'
        settings = SETTINGS.format(command=command, packages="")
        files = [("DotnetToolSettings.xml", settings.encode(), False)]
        for file in sorted(directory.iterdir()):
            if file.name == program or file.name in LIBRARIES:
                files.append((file.name, file.read_bytes(), file.name == program))
        files = [(f"tools/any/{rid}/{name}", data, runs) for name, data, runs in files]
        package(out, f"{ID}.{rid}", "DotnetToolRidPackage", facts, files)
        packages += f'    <RuntimeIdentifierPackage RuntimeIdentifier="{rid}" Id="{ID}.{rid}" />\n'
    packages = f"  <RuntimeIdentifierPackages>\n{packages}  </RuntimeIdentifierPackages>\n"
    settings = SETTINGS.format(command=f'Name="{ID}"', packages=packages).encode()
    package(out, ID, "DotnetTool", facts, [("tools/net10.0/any/DotnetToolSettings.xml", settings, False)])


if __name__ == "__main__":
    if len(sys.argv) < 3 or not all("=" in argument for argument in sys.argv[2:]):
        raise SystemExit(__doc__)
    pairs = (argument.split("=", 1) for argument in sys.argv[2:])
    main(Path(sys.argv[1]), [(rid, Path(directory)) for rid, directory in pairs])
