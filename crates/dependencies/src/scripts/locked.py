# Prints what pip chose as requirements with hashes.
import json, sys

for package in json.load(open(sys.argv[1]))["install"]:
    name, version = package["metadata"]["name"], package["metadata"]["version"]
    print(f'{name}=={version} --hash=sha256:{package["download_info"]["archive_info"]["hashes"]["sha256"]}')
