//! Addresses of objects: `s3://bucket/key`, `gs://bucket/key`, `az://container/key`, `https://host/path`.

use crate::prelude::*;

/// A service for objects, by the protocol that it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// Amazon S3 and what speaks its protocol.
    S3,
    /// Google Cloud Storage.
    Google,
    /// Azure Blob Storage.
    Azure,
    /// A plain HTTP server.
    Http,
}

/// The schemes that are addresses; everything else is the name of a file.
const SCHEMES: [(&str, Service); 9] = [
    ("s3", Service::S3),
    ("s3a", Service::S3),
    ("gs", Service::Google),
    ("az", Service::Azure),
    ("azure", Service::Azure),
    ("abfs", Service::Azure),
    ("abfss", Service::Azure),
    ("http", Service::Http),
    ("https", Service::Http),
];

/// The address of an object, or of all objects below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The service that is asked.
    pub service: Service,
    /// Scheme and bucket, container or host: `s3://bucket`.
    pub root: String,
    /// The part behind it, without a slash in front. With a slash at the end it means everything below.
    pub key: String,
    /// The part behind `?` (HTTP only). It may be a signature, and is never shown.
    pub query: Option<String>,
}

/// Whether a name is an address and no file.
pub fn is_address(name: &Path) -> bool {
    name.to_str().is_some_and(|name| service(name).is_some())
}

fn service(name: &str) -> Option<Service> {
    let (scheme, _) = name.split_once("://")?;
    SCHEMES.iter().find(|(own, _)| scheme.eq_ignore_ascii_case(own)).map(|(_, service)| *service)
}

/// A name as messages and tables have it: of an address without its query, which may be a signature.
pub fn shown(name: &Path) -> PathBuf {
    if let Some(Ok(address)) = Address::parse(name) { address.shown() } else { name.to_owned() }
}

impl Address {
    /// Reads an address; nothing if the name is no address. An address without a bucket or host, or with credentials
    /// in it, is an error.
    pub fn parse(name: &Path) -> Option<Result<Address>> {
        let name = name.to_str()?;
        let service = service(name)?;
        Some(Address::of(name, service))
    }

    fn of(name: &str, service: Service) -> Result<Address> {
        let (scheme, rest) = name.split_once("://").unwrap_or_default();
        let scheme = scheme.to_ascii_lowercase();
        let (rest, query) = match (service, rest.split_once('?')) {
            (Service::Http, Some((rest, query))) => (rest, Some(query.to_owned())),
            _ => (rest, None),
        };
        let (place, key) = rest.split_once('/').unwrap_or((rest, ""));
        if place.is_empty() {
            let what = if service == Service::Http { "a host" } else { "a bucket" };
            return Err(Error::Usage(format!("{scheme}://{key}: names nothing, expected {what} behind ://")));
        }
        // `container@account.dfs.core.windows.net` is how Azure names a place.
        if service != Service::Azure
            && let Some((_, host)) = place.split_once('@')
        {
            let message =
                format!("{scheme}://{host}: credentials in an address are not used; they come from the environment");
            return Err(Error::Usage(message));
        }
        Ok(Address { service, root: format!("{scheme}://{place}"), key: key.to_owned(), query })
    }

    /// The address in messages and tables.
    pub fn shown(&self) -> PathBuf {
        PathBuf::from(format!("{}/{}", self.root, self.key))
    }

    /// The address of another object of the same store.
    pub fn with_key(&self, key: impl Into<String>) -> Address {
        Address { key: key.into(), ..self.clone() }
    }

    /// The key of something below this address.
    pub fn below(&self, name: &str) -> String {
        match self.prefix() {
            "" => name.to_owned(),
            prefix => format!("{prefix}/{name}"),
        }
    }

    /// The key without slashes at its end.
    pub fn prefix(&self) -> &str {
        self.key.trim_end_matches('/')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &str) -> Option<Result<Address>> {
        Address::parse(Path::new(name))
    }

    #[test]
    fn an_address_has_a_store_and_a_key() {
        for (name, root, key) in [
            ("s3://bucket/a/b.nettrace", "s3://bucket", "a/b.nettrace"),
            ("S3://bucket", "s3://bucket", ""),
            ("gs://bucket/night/", "gs://bucket", "night/"),
            ("abfss://c@account.dfs.core.windows.net/a b", "abfss://c@account.dfs.core.windows.net", "a b"),
            ("https://host:8080/x?sig=secret", "https://host:8080", "x"),
            ("s3://bucket/what?", "s3://bucket", "what?"),
        ] {
            let address = parsed(name).unwrap().unwrap();
            assert_eq!((address.root.as_str(), address.key.as_str()), (root, key), "{name}");
        }
    }

    #[test]
    fn other_names_are_files() {
        for name in ["a.nettrace", "C:\\a", "ftp://host/a", "./s3:/a", "-", "dir/s3://bucket"] {
            assert!(parsed(name).is_none() && !is_address(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        assert_eq!(shown(Path::new("https://host/x?sig=secret")), Path::new("https://host/x"));
        let refused = parsed("https://user:secret@host/x").unwrap().unwrap_err().to_string();
        assert!(!refused.contains("secret") && refused.contains("environment"), "{refused}");
        assert!(parsed("s3:///key").unwrap().is_err());
    }

    #[test]
    fn names_below_an_address() {
        let lake = parsed("s3://b/lake/").unwrap().unwrap();
        assert_eq!(lake.below("manifest.json"), "lake/manifest.json");
        assert_eq!(lake.with_key("").below("manifest.json"), "manifest.json");
    }
}
