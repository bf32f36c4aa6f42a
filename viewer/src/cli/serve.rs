//! `serve [PATH…]`

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{Failure, Stuck, print};
use crate::rules::Samples;
use crate::serve::{Access, Live, Options, Server, Token};
use crate::source::{JaegerQuery, Sources};
use crate::store::{Only, Store};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Directories of runs, or single files: OTLP/JSON, traces.jsonl, live.jsonl, Jaeger's JSON,
    /// recordings.
    paths: Vec<PathBuf>,
    /// A file of spans, as XTuner's viewer takes it.
    #[arg(long, value_name = "FILE")]
    trace_jsonl: Vec<PathBuf>,
    /// A file of open spans, as XTuner's viewer takes it.
    #[arg(long, value_name = "FILE")]
    live_jsonl: Vec<PathBuf>,
    /// Keeps the spans of this service only; may be given several times.
    #[arg(long, visible_alias = "service-name", value_name = "NAME")]
    service: Vec<String>,
    /// Keeps the spans of this run only; may be given several times.
    #[arg(long, value_name = "ID")]
    run_id: Vec<String>,
    /// Receives OTLP here, such as 127.0.0.1:4317.
    #[arg(long, value_name = "ADDRESS")]
    otlp_grpc: Vec<String>,
    /// Receives OTLP here, such as 127.0.0.1:4318.
    #[arg(long, value_name = "ADDRESS")]
    otlp_http: Vec<String>,
    /// Asks this Jaeger for its traces, such as http://127.0.0.1:16686.
    #[arg(long, value_name = "URL")]
    jaeger_query_url: Option<String>,
    /// How far back the Jaeger is asked, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    lookback: u64,
    /// The address to listen on. Beyond this machine a token is needed, which the printed URL has.
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// The port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 18080)]
    port: u16,
    /// Another name under which the pages may be opened, such as that of this machine.
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Opens the pages in a browser.
    #[arg(long)]
    open: bool,
    /// Takes this instant for now, in nanoseconds since 1970.
    #[arg(long, value_name = "UNIX_NANO")]
    now: Option<u64>,
    /// Keeps no more than about these MiB of spans; their details are read again when needed.
    #[arg(long, value_name = "MIB", default_value_t = 4096)]
    memory_limit: usize,
    #[command(flatten)]
    stuck: Stuck,
}

pub(super) fn run(arguments: Arguments) -> Result<(), Failure> {
    let sources = sources(&arguments)?;
    let token = match arguments.host.is_loopback() {
        true => None,
        false => Some(Token::random().map_err(Failure::Token)?),
    };
    let access = Access { token, hosts: arguments.allow_host };
    let address = SocketAddr::new(arguments.host, arguments.port);
    let server = Server::bind(Options { address, access })?;
    let url = server.url();
    print(&format!("{url}\n"))?;
    let only = Only { services: arguments.service, runs: arguments.run_id };
    let store = Store::new(arguments.memory_limit.saturating_mul(1 << 20)).only(only);
    let live = Arc::new(Live::new(
        sources,
        store,
        Samples::default(),
        arguments.now,
        arguments.stuck.rule(),
    ));
    live.follow().map_err(Failure::Thread)?;
    if arguments.open
        && let Err(error) = open::that_detached(&url)
    {
        eprintln!("stagetrace-viewer: cannot open a browser ({error}); open {url}");
    }
    Ok(server.run(live)?)
}

/// The sources that the arguments name. Where OTLP is received is printed, since the port may have been 0.
fn sources(arguments: &Arguments) -> Result<Sources, Failure> {
    let Arguments { paths, trace_jsonl, live_jsonl, otlp_grpc, otlp_http, .. } = arguments;
    let mut sources = Sources::open(paths.iter().chain(trace_jsonl).chain(live_jsonl))?;
    let is_received = !otlp_grpc.is_empty() || !otlp_http.is_empty();
    let is_file = [paths, trace_jsonl, live_jsonl].iter().any(|files| !files.is_empty());
    if !is_file && !is_received && arguments.jaeger_query_url.is_none() {
        return Err(Failure::NoSource);
    }
    for address in sources.receive_otlp(otlp_grpc.iter().chain(otlp_http))? {
        eprintln!("stagetrace-viewer: receiving OTLP at http://{address}");
    }
    if let Some(url) = &arguments.jaeger_query_url {
        // Several services are told apart when their spans have come.
        let service = match &arguments.service[..] {
            [only] => Some(only.clone()),
            _ => None,
        };
        let lookback = Duration::from_secs(arguments.lookback);
        sources.jaeger(JaegerQuery { service, lookback, ..JaegerQuery::new(url) })?;
    }
    Ok(sources)
}
