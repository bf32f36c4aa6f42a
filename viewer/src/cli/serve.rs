//! `serve [PATH…]`

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::{process, thread};

use super::{Failure, Stuck, print};
use crate::serve::{Access, Live, Options, Server, Token};
use crate::source::Sources;
use crate::store::Store;

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
    /// Ends when its standard input does: with the program that holds the other end of the pipe.
    #[arg(long)]
    with_parent: bool,
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
    let Arguments { paths, trace_jsonl, live_jsonl, .. } = &arguments;
    let paths: Vec<&PathBuf> = paths.iter().chain(trace_jsonl).chain(live_jsonl).collect();
    if paths.is_empty() {
        return Err(Failure::NoSource);
    }
    let sources = Sources::open(paths)?;
    let token = match arguments.host.is_loopback() {
        true => None,
        false => Some(Token::random().map_err(Failure::Token)?),
    };
    let access = Access { token, hosts: arguments.allow_host };
    let address = SocketAddr::new(arguments.host, arguments.port);
    let server = Server::bind(Options { address, access })?;
    let url = server.url();
    print(&format!("{url}\n"))?;
    if arguments.with_parent {
        end_with_input().map_err(Failure::Thread)?;
    }
    let store = Store::new(arguments.memory_limit.saturating_mul(1 << 20));
    let live = Arc::new(Live::new(sources, store, arguments.now, arguments.stuck.rule()));
    live.follow().map_err(Failure::Thread)?;
    if arguments.open
        && let Err(error) = open::that_detached(&url)
    {
        eprintln!("stagetrace-viewer: cannot open a browser ({error}); open {url}");
    }
    Ok(server.run(live)?)
}

/// Ends the process when its standard input ends. It has nothing to lose.
fn end_with_input() -> io::Result<()> {
    let wait = || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        process::exit(0);
    };
    thread::Builder::new().name("parent".to_owned()).spawn(wait).map(drop)
}
