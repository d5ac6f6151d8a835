"""kafka-python, the newest."""

from kafka_python_client import consume, produce

from pyclient import EVERYTHING, main

# Its producer refuses both of these; its consumer shows them.
main({**EVERYTHING, "produce": {"null_key_and_value": False, "null_header_values": False}}, produce, consume)
