"""kafka-python 2.0.2: years old and still in many images.

It finds out what the server can do in the old way: an ApiVersions v0 request and, in the same
breath, a Metadata v0 request, whose reply it takes for the first if that one goes unanswered.
"""

import sys

if sys.version_info >= (3, 12):
    # The copy of six inside the package has no finder that newer interpreters understand.
    import six.moves

    sys.modules["kafka.vendor.six"] = six
    sys.modules["kafka.vendor.six.moves"] = six.moves

from kafka.coordinator.assignors.range import RangePartitionAssignor  # noqa: E402
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor  # noqa: E402

from kafka_python_client import consume, group, produce  # noqa: E402

from pyclient import EVERYTHING, main  # noqa: E402

ASSIGNORS = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}

main(
    {
        **EVERYTHING,
        # Its producer refuses both of these; its consumer shows them.
        "produce": {"null_key_and_value": False, "null_header_values": False},
        # It is older than static members; its other assignor, sticky, is an eager one.
        "group": {"assignors": list(ASSIGNORS), "static": False, "rebalance_events": True},
    },
    produce, consume, group(ASSIGNORS),
)
