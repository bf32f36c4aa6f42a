//! The resource: what is said once about the whole process, in every file and export.

use stagetrace_wire::id::RunId;
use stagetrace_wire::span::{Resource, Value};

use super::host;
use super::settings::Settings;

/// The semantic conventions that the attributes follow.
const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.44.0";

/// What the operating system says about this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) host: Option<String>,
    pub(crate) pid: u32,
    /// The file name of its executable.
    pub(crate) executable: Option<String>,
}

impl Process {
    pub(crate) fn this() -> Self {
        let executable = std::env::current_exe().ok();
        let file_name = executable.as_deref().and_then(|path| path.file_name());
        Self {
            host: host::name(),
            pid: std::process::id(),
            executable: file_name.map(|name| name.to_string_lossy().into_owned()),
        }
    }
}

impl Settings {
    /// The resource of this process in this run. What the program or the environment says replaces
    /// what was found out; only the keys by which a run is put together are ours alone.
    pub(crate) fn resource(&self, process: &Process, run_id: &RunId, process_id: &str) -> Resource {
        let mut attributes = Vec::with_capacity(12 + self.resource.len());
        let mut set = |key: &str, value: Option<Value>| {
            let Some(value) = value else { return };
            attributes.retain(|(other, _): &(String, Value)| other != key);
            attributes.push((key.to_owned(), value));
        };
        set("service.name", Some(self.service_name.as_str().into()));
        set("service.instance.id", Some(format!("{run_id}/{process_id}").into()));
        set("host.name", process.host.as_deref().map(Value::from));
        set("process.pid", Some(i64::from(process.pid).into()));
        set("process.executable.name", process.executable.as_deref().map(Value::from));
        set("telemetry.sdk.name", Some("stagetrace".into()));
        set("telemetry.sdk.language", Some("rust".into()));
        set("telemetry.sdk.version", Some(env!("CARGO_PKG_VERSION").into()));
        for (key, value) in &self.resource {
            set(key, Some(value.clone()));
        }
        set("stagetrace.run.id", Some(run_id.as_str().into()));
        set("stagetrace.process.id", Some(process_id.into()));
        set("stagetrace.process.label", self.process_label.as_deref().map(Value::from));
        Resource { attributes, dropped_attributes: 0, schema_url: SCHEMA_URL.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::TraceConfig;
    use super::*;

    fn resource(config: TraceConfig) -> Vec<(String, Value)> {
        let process = Process { host: None, pid: 42, executable: Some("server".into()) };
        let run_id: RunId = "run-1".parse().expect("a run id");
        let settings = config.settings().expect("the configuration is right");
        settings.resource(&process, &run_id, "42-0badf00d").attributes
    }

    fn named(resource: &[(String, Value)], key: &str) -> Vec<Value> {
        resource.iter().filter(|(other, _)| other == key).map(|(_, value)| value.clone()).collect()
    }

    #[test]
    fn a_process_says_who_it_is_and_leaves_out_what_it_does_not_know() {
        let resource = resource(TraceConfig::new().service_name("diffusion").process_label("w 3"));
        let keys: Vec<&str> = resource.iter().map(|(key, _)| key.as_str()).collect();
        let expected = [
            "service.name",
            "service.instance.id",
            "process.pid",
            "process.executable.name",
            "telemetry.sdk.name",
            "telemetry.sdk.language",
            "telemetry.sdk.version",
            "stagetrace.run.id",
            "stagetrace.process.id",
            "stagetrace.process.label",
        ];
        assert_eq!(keys, expected);
        assert_eq!(named(&resource, "service.name"), ["diffusion".into()]);
        assert_eq!(named(&resource, "process.pid"), [42_i64.into()]);
        assert_eq!(named(&resource, "stagetrace.run.id"), ["run-1".into()]);
        assert_eq!(named(&resource, "stagetrace.process.label"), ["w 3".into()]);
    }

    #[test]
    fn the_program_beats_the_environment_and_both_beat_what_was_found_out() {
        let lookup = |name: &str| {
            (name == "OTEL_RESOURCE_ATTRIBUTES")
                .then_some("service.name=general,host.name=h,a=env,b=env,stagetrace.run.id=forged")
        };
        let config = TraceConfig::from_lookup(lookup).expect("the environment never fails");
        let resource =
            resource(config.resource_attribute("a", "code").resource_attribute("n", 1_i64));
        assert_eq!(named(&resource, "service.name"), ["general".into()]);
        assert_eq!(named(&resource, "host.name"), ["h".into()]);
        assert_eq!(named(&resource, "a"), ["code".into()]);
        assert_eq!(named(&resource, "b"), ["env".into()]);
        assert_eq!(named(&resource, "n"), [1_i64.into()]);
        assert_eq!(named(&resource, "stagetrace.run.id"), ["run-1".into()]);
    }

    #[test]
    fn this_process_has_a_host_a_pid_and_an_executable() {
        let process = Process::this();
        assert_eq!(process.pid, std::process::id());
        assert!(process.host.is_some_and(|host| !host.is_empty()));
        assert!(process.executable.is_some_and(|name| !name.contains('/')));
    }
}
