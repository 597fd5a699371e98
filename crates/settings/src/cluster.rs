//! Settings of a node of a cluster.

use super::values::Values;
use super::{Settings, SettingsError, row};

/// Settings that mean something for a node of a cluster only. Alone, a server would promise copies that it does not
/// make.
const OF_NODES: [&str; 5] = ["advertise", "join", "replication", "zone", "canary"];

impl Values<'_> {
    /// Refuses settings of nodes without other nodes.
    pub(super) fn check_of_nodes(&self, settings: &Settings) -> Result<(), SettingsError> {
        match settings.gossip {
            Some(_) => Ok(()),
            None => OF_NODES.iter().try_for_each(|name| self.refuse_alone(name)),
        }
    }

    fn refuse_alone(&self, name: &'static str) -> Result<(), SettingsError> {
        let given = self.given(name);
        let default = row(name).map_or("", |row| row.default);
        if ["", "off", default].contains(&&*given.text) {
            return Ok(());
        }
        Err(SettingsError::Value {
            origin: given.origin,
            name,
            text: given.text,
            reason: "this server is no node of a cluster; make it one by --gossip ADDR, or leave this out"
                .to_owned(),
        })
    }
}
