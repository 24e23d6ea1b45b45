//! What follows from the settings for each provider.

use std::path::Path;

use fluffy_provider::Protocol;

use super::*;

struct User {
    dir: tempfile::TempDir,
}

impl User {
    fn with(settings: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("fluffy")).unwrap();
        let user = Self { dir };
        user.write("config.yaml", settings);
        user
    }

    #[expect(clippy::disallowed_methods, reason = "a test writes the user's files")]
    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join("fluffy").join(name), text).unwrap();
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn environment(&self) -> Environment {
        let home = Some(self.path().to_owned());
        Environment { config_home: home.clone(), state_home: home, ..Environment::default() }
    }

    fn setup(&self, provider: &str, key: Option<&str>) -> Result<Setup, CliError> {
        let environment = self.environment();
        let (catalogue, keys) = (Catalogue::of(&environment)?, Keys::of(&environment)?);
        if let Some(key) = key {
            keys.keep(provider, &Secret::new(key.to_owned())).unwrap();
        }
        catalogue.setup(&catalogue.find(provider)?, &keys)
    }

    fn model(&self, provider: &str, named: Option<&str>) -> Result<Model, SetupError> {
        let catalogue = Catalogue::of(&self.environment()).unwrap();
        catalogue.model(&catalogue.find(provider)?, named)
    }
}

fn headers(setup: &Setup) -> Vec<(&str, &str)> {
    setup.headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect()
}

#[test]
fn built_in_providers_need_no_settings() {
    let user = User::with("");
    let anthropic = user.setup("anthropic", Some("sk-ant-1")).unwrap();
    assert_eq!(anthropic.endpoint.protocol, Protocol::Anthropic);
    assert_eq!(anthropic.endpoint.url.to_string(), "https://api.anthropic.com");
    let (name, before) = Protocol::Anthropic.adapter().key_header();
    assert_eq!(headers(&anthropic), [(name, &*format!("{before}sk-ant-1"))]);
    assert!(anthropic.proxy.is_none());
    assert!(!format!("{anthropic:?}").contains("sk-ant-1"));
    let ollama = user.setup("ollama", None).unwrap();
    assert_eq!(ollama.endpoint.url.to_string(), "http://127.0.0.1:11434/v1");
    assert!(headers(&ollama).is_empty());
}

#[test]
fn a_missing_key_model_or_provider_is_told_with_what_to_do() {
    let user = User::with("providers: {half: {protocol: anthropic}}");
    let told = |result: Result<Setup, CliError>| {
        let explained = result.unwrap_err().explained();
        assert_eq!(explained.code, 2);
        format!("{} | {} | {}", explained.what, explained.why, explained.fix)
    };
    let missing = told(user.setup("openai", None));
    assert!(missing.contains("`OPENAI_API_KEY` is not set"), "{missing}");
    assert!(missing.contains("fluffy auth set openai"), "{missing}");
    let unknown = told(user.setup("gtp", None));
    assert!(
        unknown.contains("no provider `gtp`") && unknown.contains("anthropic, openai"),
        "{unknown}"
    );
    assert!(told(user.setup("half", None)).contains("has no `url`"));
    let error = CliError::from(user.model("anthropic", None).unwrap_err()).explained();
    assert!(error.fix.contains("fluffy models anthropic"), "{}", error.fix);
}

#[test]
fn settings_change_a_provider_and_add_others() {
    let user = User::with(
        "providers:\n  openai: {url: 'https://gateway.example.org/v1', key: none, headers: {Authorization: Basic x}}\n  \
         lan: {protocol: openai-compatible, url: 'http://192.168.1.2:8000/v1', key: none, model: big, \
         certificates: ca.pem, timeouts: {idle: 1h}}\n",
    );
    let openai = user.setup("openai", None).unwrap();
    assert_eq!(openai.endpoint.url.host(), "gateway.example.org");
    assert_eq!(headers(&openai), [("authorization", "Basic x")]);
    let error = user.setup("lan", None).unwrap_err().explained();
    assert!(error.what.contains("ca.pem"), "{}", error.what);
    user.write("ca.pem", "no certificate");
    assert!(
        user.setup("lan", None).unwrap_err().explained().what.contains("holds no certificates")
    );
    user.write("ca.pem", "-----BEGIN CERTIFICATE-----\n");
    let lan = user.setup("lan", None).unwrap();
    assert_eq!(lan.endpoint.patience.idle_ms, 3_600_000);
    assert_eq!(lan.endpoint.certificates.as_deref(), Some("-----BEGIN CERTIFICATE-----\n"));
    assert_eq!(user.model("lan", None).unwrap().name, "big");
    assert_eq!(user.model("lan", Some("small")).unwrap().name, "small");
}

#[test]
fn a_header_cannot_be_put_in_the_place_of_the_key() {
    let (name, _) = Protocol::Anthropic.adapter().key_header();
    let user = User::with(&format!("providers: {{anthropic: {{headers: {{{name}: mine}}}}}}"));
    let error = user.setup("anthropic", Some("sk-1")).unwrap_err().explained();
    assert!(error.why.contains("key: none"), "{}", error.why);
}

#[test]
fn prices_are_the_vendors_where_the_vendor_is_asked_and_unknown_elsewhere() {
    let user = User::with(
        "provider: anthropic\nmodel: claude-sonnet-4-5\nproviders:\n  \
         gateway: {protocol: anthropic, url: 'https://gateway.example.org'}\n  \
         cheap: {protocol: anthropic, url: 'https://gateway.example.org', prices: {input: 1, output: 2}, \
         context_window: 1000, max_output_tokens: 100}\n",
    );
    let own = user.model("anthropic", None).unwrap();
    assert_eq!((own.name.as_str(), own.context_window), ("claude-sonnet-4-5", 200_000));
    assert_eq!(own.prices.unwrap().output, 15_000_000);
    assert_eq!(own.max_output_tokens, Some(64_000));
    let gateway = user.model("gateway", Some("claude-sonnet-4-5")).unwrap();
    assert_eq!((gateway.prices, gateway.context_window), (None, 200_000));
    let cheap = user.model("cheap", Some("claude-sonnet-4-5")).unwrap();
    assert_eq!((cheap.prices.unwrap().input, cheap.context_window), (1_000_000, 1_000));
    assert_eq!(cheap.max_output_tokens, Some(100));
    assert_eq!(user.model("ollama", Some("qwen3")).unwrap().prices, Some(Prices::FREE));
    assert_eq!(user.model("openai", Some("gpt-99")).unwrap().prices, None);
    // The model of the settings is one of the provider of the settings.
    assert!(matches!(user.model("openai", None), Err(SetupError::NoModel(_))));
}

#[test]
fn a_proxy_is_used_for_what_is_far_and_not_listed() {
    let user = User::with("proxy: http://me:pw@proxy:3128\nno_proxy: [googleapis.com]\n");
    let via = |provider: &str| user.setup(provider, Some("k")).unwrap().proxy;
    let proxy = via("anthropic").unwrap();
    assert_eq!((proxy.host.as_str(), proxy.port), ("proxy", 3128));
    assert_eq!(proxy.login.unwrap().expose(), "me:pw");
    assert!(via("gemini").is_none());
    assert!(user.setup("ollama", None).unwrap().proxy.is_none());
    let user = User::with("");
    let mut environment = user.environment();
    environment.proxy = Some(Secret::new("http://everywhere:8080".to_owned()));
    environment.no_proxy = vec!["openai.com".to_owned()];
    let catalogue = Catalogue::of(&environment).unwrap();
    assert_eq!(catalogue.via("api.anthropic.com").unwrap().host, "everywhere");
    assert!(catalogue.via("api.openai.com").is_none());
    environment.proxy = Some(Secret::new("https://me:4711@x:1".to_owned()));
    let error = Catalogue::of(&environment).err().unwrap().explained();
    assert!(!format!("{error:?}").contains("4711"), "{error:?}");
}

#[test]
fn settings_that_others_can_write_are_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let user = User::with("");
    let path = user.path().join("fluffy/config.yaml");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let error = Catalogue::of(&user.environment()).err().unwrap().explained();
    assert!(error.why.contains("everybody may write it"), "{}", error.why);
}
