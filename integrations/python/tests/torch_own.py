"""PyTorch's own tests of process groups, of the calls that the backend "tandem" has: `sh scripts/pytorch.sh own`.

They come with PyTorch (torch.testing._internal.distributed). Left out are those for GPUs and those of gloo's own ways: profiles that look for
gloo's names, sparse tensors, monitored barriers that name who is missing, and barriers that may fail with gloo's words alone.
"""

from __future__ import annotations

import os
import sys
import tempfile

os.environ.setdefault("BACKEND", "tandem")
os.environ.setdefault("WORLD_SIZE", "3")
os.environ.setdefault("TEMP_DIR", tempfile.mkdtemp())
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import torch.distributed as dist
from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend

import tandem.torch  # noqa: F401  registers the backend

CALLS = [
    "test_get_", "test_destroy", "test_new_subgroups", "test_average_parameters", "test_periodic_model_averager", "test_send_recv", "test_isend",
    "test_irecv", "test_broadcast", "test_reduce", "test_all_reduce", "test_scatter", "test_gather", "test_all_gather", "test_all_to_all",
    "test_barrier", "test_DistributedDataParallel", "test_ddp_hook_parity", "test_accumulate_gradients", "test_post_localSGD",
    "test_ddp_sync", "test_ddp_grad_div", "test_ddp_uneven", "test_ddp_control_flow", "test_ddp_namedtuple", "test_static_graph", "test_grads_same",
    "test_stateless_api", "test_ddp_inference",
]  # fmt: skip
OUT = ["cuda", "nccl", "gloo", "profiler", "barrier_timeout", "sparse"]


class TestTandem(TestDistBackend, DistributedTest._DistTestBase):  # type: ignore[misc]
    """In processes of their own, each started by `spawn`."""

    def setUp(self) -> None:
        super().setUp()
        self._spawn_processes()


for name in dir(TestTandem):
    is_of_calls = any(name.startswith(call) for call in CALLS) and not any(word in name for word in OUT)
    # The set-up asks for this one.
    if name.startswith("test_") and not is_of_calls and name != "test_ddp_has_finalized":
        setattr(TestTandem, name, None)

assert dist.is_available() and sys.version_info >= (3, 9)
