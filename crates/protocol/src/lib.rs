//! Layer 2: bytes of others in, as records.
