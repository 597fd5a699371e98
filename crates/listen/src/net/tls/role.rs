//! What a certificate says its owner is.
//!
//! The role is a name of the certificate beside its addresses: the URI `logpond://node/NAME`. One
//! authority can so sign for others later without their passing for nodes.

use rustls::pki_types::CertificateDer;

/// What the URI of a node begins with.
const NODE_URI: &str = "logpond://node/";

/// The longest name of a node.
const NODE_NAME_BYTES_MAX: usize = 64;

/// Whether a node may be called so: letters, digits, `.`, `-` and `_`.
pub fn is_node_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    (1..=NODE_NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(fits)
}

/// The URI that says that its owner is the node of this name.
pub(super) fn node_uri(name: &str) -> String {
    format!("{NODE_URI}{name}")
}

/// The name of the node whose certificate this is; `None` if it is nobody's who is a node. Says
/// nothing about who signed it.
pub(super) fn node_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
    certificate
        .valid_uri_names()
        .filter_map(|uri| uri.strip_prefix(NODE_URI))
        .find(|name| is_node_name(name))
        .map(str::to_owned)
}
