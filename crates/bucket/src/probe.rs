//! Whether a store keeps what chains are built on: that of several writers of one name one succeeds.

use bytes::Bytes;

use crate::objects::{BucketError, CreateOutcome, FailureKind, Objects};

/// What the names of objects for this purpose begin with.
const PROBES: &str = "probe/";

/// Creates an object twice; the second attempt must be refused.
///
/// # Errors
/// Of kind [`FailureKind::Unsupported`] if the store ignores the condition: two writers would overwrite
/// each other, so it cannot be used. Any other kind says that it is not known.
pub fn probe(objects: &dyn Objects, nonce: u128) -> Result<(), BucketError> {
    let name = format!("{PROBES}{nonce:032x}");
    let create = |attempt: &'static [u8]| objects.create(&name, Bytes::from_static(attempt));
    let outcomes = (create(b"first")?, create(b"second")?);
    let found = objects.get(&name, 16)?;
    objects.remove(&name)?;
    // Of the first attempt the reply may have been lost; what is there says the truth.
    let kept = match outcomes {
        (CreateOutcome::New | CreateOutcome::Exists, CreateOutcome::Exists) => {
            found.as_deref() == Some(b"first")
        }
        (_, CreateOutcome::New) => false,
    };
    if kept {
        Ok(())
    } else {
        Err(BucketError {
            operation: "create",
            name,
            kind: FailureKind::Unsupported,
            source:
                "it writes over objects although it is told not to (If-None-Match: *), so that \
                     writers would undo each other's work; use a store that has conditional writes"
                    .into(),
        })
    }
}
