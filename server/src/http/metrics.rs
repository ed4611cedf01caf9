//! Metrics for Prometheus (spec 10). Their names are stable and end in their units; every one stands in docs/OPERATIONS.md,
//! which a test compares with [`METRICS`].

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::http::StatusCode;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use protocol::Code;
use protocol::message::ClockState;

use super::Pages;
use super::answer::Problem;
use crate::daemon::{Condition, Place};
use crate::location::status::{BOUNDS_US, Classes, Status};
use crate::location::{FIRST_REFUSAL, Storage};

/// What is told of every location.
pub(super) struct Metric {
    /// Without the `_total` of counters.
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    value: Value,
}

enum Value {
    Counter(fn(&Seen) -> u64),
    Gauge(fn(&Seen) -> i64),
    /// In seconds.
    Times(fn(&Seen) -> &Classes),
    /// One for each combination of values of these labels.
    Counters(&'static [&'static str], fn(&Seen) -> Vec<Labelled<u64>>),
    /// One for each combination of values of these labels.
    Gauges(&'static [&'static str], fn(&Seen) -> Vec<Labelled<i64>>),
}

/// Values of labels, and what is counted under them.
type Labelled<N> = (Vec<&'static str>, N);

/// A location as it was when it was asked about.
#[derive(Debug)]
struct Seen {
    name: String,
    status: Status,
    bytes_in: u64,
    bytes_out: u64,
    condition: Condition,
}

/// Every metric.
pub(super) const METRICS: &[Metric] = &[
    times(
        "lockstepd_tick_duration_seconds",
        "Step and broadcast of a turn",
        |seen| &seen.status.times.tick,
    ),
    times(
        "lockstepd_tick_start_error_seconds",
        "From when a turn is due to its start",
        |seen| &seen.status.times.start_error,
    ),
    counter(
        "lockstepd_ticks",
        "Turns run since the location started",
        |seen| seen.status.counters.ticks,
    ),
    counter(
        "lockstepd_tick_overruns",
        "Turns that took longer than their period",
        |seen| seen.status.overruns,
    ),
    counter(
        "lockstepd_tick_slips",
        "Ticks given up because they were too late",
        |seen| seen.status.counters.slips,
    ),
    gauge("lockstepd_next_tick", "The turn that comes next", |seen| {
        int(seen.status.next_tick)
    }),
    gauge("lockstepd_characters", "Characters in the World", |seen| {
        int(seen.status.characters as u64)
    }),
    Metric {
        name: "lockstepd_sessions",
        help: "Sessions: connected, in their grace, or away while their character stays",
        value: Value::Gauges(&["role", "feed", "state"], sessions),
    },
    counter("lockstepd_sessions_opened", "Sessions opened", |seen| {
        seen.status.counters.sessions
    }),
    counter("lockstepd_sessions_resumed", "Sessions resumed", |seen| {
        seen.status.counters.resumes
    }),
    Metric {
        name: "lockstepd_commands",
        help: "Commands of clients by what became of them",
        value: Value::Counters(&["result", "outcome"], commands),
    },
    counter("lockstepd_received_bytes", "Bytes from clients", |seen| {
        seen.bytes_in
    }),
    counter("lockstepd_sent_bytes", "Bytes to clients", |seen| seen.bytes_out),
    gauge(
        "lockstepd_queue_bytes",
        "Bytes that wait for clients to take them",
        |seen| int(seen.status.times.queue_bytes),
    ),
    times(
        "lockstepd_planning_seconds",
        "The phases of a step in which paths are planned",
        |seen| &seen.status.times.planning,
    ),
    counter("lockstepd_planning_requests", "Paths that were planned", |seen| {
        seen.status.counters.plans
    }),
    counter(
        "lockstepd_planning_expanded_nodes",
        "Nodes that searches for paths expanded",
        |seen| seen.status.counters.expanded,
    ),
    gauge(
        "lockstepd_planning_deferred",
        "NPCs that wait for a moment to plan again",
        |seen| i64::from(seen.status.plans_deferred),
    ),
    counter("lockstepd_digests", "Digests of clients compared", |seen| {
        seen.status.counters.digests
    }),
    counter(
        "lockstepd_digests_ignored",
        "Digests of clients too old or too new to compare",
        |seen| seen.status.counters.digests_ignored,
    ),
    counter(
        "lockstepd_desyncs",
        "Clients told that their digest differs",
        |seen| seen.status.counters.desyncs,
    ),
    counter(
        "lockstepd_resyncs",
        "Snapshots sent because a client asked",
        |seen| seen.status.counters.resyncs,
    ),
    counter(
        "lockstepd_queue_drops",
        "Queues of slow clients dropped",
        |seen| seen.status.counters.drops,
    ),
    counter(
        "lockstepd_shadow_ticks",
        "Turns that ran in the shadow World, too",
        |seen| seen.status.shadow.unwrap_or_default().compared,
    ),
    counter(
        "lockstepd_shadow_loads",
        "Turns for which the shadow World was loaded from a snapshot",
        |seen| seen.status.shadow.unwrap_or_default().loaded,
    ),
    counter(
        "lockstepd_shadow_skipped_ticks",
        "Turns that the shadow World left out to keep up",
        |seen| seen.status.shadow.unwrap_or_default().skipped,
    ),
    counter(
        "lockstepd_shadow_differences",
        "Turns after which the shadow World was another one",
        |seen| seen.status.shadow.unwrap_or_default().differences,
    ),
    times(
        "lockstepd_journal_append_seconds",
        "Encoding and writing to the journal",
        |seen| &seen.status.times.append,
    ),
    times("lockstepd_journal_sync_seconds", "Syncing the journal", |seen| {
        &seen.status.times.sync
    }),
    counter(
        "lockstepd_journal_written_bytes",
        "Bytes written to the journal",
        |seen| seen.status.times.journal_bytes,
    ),
    counter(
        "lockstepd_journal_write_failures",
        "Writes to the journal that failed",
        |seen| seen.status.times.failed_writes,
    ),
    counter(
        "lockstepd_journal_holds",
        "Times the clock held because of the journal",
        |seen| seen.status.counters.holds,
    ),
    gauge(
        "lockstepd_journal_lag_ticks",
        "Turns run whose answers are not out yet",
        |seen| int(seen.status.lag_ticks),
    ),
    gauge(
        "lockstepd_journal_writable",
        "1 while the journal is kept in time",
        |seen| i64::from(seen.status.storage == Storage::Kept),
    ),
    gauge("lockstepd_clock_running", "1 while turns become due", |seen| {
        i64::from(seen.status.clock == Some(ClockState::Running))
    }),
    counter(
        "lockstepd_journal_recoveries",
        "Times the location went on from its journal, at a start or after a failure",
        |seen| seen.condition.recoveries,
    ),
    counter(
        "lockstepd_location_restarts",
        "Times the location failed and started again",
        |seen| seen.condition.restarts,
    ),
    gauge(
        "lockstepd_location_up",
        "0 once the location stays down",
        |seen| i64::from(seen.condition.down.is_none()),
    ),
];

const fn counter(name: &'static str, help: &'static str, value: fn(&Seen) -> u64) -> Metric {
    Metric {
        name,
        help,
        value: Value::Counter(value),
    }
}

const fn gauge(name: &'static str, help: &'static str, value: fn(&Seen) -> i64) -> Metric {
    Metric {
        name,
        help,
        value: Value::Gauge(value),
    }
}

const fn times(name: &'static str, help: &'static str, value: fn(&Seen) -> &Classes) -> Metric {
    Metric {
        name,
        help,
        value: Value::Times(value),
    }
}

fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn sessions(seen: &Seen) -> Vec<Labelled<i64>> {
    let status = &seen.status;
    let mut sessions = Vec::new();
    for (place, role) in ["player", "bot", "watcher", "admin"].into_iter().enumerate() {
        let feeds = ["lockstep", "state", "answers"]
            .into_iter()
            .zip(status.connected[place]);
        let connected = feeds.map(|(feed, count)| (feed, "connected", count));
        // Whoever comes back may ask for another feed.
        let waiting = [
            ("none", "grace", status.in_grace[place]),
            ("none", "away", status.away[place]),
        ];
        let all = connected.chain(waiting);
        sessions.extend(all.map(|(feed, state, count)| (vec![role, feed, state], int(count as u64))));
    }
    sessions
}

fn commands(seen: &Seen) -> Vec<Labelled<u64>> {
    let counters = seen.status.counters;
    let accepted = (0..)
        .zip(counters.outcomes)
        .map(|(code, count)| ("accepted", code, count));
    let refused = (FIRST_REFUSAL..)
        .zip(counters.refusals)
        .map(|(code, count)| ("refused", code, count));
    let name = |code| Code(code).name().expect("every number up to the last has a name");
    accepted
        .chain(refused)
        .map(|(result, code, count)| (vec![result, name(code)], count))
        .collect()
}

/// The page.
pub(super) async fn page(
    State(pages): State<Arc<Pages>>,
) -> Result<([(&'static str, &'static str); 1], String), Problem> {
    let seen = |place: &Place| Seen {
        name: place.name.clone(),
        status: place.handle.status(),
        bytes_in: place.handle.traffic().bytes_in.load(Ordering::Relaxed),
        bytes_out: place.handle.traffic().bytes_out.load(Ordering::Relaxed),
        condition: place.condition(),
    };
    let text = text(pages.directory.iter().map(seen).collect());
    let text = text.map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error))?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([("content-type", kind)], text))
}

fn text(seen: Vec<Seen>) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(All(seen)));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct All(Vec<Seen>);

impl Collector for All {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for metric in METRICS {
            let kind = metric.value.kind();
            let mut encoder = encoder.encode_descriptor(metric.name, metric.help, None, kind)?;
            for seen in &self.0 {
                metric.value.encode(seen, &mut encoder)?;
            }
        }
        Ok(())
    }
}

impl Value {
    fn kind(&self) -> MetricType {
        match self {
            Self::Counter(_) | Self::Counters(..) => MetricType::Counter,
            Self::Gauge(_) | Self::Gauges(..) => MetricType::Gauge,
            Self::Times(_) => MetricType::Histogram,
        }
    }

    fn encode(&self, seen: &Seen, encoder: &mut MetricEncoder<'_>) -> Result<(), fmt::Error> {
        let location = ("location", seen.name.as_str());
        match self {
            Self::Counter(value) => Number::Counter(value(seen)).encode_with(&[location], encoder),
            Self::Gauge(value) => Number::Gauge(value(seen)).encode_with(&[location], encoder),
            Self::Times(classes) => {
                let classes = classes(seen);
                let bounds = BOUNDS_US
                    .iter()
                    .map(|bound| seconds(*bound))
                    .chain([f64::INFINITY]);
                let buckets: Vec<(f64, u64)> = bounds.zip(classes.counts).collect();
                let labels = [location];
                encoder
                    .encode_family(&labels)?
                    .encode_histogram::<[(&str, &str); 0]>(
                        seconds(classes.sum_us),
                        classes.count(),
                        &buckets,
                        None,
                    )
            }
            Self::Counters(names, values) => values(seen).into_iter().try_for_each(|(values, value)| {
                Number::Counter(value).encode_with(&labels(location, names, values), encoder)
            }),
            Self::Gauges(names, values) => values(seen).into_iter().try_for_each(|(values, value)| {
                Number::Gauge(value).encode_with(&labels(location, names, values), encoder)
            }),
        }
    }
}

fn labels<'a>(
    location: (&'a str, &'a str),
    names: &[&'a str],
    values: Vec<&'a str>,
) -> Vec<(&'a str, &'a str)> {
    let labels = names.iter().copied().zip(values);
    [location].into_iter().chain(labels).collect()
}

enum Number {
    Counter(u64),
    Gauge(i64),
}

impl Number {
    fn encode_with(
        &self,
        labels: &[(&str, &str)],
        encoder: &mut MetricEncoder<'_>,
    ) -> Result<(), fmt::Error> {
        let mut encoder = encoder.encode_family(&labels)?;
        match self {
            Self::Counter(value) => encoder.encode_counter::<[(&str, &str); 0], _, u64>(value, None),
            Self::Gauge(value) => encoder.encode_gauge(value),
        }
    }
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_in_units_and_stand_in_the_documents() {
        let documents = include_str!("../../../docs/OPERATIONS.md");
        let seen = Seen {
            name: "yard".to_owned(),
            status: Status::default(),
            bytes_in: 0,
            bytes_out: 0,
            condition: Condition::default(),
        };
        let text = text(vec![seen]).expect("metrics");
        for metric in METRICS {
            let total = match metric.value {
                Value::Counter(_) | Value::Counters(..) => "_total",
                _ => "",
            };
            let name = format!("{}{total}", metric.name);
            let row = format!("| `{name}` |");
            assert!(
                documents.contains(&row),
                "{name} does not stand in docs/OPERATIONS.md"
            );
            let shown = match metric.value {
                Value::Times(_) => format!("{name}_bucket{{"),
                _ => format!("{name}{{"),
            };
            assert!(text.contains(&format!("\n{shown}")), "{shown} in:\n{text}");
        }
        let rows = documents
            .lines()
            .filter(|line| line.starts_with("| `lockstepd_"))
            .count();
        assert_eq!(
            rows,
            METRICS.len(),
            "docs/OPERATIONS.md names metrics that are none"
        );
    }
}
