//! What stands for ACME in a build without it.

use std::path::PathBuf;
use std::sync::Arc;

use logpond_proxy::OrderedCertificate;

use crate::commands::Failure;
use logpond_host::shutdown::Shutdown;
use logpond_settings::ProxySection;

/// None.
#[derive(Clone, Default)]
pub(super) struct Orders(());

impl Orders {
    pub(super) fn directories(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// Orders nothing.
pub(super) struct Acme;

impl Acme {
    pub(super) fn new(_: Shutdown) -> Acme {
        Acme
    }

    pub(super) fn check(&self, _: &Orders) -> Result<(), Failure> {
        Ok(())
    }

    pub(super) fn follow(&mut self, _: &Orders) -> Result<(), Failure> {
        Ok(())
    }
}

/// Says what can be done where a section asks for it.
///
/// # Errors
/// Then.
pub(super) fn order(
    section: &ProxySection,
    _: &Orders,
    _: &mut Orders,
) -> Result<Option<Arc<OrderedCertificate>>, Failure> {
    if section.acme.is_empty() {
        Ok(None)
    } else {
        Err(
            "acme: this logpond was built without ACME; packages of releases have it; from source: \
             cargo build --release -p logpond --features acme"
                .into(),
        )
    }
}
