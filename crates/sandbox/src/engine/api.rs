//! The calls of an engine's API that the driver makes, and no other.
//!
//! Podman answers to Docker's words but for two: containers and images are made in its own, which say more.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::error::{ApiError, EngineError};
use super::http::{Answer, Body, Heard, Line};
use super::kind::EngineKind;
use super::pull::Pull;

/// What every answer but that of an image has to come within.
const PATIENCE: Duration = Duration::from_secs(60);
/// What the first word has to come within.
const GREETING: Duration = Duration::from_secs(10);
/// What an image has to be there within.
pub(super) const PULL: Duration = Duration::from_secs(1800);

/// The version of Docker's API that the driver speaks; that of Docker 20.10.
const VERSION: (u32, u32) = (1, 41);
/// The oldest Podman whose words are known.
const PODMAN: (u32, u32) = (4, 3);

/// The label of everything that is ours, with the instance that it belongs to.
pub(crate) const LABEL: &str = "dev.fluffy.instance";

/// An engine that answers.
#[derive(Debug)]
pub(crate) struct Api {
    kind: EngineKind,
    line: Line,
    /// What paths begin with.
    prefix: String,
}

/// What an engine is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Its version.
    pub version: String,
    /// Whether it runs without any right.
    pub rootless: bool,
    /// The version of control groups that it uses, as it names it.
    pub cgroups: String,
}

/// A container as the engine describes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ContainerState {
    #[serde(default)]
    pub(crate) running: bool,
    #[serde(default, rename = "OOMKilled")]
    pub(crate) oom_killed: bool,
    #[serde(default)]
    pub(crate) exit_code: i64,
    #[serde(default)]
    pub(crate) error: String,
}

impl Api {
    /// Greets whoever listens there. It has to be this engine, of a version whose words are known.
    pub(crate) fn greet(kind: EngineKind, socket: &Path) -> Result<(Self, About), EngineError> {
        let mut api = Self { kind, line: Line::to(socket), prefix: String::new() };
        let doing = "be used";
        let pong =
            api.ask(("GET", "/_ping"), Body::Nothing, GREETING).map_err(api.cannot(doing))?;
        // Such as `Docker/20.10.24 (linux)` and `Libpod/4.3.1 (linux)`.
        let (name, rest) = pong.server.split_once('/').unwrap_or_default();
        let version = rest.split(' ').next().unwrap_or_default().to_owned();
        let (expected, enough) = match kind {
            EngineKind::Docker => ("Docker", numbers(&pong.api) >= Some(VERSION)),
            EngineKind::Podman => ("Libpod", numbers(&version) >= Some(PODMAN)),
        };
        if name != expected {
            return Err(api.other(&format!("it is not {kind} that listens there but `{name}`")));
        }
        if !enough {
            let text = format!("version {version} is too old: Docker from 20.10, Podman from 4.3");
            return Err(api.other(&text));
        }
        // What it speaks itself: a newer one may have forgotten older words, and what is used here has not changed.
        let (major, minor) = numbers(&pong.api).unwrap_or(VERSION);
        api.prefix = format!("/v{major}.{minor}");
        let (rootless, cgroups) = api.standing().map_err(api.cannot(doing))?;
        Ok((api, About { version, rootless, cgroups }))
    }

    /// Whether it runs without any right, and the version of its control groups.
    fn standing(&self) -> Result<(bool, String), ApiError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Info {
            #[serde(default)]
            security_options: Option<Vec<String>>,
            #[serde(default)]
            cgroup_version: Option<String>,
        }
        // In Docker's words, Podman before 5 does not say that it is rootless.
        #[derive(Deserialize)]
        struct Libpod {
            host: Host,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Host {
            security: Security,
            #[serde(default)]
            cgroup_version: String,
        }
        #[derive(Deserialize)]
        struct Security {
            rootless: bool,
        }
        match self.kind {
            EngineKind::Docker => {
                let info: Info = self.get("/info", GREETING)?;
                let options = info.security_options.unwrap_or_default();
                let rootless =
                    options.iter().any(|option| option.split(',').any(|it| it == "name=rootless"));
                Ok((rootless, info.cgroup_version.unwrap_or_default()))
            }
            EngineKind::Podman => {
                let Libpod { host } = self.get("/libpod/info", GREETING)?;
                let version = host.cgroup_version.trim_start_matches('v');
                Ok((host.security.rootless, version.to_owned()))
            }
        }
    }

    pub(crate) fn kind(&self) -> EngineKind {
        self.kind
    }

    /// The way to it.
    pub(super) fn line(&self) -> &Line {
        &self.line
    }

    /// What was to be done, for an error.
    pub(crate) fn cannot(
        &self,
        doing: &'static str,
    ) -> impl FnOnce(ApiError) -> EngineError + use<> {
        let engine = self.kind;
        move |error| EngineError { engine, doing, source: Box::new(error) }
    }

    /// The digest of an image that is there.
    pub(crate) fn image(&self, name: &str) -> Result<Option<String>, ApiError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Image {
            id: String,
        }
        let path = format!("/images/{}/json", escaped(name));
        match self.get::<Image>(&path, PATIENCE) {
            Ok(image) if image.id.starts_with("sha256:") => Ok(Some(image.id)),
            Ok(image) => Ok(Some(format!("sha256:{}", image.id))),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes an image of an archive.
    pub(crate) fn import(
        &self,
        archive: &[u8],
        repository: &str,
        tag: &str,
    ) -> Result<(), ApiError> {
        let path = match self.kind {
            EngineKind::Docker => {
                format!("/images/create?fromSrc=-&repo={}&tag={tag}", escaped(repository))
            }
            EngineKind::Podman => {
                format!("/libpod/images/import?reference={}:{tag}", escaped(repository))
            }
        };
        self.ask(("POST", &path), Body::Archive(archive), PATIENCE).map(drop)
    }

    /// Has the engine fetch an image; how far it is, in hundredths, is told whenever it has got further.
    pub(crate) fn pull(&self, name: &str, mut told: impl FnMut(u8)) -> Result<(), ApiError> {
        let path = format!("/images/create?{}", fetching(name));
        let mut pull = Pull::default();
        let heard = &mut |status: u16, piece: &[u8]| {
            if status == 200
                && let Some(hundredths) = pull.hear(piece)
            {
                told(hundredths);
            }
        };
        self.ask_and_hear(("POST", &path), Body::Nothing, PULL, heard)?;
        match pull.end() {
            Some(message) => Err(ApiError::Refused { status: 404, message }),
            None => Ok(()),
        }
    }

    /// Makes a volume.
    pub(crate) fn create_volume(&self, volume: &Value) -> Result<(), ApiError> {
        self.ask(("POST", "/volumes/create"), Body::Json(volume.to_string().as_bytes()), PATIENCE)
            .map(drop)
    }

    /// Takes a volume away, if it is there.
    pub(crate) fn remove_volume(&self, name: &str) -> Result<(), ApiError> {
        let path = format!("/volumes/{}?force=true", escaped(name));
        gone(self.ask(("DELETE", &path), Body::Nothing, PATIENCE))
    }

    /// Makes a container.
    pub(crate) fn create(&self, name: &str, container: &Value) -> Result<String, ApiError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Created {
            id: String,
        }
        let path = match self.kind {
            EngineKind::Docker => format!("/containers/create?name={}", escaped(name)),
            EngineKind::Podman => "/libpod/containers/create".to_owned(),
        };
        let body = container.to_string();
        let answer = self.ask(("POST", &path), Body::Json(body.as_bytes()), PATIENCE)?;
        read::<Created>(&answer).map(|created| created.id)
    }

    pub(crate) fn start(&self, id: &str) -> Result<(), ApiError> {
        self.tell(id, "start")
    }

    pub(crate) fn pause(&self, id: &str) -> Result<(), ApiError> {
        self.tell(id, "pause")
    }

    pub(crate) fn resume(&self, id: &str) -> Result<(), ApiError> {
        self.tell(id, "unpause")
    }

    pub(crate) fn kill(&self, id: &str) -> Result<(), ApiError> {
        self.tell(id, "kill")
    }

    /// Waits for the end of a container, so long.
    pub(crate) fn wait(&self, id: &str, patience: Duration) -> Result<(), ApiError> {
        let path = format!("/containers/{}/wait", escaped(id));
        gone(self.ask(("POST", &path), Body::Nothing, patience))
    }

    /// Takes a container away with everything in it, if it is there.
    pub(crate) fn remove(&self, id: &str) -> Result<(), ApiError> {
        let path = format!("/containers/{}?force=true&v=true", escaped(id));
        gone(self.ask(("DELETE", &path), Body::Nothing, PATIENCE))
    }

    pub(crate) fn inspect(&self, id: &str) -> Result<ContainerState, ApiError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Container {
            state: ContainerState,
        }
        let path = format!("/containers/{}/json", escaped(id));
        self.get::<Container>(&path, PATIENCE).map(|container| container.state)
    }

    /// Containers of an instance.
    pub(crate) fn containers_of(&self, instance: &str) -> Result<Vec<String>, ApiError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Listed {
            id: String,
            #[serde(default)]
            labels: Option<BTreeMap<String, String>>,
        }
        let filter = json!({ "label": [format!("{LABEL}={instance}")] }).to_string();
        let path = format!("/containers/json?all=true&filters={}", escaped(&filter));
        let listed: Vec<Listed> = self.get(&path, PATIENCE)?;
        // An engine that passed over the filter would have everybody's taken away.
        let ours = listed.into_iter().filter(|one| {
            one.labels
                .as_ref()
                .and_then(|labels| labels.get(LABEL))
                .is_some_and(|it| it == instance)
        });
        Ok(ours.map(|one| one.id).collect())
    }

    /// Volumes of an instance.
    pub(crate) fn volumes_of(&self, instance: &str) -> Result<Vec<String>, ApiError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Listed {
            #[serde(default)]
            volumes: Option<Vec<Named>>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Named {
            name: String,
            #[serde(default)]
            labels: Option<BTreeMap<String, String>>,
        }
        let filter = json!({ "label": [format!("{LABEL}={instance}")] }).to_string();
        let path = format!("/volumes?filters={}", escaped(&filter));
        let listed: Listed = self.get(&path, PATIENCE)?;
        let ours = listed.volumes.unwrap_or_default().into_iter().filter(|one| {
            one.labels
                .as_ref()
                .and_then(|labels| labels.get(LABEL))
                .is_some_and(|it| it == instance)
        });
        Ok(ours.map(|one| one.name).collect())
    }

    /// One word about a container, to which nothing is answered.
    fn tell(&self, id: &str, what: &str) -> Result<(), ApiError> {
        let path = format!("/containers/{}/{what}", escaped(id));
        self.ask(("POST", &path), Body::Nothing, PATIENCE).map(drop)
    }

    fn get<T: DeserializeOwned>(&self, path: &str, patience: Duration) -> Result<T, ApiError> {
        read(&self.ask(("GET", path), Body::Nothing, patience)?)
    }

    fn ask(
        &self,
        asked: (&str, &str),
        body: Body<'_>,
        patience: Duration,
    ) -> Result<Answer, ApiError> {
        self.ask_and_hear(asked, body, patience, &mut |_, _| ())
    }

    fn ask_and_hear(
        &self,
        (method, path): (&str, &str),
        body: Body<'_>,
        patience: Duration,
        heard: &mut Heard<'_>,
    ) -> Result<Answer, ApiError> {
        // Podman's own words have its own version before them.
        let target = match path.strip_prefix("/libpod/") {
            Some(rest) => format!("/v{}.0.0/libpod/{rest}", PODMAN.0),
            None => format!("{}{path}", self.prefix),
        };
        let answer = self.line.call_and_hear((method, &target), body, patience, heard)?;
        match answer.status {
            200..=299 | 304 => Ok(answer),
            status => Err(ApiError::Refused { status, message: message(&answer.body) }),
        }
    }

    fn other(&self, message: &str) -> EngineError {
        let error = ApiError::Refused { status: 200, message: message.to_owned() };
        self.cannot("be used")(error)
    }
}

/// The query that has an image fetched.
pub(super) fn fetching(name: &str) -> String {
    format!("fromImage={}", escaped(name))
}

/// What was to go is gone.
fn gone(answer: Result<Answer, ApiError>) -> Result<(), ApiError> {
    match answer {
        Ok(_) => Ok(()),
        Err(error) if error.is_absent() => Ok(()),
        Err(error) => Err(error),
    }
}

fn read<T: DeserializeOwned>(answer: &Answer) -> Result<T, ApiError> {
    serde_json::from_slice(&answer.body).map_err(ApiError::Odd)
}

/// An engine's words for an error, in one line that is not too long.
fn message(body: &[u8]) -> String {
    let told: Option<Value> = serde_json::from_slice(body).ok();
    let told = told.as_ref().and_then(|told| told.get("message")).and_then(Value::as_str);
    let text = told.map_or_else(|| String::from_utf8_lossy(body).into_owned(), str::to_owned);
    fluffy_base::Excerpt::new(text.trim(), 500).to_string()
}

/// The first two numbers of a version.
fn numbers(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

/// A text as part of an address.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b':' | b'/' => {
                escaped.push(char::from(byte));
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}
