//! Finds names that are almost those of well-known packages.

/// Packages that many projects use. A name that is one edit away from one of them, and is none of them, was probably misspelt
/// or is meant to be mistaken.
const NPM: &str = "express react react-dom vue angular lodash axios chalk commander debug moment dayjs webpack vite vitest \
    jest mocha chai sinon typescript eslint prettier babel rollup esbuild next nuxt svelte preact redux zod yup joi ajv uuid \
    nanoid dotenv cors helmet morgan body-parser cookie-parser passport mongoose mongodb mysql mysql2 sequelize knex prisma \
    redis ioredis socket.io graphql apollo-server fastify koa hapi supertest superagent request node-fetch undici got cheerio \
    puppeteer playwright jsdom yargs minimist inquirer ora glob rimraf mkdirp semver async bluebird rxjs underscore ramda \
    immer tailwindcss postcss autoprefixer sass less bootstrap jquery three electron nodemon concurrently cross-env husky \
    ts-node tsx tslib winston pino bcrypt bcryptjs jsonwebtoken multer sharp nodemailer handlebars ejs pug marked date-fns \
    classnames prop-types styled-components event-stream colors faker left-pad is-number";
const PYPI: &str = "requests urllib3 numpy pandas scipy matplotlib flask django fastapi uvicorn gunicorn pydantic sqlalchemy \
    alembic psycopg2 pymysql redis celery click typer rich pytest pytest-cov hypothesis tox nox black ruff flake8 mypy pylint \
    isort coverage setuptools wheel pip virtualenv poetry boto3 botocore awscli httpx aiohttp starlette jinja2 markupsafe \
    werkzeug itsdangerous pyyaml toml tomli attrs cryptography paramiko fabric ansible scrapy beautifulsoup4 lxml selenium \
    pillow opencv-python scikit-learn tensorflow torch torchvision transformers keras xgboost nltk spacy plotly dash \
    streamlit seaborn sympy networkx python-dateutil pytz tzdata certifi idna charset-normalizer chardet six colorama tqdm \
    psutil packaging protobuf grpcio openai anthropic langchain jsonschema marshmallow simplejson ujson orjson";
const CARGO: &str = "serde serde_json serde_derive tokio axum hyper reqwest actix-web warp rocket clap anyhow thiserror log \
    tracing tracing-subscriber env_logger rand regex chrono time uuid futures async-trait bytes rayon crossbeam parking_lot \
    once_cell lazy_static itertools num-traits syn quote proc-macro2 toml base64 sha2 hex url http tower tonic prost diesel \
    sqlx rusqlite sea-orm redis criterion proptest tempfile walkdir indexmap hashbrown smallvec bitflags libc nix mio \
    rustls openssl ring tokio-util futures-util wasm-bindgen image";

/// The well-known package that a name could be mistaken for.
pub(crate) fn similar_to(ecosystem: &str, name: &str) -> Option<&'static str> {
    let known = match ecosystem {
        "npm" => NPM,
        "pypi" => PYPI,
        "cargo" => CARGO,
        // A module of Go's is named by its address.
        _other => return None,
    };
    let name = plain(name);
    let mut known = known.split_ascii_whitespace();
    if known.clone().any(|it| plain(it) == name) {
        return None;
    }
    // Short names are all alike.
    known.find(|it| {
        it.len() >= 4 && (squeezed(it) == squeezed(&name) || is_one_edit(&plain(it), &name))
    })
}

fn plain(name: &str) -> String {
    name.to_ascii_lowercase().replace(['_', '.'], "-")
}

/// Without what separates words: `crossenv` for `cross-env`.
fn squeezed(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

/// Whether one character was added, left out, replaced, or swapped with its neighbour.
fn is_one_edit(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (a.get(start..).unwrap_or_default(), b.get(start..).unwrap_or_default());
    let end = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    let a = a.get(..a.len().saturating_sub(end)).unwrap_or_default();
    let b = b.get(..b.len().saturating_sub(end)).unwrap_or_default();
    match (a, b) {
        ([_], []) | ([], [_]) | ([_], [_]) => true,
        ([a1, a2], [b1, b2]) => a1 == b2 && a2 == b1,
        _other => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_of_known_names_are_found() {
        for (ecosystem, name, known) in [
            ("npm", "expres", "express"),
            ("npm", "exprss", "express"),
            ("npm", "lodahs", "lodash"),
            ("npm", "crossenv", "cross-env"),
            ("pypi", "reqeusts", "requests"),
            ("pypi", "requestss", "requests"),
            ("cargo", "serde-jsom", "serde_json"),
        ] {
            assert_eq!(similar_to(ecosystem, name), Some(known), "{name}");
        }
    }

    #[test]
    fn known_and_unlike_names_are_not() {
        for (ecosystem, name) in [
            ("npm", "express"),
            ("npm", "preact"),
            ("npm", "@acme/express"),
            ("npm", "express-session"),
            ("pypi", "Jinja2"),
            ("pypi", "pytest_cov"),
            ("cargo", "serde-json"),
            ("go", "expres"),
            ("npm", "got"),
        ] {
            assert_eq!(similar_to(ecosystem, name), None, "{name}");
        }
    }
}
