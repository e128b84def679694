"""Prints what was posted to a collector of traces, decoded by OpenTelemetry's own messages: otlp_decode.py FILE..."""

import json
import sys

from google.protobuf import json_format
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

spans = []
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        request = ExportTraceServiceRequest.FromString(file.read())
    for of in request.resource_spans:
        resource = {pair.key: pair.value.string_value for pair in of.resource.attributes}
        for scope in of.scope_spans:
            for span in scope.spans:
                # What was not understood would be here.
                assert len(UnknownFieldSet(span)) == 0
                spans.append({
                    "resource": resource,
                    "scope": scope.scope.name,
                    "trace": span.trace_id.hex(),
                    "id": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "name": span.name,
                    "kind": json_format.MessageToDict(span).get("kind"),
                    "begun": span.start_time_unix_nano,
                    "ended": span.end_time_unix_nano,
                    "status": span.status.code,
                    "message": span.status.message,
                    "attributes": {
                        pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in span.attributes
                    },
                })
print(json.dumps(spans))
