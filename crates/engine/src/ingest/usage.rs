//! Records and bytes by the labels of tokens, and by tenants that a header names.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use logpond_host::telemetry::Exposition;

/// The most tenants that are counted apart; further ones are counted together.
const TENANTS_MAX: usize = 100;

/// The name of all others.
const OTHERS: &str = "others";

/// Records and bytes of each tenant since the start.
#[derive(Debug, Default)]
pub(super) struct TenantUsage(Mutex<BTreeMap<String, Usage>>);

#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    records: u64,
    bytes: u64,
}

impl TenantUsage {
    /// Counts records of a tenant.
    pub(super) fn add(&self, tenant: &str, records: u64, bytes: u64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = all.contains_key(tenant);
        let name = if is_known || all.len() < TENANTS_MAX {
            tenant
        } else {
            OTHERS
        };
        let usage = all.entry(name.to_owned()).or_default();
        usage.records += records;
        usage.bytes += bytes;
    }

    pub(super) fn expose(&self, out: &mut Exposition) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = "logpond_tenant_records_total";
        out.family(name, "counter", "Records accepted, by tenant.");
        for (tenant, usage) in all.iter() {
            out.sample(name, &[("tenant", tenant)], usage.records);
        }
        let name = "logpond_tenant_bytes_total";
        out.family(name, "counter", "Bytes of accepted records, by tenant.");
        for (tenant, usage) in all.iter() {
            out.sample(name, &[("tenant", tenant)], usage.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_names_is_bounded() {
        let usage = TenantUsage::default();
        for number in 0..2 * TENANTS_MAX {
            usage.add(&format!("tenant={number:03}"), 1, 10);
        }
        usage.add("tenant=000", 1, 10);
        let mut out = Exposition::default();
        usage.expose(&mut out);
        let text = out.finish();
        for line in [
            "logpond_tenant_records_total{tenant=\"tenant=000\"} 2",
            "logpond_tenant_bytes_total{tenant=\"tenant=099\"} 10",
            "logpond_tenant_records_total{tenant=\"others\"} 100",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert_eq!(text.lines().count(), 4 + 2 * (TENANTS_MAX + 1));
    }
}
