//! A server that is asked over HTTP.

use std::io::Read;
use std::sync::Arc;

use logpond_client::{Answer, Client, ClientError, Parameters};

use super::server::{ANSWER_BYTES_MAX, Asking, Question, RawAnswer, Refusal, Server};

/// A server at an address.
pub(crate) struct RemoteServer(pub(crate) Arc<Client>);

impl Server for RemoteServer {
    fn ask(&self, question: Question) -> Asking {
        let client = Arc::clone(&self.0);
        Box::pin(async move {
            let asked = tokio::task::spawn_blocking(move || ask(&client, &question)).await;
            asked.unwrap_or_else(|error| {
                Err(Refusal {
                    code: "internal".to_owned(),
                    message: error.to_string(),
                })
            })
        })
    }
}

fn ask(client: &Client, question: &Question) -> Result<RawAnswer, Refusal> {
    let answer = if question.parameters.is_empty() {
        client.get(question.path, &Parameters::new())
    } else {
        client.ask(question.path, &question.parameters)
    };
    answer.map(read).map_err(|error| refusal(&error))
}

fn read(answer: Answer) -> RawAnswer {
    let mut bytes = Vec::new();
    let mut reader = answer.into_reader().take(ANSWER_BYTES_MAX as u64 + 1);
    let is_broken = reader.read_to_end(&mut bytes).is_err();
    let is_long = bytes.len() > ANSWER_BYTES_MAX;
    bytes.truncate(ANSWER_BYTES_MAX);
    RawAnswer {
        bytes,
        is_cut: is_broken || is_long,
    }
}

fn refusal(error: &ClientError) -> Refusal {
    let code = match error {
        ClientError::Refused { code, .. } if !code.is_empty() => code.as_str(),
        ClientError::Refused { .. } => "refused",
        ClientError::Unreachable { .. } => "unreachable",
        _ => "no_answer",
    };
    Refusal {
        code: code.to_owned(),
        message: error.to_string(),
    }
}
