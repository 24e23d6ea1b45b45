//! What a machine has for running sandboxes, and what to do where that is missing.
//!
//! Reading settings explains, trying proves: only what cannot work is [`Machine::missing`]; what may
//! stand in the way is a [`Machine::suspect`], told when the kernel has tried and failed.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs, iter};

use crate::{Runtime, Trouble};

/// How to install: the system or the distribution's name in `os-release`, command, package of Docker.
const INSTALLERS: [(&str, &str, &str); 8] = [
    ("macos", "brew install", "--cask docker"),
    ("windows", "wsl --install -d Debian` and in it `sudo apt install", "docker.io"),
    ("debian", "sudo apt install", "docker.io"),
    ("fedora", "sudo dnf install", "moby-engine"),
    ("rhel", "sudo dnf install", "podman-docker"),
    ("arch", "sudo pacman -S", "docker"),
    ("alpine", "doas apk add", "docker"),
    ("suse", "sudo zypper install", "docker"),
];

/// A machine, as far as sandboxes go.
pub struct Machine {
    /// Its root directory.
    pub root: PathBuf,
    /// The value of `PATH`.
    pub path: OsString,
    /// `linux`, `macos`, `windows`.
    pub system: String,
    /// Who is asking.
    pub user: u32,
    /// How much time has gone by since some moment.
    pub clock: Box<dyn Fn() -> Duration>,
}

impl Machine {
    /// This one.
    #[expect(clippy::disallowed_methods, reason = "the one place here that reads PATH and clock")]
    pub fn here() -> Self {
        let path = env::var_os("PATH").unwrap_or_default();
        let user = Path::new("/proc/self").metadata().map_or(u32::MAX, |process| process.uid());
        let (system, begun) = (env::consts::OS.to_owned(), Instant::now());
        Self { root: "/".into(), path, system, user, clock: Box::new(move || begun.elapsed()) }
    }

    /// Why no kernel can run here in this runtime, where that is certain.
    pub fn missing(&self, runtime: Runtime) -> Option<Trouble> {
        match (runtime, self.system.as_str()) {
            (Runtime::Docker, _) => self.missing_engine("docker"),
            (Runtime::Podman, _) => self.missing_engine("podman"),
            (Runtime::Native, "linux") => self.missing_namespaces(),
            (Runtime::Native, _) => {
                let fix = "use one: `wsl --install` on Windows, `brew install lima` on macOS";
                Some(no_sandbox("sandboxes are made by Linux", fix))
            }
        }
    }

    fn missing_namespaces(&self) -> Option<Trouble> {
        let version = self.text("proc/version");
        if version.contains("Microsoft") && !version.contains("WSL2") {
            let fix = "convert the distribution to WSL 2: `wsl --set-version <name> 2`";
            return Some(no_sandbox("WSL 1 has no namespaces", fix));
        }
        let off = |name: &str| self.text(&format!("proc/sys/{}", name.replace('.', "/"))) == "0";
        let both = [("user.max_user_namespaces", 15_000), ("kernel.unprivileged_userns_clone", 1)];
        // The second does not bind root.
        let mut settings = both.iter().take(if self.user == 0 { 1 } else { 2 });
        settings.find(|(name, _)| off(name)).map(|(name, wanted)| {
            let fix = format!("`sudo sysctl {name}={wanted}`, and that line in /etc/sysctl.d/");
            no_sandbox(&format!("user namespaces are switched off ({name}=0)"), &fix)
        })
    }

    /// What may have kept the kernel, which is `program`, from making a sandbox.
    pub fn suspect(&self, program: &Path) -> Option<Trouble> {
        if self.text("proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" {
            let profile = format!("profile fluffy {} flags=(unconfined)", program.display());
            let fix = format!(
                "give this one program the right: write `abi <abi/4.0>, {profile} {{ userns, }}` to \
                 /etc/apparmor.d/fluffy and run `sudo apparmor_parser -r /etc/apparmor.d/fluffy`"
            );
            return Some(no_sandbox("AppArmor takes the rights in user namespaces away", &fix));
        }
        let modules = self.text("sys/kernel/security/lsm");
        let lacks = !modules.is_empty() && modules.split(',').all(|module| module != "landlock");
        let fix = format!("start Linux 5.13 or newer with `lsm=landlock,{modules}`");
        lacks.then(|| no_sandbox("this Linux runs without Landlock", &fix))
    }

    /// What an engine lacks that is to hold the kernel.
    fn missing_engine(&self, engine: &str) -> Option<Trouble> {
        let run = [self.root.join("run"), self.root.join(format!("run/user/{}", self.user))];
        let sockets = [format!("{engine}.sock"), format!("{engine}/{engine}.sock")];
        let runs = run.iter().any(|run| sockets.iter().any(|socket| run.join(socket).exists()));
        let at = |dir: PathBuf| self.root.join(dir.strip_prefix("/").unwrap_or(&dir)).join(engine);
        let installed = env::split_paths(&self.path).any(|dir| at(dir).is_file());
        let (state, fix) = match (installed, runs) {
            (_, true) => return None,
            (false, _) => ("is not installed", format!("install it (`{}`) or", self.guide(engine))),
            (true, false) => ("does not run", format!("start it (`systemctl start {engine}`) or")),
        };
        let why = format!("{engine}, which the configuration asks for, {state}");
        let fix = format!("{fix} use the native runtime of Linux, which needs no engine");
        Some(no_sandbox(&why, &fix))
    }

    /// The command that installs an engine here.
    fn guide(&self, engine: &str) -> String {
        let release = self.text("etc/os-release");
        let ids = release.lines().filter(|it| it.starts_with("ID=") || it.starts_with("ID_LIKE="));
        let words = ids.flat_map(|line| line.split(['=', ' ', '"', '\'']));
        let mut names = iter::once(self.system.as_str()).chain(words);
        let found = names.find_map(|name| INSTALLERS.iter().find(|known| known.0 == name));
        let (_, install, docker) = found.unwrap_or(&("", "your package manager:", "docker"));
        format!("{install} {}", if engine == "docker" { docker } else { engine })
    }

    /// A file's text; nothing where it cannot be read, since it only explains.
    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.root.join(file)).unwrap_or_default().trim().to_owned()
    }
}

fn no_sandbox(why: &str, fix: &str) -> Trouble {
    Trouble::new(4, "no sandbox can be made", why, fix)
}
