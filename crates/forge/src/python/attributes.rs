//! Names that lead from an object to the interpreter.

/// Builtins that turn text into code, or names into objects, or end the process.
const BUILTINS: &[&str] = &[
    "breakpoint",
    "compile",
    "delattr",
    "eval",
    "exec",
    "exit",
    "getattr",
    "globals",
    "hasattr",
    "help",
    "locals",
    "open",
    "quit",
    "setattr",
    "vars",
];

/// Builtins that may be called with a name that stands in the file, and not otherwise.
const BY_NAME: &[&str] = &["delattr", "getattr", "hasattr", "setattr"];

/// Names with two underscores that may be read as attributes.
const READABLE: &[&str] = &[
    "__cause__",
    "__context__",
    "__doc__",
    "__enter__",
    "__exit__",
    "__init__",
    "__name__",
    "__notes__",
    "__post_init__",
    "__qualname__",
    "__traceback__",
    "__version__",
];

/// Names with two underscores that a file may define: how its own objects behave, and nothing about how they are made,
/// looked into or written down.
const DEFINABLE: &[&str] = &[
    "__abs__",
    "__add__",
    "__aenter__",
    "__aexit__",
    "__aiter__",
    "__all__",
    "__and__",
    "__anext__",
    "__author__",
    "__bool__",
    "__bytes__",
    "__call__",
    "__contains__",
    "__delitem__",
    "__doc__",
    "__enter__",
    "__eq__",
    "__exit__",
    "__float__",
    "__format__",
    "__ge__",
    "__getitem__",
    "__gt__",
    "__hash__",
    "__iadd__",
    "__index__",
    "__init__",
    "__int__",
    "__iter__",
    "__le__",
    "__len__",
    "__lt__",
    "__mul__",
    "__ne__",
    "__neg__",
    "__next__",
    "__or__",
    "__post_init__",
    "__radd__",
    "__repr__",
    "__reversed__",
    "__rmul__",
    "__round__",
    "__rsub__",
    "__setitem__",
    "__slots__",
    "__str__",
    "__sub__",
    "__truediv__",
    "__version__",
    "__xor__",
];

/// Attributes by which frames, code objects, loops, loaders and links are reached.
const LEADING: &[&str] = &[
    "ag_await",
    "ag_code",
    "ag_frame",
    "co_code",
    "co_consts",
    "cr_await",
    "cr_code",
    "cr_frame",
    "enable_load_extension",
    "environ",
    "environb",
    "exec_module",
    "expanduser",
    "expandvars",
    "f_back",
    "f_builtins",
    "f_code",
    "f_globals",
    "f_locals",
    "f_trace",
    "find_spec",
    "func_code",
    "func_globals",
    "get_loop",
    "get_type_hints",
    "getenv",
    "gi_code",
    "gi_frame",
    "gi_yieldfrom",
    "hardlink_to",
    "link_to",
    "load_extension",
    "load_module",
    "mro",
    "putenv",
    "subprocess_exec",
    "subprocess_shell",
    "symlink_to",
    "tb_frame",
    "tb_next",
];

/// Words in a text that is handed to something which reads names out of texts.
const HIDDEN: &[&str] = &[
    "__base__",
    "__bases__",
    "__builtins__",
    "__class__",
    "__closure__",
    "__code__",
    "__dict__",
    "__getattribute__",
    "__globals__",
    "__import__",
    "__loader__",
    "__mro__",
    "__reduce__",
    "__self__",
    "__spec__",
    "__subclasses__",
];

/// Names with one underscore that the library documents.
const DOCUMENTED: &[&str] = &["_asdict", "_fields", "_make", "_replace"];

/// Names with one underscore that nobody asks for, not even of `self`: ways to modules, and what the base keeps.
const NOBODYS: &[&str] = &[
    "_bootstrap",
    "_folders",
    "_getframe",
    "_importer",
    "_io",
    "_module",
    "_os",
    "_secrets",
    "_sys",
    "_warnings_module",
];

/// Whether a builtin is one that a skill may not use freely.
pub(super) fn is_guarded(name: &str) -> bool {
    BUILTINS.contains(&name)
}

/// Whether a builtin takes the name of an attribute.
pub(super) fn takes_name(name: &str) -> bool {
    BY_NAME.contains(&name)
}

/// Whether a name has two underscores on both sides.
pub(super) fn is_dunder(name: &str) -> bool {
    name.len() > 4 && name.starts_with("__") && name.ends_with("__")
}

/// Whether a file may define the name.
pub(super) fn may_define(name: &str) -> bool {
    !is_dunder(name) || DEFINABLE.contains(&name)
}

/// Whether an attribute leads to the interpreter, whatever it is asked of.
pub(super) fn leads_out(name: &str) -> bool {
    LEADING.contains(&name) || (is_dunder(name) && !READABLE.contains(&name))
}

/// Whether an attribute with one underscore is nobody's own business.
pub(super) fn is_private(name: &str) -> bool {
    NOBODYS.contains(&name)
        || (name.starts_with('_') && !is_dunder(name) && !DOCUMENTED.contains(&name))
}

/// Whether a private attribute is refused even where the file defines one of that name.
pub(super) fn is_nobodys(name: &str) -> bool {
    NOBODYS.contains(&name)
}

/// A word in a text that leads to the interpreter.
pub(super) fn hidden_word(text: &str) -> Option<&'static str> {
    HIDDEN.iter().find(|word| text.contains(**word)).copied()
}
