//! The program as its users meet it: real processes, loopback, port 0.

mod cli;
mod cluster;
mod scripted;
mod server;
mod token;
