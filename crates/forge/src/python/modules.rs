//! Which modules of Python's library a skill may import, which of their names it may use, and why others are forbidden.
//!
//! The lists are the floor: a project can forbid more and allow nothing.
//!
//! **Invariant.** A module that is on neither list may not be imported.

/// Who may import a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// Every skill.
    Everybody,
    /// Skills whose side effects reach the network.
    Network,
    /// Skills that may write files.
    Writers,
    /// Tests.
    Tests,
}

/// A module that may be imported.
#[derive(Debug)]
pub(super) struct Allowed {
    pub(super) name: &'static str,
    pub(super) who: Who,
    /// The names in it that may be used; none: all that do not begin with `_` and are no other module.
    pub(super) only: Option<&'static [&'static str]>,
}

const fn whole(name: &'static str) -> Allowed {
    Allowed { name, who: Who::Everybody, only: None }
}

const fn part(name: &'static str, only: &'static [&'static str]) -> Allowed {
    Allowed { name, who: Who::Everybody, only: Some(only) }
}

const fn narrow(name: &'static str, who: Who, only: &'static [&'static str]) -> Allowed {
    Allowed { name, who, only: Some(only) }
}

/// What may be imported.
const ALLOWED: &[Allowed] = &[
    whole("__future__"),
    whole("abc"),
    whole("array"),
    part("ast", &["literal_eval"]),
    part(
        "asyncio",
        &[
            "CancelledError",
            "Event",
            "Lock",
            "Queue",
            "Semaphore",
            "TimeoutError",
            "gather",
            "run",
            "sleep",
            "timeout",
            "to_thread",
            "wait_for",
        ],
    ),
    whole("base64"),
    whole("binascii"),
    whole("bisect"),
    part("bz2", &["compress", "decompress"]),
    whole("calendar"),
    whole("cmath"),
    part("codecs", &["BOM_UTF8", "decode", "encode"]),
    whole("collections"),
    whole("collections.abc"),
    whole("colorsys"),
    part("concurrent", &[]),
    part("concurrent.futures", &["Future", "ThreadPoolExecutor", "as_completed", "wait"]),
    whole("configparser"),
    whole("contextlib"),
    whole("copy"),
    whole("csv"),
    whole("dataclasses"),
    whole("datetime"),
    whole("decimal"),
    whole("difflib"),
    part("email", &["message_from_bytes", "message_from_string"]),
    whole("email.message"),
    whole("email.policy"),
    whole("email.utils"),
    whole("enum"),
    whole("errno"),
    whole("fnmatch"),
    whole("fractions"),
    whole("functools"),
    whole("glob"),
    whole("graphlib"),
    part("gzip", &["compress", "decompress"]),
    whole("hashlib"),
    whole("heapq"),
    whole("hmac"),
    whole("html"),
    whole("html.entities"),
    whole("html.parser"),
    part("http", &["HTTPMethod", "HTTPStatus"]),
    narrow(
        "http.client",
        Who::Network,
        &[
            "BadStatusLine",
            "HTTPConnection",
            "HTTPException",
            "HTTPMessage",
            "HTTPResponse",
            "HTTPSConnection",
            "IncompleteRead",
            "InvalidURL",
            "RemoteDisconnected",
        ],
    ),
    part("io", &["BufferedReader", "BytesIO", "StringIO", "TextIOBase"]),
    whole("ipaddress"),
    whole("itertools"),
    whole("json"),
    whole("keyword"),
    part(
        "logging",
        &[
            "CRITICAL",
            "DEBUG",
            "ERROR",
            "Formatter",
            "INFO",
            "Logger",
            "LoggerAdapter",
            "NullHandler",
            "StreamHandler",
            "WARNING",
            "critical",
            "debug",
            "error",
            "exception",
            "getLogger",
            "info",
            "warning",
        ],
    ),
    part("lzma", &["compress", "decompress"]),
    whole("math"),
    whole("numbers"),
    whole("operator"),
    part(
        "os",
        &[
            "PathLike", "curdir", "extsep", "fsdecode", "fsencode", "fspath", "linesep", "listdir",
            "name", "pardir", "scandir", "sep", "stat", "strerror", "walk",
        ],
    ),
    whole("os.path"),
    whole("pathlib"),
    whole("pprint"),
    narrow(
        "pytest",
        Who::Tests,
        &[
            "CaptureFixture",
            "FixtureRequest",
            "LogCaptureFixture",
            "MonkeyPatch",
            "approx",
            "fail",
            "fixture",
            "mark",
            "param",
            "raises",
            "warns",
        ],
    ),
    whole("queue"),
    whole("random"),
    whole("re"),
    whole("reprlib"),
    whole("secrets"),
    whole("shlex"),
    narrow(
        "shutil",
        Who::Writers,
        &["copy", "copy2", "copyfile", "copyfileobj", "disk_usage", "move", "rmtree"],
    ),
    narrow(
        "ssl",
        Who::Network,
        &[
            "CERT_REQUIRED",
            "SSLCertVerificationError",
            "SSLContext",
            "SSLError",
            "TLSVersion",
            "create_default_context",
        ],
    ),
    whole("statistics"),
    whole("string"),
    whole("struct"),
    part("sys", &["byteorder", "float_info", "getsizeof", "maxsize", "platform", "version_info"]),
    narrow(
        "tempfile",
        Who::Writers,
        &["NamedTemporaryFile", "SpooledTemporaryFile", "TemporaryDirectory", "TemporaryFile"],
    ),
    whole("textwrap"),
    whole("threading"),
    whole("time"),
    whole("tomllib"),
    part("traceback", &["format_exc", "format_exception", "format_exception_only", "print_exc"]),
    part(
        "types",
        &["EllipsisType", "MappingProxyType", "NoneType", "SimpleNamespace", "TracebackType"],
    ),
    whole("typing"),
    whole("unicodedata"),
    narrow("unittest", Who::Tests, &["TestCase"]),
    narrow(
        "unittest.mock",
        Who::Tests,
        &["ANY", "AsyncMock", "MagicMock", "Mock", "call", "patch", "sentinel"],
    ),
    part("urllib", &[]),
    narrow("urllib.error", Who::Network, &["ContentTooShortError", "HTTPError", "URLError"]),
    whole("urllib.parse"),
    narrow(
        "urllib.request",
        Who::Network,
        &[
            "BaseHandler",
            "HTTPDefaultErrorHandler",
            "HTTPErrorProcessor",
            "HTTPHandler",
            "HTTPRedirectHandler",
            "HTTPSHandler",
            "OpenerDirector",
            "ProxyHandler",
            "Request",
            "build_opener",
            "urlopen",
        ],
    ),
    whole("uuid"),
    whole("warnings"),
    whole("weakref"),
    part("xml", &[]),
    part("xml.etree", &[]),
    whole("xml.etree.ElementTree"),
    narrow("zipfile", Who::Writers, &["BadZipFile", "ZipFile", "ZipInfo", "is_zipfile"]),
    whole("zlib"),
    whole("zoneinfo"),
];

/// What nobody may import, and why.
const FORBIDDEN: &[(&str, &str)] = &[
    ("_ctypes", "it calls into native code"),
    ("_frozen_importlib", "it imports what no reader of the file sees"),
    ("_frozen_importlib_external", "it imports what no reader of the file sees"),
    ("_imp", "it imports what no reader of the file sees"),
    ("_io", "it opens files past the rules"),
    ("_pickle", "reading its data runs code"),
    ("_posixsubprocess", "it starts programs"),
    ("_socket", "it opens sockets"),
    ("_thread", "it starts threads past the interpreter's own bookkeeping"),
    ("annotationlib", "it evaluates text"),
    ("antigravity", "it starts programs"),
    ("asyncore", "it opens sockets"),
    ("atexit", "it runs code after the skill has answered"),
    ("bdb", "it looks into frames"),
    ("builtins", "it hands out eval, exec and the rest by name"),
    ("cffi", "it calls into native code"),
    ("cloudpickle", "reading its data runs code"),
    ("code", "it runs text as code"),
    ("codeop", "it runs text as code"),
    ("compileall", "it writes bytecode"),
    ("copyreg", "it changes how data becomes objects"),
    ("ctypes", "it calls into native code"),
    ("dbm", "reading its data runs code"),
    ("dill", "reading its data runs code"),
    ("dis", "it looks into code"),
    ("doctest", "it runs text as code"),
    ("ensurepip", "it installs packages"),
    ("faulthandler", "it handles signals"),
    ("fcntl", "it controls descriptors"),
    ("ftplib", "it opens sockets"),
    ("gc", "it finds every object of the process"),
    ("genericpath", "it is a way to `os`"),
    ("imaplib", "it opens sockets"),
    ("imp", "it imports what no reader of the file sees"),
    ("importlib", "it imports what no reader of the file sees"),
    ("inspect", "it looks into frames"),
    ("joblib", "reading its data runs code"),
    ("linecache", "it reads files past the rules"),
    ("marshal", "it makes code out of data"),
    ("mmap", "it maps memory"),
    ("multiprocessing", "it starts processes"),
    ("nntplib", "it opens sockets"),
    ("nt", "it is a way to the system"),
    ("ntpath", "it is a way to `os`"),
    ("pdb", "it runs text as code"),
    ("pickle", "reading its data runs code"),
    ("pickletools", "reading its data runs code"),
    ("pip", "it installs packages"),
    ("pkgutil", "it imports what no reader of the file sees"),
    ("platform", "it starts programs"),
    ("poplib", "it opens sockets"),
    ("posix", "it is a way to the system"),
    ("posixpath", "it is a way to `os`"),
    ("profile", "it runs text as code"),
    ("pty", "it starts programs"),
    ("pwd", "it reads who uses the machine"),
    ("grp", "it reads who uses the machine"),
    ("py_compile", "it writes bytecode"),
    ("readline", "it reads what a person types"),
    ("resource", "it changes limits"),
    ("rlcompleter", "it evaluates text"),
    ("runpy", "it runs other modules"),
    ("sched", "it runs code later"),
    ("selectors", "it waits on descriptors"),
    ("select", "it waits on descriptors"),
    ("shelve", "reading its data runs code"),
    ("signal", "it handles signals"),
    ("site", "it changes where modules come from"),
    ("sitecustomize", "it changes where modules come from"),
    ("smtplib", "it opens sockets"),
    ("socket", "it opens sockets"),
    ("socketserver", "it opens sockets"),
    ("sqlite3", "it loads native code and writes files"),
    ("stat", "it is a way to file modes; `pathlib` has what a skill needs"),
    ("subprocess", "it starts programs"),
    ("symtable", "it looks into code"),
    ("sysconfig", "it reads how the machine is set up"),
    ("syslog", "it writes past the record of the run"),
    ("tarfile", "it writes files where an archive says"),
    ("telnetlib", "it opens sockets"),
    ("termios", "it controls terminals"),
    ("test", "it is Python's own harness"),
    ("timeit", "it runs text as code"),
    ("trace", "it looks into frames"),
    ("tracemalloc", "it looks into frames"),
    ("tty", "it controls terminals"),
    ("usercustomize", "it changes where modules come from"),
    ("venv", "it installs packages"),
    ("webbrowser", "it starts programs"),
    ("wsgiref", "it opens sockets"),
    ("xmlrpc", "it opens sockets"),
    ("zipapp", "it writes programs"),
    ("zipimport", "it imports what no reader of the file sees"),
];

/// Other words under which modules of the library hold modules.
const OTHER_NAMES: &[&str] = &["bltns"];

/// Modules that a name without its module already gives away, on whatever object it is asked for.
const TELLING: &[&str] =
    &["bltns", "builtins", "ctypes", "importlib", "os", "posix", "subprocess", "sys"];

/// The module, if it may be imported by some skill.
pub(super) fn allowed(name: &str) -> Option<&'static Allowed> {
    ALLOWED.iter().find(|module| module.name == name)
}

/// Why nobody may import the module, or the package it is in.
pub(super) fn forbidden(name: &str) -> Option<(&'static str, &'static str)> {
    let within = |outer: &str| {
        name.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    FORBIDDEN.iter().find(|(module, _)| within(module)).copied()
}

/// Whether a name in a module is another module that is not free to use.
pub(super) fn hides_module(name: &str) -> bool {
    let limited = |module: &Allowed| module.only.is_some() || module.who != Who::Everybody;
    OTHER_NAMES.contains(&name) || forbidden(name).is_some() || allowed(name).is_some_and(limited)
}

/// Whether a name is a module wherever it turns up.
pub(super) fn is_telling(name: &str) -> bool {
    TELLING.contains(&name)
}

/// Names that are refused although their module is allowed.
const DENIED: &[(&str, &str)] = &[
    ("contextlib.chdir", "it moves the whole process"),
    ("dataclasses.make_dataclass", "it makes classes out of text"),
    ("functools.singledispatch", "it evaluates text in annotations"),
    ("functools.singledispatchmethod", "it evaluates text in annotations"),
    ("functools.update_wrapper", "it reads and sets attributes by computed names"),
    ("pathlib.Path.home", "a skill has no home; its folders come from `self.folder`"),
    ("pytest.mark.skip", "a test that does not run proves nothing"),
    ("pytest.mark.skipif", "a test that does not run proves nothing"),
    ("pytest.mark.xfail", "a test that may fail proves nothing"),
    ("string.Formatter", "it reads attributes by computed names"),
    ("threading.setprofile", "it looks into frames"),
    ("threading.setprofile_all_threads", "it looks into frames"),
    ("threading.settrace", "it looks into frames"),
    ("threading.settrace_all_threads", "it looks into frames"),
    ("typing.ForwardRef", "it evaluates text"),
    ("typing.evaluate_forward_ref", "it evaluates text"),
    ("typing.get_args", "it hands out texts that can be evaluated"),
    ("typing.get_type_hints", "it evaluates text"),
    ("uuid.getnode", "it starts programs"),
    ("uuid.uuid1", "it starts programs"),
];

/// Why a name of an allowed module is refused.
pub(super) fn denied(dotted: &str) -> Option<&'static str> {
    DENIED.iter().find(|(name, _)| *name == dotted).map(|(_, why)| *why)
}

/// Names that take the names of other things: called where they are named, and never handed on.
const CALLED_ONLY: &[&str] = &[
    "functools.wraps",
    "operator.attrgetter",
    "operator.methodcaller",
    "pytest.mark",
    "unittest.mock.patch",
    "unittest.mock.patch.dict",
    "unittest.mock.patch.multiple",
    "unittest.mock.patch.object",
];

/// Whether a name may be called and nothing else.
pub(super) fn is_called_only(dotted: &str) -> bool {
    CALLED_ONLY.contains(&dotted)
}
