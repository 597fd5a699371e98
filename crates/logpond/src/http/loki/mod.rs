//! The HTTP interface of Loki.

mod push;

pub(super) use push::push;
