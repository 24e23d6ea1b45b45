# Prints what the index tells of packages that pip chose: when each version was published.
# Usage: facts.py NAME... | --all
import json, os, re, sys, urllib.request
from concurrent.futures import ThreadPoolExecutor

def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()

report = json.load(open(os.path.join(os.path.dirname(sys.argv[0]), "report.json")))
wanted = {plain(name) for name in sys.argv[1:]}
chosen = [(p["metadata"]["name"], p["metadata"]["version"], p["download_info"]["url"]) for p in report["install"]]
chosen = [p for p in chosen if "--all" in sys.argv or plain(p[0]) in wanted]
chosen = [p for p in chosen if p[2].startswith("https://files.pythonhosted.org/")]

def ask(package):
    name, version, _ = package
    try:
        with urllib.request.urlopen(f"https://pypi.org/pypi/{name}/{version}/json", timeout=20) as answer:
            told = json.loads(answer.read(64 << 20))
        return f"{name}@{version}", {"published": min(f["upload_time_iso_8601"] for f in told["urls"])}
    except Exception:
        return None

with ThreadPoolExecutor(8) as pool:
    print(json.dumps(dict(fact for fact in pool.map(ask, chosen) if fact)))
