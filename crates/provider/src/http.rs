//! HTTP/1.1 as it is spoken with a provider: one request at a time, through the proxy.
//!
//! `ureq` writes requests, reads heads and bodies and keeps a connection for the next request; connecting, TLS and
//! waiting are ours. Blocking is enough: the guest does one thing at a time and is killed when that is not wanted
//! any more.
//!
//! **Invariant.** No byte goes to another host than the endpoint's: nobody is followed anywhere, and every
//! connection is the tunnel to that host.
//!
//! **Invariant.** Every wait ends, and every part of an answer has a limit, whatever the host does.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fluffy_base::Secret;
use rustls::ClientConfig;
use ureq::config::Config;
use ureq::http::{HeaderName, HeaderValue, Request, Uri};
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};
use ureq::{Agent, Body, BodyReader, Timeout};

use crate::tls::{self, Sealed};
use crate::tunnel::{Dial, Tunnel, after, now};
use crate::{Answer, Ask, BaseUrl, Endpoint, Patience, ProviderError};

/// The longest head of an answer.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// How much is read at a time.
const BUFFER_BYTES: usize = 64 << 10;

/// How long a connection is kept for the next request.
const KEPT: Duration = Duration::from_secs(90);

/// How many times longer than silence a single line may take: a host that sends a byte now and then is not silent,
/// and would never come to an end.
const LINE_FACTOR: u64 = 4;

/// Speaks with one endpoint.
pub(crate) struct Http {
    agent: Agent,
    url: BaseUrl,
    patience: Patience,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// How often a connection was asked for.
    dialled: Arc<AtomicUsize>,
}

/// An answer whose body is still to be read.
pub(crate) struct Reply {
    /// The status.
    pub(crate) status: u16,
    /// The headers, their names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    body: BodyReader<'static>,
    patience: Patience,
    /// When the present line began.
    line_since: Instant,
}

impl Http {
    /// Gets ready; nothing is sent.
    pub(crate) fn new(
        endpoint: &Endpoint,
        headers: &[(String, Secret)],
        dial: Dial,
    ) -> Result<Self, ProviderError> {
        let tls = endpoint.url.is_https().then(|| tls::config(endpoint)).transpose()?;
        let Patience { connect_ms, first_byte_ms, idle_ms } = endpoint.patience;
        let ms = |ms: u64| Some(Duration::from_millis(ms));
        let config = Config::builder()
            .proxy(None)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_response_header_size(MAX_HEAD_BYTES)
            .input_buffer_size(BUFFER_BYTES)
            .output_buffer_size(BUFFER_BYTES)
            .max_idle_connections(1)
            .max_idle_age(KEPT)
            .user_agent(concat!("fluffy/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity")
            .timeout_connect(ms(connect_ms))
            .timeout_recv_response(ms(first_byte_ms))
            .build();
        let idle = Duration::from_millis(idle_ms);
        let dialled = Arc::<AtomicUsize>::default();
        let url = endpoint.url.clone();
        let connector = Road { dial, url, tls, idle, connect_ms, dialled: Arc::clone(&dialled) };
        let headers = headers.iter().map(|(name, value)| secret_header(name, value));
        Ok(Self {
            agent: Agent::with_parts(config, connector, Nowhere),
            url: endpoint.url.clone(),
            patience: endpoint.patience,
            headers: headers.collect::<Result<_, _>>()?,
            dialled,
        })
    }

    /// Sends a request and waits for the head of the answer. A host may hang up on a kept connection just when it
    /// is used again; that says nothing of the host, and the request goes out once more on a connection of its own.
    pub(crate) fn send(&self, ask: &Ask) -> Result<Reply, ProviderError> {
        let before = self.dialled.load(Ordering::Relaxed);
        match self.send_once(ask) {
            Err(ProviderError::Network(_)) if self.dialled.load(Ordering::Relaxed) == before => {
                self.send_once(ask)
            }
            other => other,
        }
    }

    fn send_once(&self, ask: &Ask) -> Result<Reply, ProviderError> {
        let unfit = |error: ureq::http::Error| {
            ProviderError::Refused(format!("the request cannot be written: {error}"))
        };
        let method = if ask.body.is_some() { "POST" } else { "GET" };
        let mut request =
            Request::builder().method(method).uri(format!("{}{}", self.url, ask.path));
        if ask.body.is_some() {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in &ask.headers {
            request = request.header(*name, value);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let answered = match ask.body.as_deref() {
            Some(body) => self.agent.run(request.body(body).map_err(unfit)?),
            None => self.agent.run(request.body(()).map_err(unfit)?),
        };
        let (parts, body) = answered.map_err(|error| failure(error, self.patience))?.into_parts();
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = parts.headers.iter().map(|(name, value)| (name.to_string(), text(value)));
        let reply = Reply {
            status: parts.status.as_u16(),
            headers: headers.collect(),
            body: Body::into_reader(body),
            patience: self.patience,
            line_since: now(),
        };
        if parts.status.is_redirection() {
            return Err(self.led_away(&reply));
        }
        Ok(reply)
    }

    fn led_away(&self, reply: &Reply) -> ProviderError {
        let to = reply.headers.iter().find(|(name, _)| name == "location");
        let to = to.map_or("nowhere", |(_, value)| value.as_str());
        ProviderError::Refused(format!(
            "`{}` answers {} and sends us to `{to}`, where we do not follow",
            self.url.authority(),
            reply.status
        ))
    }
}

impl Reply {
    /// Reads the next bytes of the body; 0 is its end.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ProviderError> {
        let count = self.body.read(buffer).map_err(|error| cut_off(error, self.patience))?;
        let bytes = buffer.get(..count).unwrap_or_default();
        let longest = self.patience.idle_ms.saturating_mul(LINE_FACTOR);
        if bytes.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
            self.line_since = now();
        } else if self.line_since.elapsed() > Duration::from_millis(longest) {
            return Err(ProviderError::TimedOut { waited_ms: longest });
        }
        Ok(count)
    }

    /// Reads the body up to a limit; whether that was all of it is told with it.
    pub(crate) fn read_whole(&mut self, limit: usize) -> Result<(Vec<u8>, bool), ProviderError> {
        let until = after(self.patience.first_byte_ms);
        let mut whole = Vec::new();
        let mut buffer = [0; 4096];
        while whole.len() <= limit {
            let count = self.read(&mut buffer)?;
            if count == 0 {
                return Ok((whole, true));
            }
            if now() > until {
                return Err(ProviderError::TimedOut { waited_ms: self.patience.first_byte_ms });
            }
            whole.extend_from_slice(buffer.get(..count).unwrap_or_default());
        }
        whole.truncate(limit);
        Ok((whole, false))
    }

    /// The answer as one that is no success, with so much of its body as comes.
    pub(crate) fn into_answer(mut self, limit: usize) -> Answer {
        // The status says the most; a body that does not come takes nothing from it.
        let body = self.read_whole(limit).map(|(body, _)| body).unwrap_or_default();
        Answer { status: self.status, headers: self.headers, body }
    }

    /// A header, by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A header that no message shows.
fn secret_header(name: &str, value: &Secret) -> Result<(HeaderName, HeaderValue), ProviderError> {
    let unfit = || ProviderError::BadKey(format!("the header `{name}` cannot be sent as it is"));
    let mut sent = HeaderValue::from_str(value.expose()).map_err(|_| unfit())?;
    sent.set_sensitive(true);
    Ok((name.parse().map_err(|_| unfit())?, sent))
}

/// What went wrong before an answer came.
fn failure(error: ureq::Error, patience: Patience) -> ProviderError {
    match error {
        ureq::Error::Timeout(Timeout::Connect) => ProviderError::Network(format!(
            "no connection came about within {} ms",
            patience.connect_ms
        )),
        ureq::Error::Timeout(Timeout::RecvResponse) => {
            ProviderError::TimedOut { waited_ms: patience.first_byte_ms }
        }
        ureq::Error::Timeout(_) => ProviderError::TimedOut { waited_ms: patience.idle_ms },
        ureq::Error::LargeResponseHeader(..) => ProviderError::Malformed(format!(
            "the head of the answer is longer than {MAX_HEAD_BYTES} bytes"
        )),
        ureq::Error::Protocol(error) => {
            ProviderError::Malformed(format!("what answers does not speak HTTP/1.1: {error}"))
        }
        ureq::Error::Http(error) => {
            ProviderError::Refused(format!("the request cannot be written: {error}"))
        }
        ureq::Error::Io(error) => ProviderError::Network(format!("the connection broke: {error}")),
        ureq::Error::Other(inner) => match inner.downcast::<ProviderError>() {
            Ok(error) => *error,
            Err(other) => ProviderError::Network(other.to_string()),
        },
        other => ProviderError::Network(other.to_string()),
    }
}

/// What went wrong in the middle of an answer.
fn cut_off(error: io::Error, patience: Patience) -> ProviderError {
    match ureq::Error::from(error) {
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            ProviderError::Network("the answer was cut off: the connection ended".to_owned())
        }
        ureq::Error::Io(error) => {
            ProviderError::Network(format!("the answer was cut off: {error}"))
        }
        error => failure(error, patience),
    }
}

/// The one way to the endpoint.
struct Road {
    dial: Dial,
    url: BaseUrl,
    tls: Option<Arc<ClientConfig>>,
    idle: Duration,
    connect_ms: u64,
    dialled: Arc<AtomicUsize>,
}

impl fmt::Debug for Road {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Road").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Connector for Road {
    type Out = Line;

    fn connect(
        &self,
        _: &ConnectionDetails<'_>,
        _: Option<()>,
    ) -> Result<Option<Line>, ureq::Error> {
        self.dialled.fetch_add(1, Ordering::Relaxed);
        let until = after(self.connect_ms);
        let failed = |error: ProviderError| ureq::Error::Other(Box::new(error));
        let tunnel = Tunnel::open(&self.dial, &self.url, until).map_err(failed)?;
        let stream = match &self.tls {
            None => Stream::Plain(tunnel),
            Some(tls) => {
                Stream::Sealed(Box::new(tls::greet(tls, &self.url, tunnel).map_err(failed)?))
            }
        };
        let buffers = LazyBuffers::new(BUFFER_BYTES, BUFFER_BYTES);
        Ok(Some(Line { stream, buffers, url: self.url.clone(), idle: self.idle }))
    }
}

/// Names are looked up by the proxy: the guest could not.
#[derive(Debug)]
struct Nowhere;

impl Resolver for Nowhere {
    fn resolve(
        &self,
        _: &Uri,
        _: &Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        Ok(self.empty())
    }
}

/// One connection.
struct Line {
    stream: Stream,
    buffers: LazyBuffers,
    url: BaseUrl,
    idle: Duration,
}

enum Stream {
    Plain(Tunnel),
    Sealed(Box<Sealed>),
}

impl Stream {
    fn tunnel(&mut self) -> &mut Tunnel {
        match self {
            Self::Plain(tunnel) => tunnel,
            Self::Sealed(sealed) => &mut sealed.sock,
        }
    }
}

impl Line {
    /// The next bytes must have moved within this time: what was asked for, or as long as silence is borne.
    fn wait(&mut self, timeout: NextTimeout) -> Timeout {
        let (wait, reason) = if timeout.after.is_not_happening() {
            (self.idle, Timeout::PerRead)
        } else {
            (*timeout.after, timeout.reason)
        };
        let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        self.stream.tunnel().wait_until(after(ms));
        reason
    }

    fn failed(&self, error: io::Error, reason: Timeout) -> ureq::Error {
        if let Some(error) = tls::tls_error(&error) {
            return ureq::Error::Other(Box::new(tls::distrust(error, &self.url)));
        }
        match error.kind() {
            io::ErrorKind::TimedOut => ureq::Error::Timeout(reason),
            // `ureq` takes these for a regular end where a body has no length.
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => {
                let error = ProviderError::Network("the connection was reset".to_owned());
                ureq::Error::Other(Box::new(error))
            }
            _ => ureq::Error::Io(error),
        }
    }
}

impl Transport for Line {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        let reason = self.wait(timeout);
        let output = self.buffers.output().get(..amount).unwrap_or_default();
        let written = match &mut self.stream {
            Stream::Plain(tunnel) => tunnel.write_all(output),
            Stream::Sealed(sealed) => sealed.write_all(output).and_then(|()| sealed.flush()),
        };
        written.map_err(|error| self.failed(error, reason))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        let reason = self.wait(timeout);
        let input = self.buffers.input_append_buf();
        let read = match &mut self.stream {
            Stream::Plain(tunnel) => tunnel.read(input),
            Stream::Sealed(sealed) => sealed.read(input),
        };
        let count = read.map_err(|error| self.failed(error, reason))?;
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.tunnel().is_quiet()
    }

    fn is_tls(&self) -> bool {
        matches!(self.stream, Stream::Sealed(_))
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("url", &self.url).finish_non_exhaustive()
    }
}
