"""A caller of the service by gRPC's own Python library: grpc_client.py PROTO_FOLDER all ADDRESS WITNESS KEY, or
... health ADDRESS [CA [CERTIFICATE KEY]], over TLS where an authority is given.

The messages are made from what the service's reflection answers, which is held against what protoc makes of the description."""

import json
import subprocess
import sys
import tempfile
import time

import grpc
from google.protobuf import descriptor_pb2, json_format, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

proto, what, address = sys.argv[1:4]
if what == "health" and len(sys.argv) > 4:
    files = [open(path, "rb").read() for path in sys.argv[4:]]
    trusted, certificate, key = (files + [None, None])[:3]
    channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(trusted, key, certificate))
else:
    channel = grpc.insecure_channel(address)
health = health_pb2_grpc.HealthStub(channel)
if what == "health":
    asked = health_pb2.HealthCheckRequest(service="tandem.v1.Prover")
    try:
        print(health_pb2.HealthCheckResponse.ServingStatus.Name(health.Check(asked, timeout=20).status))
    except grpc.RpcError as error:
        print(error.code().name)
        print(error.details(), file=sys.stderr)
    sys.exit()
witness, key = (open(path, "rb").read() for path in sys.argv[4:6])

for service in ["", "tandem.v1.Prover"]:
    # It may be that it is told in a moment.
    watched = health.Watch(health_pb2.HealthCheckRequest(service=service), timeout=20)
    next(of for of in watched if of.status == health_pb2.HealthCheckResponse.SERVING)

# What reflection says.
reflected = ProtoReflectionDescriptorDatabase(channel)
services = sorted(reflected.get_services())
assert services == [
    "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection", "tandem.v1.Prover",
], services
with tempfile.NamedTemporaryFile() as compiled:
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", "-I", proto, "--descriptor_set_out", compiled.name,
         f"{proto}/tandem/v1/prover.proto"], check=True)
    expected = descriptor_pb2.FileDescriptorSet.FromString(open(compiled.name, "rb").read()).file[0]
assert reflected.FindFileContainingSymbol("tandem.v1.Prover") == expected
pool = DescriptorPool(reflected)
prover = pool.FindServiceByName("tandem.v1.Prover")
messages = {method.name: tuple(map(message_factory.GetMessageClass, (method.input_type, method.output_type)))
            for method in prover.methods}


def call(name, fields=None, stream=None):
    """Calls a method with a message of these fields, or with a stream of such."""
    method, (request, response) = prover.methods_by_name[name], messages[name]
    kind = ("stream" if method.client_streaming else "unary") + "_" + ("stream" if method.server_streaming else "unary")
    call = getattr(channel, kind)(f"/tandem.v1.Prover/{name}", request_serializer=request.SerializeToString,
                                  response_deserializer=response.FromString)
    return call(iter([request(**part) for part in stream]) if stream else request(**(fields or {})), timeout=60)


def refused(name, code, word, **how):
    try:
        call(name, **how)
    except grpc.RpcError as error:
        assert error.code() == code and error.details(), error
        assert dict(error.trailing_metadata()).get("tandem-code") == word, error
        return
    raise AssertionError(f"{name} was not refused")


assert call("GetVersion").version
head = {"key": "small", "content": "CONTENT_WITNESS", "priority": -3, "deadline_seconds": 60, "request_id": "a job"}
pieces = [{"piece": witness[at:at + 100]} for at in range(0, len(witness), 100)]
refused("Submit", grpc.StatusCode.INVALID_ARGUMENT, "bad_request", stream=[{"head": head}, *pieces])
head["request_id"] = "a-job"
submitted = call("Submit", stream=[{"head": head}, *pieces])
assert submitted.is_new
name = submitted.job.id
job = list(call("WaitJob", {"id": name}))[-1]
again = call("Submit", stream=[{"head": head}, *pieces])
assert not again.is_new and again.job.id == name
refused("Submit", grpc.StatusCode.ALREADY_EXISTS, "other_content",
        stream=[{"head": head}, {"piece": witness[:-1] + b"x"}])
refused("CancelJob", grpc.StatusCode.FAILED_PRECONDITION, "already_ended", fields={"id": name})
refused("GetJob", grpc.StatusCode.NOT_FOUND, "no_job", fields={"id": "0" * 32})
assert [of.id for of in call("ListJobs", {"state": "STATE_DONE"}).jobs] == [name]
result = call("GetResult", {"id": name})

# Keys: by upload, by path, and what is to be refused.
uploaded = call("UploadKey", stream=[{"name": "up"}] + [{"piece": key[at:at + 1000]} for at in range(0, len(key), 1000)])
assert uploaded.is_new and uploaded.key.is_uploaded and uploaded.key.bytes == len(key)
refused("UploadKey", grpc.StatusCode.ALREADY_EXISTS, "other_key", stream=[{"name": "small"}, {"piece": key}])
inside = call("RegisterKey", {"name": "inside", "path": "inside.zkey"})
assert inside.is_new and not inside.key.is_uploaded
refused("RegisterKey", grpc.StatusCode.PERMISSION_DENIED, "path_not_allowed", fields={"name": "x", "path": "/etc/passwd"})
refused("UploadProgram", grpc.StatusCode.INVALID_ARGUMENT, "bad_key", stream=[{"name": "up"}, {"piece": b"no program"}])
assert sorted(of.name for of in call("ListKeys").keys) == ["inside", "small", "up"]
# Workers say twice a second which keys they have.
until = time.monotonic() + 20
while not list((small := call("GetKey", {"name": "small"})).on):
    assert time.monotonic() < until, small
    time.sleep(0.1)
call("EvictKey", {"name": "small"})
loaded = call("PreloadKey", {"name": "inside", "wait_seconds": 60})
assert list(loaded.key.on) == ["0:cpu"] and not loaded.is_loading, loaded
refused("PreloadKey", grpc.StatusCode.NOT_FOUND, "no_key", fields={"name": "none"})
refused("EvictKey", grpc.StatusCode.NOT_FOUND, "no_key", fields={"name": "none"})
for name in ["up", "inside"]:
    call("RemoveKey", {"name": name})
refused("RemoveKey", grpc.StatusCode.NOT_FOUND, "no_key", fields={"name": "up"})

# A batch: two witnesses that are right, one that is not.
files = [("a.wtns", witness), ("b.wtns", witness[:-32] + bytes(32)), ("c.wtns", witness)]
sent = [{"head": {"key": "small", "request_id": "a-batch"}}]
for name, content in files:
    sent.append({"file": {"name": name}})
    sent += [{"piece": content[at:at + 100]} for at in range(0, len(content), 100)]
submitted = call("SubmitBatch", stream=sent)
assert submitted.is_new and [of.name for of in submitted.batch.items] == [name for name, _ in files], submitted
batch = submitted.batch.id
again = call("SubmitBatch", stream=sent)
assert not again.is_new and again.batch.id == batch
refused("SubmitBatch", grpc.StatusCode.ALREADY_EXISTS, "other_content", stream=sent[:-1])
refused("SubmitBatch", grpc.StatusCode.INVALID_ARGUMENT, "bad_request", stream=sent[:1])
refused("SubmitBatch", grpc.StatusCode.INVALID_ARGUMENT, "bad_request", stream=[sent[0], sent[2]])
ended = list(call("WaitBatch", {"id": batch}))[-1]
assert ended.is_ended and (ended.counts.done, ended.counts.failed) == (2, 1), ended
assert call("GetBatch", {"id": batch}) == ended
results = list(call("GetBatchResults", {"id": batch}))
assert [of.item for of in results] == list(ended.items)
assert [of.HasField("result") for of in results] == [True, False, True], results
assert results[1].item.job.error.code == "unsatisfied", results[1]
assert call("CancelBatch", {"id": batch}) == ended
refused("GetBatch", grpc.StatusCode.NOT_FOUND, "no_batch", fields={"id": "0" * 32})
small = call("PreloadKey", {"name": "small", "wait_seconds": 60}).key
print(json.dumps({name: json_format.MessageToDict(of) for name, of in
                  {"job": job, "result": result, "small": small, "of_batch": results[2].result}.items()}))
