"""What members of a group told, in the order of its arrival, and whether a group may behave like that.

A `moment` numbers the passes in which the runner read from all members what they had written (watch.py).
What was read in one moment was not yet written in the moment before. So of two lines of different members
the order is known only where there is a whole moment between theirs: see `certainly_before`.
"""

from collections import namedtuple

#: `member` is None for what the runner saw itself. Kinds: those of README.md, and of the runner: closing (its
#: input was ended), killed, paused, resumed, exited, seen (what the server says to be committed).
Event = namedtuple("Event", "moment member kind fields")

NEVER = float("inf")


def certainly_before(earlier, later):
    return earlier + 2 <= later


class Stint:
    """One member's ownership of one partition, from its assignment to its end."""

    def __init__(self, member, partition, began):
        self.member, self.partition, self.began = member, partition, began
        #: From when on others may own the partition as well: its end, or what the member cannot know of.
        self.held_until = NEVER
        self.offsets, self.commits = [], []

    def released(self, moment):
        self.held_until = min(self.held_until, moment)


class History:
    """`faults` are sentences, as they are found by reading the events in order."""

    def __init__(self, events, without_events=()):
        #: Members whose client tells no assignments: a stint of theirs is what they read in a row.
        self._without_events = set(without_events)
        self.faults = []
        self.stints = []
        #: {member: {partition: Stint}} that goes on.
        self._owned = {}
        #: {partition: [(moment, offset)]} as the server said it.
        self._server_said = {}
        #: {(partition, offset): the values that were read there}
        self.records = {}
        self._killed_members = set()
        for event in events:
            getattr(self, f"_{event.kind}", self._other)(event)

    def check(self, sent, committed):
        """All faults. `sent` is {partition: [value by offset]}, `committed` what the server said at the end."""
        by_partition = {}
        for stint in self.stints:
            by_partition.setdefault(stint.partition, []).append(stint)
        for stints in by_partition.values():
            self._check_owners(stints)
            self._check_offsets(stints)
        self._check_records(sent)
        for partition, values in sent.items():
            if committed.get(partition, 0) != len(values):
                self.faults.append(
                    f"partition {partition}: {committed.get(partition)} is committed at the end of {len(values)} records"
                )
        return self.faults

    # What each event means.

    def _assigned(self, event):
        owned = self._owned.setdefault(event.member, {})
        for partition in event.fields["partitions"]:
            if partition in owned:
                self.faults.append(f"{event.member} is assigned partition {partition}, which it has")
                owned[partition].released(event.moment)
            owned[partition] = self._new_stint(event, partition)

    def _new_stint(self, event, partition):
        stint = Stint(event.member, partition, event.moment)
        self.stints.append(stint)
        return stint

    def _revoked(self, event):
        owned = self._owned.get(event.member, {})
        for partition in event.fields["partitions"]:
            if partition in owned:
                owned.pop(partition).released(event.moment)
            else:
                self.faults.append(f"{event.member} loses partition {partition}, which it has not")

    _lost = _revoked

    def _record(self, event):
        partition, offset = event.fields["partition"], event.fields["offset"]
        self.records.setdefault((partition, offset), set()).add(event.fields["value"])
        stint = self._stint_of(event, partition)
        if stint is None:
            self.faults.append(f"{event.member} reads offset {offset} of partition {partition}, which it has not")
            return
        if stint.offsets and offset != stint.offsets[-1] + 1:
            self.faults.append(
                f"{event.member} reads offset {offset} of partition {partition} after {stint.offsets[-1]}"
            )
        stint.offsets.append(offset)

    def _stint_of(self, event, partition):
        if event.member not in self._without_events:
            return self._owned.get(event.member, {}).get(partition)
        latest = next((stint for stint in reversed(self.stints) if stint.partition == partition), None)
        if latest is None or latest.member != event.member or event.fields["offset"] <= latest.offsets[-1]:
            latest = self._new_stint(event, partition)
        return latest

    def _committed(self, event):
        partition, offset = event.fields["partition"], event.fields["offset"]
        # The last one of the member: a commit may be told when the partition is gone.
        own = (s for s in reversed(self.stints) if s.member == event.member and s.partition == partition)
        stint = next(own, None)
        if stint is None or offset - 1 not in stint.offsets:
            self.faults.append(f"{event.member} commits {offset} of partition {partition}, which it has not read")
            return
        if stint.commits and offset < stint.commits[-1]:
            self.faults.append(
                f"{event.member} commits {offset} of partition {partition} after {stint.commits[-1]}: backwards"
            )
        stint.commits.append(offset)

    def _seen(self, event):
        for partition, offset in event.fields["offsets"].items():
            seen = self._server_said.setdefault(partition, [])
            if seen and offset < seen[-1][1]:
                self.faults.append(
                    f"partition {partition}: the server says {offset} is committed after {seen[-1][1]}: backwards"
                )
            seen.append((event.moment, offset))

    def _release_all(self, event):
        # One that is about to end, or does not run, cannot tell that its partitions are gone.
        for stint in self._owned.get(event.member, {}).values():
            stint.released(event.moment)

    _closing = _paused = _release_all

    def _killed(self, event):
        self._release_all(event)
        self._killed_members.add(event.member)

    def _exited(self, event):
        self._release_all(event)
        self._owned.pop(event.member, None)
        if event.fields["status"] != 0 and event.member not in self._killed_members:
            self.faults.append(f"{event.member} ended with {event.fields['status']}")

    def _other(self, _event):
        pass

    # What must hold of all of them together.

    def _check_owners(self, stints):
        """No partition is at two running members at a time."""
        for i, later in enumerate(stints):
            for earlier in stints[:i]:
                if earlier.member != later.member and certainly_before(later.began, self._end_of(earlier)):
                    self.faults.append(
                        f"partition {later.partition} is {later.member}'s while {earlier.member} still has it"
                    )

    def _end_of(self, stint):
        return stint.began if stint.member in self._without_events else stint.held_until

    def _check_offsets(self, stints):
        """What is read or committed again was not committed when its new owner began."""
        floor = 0
        for stint in stints:
            seen = [offset for moment, offset in self._server_said.get(stint.partition, ())
                    if certainly_before(moment, stint.began)]
            floor = max([floor, *seen])
            if stint.offsets and stint.offsets[0] < floor:
                self.faults.append(
                    f"{stint.member} reads offset {stint.offsets[0]} of partition {stint.partition} again, "
                    f"of which {floor} was committed before"
                )
            floor = max([floor, *stint.commits])

    def _check_records(self, sent):
        for partition, values in sent.items():
            lost = [offset for offset in range(len(values)) if (partition, offset) not in self.records]
            if lost:
                self.faults.append(f"partition {partition}: {len(lost)} records were never read, from {lost[0]} on")
        for (partition, offset), values in self.records.items():
            known = sent.get(partition, [])
            if offset >= len(known) or values != {known[offset]}:
                self.faults.append(f"partition {partition}: at {offset} stands what was not sent there")


def heard(events, member, partitions):
    """The rebalance events of a member that name one of the partitions."""
    return [
        event for event in events
        if event.member == member and event.kind in ("assigned", "revoked", "lost")
        and not partitions.isdisjoint(event.fields["partitions"])
    ]
