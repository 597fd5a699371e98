//! The methods that several rows of the table of routes take.

use hyper::Method;

pub(super) const READ: &[Method] = &[Method::GET, Method::HEAD];
pub(super) const ASK: &[Method] = &[Method::GET, Method::HEAD, Method::POST];
pub(super) const LISTEN: &[Method] = &[Method::GET];
pub(super) const ACT: &[Method] = &[Method::POST];
pub(super) const STORE: &[Method] = &[Method::POST, Method::PUT];
/// Some senders ask whether they may, before they do.
pub(super) const COLLECT: &[Method] = &[Method::POST, Method::OPTIONS];
/// A browser signs in and out.
pub(super) const SESSION: &[Method] = &[Method::POST, Method::DELETE];
pub(super) const CHANGE: &[Method] = &[Method::PUT, Method::DELETE];
/// Of endpoints that others let change, and that refuse a change here with a reason.
pub(super) const EDIT: &[Method] = &[
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::DELETE,
];
/// An index is asked for, or created.
pub(super) const EXISTS: &[Method] = &[Method::HEAD];
pub(super) const CREATE: &[Method] = &[Method::PUT];
/// The next page, or the end of all pages.
pub(super) const SCROLL: &[Method] = &[Method::GET, Method::POST, Method::DELETE];
pub(super) const END: &[Method] = &[Method::DELETE];
pub(super) const SET_UP: &[Method] = &[Method::GET, Method::HEAD, Method::PUT, Method::POST];
