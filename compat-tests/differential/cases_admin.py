"""ApiVersions, Metadata, topics, configs, cluster, coordinator."""

import time
import uuid

import batch
from peer import list_offsets, versions

SOME_ID = uuid.UUID("01234567-89ab-4def-8123-456789abcdef")


def case_api_versions(peer):
    for version in [*versions("ApiVersions")]:
        for label, body in (
            ("with a name", {"ClientSoftwareName": "differential", "ClientSoftwareVersion": "1.0"}),
            ("empty name", {"ClientSoftwareName": "", "ClientSoftwareVersion": "1.0"}),
            ("odd name", {"ClientSoftwareName": "a b", "ClientSoftwareVersion": "1.0"}),
            ("odd version", {"ClientSoftwareName": "a", "ClientSoftwareVersion": "-1"}),
            ("end in dash", {"ClientSoftwareName": "a-", "ClientSoftwareVersion": "1"}),
        ):
            values = peer.call("ApiVersions", version, body)
            values["ApiKeys"] = len(values["ApiKeys"]) > 0
            for optional in (
                "SupportedFeatures",
                "FinalizedFeatures",
                "FinalizedFeaturesEpoch",
                "ZkMigrationReady",
            ):
                values.pop(optional, None)
            peer.note(f"{label} v{version}", values)


def case_metadata(peer):
    name = peer.topic("known", 3)
    identity = peer.topic_id(name)
    other = peer.topic("other")
    for version in versions("Metadata"):
        peer.ask("one topic", "Metadata", version, {"Topics": [{"Name": name}]})
        peer.ask("two topics", "Metadata", version, {"Topics": [{"Name": other}, {"Name": name}]})
        peer.ask("the same topic twice", "Metadata", version, {"Topics": [{"Name": name}, {"Name": name}]})
        if version >= 1:
            peer.ask("no topics", "Metadata", version, {"Topics": []})
        for label, topics in (("all", None if version >= 1 else []),):
            values = peer.call("Metadata", version, {"Topics": topics})
            mine = [topic for topic in values["Topics"] if topic["Name"] in (name, other)]
            values["Topics"] = sorted(mine, key=lambda topic: topic["Name"])
            peer.note(f"{label} v{version}", values)
        if version >= 4:
            peer.ask(
                "unknown",
                "Metadata",
                version,
                {
                    "Topics": [{"Name": peer.name_of("unknown")}, {"Name": name}],
                    "AllowAutoTopicCreation": False,
                },
            )
        for label, bad in (
            ("empty", ""),
            ("dot", "."),
            ("dots", ".."),
            ("space", "a b"),
            ("slash", "a/b"),
            ("long", "x" * 250),
            ("umlaut", "ä"),
        ):
            peer.ask(
                f"name {label}",
                "Metadata",
                version,
                {"Topics": [{"Name": bad}], **({"AllowAutoTopicCreation": False} if version >= 4 else {})},
            )
            peer.ask(f"make name {label}", "Metadata", version, {"Topics": [{"Name": bad}]})
        if version >= 10:
            peer.ask("null name", "Metadata", version, {"Topics": [{"Name": None}]})
            peer.ask("by id", "Metadata", version, {"Topics": [{"TopicId": identity, "Name": None}]})
            peer.ask("id and name", "Metadata", version, {"Topics": [{"TopicId": identity, "Name": name}]})
            peer.ask(
                "id and other name", "Metadata", version, {"Topics": [{"TopicId": identity, "Name": other}]}
            )
            peer.ask("unknown id", "Metadata", version, {"Topics": [{"TopicId": SOME_ID, "Name": None}]})
            peer.ask(
                "unknown id and name", "Metadata", version, {"Topics": [{"TopicId": SOME_ID, "Name": name}]}
            )
            peer.ask(
                "ids and names",
                "Metadata",
                version,
                {"Topics": [{"TopicId": identity, "Name": None}, {"Name": other}]},
            )
            peer.ask(
                "known and unknown id",
                "Metadata",
                version,
                {"Topics": [{"TopicId": SOME_ID, "Name": None}, {"TopicId": identity, "Name": None}]},
            )
        if 8 <= version <= 10:
            peer.ask(
                "cluster operations",
                "Metadata",
                version,
                {"Topics": [], "IncludeClusterAuthorizedOperations": True},
            )
        if version >= 8:
            peer.ask(
                "topic operations",
                "Metadata",
                version,
                {"Topics": [{"Name": name}], "IncludeTopicAuthorizedOperations": True},
            )


def case_auto_create(peer):
    for version in versions("Metadata"):
        name = peer.name_of(f"v{version}")
        peer.call("Metadata", version, {"Topics": [{"Name": name}]})
        peer.wait_for(name, 2)
        peer.ask("made by the first call", "Metadata", version, {"Topics": [{"Name": name}]})
    for version in (4, 12):
        name = peer.name_of(f"not-v{version}")
        peer.call("Metadata", version, {"Topics": [{"Name": name}], "AllowAutoTopicCreation": False})
        time.sleep(0.3)
        peer.ask(
            "not made", "Metadata", version, {"Topics": [{"Name": name}], "AllowAutoTopicCreation": False}
        )
    colliding = peer.topic("with.dot")
    peer.ask("collides", "Metadata", 9, {"Topics": [{"Name": colliding.replace(".", "_")}]})
    time.sleep(0.3)
    peer.ask("collides again", "Metadata", 9, {"Topics": [{"Name": colliding.replace(".", "_")}]})


def new_topic(name, partitions=1, factor=1, assignments=(), configs=()):
    return {
        "Name": name,
        "NumPartitions": partitions,
        "ReplicationFactor": factor,
        "Assignments": [{"PartitionIndex": p, "BrokerIds": list(b)} for p, b in assignments],
        "Configs": [{"Name": k, "Value": v} for k, v in configs],
    }


def create(peer, label, version, *topics, validate=False):
    body = {"Topics": list(topics), "timeoutMs": 15000, "validateOnly": validate}
    values = peer.call("CreateTopics", version, body)
    for topic in values["Topics"]:
        if topic.get("Configs"):
            # The same configs, in any order; which ones there are is compared by DescribeConfigs.
            wanted = {name for given in topics for name in (c["Name"] for c in given["Configs"])}
            topic["Configs"] = sorted(
                (c for c in topic["Configs"] if c["Name"] in wanted), key=lambda config: config["Name"]
            )
    values["Topics"].sort(key=lambda topic: topic["Name"])
    peer.note(f"{label} v{version}", values)


CONFIGS = (
    ("retention.ms", "1000"),
    ("retention.ms", "-1"),
    ("retention.ms", "-2"),
    ("retention.ms", "x"),
    ("retention.ms", ""),
    ("retention.ms", None),
    ("retention.ms", " 5 "),
    ("no.such", "1"),
    ("retention.ms", "9223372036854775807"),
    ("retention.ms", "9223372036854775808"),
    ("cleanup.policy", "compact"),
    ("cleanup.policy", "delete"),
    ("cleanup.policy", "compact,delete"),
    ("cleanup.policy", "compact, delete"),
    ("cleanup.policy", "none"),
    ("cleanup.policy", ""),
    ("cleanup.policy", "delete,delete"),
    ("cleanup.policy", "Compact"),
    ("max.message.bytes", "0"),
    ("max.message.bytes", "-1"),
    ("max.message.bytes", "2147483648"),
    ("min.insync.replicas", "0"),
    ("min.insync.replicas", "1"),
    ("min.insync.replicas", "2"),
    ("compression.type", "producer"),
    ("compression.type", "zstd"),
    ("compression.type", "bzip"),
    ("compression.type", "uncompressed"),
    ("compression.gzip.level", "10"),
    ("compression.gzip.level", "9"),
    ("compression.lz4.level", "9"),
    ("compression.zstd.level", "23"),
    ("compression.zstd.level", "3"),
    ("message.timestamp.type", "LogAppendTime"),
    ("message.timestamp.type", "CreateTime"),
    ("message.timestamp.type", "createtime"),
    ("message.timestamp.before.max.ms", "-1"),
    ("message.timestamp.after.max.ms", "0"),
    ("message.timestamp.difference.max.ms", "1"),
    ("message.format.version", "3.0"),
    ("message.downconversion.enable", "true"),
    ("segment.bytes", "13"),
    ("segment.bytes", "1048576"),
    ("segment.bytes", "1000000"),
    ("segment.ms", "0"),
    ("segment.ms", "1"),
    ("segment.index.bytes", "3"),
    ("segment.jitter.ms", "-1"),
    ("flush.messages", "0"),
    ("flush.ms", "0"),
    ("min.cleanable.dirty.ratio", "1.1"),
    ("min.cleanable.dirty.ratio", "0.5"),
    ("min.cleanable.dirty.ratio", "NaN"),
    ("min.compaction.lag.ms", "-1"),
    ("max.compaction.lag.ms", "0"),
    ("delete.retention.ms", "-1"),
    ("file.delete.delay.ms", "-1"),
    ("index.interval.bytes", "-1"),
    ("preallocate", "true"),
    ("preallocate", "TRUE"),
    ("preallocate", "yes"),
    ("unclean.leader.election.enable", "true"),
    ("leader.replication.throttled.replicas", "*"),
    ("leader.replication.throttled.replicas", "1:1"),
    ("leader.replication.throttled.replicas", "x"),
    ("leader.replication.throttled.replicas", ""),
    ("follower.replication.throttled.replicas", "0:1,1:1"),
    ("local.retention.ms", "-2"),
    ("local.retention.ms", "-3"),
    ("local.retention.bytes", "-2"),
    ("remote.storage.enable", "false"),
    ("remote.storage.enable", "true"),
    ("remote.copy.disable", "false"),
    ("remote.log.copy.disable", "false"),
    ("remote.log.delete.on.disable", "false"),
    ("retention.bytes", "-1"),
    ("retention.bytes", "-2"),
    ("RETENTION.MS", "1"),
    ("", "1"),
)


def case_create_topics(peer):
    existing = peer.topic("existing")
    dotted = peer.topic("dot.ted")
    for version in versions("CreateTopics"):

        def name(suffix):
            return peer.name_of(f"v{version}-{suffix}")

        for validate in (True, False):
            word = "validate " if validate else ""

            def make(label, *topics):
                create(peer, word + label, version, *topics, validate=validate)

            make("plain", new_topic(name("plain"), 3))
            make("none")
            make("twice", new_topic(name("twice")), new_topic(name("twice")), new_topic(name("once")))
            make("exists", new_topic(existing))
            make("exists with bad config", new_topic(existing, configs=[("x", "y")]))
            make("exists twice", new_topic(existing), new_topic(existing))
            for label, bad in (
                ("empty", ""),
                ("dot", "."),
                ("dots", ".."),
                ("space", "a b"),
                ("slash", "a/b"),
                ("umlaut", "ä"),
                ("long", "x" * 250),
                ("249", version and f"{peer.prefix}{version}{validate}".ljust(249, "y")),
            ):
                make(f"name {label}", new_topic(bad))
            make("collides", new_topic(dotted.replace(".", "_")))
            make("collides in the request", new_topic(name("a.b")), new_topic(name("a_b")))
            for partitions in (0, -1, -2, 2):
                for factor in (0, -1, -2, 1):
                    make(
                        f"{partitions} partitions {factor} factor",
                        new_topic(name(f"p{partitions}f{factor}"), partitions, factor),
                    )
            make("factor too large", new_topic(name("factor2"), 1, 2))
            for label, partitions, factor, assigned in (
                ("good", -1, -1, [(0, [1]), (1, [1])]),
                ("unordered", -1, -1, [(1, [1]), (0, [1])]),
                ("with partitions", 2, -1, [(0, [1]), (1, [1])]),
                ("with factor", -1, 1, [(0, [1])]),
                ("with both", 1, 1, [(0, [1])]),
                ("gap", -1, -1, [(0, [1]), (2, [1])]),
                ("from one", -1, -1, [(1, [1])]),
                ("negative", -1, -1, [(-1, [1]), (0, [1])]),
                ("partition twice", -1, -1, [(0, [1]), (0, [1])]),
                ("no brokers", -1, -1, [(0, [])]),
                ("broker twice", -1, -1, [(0, [1, 1])]),
                ("unknown broker", -1, -1, [(0, [77])]),
                ("negative broker", -1, -1, [(0, [-1])]),
                ("uneven", -1, -1, [(0, [1]), (1, [1, 2])]),
            ):
                make(
                    f"assignment {label}",
                    new_topic(name("as-" + label.replace(" ", "-")), partitions, factor, assigned),
                )
            make("bad name and bad partitions", new_topic("a b", 0, 0))
            make("bad config and bad partitions", new_topic(name("two-faults"), 0, 1, configs=[("x", "y")]))
            make("good and bad", new_topic(name("good")), new_topic(name("bad"), 0))
            make("internal", new_topic("__consumer_offsets", 1, 1, configs=[("x", "y")]))
            make(
                "config twice",
                new_topic(name("config-twice"), configs=[("retention.ms", "1"), ("retention.ms", "2")]),
            )
            make(
                "two configs",
                new_topic(
                    name("two-configs"), configs=[("retention.ms", "1"), ("cleanup.policy", "compact")]
                ),
            )
        if version in (5, 7):
            for index, (key, value) in enumerate(CONFIGS):
                create(
                    peer,
                    f"config {key}={value!r}",
                    version,
                    new_topic(name(f"c{index}"), configs=[(key, value)]),
                )


def case_delete_topics(peer):
    for version in versions("DeleteTopics"):
        name = peer.topic(f"v{version}")
        other = peer.topic(f"v{version}-other")
        identity = peer.topic_id(other)

        def ask(label, *names, ids=()):
            body = {"TimeoutMs": 15000}
            if version >= 6:
                body["Topics"] = [{"Name": n} for n in names] + [{"Name": None, "TopicId": i} for i in ids]
            else:
                body["TopicNames"] = list(names)
            values = peer.call("DeleteTopics", version, body)
            values["Responses"].sort(key=lambda r: (str(r["Name"]), r["ErrorCode"]))
            peer.note(f"{label} v{version}", values)

        ask("none")
        ask("unknown", peer.name_of("unknown"))
        ask("bad name", "a b", "")
        ask("twice and once", name, name, peer.name_of("unknown"))
        ask("one", name)
        ask("again", name)
        if version >= 6:
            ask("unknown id", ids=[SOME_ID])
            ask("zero id", ids=[uuid.UUID(int=0)])
            for label, topics in (
                ("name and id", [{"Name": other, "TopicId": identity}]),
                ("name and its id", [{"Name": other}, {"Name": None, "TopicId": identity}]),
                ("id twice", [{"Name": None, "TopicId": identity}] * 2),
            ):
                values = peer.call("DeleteTopics", 6, {"TimeoutMs": 15000, "Topics": topics})
                values["Responses"].sort(key=lambda r: (str(r["Name"]), r["ErrorCode"]))
                peer.note(label, values)
            ask("by id", ids=[identity])
            ask("by id again", ids=[identity])
    name = peer.topic("remade")
    peer.produce(name, batch.batch(3, base_time=peer.start))
    peer.call("DeleteTopics", 5, {"TimeoutMs": 15000, "TopicNames": [name]})
    peer.topic("remade")
    peer.ask("end of a topic made again", "ListOffsets", 5, list_offsets(name, -1))


def describe(peer, label, version, *resources, synonyms=False, docs=False, only=None, drop=()):
    body = {
        "Resources": [
            {"ResourceType": t, "ResourceName": n, "ConfigurationKeys": k} for t, n, k in resources
        ],
        "IncludeSynonyms": synonyms,
        "IncludeDocumentation": docs,
    }
    values = peer.call("DescribeConfigs", version, body)
    for result in values["Results"]:
        for config in result["Configs"]:
            if config.get("Documentation") is not None:
                config["Documentation"] = "some"
            config["Synonyms"] = {f"{s['Source']} {s['Name']}": s["Value"] for s in config["Synonyms"]}
        result["Configs"] = {config.pop("Name"): config for config in result["Configs"]}
    values["Results"].sort(key=lambda r: (r["ResourceType"], r["ResourceName"]))
    peer.note(f"{label} v{version}", values)


def case_describe_configs(peer):
    name = peer.topic(
        "configured", 1, retention_ms="1234567", cleanup_policy="compact", max_message_bytes="2000000"
    )
    plain = peer.topic("plain")
    for version in versions("DescribeConfigs"):
        for synonyms in (False, True):
            word = " with synonyms" if synonyms else ""
            describe(peer, "topic" + word, version, (2, name, None), synonyms=synonyms)
            describe(peer, "plain topic" + word, version, (2, plain, None), synonyms=synonyms)
        describe(peer, "with documentation", version, (2, name, ["retention.ms"]), docs=True)
        describe(peer, "filter", version, (2, name, ["retention.ms", "no.such", "cleanup.policy"]))
        describe(peer, "empty filter", version, (2, name, []))
        describe(peer, "unknown topic", version, (2, peer.name_of("unknown"), None))
        describe(peer, "bad topic", version, (2, "a b", None))
        describe(peer, "empty topic", version, (2, "", None))
        describe(
            peer,
            "broker filter",
            version,
            (
                4,
                "1",
                [
                    "num.partitions",
                    "message.max.bytes",
                    "auto.create.topics.enable",
                    "default.replication.factor",
                    "broker.id",
                ],
            ),
        )
        for broker in ("2", "x", "-1", ""):
            describe(peer, f"broker {broker!r}", version, (4, broker, ["log.retention.ms"]))
        describe(peer, "logger", version, (8, "2", None))
        for kind in (0, 1, 3, 5, 127, -1):
            describe(peer, f"type {kind}", version, (kind, "1", None))
        describe(peer, "none", version)
        describe(
            peer,
            "several",
            version,
            (2, name, ["retention.ms"]),
            (2, plain, ["retention.ms"]),
            (4, "1", ["num.partitions"]),
        )
        describe(peer, "twice", version, (2, name, ["retention.ms"]), (2, name, ["retention.ms"]))


def case_find_coordinator(peer):
    for version in versions("FindCoordinator"):
        for kind in (0, 1, 2, 3, -1):
            if version == 0 and kind:
                continue
            for key in ("group", ""):
                body = {"KeyType": kind} if version else {}
                body.update({"CoordinatorKeys": [key]} if version >= 4 else {"Key": key})
                for _ in range(100):
                    values = peer.call("FindCoordinator", version, body)
                    rows = values.get("Coordinators", [values])
                    if all(row["ErrorCode"] != 15 for row in rows):
                        break
                    time.sleep(0.1)
                peer.note(f"type {kind} key {key!r} v{version}", values)
        if version >= 4:
            peer.ask("no keys", "FindCoordinator", version, {"KeyType": 0, "CoordinatorKeys": []})
            peer.ask("keys", "FindCoordinator", version, {"KeyType": 0, "CoordinatorKeys": ["a", "b", "a"]})


def case_init_producer_id(peer):
    peer.producer_id()
    for version in versions("InitProducerId"):
        for label, body in (
            ("null", {"TransactionalId": None}),
            ("no timeout", {"TransactionalId": None, "TransactionTimeoutMs": 0}),
            ("empty", {"TransactionalId": ""}),
        ):
            peer.ask(label, "InitProducerId", version, {"TransactionTimeoutMs": 60000, **body})
        if version >= 3:
            pid, epoch = peer.producer_id()
            for label, current in (
                ("current", (pid, epoch)),
                ("no epoch", (pid, -1)),
                ("no id", (-1, 0)),
                ("unknown", (1 << 40, 3)),
                ("negative", (-2, -2)),
                ("other epoch", (pid, 7)),
                ("last epoch", (pid, 32767)),
                ("last but one", (pid, 32766)),
            ):
                values = peer.call(
                    "InitProducerId",
                    version,
                    {
                        "TransactionalId": None,
                        "TransactionTimeoutMs": 60000,
                        "ProducerId": current[0],
                        "ProducerEpoch": current[1],
                    },
                )
                values["same id"] = values["ProducerId"] == current[0]
                peer.note(f"{label} v{version}", values)


def case_describe_cluster(peer):
    for version in versions("DescribeCluster"):
        for operations in (False, True):
            for kind in (1, 2, 3, 0, -1) if version >= 1 else (1,):
                body = {"IncludeClusterAuthorizedOperations": operations}
                if version >= 1:
                    body["EndpointType"] = kind
                peer.ask(f"endpoint {kind} operations {operations}", "DescribeCluster", version, body)
        if version >= 2:
            peer.ask("fenced", "DescribeCluster", version, {"IncludeFencedBrokers": True})
