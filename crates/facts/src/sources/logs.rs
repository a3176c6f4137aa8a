//! Messages of Microsoft.Extensions.Logging. Its EventSource writes up to three events for one message, one after the other on the thread
//! that logs: the formatted message, its parts as structs, and as JSON. Source: dotnet/runtime, `EventSourceLogger.Log`.

use serde_json::{Map, Value as Json};
use tracequet_trace::error::beginning;

use super::spans::Span;
use crate::fact::Log;
use crate::prelude::*;

/// A form of a message, in the order in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogsAction {
    /// The text alone.
    Formatted,
    /// Arguments and exception as structs.
    Structs,
    /// Both as JSON, and the text.
    Json,
}

/// The name of the template among the arguments.
const TEMPLATE: &str = "{OriginalFormat}";

/// Threads whose last message waits for its other forms, at most.
const MAX_THREADS: usize = 1 << 10;

/// Bytes of a text that are kept.
const MAX_TEXT: usize = 4 << 10;

/// The texts of a message, as far as its forms say them.
#[derive(Debug, Default)]
struct Texts {
    message: Option<String>,
    template: Option<String>,
    arguments: Option<String>,
    exception_type: Option<String>,
    exception_message: Option<String>,
    exception: Option<String>,
}

/// A message that waits for its other forms.
#[derive(Debug)]
struct Message {
    row: Log<'static>,
    category: String,
    event_name: String,
    factory: u64,
    span: Span,
    texts: Texts,
    /// The last form.
    form: LogsAction,
}

/// The last message of each thread.
#[derive(Debug, Default)]
pub struct Logs {
    last: BTreeMap<(ProcessKey, u32), Message>,
}

/// As much of a text as is kept; `None` of an empty one.
fn kept(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| beginning(text, MAX_TEXT).to_owned())
}

fn level(number: u64) -> Option<&'static str> {
    ["trace", "debug", "information", "warning", "error", "critical"].get(usize::try_from(number).ok()?).copied()
}

impl Texts {
    fn of(form: LogsAction, input: &Input<'_>) -> Texts {
        let object = |name| serde_json::from_str::<Map<String, Json>>(input.text(name)).unwrap_or_default();
        let (arguments, exception) = match form {
            LogsAction::Formatted => (Map::new(), [None, None, None]),
            LogsAction::Structs => {
                let pair = |value: &Value| match value {
                    Value::Struct(parts) => match parts.as_slice() {
                        [Value::Text(key), Value::Text(text)] => Some((key.clone(), Json::String(text.clone()))),
                        [Value::Text(key), ..] => Some((key.clone(), Json::Null)),
                        _ => None,
                    },
                    _ => None,
                };
                let exception = match input.fields.get("Exception") {
                    Value::Struct(parts) => {
                        [0, 1, 3].map(|at: usize| parts.get(at).and_then(Value::as_str).and_then(kept))
                    }
                    _ => [None, None, None],
                };
                (input.fields.get("Arguments").as_list().iter().filter_map(pair).collect(), exception)
            }
            LogsAction::Json => {
                let exception = object("ExceptionJson");
                let part = |name: &str| exception.get(name).and_then(Json::as_str).and_then(kept);
                (object("ArgumentsJson"), [part("TypeName"), part("Message"), part("VerboseMessage")])
            }
        };
        let [exception_type, exception_message, exception] = exception;
        let template = arguments.get(TEMPLATE).and_then(Json::as_str).and_then(kept);
        let message = kept(input.text("FormattedMessage"));
        Texts { message, template, arguments: object_of(arguments), exception_type, exception_message, exception }
    }

    /// Takes what another form says.
    fn add(&mut self, other: Texts) {
        let Texts { message, template, arguments, exception_type, exception_message, exception } = other;
        for (known, new) in [
            (&mut self.message, message),
            (&mut self.template, template),
            (&mut self.arguments, arguments),
            (&mut self.exception_type, exception_type),
            (&mut self.exception_message, exception_message),
            (&mut self.exception, exception),
        ] {
            if known.is_none() {
                *known = new;
            }
        }
    }
}

/// Arguments without the template, as far as there is room.
fn object_of(arguments: Map<String, Json>) -> Option<String> {
    let (mut kept, mut bytes) = (Map::new(), 0);
    for (name, value) in arguments.into_iter().filter(|(name, _)| name != TEMPLATE) {
        bytes += name.len() + value.as_str().map_or(0, str::len);
        if bytes > MAX_TEXT {
            break;
        }
        kept.insert(name, value);
    }
    if kept.is_empty() { None } else { serde_json::to_string(&kept).ok() }
}

impl Message {
    fn of(form: LogsAction, input: &Input<'_>) -> Message {
        let mut span = Span::default();
        for name in ["ActivityTraceId", "ActivitySpanId"] {
            span.add(name, input.text(name));
        }
        let event_id = match input.fields.get("EventId") {
            Value::Int(id) => *id,
            other => other.as_u64().and_then(|id| i64::try_from(id).ok()).unwrap_or_default(),
        };
        let row = Log {
            activity_id: input.event.raw.labels.activity_id,
            level: input.fields.number("Level").and_then(level),
            event_id,
            ..input.row()
        };
        Message {
            row,
            category: kept(input.text("LoggerName")).unwrap_or_default(),
            event_name: kept(input.text("EventName")).unwrap_or_default(),
            factory: input.number("FactoryID"),
            span,
            texts: Texts::of(form, input),
            form,
        }
    }

    /// Whether another event is a later form of this message.
    fn goes_on(&self, other: &Message) -> bool {
        let what = |of: &Message| (of.factory, of.row.level, of.row.event_id, of.span);
        let texts = [(&self.texts.message, &other.texts.message), (&self.texts.template, &other.texts.template)];
        self.form < other.form
            && what(self) == what(other)
            && (&self.category, &self.event_name) == (&other.category, &other.event_name)
            && texts.iter().all(|(one, other)| one.is_none() || other.is_none() || one == other)
    }

    fn report(&self, sink: &mut impl FactSink) {
        let Texts { message, template, arguments, exception_type, exception_message, exception } = &self.texts;
        sink.add(&Log {
            category: &self.category,
            event_name: Some(&*self.event_name).filter(|name| !name.is_empty()),
            message: message.as_deref(),
            template: template.as_deref(),
            arguments: arguments.as_deref(),
            exception_type: exception_type.as_deref(),
            exception_message: exception_message.as_deref(),
            exception: exception.as_deref(),
            w3c_trace_id: self.span.trace(),
            span_id: self.span.span(),
            ..self.row
        });
    }
}

impl Logs {
    fn hand_on(&mut self, sink: &mut impl FactSink) {
        self.last.values().for_each(|message| message.report(sink));
        self.last.clear();
    }
}

const LOGGING: &str = "Microsoft-Extensions-Logging";

impl Tracker for Logs {
    type Action = LogsAction;
    const EVENTS: Events<LogsAction> = &[
        (LOGGING, "FormattedMessage", LogsAction::Formatted),
        (LOGGING, "Message", LogsAction::Structs),
        (LOGGING, "MessageJson", LogsAction::Json),
    ];

    fn event(&mut self, form: LogsAction, input: &Input<'_>, _: &mut Shared, sink: &mut impl FactSink) {
        let new = Message::of(form, input);
        let thread = (input.process(), input.capture_thread());
        if let Some(known) = self.last.get_mut(&thread).filter(|known| known.goes_on(&new)) {
            known.form = form;
            return known.texts.add(new.texts);
        }
        if self.last.len() >= MAX_THREADS {
            self.hand_on(sink);
        }
        if let Some(before) = self.last.insert(thread, new) {
            before.report(sink);
        }
    }

    /// Forms on either side of a loss are not joined.
    fn cut(&mut self, _: &Cut, sink: &mut impl FactSink) {
        self.hand_on(sink);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Fact;
    use crate::tests::made_up::{Each, Given, event};

    /// Message, template, arguments and exception of each row.
    fn rows(events: &[(LogsAction, &[(&str, &str)])]) -> Vec<String> {
        let (mut logs, mut rows) = (Logs::default(), Vec::new());
        let mut take = Each(|fact: &Fact<'_>| {
            if let Fact::Log(all) = fact {
                let text = |row: &Log<'_>| {
                    format!("{:?} {:?} {:?} {:?}", row.message, row.template, row.arguments, row.exception_type)
                };
                rows.extend(all.iter().map(text));
            }
        });
        for (ts_ns, (form, texts)) in (0..).zip(events) {
            let mut fields = vec![("Level", Given::Number(4)), ("EventId", Given::Number(7))];
            fields.extend(texts.iter().map(|(name, text)| (*name, Given::Text(text))));
            event(*form, ts_ns, &fields, |input| logs.event(*form, input, &mut Shared::default(), &mut take));
        }
        logs.cut(&Cut::default(), &mut take);
        rows
    }

    #[test]
    fn forms_of_one_message_are_one_row() {
        use LogsAction::{Formatted, Json};
        let json = |job: &'static str, text: &'static str| [("ArgumentsJson", job), ("FormattedMessage", text)];
        let (one, two) =
            (r#"{"Job":"1","{OriginalFormat}":"Job {Job}"}"#, r#"{"Job":"2","{OriginalFormat}":"Job {Job}"}"#);
        let row =
            |n: u32| format!("Some(\"Job {n}\") Some(\"Job {{Job}}\") Some(\"{{\\\"Job\\\":\\\"{n}\\\"}}\") None");
        let [text_1, text_2] = ["Job 1", "Job 2"].map(|text| [("FormattedMessage", text)]);
        let (json_1, json_2) = (json(one, "Job 1"), json(two, "Job 2"));
        let all = [(Formatted, &text_1[..]), (Json, &json_1[..]), (Formatted, &text_2[..]), (Json, &json_2[..])];
        assert_eq!(rows(&all), [row(1), row(2)]);
        assert_eq!(rows(&[(Json, &json_1), (Json, &json_2)]), [row(1), row(2)]);
        let text = "Some(\"Job 1\") None None None".to_owned();
        assert_eq!(rows(&[(Formatted, &text_1), (Json, &json_2)]), [text.clone(), row(2)], "another message");
        assert_eq!(rows(&[(Formatted, &text_1), (Formatted, &text_1)]), [text.clone(), text]);
    }

    #[test]
    fn texts_are_hostile() {
        let deep = "[".repeat(100_000);
        for text in ["", "{", "null", "[1]", "{\"a\":1}", deep.as_str()] {
            let fields = [("ArgumentsJson", text), ("ExceptionJson", text)];
            assert_eq!(rows(&[(LogsAction::Json, &fields)]).len(), 1);
        }
        let long = format!("{}é", "x".repeat(MAX_TEXT - 1));
        let kept = rows(&[(LogsAction::Formatted, &[("FormattedMessage", &long)])]);
        assert_eq!(kept[0].len(), format!("Some(\"{}\") None None None", "x".repeat(MAX_TEXT - 1)).len());
    }
}
