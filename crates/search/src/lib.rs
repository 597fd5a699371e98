//! Layer 3: how it is asked.
