"""Consumer groups: every client alone, all of them together, cooperative rebalances, static members."""

import time
import traceback
from concurrent.futures import ThreadPoolExecutor, as_completed

from .client import Failed
from .history import heard
from .scenario import HEARTBEAT, SESSION_TIMEOUT, Scenario

PARTITIONS = 6
#: Partitions of each member at the end of a cooperative rebalance, where each has the same number.
EACH = 2
#: The one that every client has.
COMMON = "range"
COOPERATIVE = "cooperative-sticky"
#: Scenarios at a time: they wait most of their time.
JOBS = 4
#: So many are printed of one scenario.
FAULTS = 20
#: Seconds of a rebalance in which a member must have told the server that it takes part: two heartbeats, and more.
KNOWN_TO_ALL = 1.2
#: How often a scenario may try to meet with the state that it is about, before the machine is too slow for it.
ATTEMPTS = 5


def run(clients, bootstrap, quick, tally):
    clients = [client for client in clients if client.group_claim]
    started = time.monotonic()
    print(f"groups: {', '.join(client.name for client in clients)}", flush=True)
    with ThreadPoolExecutor(JOBS) as pool:
        titles = {
            pool.submit(timed, bootstrap, clients[0].logs, *scenario): title
            for title, *scenario in scenarios(clients, quick)
        }
        for result in as_completed(titles):
            what = f"group of {titles[result]}"
            try:
                faults, told = result.result()
            except Exception as error:  # noqa: BLE001 -- one scenario that cannot go on must not hide the others
                tally.fails(what, error if isinstance(error, Failed) else traceback.format_exc())
                continue
            if faults:
                tally.fails(what, "".join(f"\n      {fault}" for fault in faults[:FAULTS]))
            else:
                tally.passes()
                print(f"    {titles[result]}: {told}", flush=True)
    print(f"    groups in {time.monotonic() - started:.0f} s", flush=True)


def scenarios(clients, quick):
    """(title, function, assignor, arguments…) of each.

    In a quick run a client has one of its assignors, and every second one is static instead of cooperative, so
    that each comes up. The clients of one library stand side by side in the list.
    """
    having = {
        assignor: [c for c in clients if assignor in c.group_claim["assignors"] and c.group_claim["mixed"]]
        for assignor in (COMMON, COOPERATIVE)
    }
    if len(having[COMMON]) > 1:
        yield "all clients", mixed, COMMON, having[COMMON], 1 if quick else len(having[COMMON])
    telling = [client for client in having[COOPERATIVE] if client.group_claim["rebalance_events"]]
    # The others are out of step with the rest whenever a rebalance lasts.
    reading = [client for client in telling if client.group_claim["reads_in_rebalance"]]
    if len(reading) > 1:
        yield f"{COOPERATIVE} clients", cooperative, COOPERATIVE, reading
    for index, client in enumerate(clients):
        claim = client.group_claim
        can_cooperate = client in telling
        can_be_static = claim["static"] and claim["rebalance_events"]
        if can_cooperate and not (quick and can_be_static and index % 2):
            yield f"{client.name}, cooperative", cooperative, COOPERATIVE, [client]
        if can_be_static and not (quick and can_cooperate and index % 2 == 0):
            yield f"{client.name}, static", static, COMMON, client
    for index, client in enumerate(clients):
        assignors = client.group_claim["assignors"]
        for assignor in [assignors[index % len(assignors)]] if quick else assignors:
            yield f"{client.name}, {assignor}", alone, assignor, client


def timed(bootstrap, logs, function, assignor, *arguments):
    """The faults, and what a line may say about it. All that was told is in the log directory afterwards."""
    started = time.monotonic()
    if function is mixed:
        partitions = 2 * len(arguments[0]) + 1
    elif function is cooperative:
        partitions = EACH * (max(len(arguments[0]), 2) + 1)
    else:
        partitions = PARTITIONS
    with Scenario(bootstrap, assignor, partitions) as scenario:
        try:
            faults = function(scenario, *arguments)
        finally:
            scenario.save(logs / f"{scenario.group}.events")
        if faults:
            faults = [f"(all events: {logs / scenario.group}.events)", *faults]
        records = sum(map(len, scenario.load.sent.values()))
    return faults, f"{records} records, {time.monotonic() - started:.0f} s"


def alone(scenario, client):
    """Two members, of which one is closed while a third comes; then one that finds everything read."""
    first, second = scenario.start(client), scenario.start(client)
    scenario.wait_owners(first, second)
    scenario.wait_read_on()
    third = scenario.start(client)
    scenario.close(first)
    scenario.wait_owners(second, third)
    scenario.wait_read_on()
    scenario.load.stop()
    scenario.wait_drained()
    scenario.close(second, third)
    late = scenario.start(client)
    scenario.wait_owners(late)
    scenario.load.send_to_all()
    # What it reads besides is below what was committed when it began: a fault.
    return scenario.finish(late)


def mixed(scenario, clients, rounds):
    """One member of each client; one is killed, one paused for longer than its session lives, one is added."""
    members = [scenario.start(client) for client in clients]
    scenario.wait_owners(*members)
    scenario.wait_read_on()
    for number in range(rounds):
        victim = next(m for m in members[number % len(members):] + members if m.claim["commits_after_processing"])
        members.remove(victim)
        scenario.kill(victim)
        scenario.wait_owners(*members)
        # librdkafka takes the answer to an offset reset that it slept through for one of its next assignment.
        scenario.wait_read_on()

        sleeper = members[number % len(members)]
        others = [member for member in members if member is not sleeper]
        scenario.pause(sleeper)
        scenario.wait_group("the paused member is out", lambda group: group.members == len(others))
        scenario.wait_owners(*others)
        scenario.wait_read_on()
        scenario.resume(sleeper)
        # It has to find out first that it is not a member any more.
        scenario.wait_group("the paused member is back", lambda group: group.members == len(members))
        scenario.wait_owners(*members)

        members.insert(number % len(clients), scenario.start(victim.client))
        scenario.wait_owners(*members)
        scenario.wait_read_on()
    return scenario.finish(*members)


def cooperative(scenario, clients):
    """One more member comes: the others keep what stays theirs, and read on while the rebalance lasts."""
    paused, *others = members = [scenario.start(client) for client in (clients * 2)[: max(len(clients), 2)]]
    scenario.wait_owners(*members)
    scenario.wait_read_on()
    for _ in range(ATTEMPTS):
        had = {member: set(scenario.watch.owned[member.name]) for member in others}
        since = len(scenario.watch.events)
        newcomer = scenario.start(clients[0])
        scenario.wait_group("a rebalance", is_rebalancing)
        # It lasts as long as this one does not take part. Its heartbeat may have told it already: then, again.
        scenario.pause(paused)
        time.sleep(KNOWN_TO_ALL)
        reading = set().union(*(had[m] for m in others if m.claim["reads_in_rebalance"]))
        read_on = reads_on_in_rebalance(scenario, reading)
        scenario.resume(paused)
        scenario.wait_owners(*members, newcomer)
        if read_on:
            break
        scenario.close(newcomer)
        scenario.wait_owners(*members)
    else:
        raise Failed(f"partitions {sorted(reading)} were not read on in any of {ATTEMPTS} rebalances")
    scenario.wait_read_on()
    events = scenario.watch.events[since:]
    faults = []
    for member, partitions in had.items():
        stayed = partitions & scenario.watch.owned[member.name]
        if len(stayed) < EACH:
            faults.append(f"{member.name} kept {sorted(stayed)} of {sorted(partitions)}")
        for event in heard(events, member.name, stayed):
            faults.append(f"{member.name} kept {sorted(stayed)}, but heard {event.kind} {event.fields}")
    return faults + scenario.finish(*members, newcomer)


def is_rebalancing(group):
    return group.state == "PreparingRebalance"


def reads_on_in_rebalance(scenario, partitions):
    """Whether new records of all these partitions are read before the rebalance ends."""
    ends = {p: end + 1 for p, end in scenario.load.ends().items() if p in partitions}
    while is_rebalancing(scenario.server.group(scenario.group)):
        read = scenario.all_read(ends)
        # Read before the group is asked once more, so it was read in the rebalance.
        if read and is_rebalancing(scenario.server.group(scenario.group)):
            return True
        time.sleep(0.05)
    return False


def static(scenario, client):
    """Two members with an instance id each; either is killed and started again within its session time-out."""
    members = [scenario.start(client, f"instance-{i}") for i in range(2)]
    scenario.wait_owners(*members)
    faults = []
    # One of the two leads the group.
    for i in range(2):
        for _ in range(ATTEMPTS):
            scenario.wait_read_on()
            in_time, found = restart(scenario, members, i)
            if in_time:
                faults += found
                break
        else:
            raise Failed(f"no member had its partitions back within {SESSION_TIMEOUT} s in {ATTEMPTS} attempts")
    return faults + scenario.finish(*members)


def restart(scenario, members, i):
    """Whether it was back before its session ended, and what was wrong."""
    old, other = members[i], members[1 - i]
    had, since = set(scenario.watch.owned[old.name]), len(scenario.watch.events)
    killed = scenario.kill(old)
    members[i] = scenario.start(old.client, f"instance-{i}")
    scenario.wait_owners(*members)
    took = time.monotonic() - killed
    # Were its old membership still there, it would end now.
    time.sleep(max(0, SESSION_TIMEOUT + 1 - took))
    scenario.wait_owners(*members)
    faults = []
    if scenario.watch.owned[members[i].name] != had:
        faults.append(f"{old.name} had {sorted(had)}, is back with {sorted(scenario.watch.owned[members[i].name])}")
    everything = set(range(scenario.partitions))
    for event in heard(scenario.watch.events[since:], other.name, everything):
        faults.append(f"{other.name} heard {event.kind} {event.fields}, {took:.1f} s after the other was killed")
    # Heartbeats are HEARTBEAT apart, so the session may have begun so much before the kill.
    return took < SESSION_TIMEOUT - HEARTBEAT, faults
