//! `logpond cluster` as it is typed.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::{Server, TableOutput};

/// What is done for a cluster.
#[derive(Debug, Subcommand)]
pub enum Cluster {
    /// Make the authority that the nodes of a cluster believe.
    #[command(subcommand)]
    Ca(ClusterCa),
    /// Make the certificate of a node.
    Certificate(ClusterCertificate),
    /// Show the nodes and how they are doing.
    Status(ClusterStatus),
    /// Have a node leave: it takes nothing more, hands on what it has, and ends.
    Drain(ClusterDrain),
    /// Give up a node that is gone for good: answers wait for it no more.
    Forget(ClusterForget),
    /// Say how many stores a load needs, from what this cluster's stores were measured to take.
    Plan(ClusterPlan),
}

/// What is done with authorities.
#[derive(Debug, Subcommand)]
pub enum ClusterCa {
    /// Make an authority: ca.pem for all nodes, and ca.key, which makes nodes.
    Create(ClusterCaCreate),
}

/// Flags of `logpond cluster ca create`.
#[derive(Debug, Args)]
pub struct ClusterCaCreate {
    /// Where to write ca.pem and ca.key.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: PathBuf,
}

/// Flags of `logpond cluster certificate`.
#[derive(Debug, Args)]
pub struct ClusterCertificate {
    /// The directory with ca.pem and ca.key.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub ca: PathBuf,
    /// What the node is called.
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// Where others reach it: IP addresses and DNS names.
    #[arg(
        long,
        value_name = "IP|DNS[,...]",
        value_delimiter = ',',
        required = true
    )]
    pub address: Vec<String>,
    /// How long it holds [default: 365d].
    #[arg(long, value_name = "DURATION")]
    pub valid: Option<String>,
    /// Where to write node.pem, node.key and a copy of ca.pem.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: PathBuf,
}

/// Flags of `logpond cluster status`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 all nodes are there and everything has its copies, 2 error, \
                  3 something is missing."
)]
pub struct ClusterStatus {
    /// How to print.
    #[command(flatten)]
    pub table: TableOutput,
    /// Any node.
    #[command(flatten)]
    pub server: Server,
}

/// Flags of `logpond cluster drain`.
#[derive(Debug, Args)]
pub struct ClusterDrain {
    /// The node: its address or the beginning of its id [default: the one that is asked].
    #[arg(value_name = "NODE")]
    pub node: Option<String>,
    /// Stay after all.
    #[arg(long)]
    pub cancel: bool,
    /// Wait until it has left.
    #[arg(long, conflicts_with = "cancel")]
    pub wait: bool,
    /// Any node.
    #[command(flatten)]
    pub server: Server,
}

/// Flags of `logpond cluster forget`.
#[derive(Debug, Args)]
pub struct ClusterForget {
    /// The node: its address or the beginning of its id.
    #[arg(value_name = "NODE")]
    pub node: String,
    /// Any other node.
    #[command(flatten)]
    pub server: Server,
}

/// Flags of `logpond cluster plan`.
#[derive(Debug, Args)]
#[command(after_help = "RATE is a SIZE of lines and a time: 1TB/d, 20MB/s.")]
pub struct ClusterPlan {
    /// Bytes of lines, on average.
    #[arg(long, value_name = "RATE")]
    pub rate: String,
    /// Bytes of lines at the busiest hour [default: three times the average].
    #[arg(long, value_name = "RATE")]
    pub peak: Option<String>,
    /// How long records are kept.
    #[arg(long, value_name = "DURATION", default_value = "30d")]
    pub retain: String,
    /// How many nodes hold each record.
    #[arg(long, value_name = "COUNT", default_value_t = 2)]
    pub rf: usize,
    /// Say what becomes of so many stores [default: as few as do].
    #[arg(long, value_name = "COUNT")]
    pub stores: Option<usize>,
    /// How long stores may be gone without ingesters having to refuse records.
    #[arg(long, value_name = "DURATION", default_value = "1h")]
    pub outage: String,
    /// How to print.
    #[command(flatten)]
    pub table: TableOutput,
    /// Any node.
    #[command(flatten)]
    pub server: Server,
}
