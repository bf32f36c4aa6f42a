"""Makes spans with everything that the OpenTelemetry Python SDK records, exports them as the variables
of the environment say, and prints them as JSON, a list as they ended.

The argument is the form: grpc, http/protobuf or http/json. So that JSON keeps all kinds of values
apart, doubles are {"double": their bits}, bytes {"bytes": hex} and mappings {"map": pairs}.
"""

import json
import struct
import sys
from importlib import import_module

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
    set_span_in_context,
)

EXPORTERS = {
    "grpc": "opentelemetry.exporter.otlp.proto.grpc.trace_exporter",
    "http/protobuf": "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "http/json": "opentelemetry.exporter.otlp.json.http.trace_exporter",
}

VALUES = {
    "text": "höher\n\u2028\U0001f600\0",
    "no text": "",
    "true": True,
    "false": False,
    "zero": 0,
    "least": -(2**63),
    "greatest": 2**63 - 1,
    "double": 0.1,
    "whole double": 3.0,
    "minus zero": -0.0,
    "tiny": 5e-324,
    "infinite": float("inf"),
    "minus infinite": float("-inf"),
    "not a number": float("nan"),
    "bytes": b"\x00\xff\x10",
    "texts": ["stop", "", "é"],
    "ints": [1, -2, 2**63 - 1],
    "doubles": [0.5, -1e300],
    "bools": [True, False],
    "none of them": [],
    "mixed": [1, "two", 3.0, None, [True], {"deep": b"\x01"}],
    "mapping": {"b": 1, "a": {"list": ["x"], "none": None}},
}


def make(provider):
    tracer = provider.get_tracer(
        "image-server.python", "4.5.6", "https://example.com/scope", {"team": "inference"}
    )
    elsewhere = SpanContext(
        0xABC, 0xDEF, True, TraceFlags(TraceFlags.SAMPLED), TraceState([("vendor", "a"), ("other", "b")])
    )
    caller = set_span_in_context(NonRecordingSpan(elsewhere))
    request = tracer.start_span("request", caller, SpanKind.SERVER, VALUES, [Link(elsewhere, VALUES)])
    request.add_event("first token", VALUES)
    request.add_event("bare", timestamp=1)
    inside = set_span_in_context(request)

    here = [Link(request.get_span_context(), {"why": "retry"})]
    tracer.start_span("", inside, SpanKind.CLIENT, links=here, start_time=10).end(end_time=20)
    for name, kind in ("send", SpanKind.PRODUCER), ("handle", SpanKind.CONSUMER):
        with tracer.start_as_current_span(name, inside, kind) as span:
            span.set_status(Status(StatusCode.OK))
    try:
        with tracer.start_as_current_span("fails", inside):
            raise MemoryError("höher")
    except MemoryError:
        pass
    request.end()

    # More than the limits let through.
    many = {f"key {number}": number for number in range(26)}
    crowded = provider.get_tracer("bare").start_span("crowded", None, SpanKind.INTERNAL, many, here * 5)
    for number in range(6):
        crowded.add_event(f"event {number}", many)
    crowded.end()


def said(value):
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return {"double": struct.pack(">d", value).hex()}
        case bytes():
            return {"bytes": value.hex()}
        case list() | tuple():
            return [said(element) for element in value]
    return {"map": pairs(value)}


def pairs(attributes):
    return [[key, said(value)] for key, value in attributes.items()]


def described(span):
    context, parent = span.get_span_context(), span.parent
    resource, scope = span.resource, span.instrumentation_scope
    return {
        "context": identity(context),
        "trace state": context.trace_state.to_header(),
        "parent": parent and identity(parent),
        "parent is remote": bool(parent and parent.is_remote),
        "name": span.name,
        "kind": span.kind.name.lower(),
        "time": [span.start_time, span.end_time],
        "attributes": pairs(span.attributes),
        "events": [
            [event.timestamp, event.name, pairs(event.attributes), event.dropped_attributes]
            for event in span.events
        ],
        "links": [
            [identity(link.context), link.context.is_remote, pairs(link.attributes), link.dropped_attributes]
            for link in span.links
        ],
        "dropped": [span.dropped_attributes, span.dropped_events, span.dropped_links],
        "status": [span.status.status_code.name.lower(), span.status.description or ""],
        "resource": [pairs(resource.attributes), resource.schema_url],
        "scope": [scope.name, scope.version or "", pairs(scope.attributes or {}), scope.schema_url or ""],
    }


def identity(context):
    return f"{context.trace_id:032x}-{context.span_id:016x}"


exporter = import_module(EXPORTERS[sys.argv[1]]).OTLPSpanExporter()
memory = InMemorySpanExporter()
provider = TracerProvider(
    resource=Resource.create({"service.name": "image-server", "ranks": [0, 1]}, "https://example.com/resource"),
    span_limits=SpanLimits(max_attributes=24, max_events=4, max_links=3, max_event_attributes=24),
)
for processor in SimpleSpanProcessor(memory), BatchSpanProcessor(exporter):
    provider.add_span_processor(processor)
make(provider)
provider.shutdown()
print(json.dumps([described(span) for span in memory.get_finished_spans()]))
