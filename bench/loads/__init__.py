"""The loads, in the order in which they run; one file each."""

from . import (cold_read, end_to_end, groups_at_tail, growth, held_snapshot, idle, many_producers, many_rows, memory,
               produce, round_trip)

ALL = [
    produce.Produce100(),
    produce.Produce1K(),
    many_producers.ManyProducers(),
    round_trip.RoundTrip(),
    end_to_end.EndToEnd(),
    cold_read.ColdRead(),
    groups_at_tail.GroupsAtTail(),
    idle.Idle(),
    many_rows.ManyRows(),
    growth.ManyPartitions(),
    growth.ManyGroups(),
    held_snapshot.HeldSnapshot(),
    memory.Memory(),
]
