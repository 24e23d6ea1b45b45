"""Greets people."""

from fluffy_plugin import Context, Plugin

plugin = Plugin("NAME_OF_PLUGIN", "0.1.0")


@plugin.tool("GROUP_OF_TOOLS.greet")
def greet(arguments: dict, context: Context) -> dict:
    """Greets somebody by name."""
    return {"greeting": f"Hello, {arguments['name']}!"}


if __name__ == "__main__":
    plugin.run()
