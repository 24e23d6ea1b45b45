# Prints what `poetry.lock` holds as requirements with markers and hashes.
import sys, tomllib

for package in tomllib.load(open(sys.argv[1], "rb")).get("package", []):
    markers = package.get("markers")
    if isinstance(markers, dict):
        markers = " or ".join(f"({marker})" for marker in markers.values())
    marker = f" ; {markers}" if markers else ""
    hashes = " ".join(f'--hash={file["hash"]}' for file in package["files"])
    print(f'{package["name"]}=={package["version"]}{marker} {hashes}')
