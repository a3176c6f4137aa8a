//! Makes clients of stores by the environment, one for each bucket, and the thread on which they wait for the network.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::{ClientConfigKey, ClientOptions, HeaderValue, ObjectStore, RetryConfig};
use tokio::runtime::Handle;

use super::address::{Address, Service};
use super::failures;
use super::object::Store;
use super::remote::Remote;
use crate::error::{Error, Result};

/// Number of times that a request is tried again. Between them it waits up to 15 s, longer each time.
const RETRIES: usize = 4;
/// No request is begun again after this.
const RETRY_TIMEOUT: Duration = Duration::from_secs(60);
/// For a connection, and for the next bytes of an answer. An answer as a whole may take any time: it may be large.
const TIMES: [(ClientConfigKey, &str, &str); 3] = [
    (ClientConfigKey::ConnectTimeout, "CONNECT_TIMEOUT", "10 seconds"),
    (ClientConfigKey::ReadTimeout, "READ_TIMEOUT", "60 seconds"),
    (ClientConfigKey::Timeout, "TIMEOUT", "7 days"),
];
const AGENT: &str = concat!("tracequet/", env!("CARGO_PKG_VERSION"));

/// The store of an address. Two addresses in one bucket have the same store, and so the same connections.
pub(super) fn store_at(address: &Address) -> Result<Arc<dyn Store>> {
    static OPEN: OnceLock<Mutex<HashMap<String, Arc<Remote>>>> = OnceLock::new();
    let name = format!("{}?{}", address.root, address.query.as_deref().unwrap_or_default());
    let mut open = OPEN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = open.get(&name) {
        return Ok(known.clone());
    }
    // Another user of the library may have chosen one already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let inner = build(address).map_err(|e| failures::failure_of(&e).at(address.shown()))?;
    let store = Arc::new(Remote::new(inner, driver()?, address.service == Service::Http));
    open.insert(name, store.clone());
    Ok(store)
}

fn build(address: &Address) -> object_store::Result<Arc<dyn ObjectStore>> {
    let retry = RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_TIMEOUT, ..RetryConfig::default() };
    let bucket = address.root.split_once("://").map_or("", |(_, bucket)| bucket);
    Ok(match address.service {
        Service::S3 => {
            let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry);
            for (key, value) in client_settings("AWS_") {
                builder = builder.with_config(AmazonS3ConfigKey::Client(key), value);
            }
            let endpoint = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint];
            // An endpoint without TLS is allowed where one is named.
            if endpoint.iter().any(|key| builder.get_config_value(key).is_some_and(|url| url.starts_with("http://"))) {
                builder = builder.with_config(AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp), "true");
            }
            Arc::new(builder.build()?)
        }
        Service::Google => {
            let mut builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket).with_retry(retry);
            for (key, value) in client_settings("GOOGLE_") {
                builder = builder.with_config(GoogleConfigKey::Client(key), value);
            }
            Arc::new(builder.build()?)
        }
        Service::Azure => {
            let mut builder = MicrosoftAzureBuilder::from_env().with_url(&address.root).with_retry(retry);
            for (key, value) in client_settings("AZURE_") {
                builder = builder.with_config(AzureConfigKey::Client(key), value);
            }
            if builder.get_config_value(&AzureConfigKey::Endpoint).is_some_and(|url| url.starts_with("http://")) {
                builder = builder.with_config(AzureConfigKey::Client(ClientConfigKey::AllowHttp), "true");
            }
            Arc::new(builder.build()?)
        }
        Service::Http => {
            let mut options = ClientOptions::new().with_allow_http(true);
            options = options.with_user_agent(HeaderValue::from_static(AGENT));
            for (key, _, value) in TIMES {
                options = options.with_config(key, value);
            }
            let url = match &address.query {
                Some(query) => format!("{}/?{query}", address.root),
                None => address.root.clone(),
            };
            Arc::new(HttpBuilder::new().with_url(url).with_client_options(options).with_retry(retry).build()?)
        }
    })
}

/// Settings of the client that the environment says nothing of.
fn client_settings(prefix: &'static str) -> impl Iterator<Item = (ClientConfigKey, String)> {
    let times = TIMES
        .into_iter()
        .filter(move |(_, name, _)| std::env::var_os(format!("{prefix}{name}")).is_none())
        .map(|(key, _, value)| (key, value.to_owned()));
    times.chain([(ClientConfigKey::UserAgent, AGENT.to_owned())])
}

/// One thread waits for the network, for all stores of the process; those who ask wait for it on their own.
fn driver() -> Result<Handle> {
    static DRIVER: Mutex<Option<Handle>> = Mutex::new(None);
    let mut driver = DRIVER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = &*driver {
        return Ok(handle.clone());
    }
    let failed = |source| Error::Io { path: "the network".into(), source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let handle = runtime.handle().clone();
    let drive = move || runtime.block_on(std::future::pending::<()>());
    std::thread::Builder::new().name("network".into()).spawn(drive).map_err(failed)?;
    *driver = Some(handle.clone());
    Ok(handle)
}
