//! Which zone a file's lines are written in.

use std::path::Path;

use glob::Pattern;
use logpond_record::Timestamp;

use logpond_host::timezone::{LOCAL, rule};
use logpond_settings::named_zones;

/// Rules of zones, by files.
#[derive(Clone, Debug, Default)]
pub struct FileZones {
    all: Option<Box<str>>,
    files: Vec<(Pattern, Box<str>)>,
}

impl FileZones {
    /// Reads `ZONE` and `GLOB=ZONE`, a line each; a glob is of whole paths.
    ///
    /// # Errors
    /// What is wrong with which, in words.
    pub fn new(text: &str, now: Timestamp) -> Result<FileZones, String> {
        let (all, places) = named_zones(text)?;
        let rule = |name: &str| rule(name, now).map_err(|error| error.to_string());
        let file = |(glob, zone): (&str, &str)| {
            let path = std::path::absolute(glob).map_err(|error| format!("'{glob}': {error}"))?;
            let pattern = Pattern::new(&path.to_string_lossy());
            let pattern = pattern.map_err(|error| format!("'{glob}' is no pattern: {error}"))?;
            Ok((pattern, rule(zone)?.into()))
        };
        let own = rule(all.unwrap_or(LOCAL))?;
        Ok(FileZones {
            // Servers take it for their own unless they are told.
            all: Some(own.into()),
            files: places
                .into_iter()
                .map(file)
                .collect::<Result<_, String>>()?,
        })
    }

    /// The rule of a file, or of an input that is none.
    pub(super) fn of(&self, file: Option<&str>) -> Option<&str> {
        let matches =
            |pattern: &Pattern| file.is_some_and(|file| pattern.matches_path(Path::new(file)));
        let mut files = self.files.iter();
        let found = files.find(|(pattern, _)| matches(pattern));
        found.map(|(_, rule)| &**rule).or(self.all.as_deref())
    }
}
