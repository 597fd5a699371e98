//! `logpond cluster ca create`: makes the authority of a cluster.

use super::{CERTIFICATE_MODE, KEY_MODE, write_new};
use crate::cli::ClusterCaCreate;
use crate::commands::{Exit, Failure};
use logpond_host::clock;
use logpond_host::terminal::note;
use logpond_listen::net::tls::{AUTHORITIES_NAME, AUTHORITY_KEY_NAME, Authority};

pub(super) fn create(args: &ClusterCaCreate) -> Result<Exit, Failure> {
    let made = Authority::create(clock::now())?;
    let files = [
        (AUTHORITY_KEY_NAME, KEY_MODE, made.key.as_str()),
        (AUTHORITIES_NAME, CERTIFICATE_MODE, &made.certificate),
    ];
    write_new(&args.out, &files)?;
    let directory = args.out.display();
    note(&format!(
        "the authority is in {directory}; it holds for ten years. Who has {AUTHORITY_KEY_NAME} can \
         make nodes: keep it off the servers.\n\
         For each node: logpond cluster certificate --ca {directory} --name NAME --address IP,DNS \
         --out DIR"
    ));
    Ok(Exit::Found)
}
