# Prints the dependencies that `pyproject.toml` names, of the project itself and for development.
import tomllib

project = tomllib.load(open("pyproject.toml", "rb"))
wanted = list(project.get("project", {}).get("dependencies", []))
for name, extra in project.get("project", {}).get("optional-dependencies", {}).items():
    if name in ("dev", "test", "tests", "testing"):
        wanted += extra
for name, group in project.get("dependency-groups", {}).items():
    if name in ("dev", "test", "tests", "testing"):
        wanted += [entry for entry in group if isinstance(entry, str)]
print("\n".join(wanted))
