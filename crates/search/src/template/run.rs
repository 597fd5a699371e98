//! Filling a template.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use logpond_record::cast;

use super::functions::{self, Context};
use super::parse::{Node, Operand, Pipeline};
use super::value::Value;
use super::{
    AlertData, DEPTH_MAX, Data, OUTPUT_BYTES_MAX, STEPS_MAX, Scratch, Template, VALUES_BYTES_MAX,
    time,
};

type Result<T> = std::result::Result<T, String>;

pub(super) fn run(
    template: &Template,
    data: &dyn Data,
    alert: Option<&AlertData<'_>>,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> Result<()> {
    let (dot, variables) = match alert {
        None => (Dot::Root, vec![("$".into(), Dot::Root)]),
        Some(alert) => (Dot::Alert, alert_variables(alert)),
    };
    let mut run = Run {
        template,
        data,
        alert,
        scratch,
        variables,
        start: out.len(),
        out,
        steps: 0,
        values_bytes: 0,
        depth: 0,
    };
    run.nodes(&template.root, &dot).map(|_| ())
}

/// What Prometheus defines before each template of an alert.
fn alert_variables(alert: &AlertData<'_>) -> Vec<(Box<str>, Dot)> {
    vec![
        ("$".into(), Dot::Alert),
        ("$labels".into(), Dot::Root),
        ("$externalLabels".into(), Dot::NoLabels),
        (
            "$externalURL".into(),
            Dot::Value(Value::text(alert.external_url)),
        ),
        ("$value".into(), Dot::Value(Value::Float(alert.value))),
    ]
}

/// What `.` is.
#[derive(Clone)]
enum Dot {
    /// All labels.
    Root,
    /// The labels, the value and where the server is.
    Alert,
    /// Labels of which there are none.
    NoLabels,
    Value(Value),
}

/// How a list of nodes ended.
#[derive(PartialEq)]
enum Flow {
    On,
    Break,
    Continue,
}

struct Run<'a> {
    template: &'a Template,
    data: &'a dyn Data,
    /// What there is beside the labels, of an alert.
    alert: Option<&'a AlertData<'a>>,
    scratch: &'a mut Scratch,
    variables: Vec<(Box<str>, Dot)>,
    start: usize,
    out: &'a mut Vec<u8>,
    steps: usize,
    /// Bytes of values that functions were given and gave.
    values_bytes: usize,
    depth: usize,
}

impl Run<'_> {
    /// Counts a value that a function is given or gives.
    fn count(&mut self, value: Value) -> Result<Value> {
        self.values_bytes += value.bytes();
        if self.values_bytes > VALUES_BYTES_MAX {
            return Err(format!(
                "functions of the template work on more than {VALUES_BYTES_MAX} bytes for one line"
            ));
        }
        Ok(value)
    }

    fn step(&mut self) -> Result<()> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return Err(format!("the template takes more than {STEPS_MAX} steps"));
        }
        if self.out.len() - self.start > OUTPUT_BYTES_MAX {
            return Err(format!(
                "the line becomes longer than {OUTPUT_BYTES_MAX} bytes"
            ));
        }
        Ok(())
    }

    fn nodes(&mut self, nodes: &[Node], dot: &Dot) -> Result<Flow> {
        let variables = self.variables.len();
        let mut flow = Flow::On;
        for node in nodes {
            self.step()?;
            flow = self.node(node, dot)?;
            if flow != Flow::On {
                break;
            }
        }
        self.variables.truncate(variables);
        Ok(flow)
    }

    fn node(&mut self, node: &Node, dot: &Dot) -> Result<Flow> {
        match node {
            Node::Text(text) => self.out.extend_from_slice(text),
            Node::Action(pipeline) => {
                let value = self.pipeline(pipeline, dot)?;
                if pipeline.variables.is_empty() {
                    self.print(&value);
                }
            }
            Node::If(pipeline, then, otherwise) => {
                let variables = self.variables.len();
                let value = self.pipeline(pipeline, dot)?;
                let is_true = self.is_true(&value);
                let flow = self.nodes(if is_true { then } else { otherwise }, dot);
                self.variables.truncate(variables);
                return flow;
            }
            Node::With(pipeline, then, otherwise) => {
                let variables = self.variables.len();
                let value = self.pipeline(pipeline, dot)?;
                let flow = if self.is_true(&value) {
                    self.nodes(then, &value)
                } else {
                    self.nodes(otherwise, dot)
                };
                self.variables.truncate(variables);
                return flow;
            }
            Node::Range(pipeline, body, otherwise) => {
                return self.range(pipeline, body, otherwise, dot);
            }
            Node::Call(name, data) => self.call(name, data.as_ref(), dot)?,
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::On)
    }

    fn print(&mut self, value: &Dot) {
        match value {
            Dot::Value(value) => write_shown(value, self.out),
            other => write_shown(&self.value_of(other), self.out),
        }
    }

    fn is_true(&self, value: &Dot) -> bool {
        match value {
            Dot::Root => !self.data.fields().is_empty(),
            Dot::Alert => true,
            Dot::NoLabels => false,
            Dot::Value(value) => value.is_true(),
        }
    }

    /// All labels as one value.
    fn whole(&self) -> Value {
        let fields = self.data.fields().into_iter();
        Value::Labels(
            fields
                .map(|(name, value)| (name, Value::text(value)))
                .collect(),
        )
    }

    fn value_of(&self, dot: &Dot) -> Value {
        match dot {
            Dot::Root => self.whole(),
            Dot::Alert => {
                let members = alert_members().into_iter();
                let members = members.filter_map(|name| {
                    let member = self.alert_member(name)?;
                    Some((name.to_owned(), self.value_of(&member)))
                });
                Value::Map(members.collect())
            }
            Dot::NoLabels => Value::Labels(BTreeMap::new()),
            Dot::Value(value) => value.clone(),
        }
    }

    /// A member of what a template of an alert begins with.
    fn alert_member(&self, name: &str) -> Option<Dot> {
        let alert = self.alert?;
        Some(match name {
            "Labels" => Dot::Root,
            "Value" => Dot::Value(Value::Float(alert.value)),
            "ExternalLabels" => Dot::NoLabels,
            "ExternalURL" => Dot::Value(Value::text(alert.external_url)),
            _ => return None,
        })
    }

    fn call(&mut self, name: &str, data: Option<&Pipeline>, dot: &Dot) -> Result<()> {
        let template = self.template;
        let nodes = template.named.get(name);
        let nodes = nodes.ok_or_else(|| format!("template {name:?} not defined"))?;
        let value = match data {
            Some(pipeline) => self.pipeline(pipeline, dot)?,
            None => Dot::Value(Value::Nil),
        };
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!(
                "templates call each other deeper than {DEPTH_MAX} levels"
            ));
        }
        let outer = std::mem::replace(&mut self.variables, vec![("$".into(), value.clone())]);
        let outcome = self.nodes(nodes, &value);
        self.variables = outer;
        self.depth -= 1;
        outcome.map(|_| ())
    }

    fn range(
        &mut self,
        pipeline: &Pipeline,
        body: &[Node],
        otherwise: &[Node],
        dot: &Dot,
    ) -> Result<Flow> {
        let of = self.commands(pipeline, dot)?;
        let of = self.value_of(&of);
        let items: Vec<(Value, Value)> = match of {
            Value::List(list) => {
                let indexed = list.into_iter().enumerate();
                indexed
                    .map(|(at, value)| (Value::Int(cast::low_i64(at)), value))
                    .collect()
            }
            Value::Map(map) | Value::Labels(map) => map
                .into_iter()
                .map(|(name, v)| (Value::text(name), v))
                .collect(),
            Value::Int(count) => {
                let count = count.clamp(0, cast::low_i64(STEPS_MAX));
                (0..count)
                    .map(|at| (Value::Int(at), Value::Int(at)))
                    .collect()
            }
            Value::Nil => Vec::new(),
            other => return Err(format!("range can't iterate over {}", other.to_str())),
        };
        if items.is_empty() {
            return self.nodes(otherwise, dot);
        }
        let variables = self.variables.len();
        for (index, value) in items {
            let value = Dot::Value(value);
            match &pipeline.variables[..] {
                [name] => self.variables.push((name.clone(), value.clone())),
                [first, second] => {
                    self.variables.push((first.clone(), Dot::Value(index)));
                    self.variables.push((second.clone(), value.clone()));
                }
                _ => {}
            }
            self.step()?;
            let flow = self.nodes(body, &value)?;
            self.variables.truncate(variables);
            if flow == Flow::Break {
                break;
            }
        }
        Ok(Flow::On)
    }

    /// The value of a pipeline; its variables are set.
    fn pipeline(&mut self, pipeline: &Pipeline, dot: &Dot) -> Result<Dot> {
        let value = self.commands(pipeline, dot)?;
        if let Some(name) = pipeline.variables.first() {
            if pipeline.declares {
                self.variables.push((name.clone(), value.clone()))
            } else {
                let known = self.variables.iter_mut().rev().find(|(n, _)| n == name);
                let known = known.ok_or_else(|| format!("undefined variable {name:?}"))?;
                known.1 = value.clone();
            }
        }
        Ok(value)
    }

    fn commands(&mut self, pipeline: &Pipeline, dot: &Dot) -> Result<Dot> {
        let mut value = None;
        for command in &pipeline.commands {
            self.step()?;
            value = Some(self.command(command, dot, value)?);
        }
        Ok(value.unwrap_or(Dot::Value(Value::Nil)))
    }

    fn command(&mut self, command: &[Operand], dot: &Dot, piped: Option<Dot>) -> Result<Dot> {
        let Some((first, rest)) = command.split_first() else {
            return Err("missing value for command".to_owned());
        };
        if let Operand::Function(name) = first {
            // These look at no more than they must.
            if matches!(&**name, "and" | "or") {
                return self.and_or(&**name == "and", rest, dot, piped);
            }
            let mut arguments = Vec::with_capacity(rest.len() + 1);
            for operand in rest {
                let value = self.operand(operand, dot)?;
                let value = self.value_of(&value);
                arguments.push(self.count(value)?);
            }
            if let Some(piped) = piped {
                let value = self.value_of(&piped);
                arguments.push(self.count(value)?);
            }
            let given = self.function(name, &arguments)?;
            return self.count(given).map(Dot::Value);
        }
        if rest.is_empty() && piped.is_none() {
            return self.operand(first, dot);
        }
        self.method(first, rest, dot, piped)
    }

    /// A method of a time with what it is given: `$t.Format "15:04"`.
    fn method(
        &mut self,
        called: &Operand,
        arguments: &[Operand],
        dot: &Dot,
        piped: Option<Dot>,
    ) -> Result<Dot> {
        let no_function = || "can't give argument to non-function".to_owned();
        let mut of = called.clone();
        let names = match &mut of {
            Operand::Fields(names) | Operand::Variable(_, names) | Operand::Nested(_, names) => {
                names
            }
            Operand::Value(_) | Operand::Function(_) => return Err(no_function()),
        };
        let name = names.pop().ok_or_else(no_function)?;
        let of = self.operand(&of, dot)?;
        let Dot::Value(Value::Time(ns, zone)) = of else {
            return Err(no_function());
        };
        let mut values = Vec::with_capacity(arguments.len() + 1);
        for argument in arguments {
            let value = self.operand(argument, dot)?;
            values.push(self.value_of(&value));
        }
        values.extend(piped.map(|piped| self.value_of(&piped)));
        time::method(ns, &zone, &name, &values).map(Dot::Value)
    }

    fn and_or(
        &mut self,
        is_and: bool,
        operands: &[Operand],
        dot: &Dot,
        piped: Option<Dot>,
    ) -> Result<Dot> {
        let mut last = None;
        for operand in operands {
            let value = self.operand(operand, dot)?;
            if self.is_true(&value) != is_and {
                return Ok(value);
            }
            last = Some(value);
        }
        piped
            .or(last)
            .ok_or_else(|| "wrong number of args: want at least 1 got 0".to_owned())
    }

    fn operand(&mut self, operand: &Operand, dot: &Dot) -> Result<Dot> {
        match operand {
            Operand::Value(value) => Ok(Dot::Value(value.clone())),
            Operand::Fields(names) => self.fields(dot, names),
            Operand::Variable(name, names) => {
                let known = self.variables.iter().rev().find(|(n, _)| n == name);
                let (_, value) = known.ok_or_else(|| format!("undefined variable {name:?}"))?;
                let value = value.clone();
                self.fields(&value, names)
            }
            Operand::Function(name) => self.function(name, &[]).map(Dot::Value),
            Operand::Nested(pipeline, names) => {
                let value = self.pipeline(pipeline, dot)?;
                self.fields(&value, names)
            }
        }
    }

    fn fields(&self, of: &Dot, names: &[Box<str>]) -> Result<Dot> {
        let Some((first, rest)) = names.split_first() else {
            return Ok(of.clone());
        };
        let mut rest = rest;
        let mut value = match of {
            Dot::Root => match self.data.field(first) {
                Some(text) => Value::text(text),
                None => {
                    // `.service.name` is the label of a field of this name.
                    let label = names.join("_");
                    rest = &[];
                    Value::text(self.data.field(&label).unwrap_or_default())
                }
            },
            Dot::Alert => {
                let member = self.alert_member(first).ok_or_else(|| {
                    let known = alert_members().join(", .");
                    format!("can't evaluate field {first}; there are .{known}")
                })?;
                return self.fields(&member, rest);
            }
            Dot::NoLabels => Value::text(""),
            Dot::Value(value) => member(value, first)?,
        };
        for name in rest {
            value = member(&value, name)?;
        }
        Ok(Dot::Value(value))
    }

    fn function(&mut self, name: &str, arguments: &[Value]) -> Result<Value> {
        match name {
            "__line__" => return Ok(Value::text(self.data.line())),
            "__timestamp__" => {
                return Ok(Value::Time(i128::from(self.data.time_ns()), TimeZone::UTC));
            }
            _ => {}
        }
        let mut context = Context {
            now_ns: self.data.now_ns(),
            scratch: self.scratch,
        };
        functions::call(name, arguments, &mut context)
            .map_err(|error| format!("error calling {name}: {error}"))
    }
}

/// What a template of an alert begins with.
fn alert_members() -> [&'static str; 4] {
    ["Labels", "Value", "ExternalLabels", "ExternalURL"]
}

/// A member of a value, or what a time says of itself.
fn member(value: &Value, name: &str) -> Result<Value> {
    match value {
        Value::Map(map) => Ok(map.get(name).cloned().unwrap_or(Value::Nil)),
        Value::Labels(map) => Ok(map.get(name).cloned().unwrap_or(Value::text(""))),
        Value::Time(ns, zone) => time::method(*ns, zone, name, &[]),
        Value::Nil => Err(format!("nil pointer evaluating interface {{}}.{name}")),
        other => Err(format!(
            "can't evaluate field {name} in type {}",
            other.kind()
        )),
    }
}

/// Appends what an action shows.
fn write_shown(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Nil => out.extend_from_slice(b"<no value>"),
        value => value.write(out),
    }
}
