//! Where addresses are and whose, by databases in MaxMind's format (MaxMind DB 2.0) that users name.
//!
//! Databases are read into memory as they are. What they say of an address is at most a country, a
//! city, and the autonomous system that announces its network; several databases add up.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use logpond_record::{Value, cast};
use maxminddb::{MaxMindDbError, Reader};
use serde::Deserialize;

/// The largest database that is read; the largest known one, of cities and more, has 400 MB.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Addresses whose places are remembered; beyond that the memory starts anew. Visitors come in runs.
const PLACES_MAX: usize = 4096;

/// What databases may say, by words in the type that they give themselves.
const KINDS: [&str; 6] = ["Country", "City", "Enterprise", "ASN", "ISP", "Location"];

/// The databases that are asked.
#[derive(Debug)]
pub struct Geoip {
    databases: Vec<Reader<Vec<u8>>>,
}

/// Where an address is, and whose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The country's two letters (ISO 3166-1).
    country: Option<Box<str>>,
    /// The city's English name.
    city: Option<Box<str>>,
    /// The number of the autonomous system.
    asn: Option<u32>,
    /// Who runs it.
    organization: Option<Box<str>>,
}

/// The fields that are read of an entry; the databases have far more.
#[derive(Deserialize)]
struct DatabaseEntry<'d> {
    #[serde(borrow)]
    country: Option<Country<'d>>,
    #[serde(borrow)]
    city: Option<City<'d>>,
    autonomous_system_number: Option<u32>,
    #[serde(borrow)]
    autonomous_system_organization: Option<&'d str>,
}

#[derive(Deserialize)]
struct Country<'d> {
    #[serde(borrow)]
    iso_code: Option<&'d str>,
}

#[derive(Deserialize)]
struct City<'d> {
    #[serde(borrow)]
    names: Option<Names<'d>>,
}

#[derive(Deserialize)]
struct Names<'d> {
    #[serde(borrow)]
    en: Option<&'d str>,
}

/// Why a database cannot be used.
#[derive(Debug)]
pub struct GeoipError {
    path: PathBuf,
    reason: Reason,
}

#[derive(Debug)]
enum Reason {
    Unreadable(io::Error),
    TooLong(u64),
    Invalid(MaxMindDbError),
    /// It is of another kind: its type.
    Kind(String),
}

impl fmt::Display for GeoipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.reason {
            Reason::Unreadable(_) => write!(f, "the database of addresses {path} cannot be read"),
            Reason::TooLong(bytes) => write!(
                f,
                "the database of addresses {path} has {bytes} bytes; at most {FILE_BYTES_MAX} are \
                 read"
            ),
            Reason::Invalid(_) => write!(f, "{path} is no database in MaxMind's format"),
            Reason::Kind(kind) => write!(
                f,
                "the database {path} is of the type {kind}; countries, cities and autonomous \
                 systems are asked for ({})",
                KINDS.join(", ")
            ),
        }
    }
}

impl std::error::Error for GeoipError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.reason {
            Reason::Unreadable(error) => Some(error),
            Reason::Invalid(error) => Some(error),
            Reason::TooLong(_) | Reason::Kind(_) => None,
        }
    }
}

impl Geoip {
    /// Reads databases. Blocks for as long as that takes.
    ///
    /// # Errors
    /// The first one that cannot be used.
    pub fn open(paths: &[PathBuf]) -> Result<Geoip, GeoipError> {
        let database = |path: &PathBuf| {
            let path = path.clone();
            read(&path).map_err(|reason| GeoipError { path, reason })
        };
        let databases: Result<Vec<_>, _> = paths.iter().map(database).collect();
        Ok(Geoip {
            databases: databases?,
        })
    }

    /// What the databases say of an address. The first that says something counts.
    pub fn place(&self, address: IpAddr) -> Place {
        let mut place = Place::default();
        for database in &self.databases {
            // What is damaged within a database says nothing of the address.
            let found = database.lookup(address).and_then(|found| found.decode());
            if let Ok(Some(found)) = found {
                place.add(&found);
            }
        }
        place
    }
}

impl Place {
    fn add(&mut self, found: &DatabaseEntry<'_>) {
        let country = found.country.as_ref().and_then(|country| country.iso_code);
        let names = found.city.as_ref().and_then(|city| city.names.as_ref());
        let city = names.and_then(|names| names.en);
        let organization = found.autonomous_system_organization;
        for (known, text) in [
            (&mut self.country, country),
            (&mut self.city, city),
            (&mut self.organization, organization),
        ] {
            *known = known.take().or_else(|| text.map(Into::into));
        }
        self.asn = self.asn.or(found.autonomous_system_number);
    }

    /// The fields that it is.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, Value<'static>)> {
        let text = |text: &str| Value::Str(text.to_owned().into());
        let fields = [
            ("geo_country", self.country.as_deref().map(text)),
            ("geo_city", self.city.as_deref().map(text)),
            ("geo_asn", self.asn.map(|asn| Value::Int(asn.into()))),
            ("geo_organization", self.organization.as_deref().map(text)),
        ];
        let known = fields.into_iter();
        known.filter_map(|(name, value)| Some((name, value?)))
    }
}

/// The places of addresses that were asked for lately.
#[derive(Debug, Default)]
pub struct Places {
    known: HashMap<IpAddr, Arc<Place>>,
    /// The databases that said so.
    source: Option<Arc<Geoip>>,
}

impl Places {
    /// The place of an address.
    pub fn of(&mut self, address: IpAddr, geoip: &Arc<Geoip>) -> Arc<Place> {
        let is_same = self
            .source
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, geoip));
        if !is_same || self.known.len() >= PLACES_MAX {
            self.known.clear();
            self.source = Some(geoip.clone());
        }
        let place = || Arc::new(geoip.place(address));
        self.known.entry(address).or_insert_with(place).clone()
    }
}

fn read(path: &Path) -> Result<Reader<Vec<u8>>, Reason> {
    let file = File::open(path).map_err(Reason::Unreadable)?;
    let bytes = file.metadata().map_err(Reason::Unreadable)?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(Reason::TooLong(bytes));
    }
    let mut content = Vec::with_capacity(cast::to_usize(bytes));
    let read = file.take(FILE_BYTES_MAX).read_to_end(&mut content);
    read.map_err(Reason::Unreadable)?;
    let reader = Reader::from_source(content).map_err(Reason::Invalid)?;
    let kind = &reader.metadata().database_type;
    if KINDS.iter().any(|known| kind.contains(known)) {
        Ok(reader)
    } else {
        Err(Reason::Kind(kind.clone()))
    }
}
