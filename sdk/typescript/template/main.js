// @ts-check
import { Plugin } from "./fluffy_plugin.js";

const plugin = new Plugin("NAME_OF_PLUGIN", "0.1.0");

plugin.tool("GROUP_OF_TOOLS.greet", (args, _context) => {
  return { greeting: `Hello, ${args.name}!` };
});

await plugin.run();
