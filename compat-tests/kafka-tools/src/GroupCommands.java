import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.internals.Exit;
import org.apache.kafka.tools.GroupsCommand;
import org.apache.kafka.tools.consumer.group.ConsumerGroupCommand;

/**
 * Kafka's own kafka-consumer-groups and kafka-groups against one server that is empty at first: the
 * same commands, topics, commits and members every time, in one JVM. For each command a line "$ command",
 * what it said, and "exit N".
 */
public final class GroupCommands {
    /** For whatever is waited for. */
    private static final Duration PATIENCE = Duration.ofSeconds(120);

    /** 2023-11-14T22:00:00Z. */
    private static final long LONG_AGO = 1_699_999_200_000L;
    private static final long MINUTE = 60_000;

    /** Every way to say where a group is to be. */
    private static final List<List<String>> RESETS = List.of(
        List.of("--to-earliest"),
        List.of("--to-latest"),
        List.of("--to-offset", "3"),
        List.of("--to-offset", "1000"),
        List.of("--to-offset", "-5"),
        List.of("--shift-by", "1"),
        List.of("--shift-by", "-1"),
        List.of("--shift-by", "1000"),
        List.of("--shift-by", "-1000"),
        List.of("--to-datetime", "2023-11-14T22:03:00.001"),
        List.of("--to-datetime", "2100-01-01T00:00:00.000Z"),
        List.of("--by-duration", "PT150M"),
        List.of("--by-duration", "P36500D"),
        List.of("--to-current"));

    private static final PrintStream TRANSCRIPT = System.out;

    private final String bootstrap;
    private final Path work;
    private final Admin admin;

    private GroupCommands(String bootstrap, Path work, Admin admin) {
        this.bootstrap = bootstrap;
        this.work = work;
        this.admin = admin;
    }

    public static void main(String[] args) throws Exception {
        if (args.length != 2) {
            System.err.println("usage: GroupCommands BOOTSTRAP DIR");
            System.exit(2);
        }
        try (Admin admin = Admin.create(Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]))) {
            new GroupCommands(args[0], Path.of(args[1]), admin).run();
        }
    }

    private void run() throws Exception {
        topics();
        noGroups();
        withoutMembers();
        reset();
        resetMore();
        resetFromFile();
        deleteOffsets();
        members();
        moreMembersThanPartitions();
        readToTheEnd();
        deletedTopic();
        delete();
    }

    private void topics() throws Exception {
        admin.createTopics(List.of(
            new NewTopic("orders", 3, (short) 1),
            new NewTopic("other", 1, (short) 1),
            new NewTopic("late", 1, (short) 1))).all().get();
        for (int n = 0; n < 10; n++) {
            produce("orders", 0, LONG_AGO + n * MINUTE);
        }
        // For --by-duration: 5, 4, 3, 2 and 1 hours old.
        long now = System.currentTimeMillis();
        for (int hours = 5; hours > 0; hours--) {
            produce("orders", 1, now - hours * 60 * MINUTE);
        }
        for (int n = 0; n < 3; n++) {
            produce("other", 0, LONG_AGO + n * MINUTE);
        }
        produce("late", 0, LONG_AGO);
    }

    private void noGroups() throws Exception {
        list();
        describe("--all-groups");
        describe("--group", "none");
        command("--delete", "--group", "none");
        command("--delete", "--all-groups");
        command("--delete-offsets", "--group", "none", "--topic", "orders");
        command("--reset-offsets", "--all-groups", "--all-topics", "--to-latest", "--dry-run");
        command("--reset-offsets", "--group", "none", "--topic", "orders", "--to-latest", "--dry-run");
        command("--reset-offsets", "--group", "none", "--all-topics", "--to-latest", "--dry-run");
        command("--list");
    }

    private void withoutMembers() throws Exception {
        commit("simple", "orders", 0, 4, "");
        commit("simple", "orders", 1, 2, "a note");
        list();
        describe("--group", "simple");
        for (int n = 10; n < 15; n++) {
            produce("orders", 0, LONG_AGO + n * MINUTE);
        }
        command("--describe", "--group", "simple");
        // Past the end of the log.
        commit("ahead", "orders", 0, 1000, "");
        describe("--group", "ahead");
        command("--delete", "--group", "ahead");
        // Made by a reset, not by a consumer.
        command("--reset-offsets", "--group", "fresh", "--topic", "orders", "--to-earliest", "--execute");
        describe("--group", "fresh");
        describe("--all-groups");
        describe("--group", "simple", "--group", "none", "--group", "fresh");
        command("--delete", "--group", "fresh", "--group", "none");
    }

    private void reset() throws Exception {
        for (List<String> to : RESETS) {
            place("simple");
            command(to, "--reset-offsets", "--group", "simple", "--topic", "orders", "--dry-run");
            command(to, "--reset-offsets", "--group", "simple", "--all-topics", "--dry-run");
            command(to, "--reset-offsets", "--group", "simple", "--topic", "orders:0,2", "--execute");
            command("--describe", "--group", "simple");
            command(to, "--reset-offsets", "--group", "simple", "--all-topics", "--execute");
            command("--describe", "--group", "simple");
        }
    }

    private void resetMore() throws Exception {
        place("simple");
        commit("second", "other", 0, 2, "");
        // Without --dry-run and --execute; then what the server does not know.
        command("--reset-offsets", "--group", "simple", "--topic", "orders", "--to-latest");
        for (String topic : List.of("nowhere", "nowhere:0", "orders:0,9", "orders:x")) {
            command("--reset-offsets", "--group", "simple", "--topic", topic, "--to-latest", "--execute");
            command("--reset-offsets", "--group", "simple", "--topic", topic, "--to-current", "--dry-run");
        }
        command("--reset-offsets", "--group", "simple", "--topic", "orders:1", "--topic", "other", "--to-latest",
            "--execute");
        command("--reset-offsets", "--group", "simple", "--group", "second", "--all-topics", "--to-earliest",
            "--dry-run");
        command("--reset-offsets", "--all-groups", "--all-topics", "--to-latest", "--execute");
        describe("--all-groups");
    }

    private void resetFromFile() throws Exception {
        place("simple");
        Said one = command("--reset-offsets", "--group", "simple", "--topic", "orders", "--to-current", "--export",
            "--dry-run");
        Said both = command("--reset-offsets", "--group", "simple", "--group", "second", "--all-topics",
            "--to-earliest", "--export", "--dry-run");
        command("--reset-offsets", "--group", "simple", "--all-topics", "--to-latest", "--export", "--execute");
        fromFile("exported.csv", one.text, "--group", "simple");
        fromFile("exported-both.csv", both.text, "--group", "simple", "--group", "second");
        fromFile("bounds.csv", "orders,0,3\norders,1,1000\nother,0,0\n", "--group", "simple");
        // Not with an unknown topic or partition: the tool asks for half a minute and then tells how often.
        fromFile("malformed.csv", "orders,zero,1\n", "--group", "simple");
        command("--delete", "--group", "second");
    }

    private void fromFile(String name, String content, String... groups) throws Exception {
        Path file = work.resolve(name);
        Files.writeString(file, content);
        List<String> from = List.of("--from-file", file.toString());
        command(from, with(groups, "--reset-offsets", "--dry-run"));
        command(from, with(groups, "--reset-offsets", "--execute"));
        command("--describe", "--all-groups");
    }

    private void deleteOffsets() throws Exception {
        place("simple");
        command("--delete-offsets", "--group", "simple", "--topic", "orders:1");
        command("--delete-offsets", "--group", "simple", "--topic", "nowhere");
        command("--delete-offsets", "--group", "simple", "--topic", "nowhere:0", "--topic", "orders:9");
        command("--delete-offsets", "--group", "none", "--topic", "nowhere");
        describe("--group", "simple");
        command("--delete-offsets", "--group", "simple", "--topic", "other", "--topic", "late");
        describe("--group", "simple");
        commit("emptied", "orders", 0, 4, "");
        command("--delete-offsets", "--group", "emptied", "--topic", "orders:0");
        describe("--group", "emptied");
        command("--delete-offsets", "--group", "emptied", "--topic", "orders");
        command("--list", "--state");
        command("--delete", "--group", "emptied");
    }

    private void members() throws Exception {
        // Partition 2 has no commit, "other" no subscriber.
        commit("live", "orders", 0, 5, "");
        commit("live", "orders", 1, 1, "");
        commit("live", "other", 0, 1, "");
        Member dynamic = new Member("live", "dynamic", null, "orders");
        Member fixed = new Member("live", "static", "the-instance", "orders");
        stable("live", 2);
        list();
        describe("--group", "live");
        describe("--all-groups");
        produce("orders", 0, LONG_AGO);
        produce("orders", 2, LONG_AGO);
        command("--describe", "--group", "live");
        for (List<String> to : List.of(List.of("--to-earliest"), List.of("--shift-by", "-1"))) {
            command(to, "--reset-offsets", "--group", "live", "--topic", "orders", "--dry-run");
            command(to, "--reset-offsets", "--group", "live", "--all-topics", "--execute");
            command(to, "--reset-offsets", "--group", "live", "--group", "simple", "--all-topics", "--dry-run");
        }
        fromFile("live.csv", "orders,0,1\n", "--group", "live");
        command("--reset-offsets", "--all-groups", "--all-topics", "--to-current", "--execute");
        command("--delete", "--group", "live");
        commit("unused", "other", 0, 1, "");
        command("--delete", "--group", "unused", "--group", "live", "--group", "none");
        command("--delete-offsets", "--group", "live", "--topic", "orders");
        command("--delete-offsets", "--group", "live", "--topic", "orders:2", "--topic", "nowhere");
        command("--delete-offsets", "--group", "live", "--topic", "orders:0", "--topic", "other");
        describe("--group", "live");

        dynamic.leave();
        stable("live", 1);
        describe("--group", "live");
        fixed.leave();
        list();
        describe("--group", "live");
        command("--reset-offsets", "--group", "live", "--topic", "orders", "--to-earliest", "--execute");
        command("--describe", "--group", "live");
        command("--delete-offsets", "--group", "live", "--topic", "orders:0");
        command("--delete-offsets", "--group", "live", "--topic", "orders");
        describe("--group", "live");
        command("--delete", "--group", "live");
        describe("--group", "live");
    }

    private void moreMembersThanPartitions() throws Exception {
        List<Member> members = List.of(
            new Member("crowd", "first", null, "other"),
            new Member("crowd", "second", null, "other", "late"),
            new Member("crowd", "third", null, "other"));
        stable("crowd", 3);
        describe("--group", "crowd");
        command("--delete-offsets", "--group", "crowd", "--topic", "orders");
        command("--reset-offsets", "--group", "crowd", "--all-topics", "--to-latest", "--dry-run");
        for (Member member : members) {
            member.leave();
        }
        describe("--group", "crowd");
        command("--reset-offsets", "--group", "crowd", "--all-topics", "--to-latest", "--execute");
        command("--delete", "--group", "crowd");
    }

    private void readToTheEnd() throws Exception {
        Member reader = new Member("reader", "reader", null, "orders", "other");
        reader.commits = true;
        until("a commit at the end of other", () -> {
            OffsetAndMetadata committed = admin.listConsumerGroupOffsets("reader").partitionsToOffsetAndMetadata().get()
                .get(new TopicPartition("other", 0));
            return committed != null && committed.offset() == 3;
        });
        until("a commit at the end of orders", () -> admin.listConsumerGroupOffsets("reader")
            .partitionsToOffsetAndMetadata().get().entrySet().stream()
            .filter(entry -> entry.getKey().topic().equals("orders"))
            .mapToLong(entry -> entry.getValue().offset()).sum() == 16 + 5 + 1);
        describe("--group", "reader");
        reader.leave();
        describe("--group", "reader");
    }

    private void deletedTopic() throws Exception {
        commit("orphan", "late", 0, 1, "");
        commit("half", "late", 0, 1, "");
        commit("half", "other", 0, 1, "");
        admin.deleteTopics(List.of("late")).all().get();
        // Kafka's coordinator hears of it later.
        for (String group : List.of("orphan", "half")) {
            until(group + " has no offset of late", () -> admin.listConsumerGroupOffsets(group)
                .partitionsToOffsetAndMetadata().get().keySet().stream()
                .noneMatch(partition -> partition.topic().equals("late")));
        }
        describe("--group", "half");
        describe("--group", "orphan");
        command("--reset-offsets", "--group", "half", "--all-topics", "--to-latest", "--execute");
        command("--delete-offsets", "--group", "half", "--topic", "late");
        command("--delete", "--group", "orphan");
    }

    private void delete() throws Exception {
        Member last = new Member("last", "last", null, "orders");
        stable("last", 1);
        command("--list", "--state");
        command("--delete", "--group", "half", "--group", "reader");
        command("--delete", "--group", "half");
        command("--delete", "--all-groups");
        list();
        last.leave();
        command("--delete", "--all-groups");
        list();
    }

    private void list() throws Exception {
        command("--list");
        command("--list", "--state");
        command("--list", "--state", "Empty");
        command("--list", "--state", "stable,PreparingRebalance");
        command("--list", "--type");
        command("--list", "--type", "classic");
        command("--list", "--type", "consumer");
        command("--list", "--type", "classic", "--state", "stable");
        run("kafka-groups", GroupsCommand::main, List.of("--list"));
        run("kafka-groups", GroupsCommand::main, List.of("--list", "--consumer"));
        run("kafka-groups", GroupsCommand::main, List.of("--list", "--group-type", "classic"));
        run("kafka-groups", GroupsCommand::main, List.of("--list", "--protocol", "consumer"));
    }

    private void describe(String... groups) throws Exception {
        command(with(groups, "--describe"));
        command(with(groups, "--describe", "--offsets", "--verbose"));
        command(with(groups, "--describe", "--members"));
        command(with(groups, "--describe", "--members", "--verbose"));
        command(with(groups, "--describe", "--state"));
        command(with(groups, "--describe", "--state", "--verbose"));
    }

    private static String[] with(String[] groups, String... others) {
        return Stream.concat(Stream.of(others), Stream.of(groups)).toArray(String[]::new);
    }

    private Said command(String... arguments) throws Exception {
        return command(List.of(), arguments);
    }

    private Said command(List<String> last, String... arguments) throws Exception {
        List<String> all = new ArrayList<>(List.of(arguments));
        all.addAll(last);
        return run("kafka-consumer-groups", ConsumerGroupCommand::main, all);
    }

    private interface Tool {
        void main(String[] arguments) throws Exception;
    }

    private record Said(String text, int status) {}

    /** A tool that thinks that it has exited. */
    private static final class Exited extends RuntimeException {
        private static final long serialVersionUID = 1;
    }

    /** What a tool writes until it exits: the tools catch what Exited is, and would go on to speak of it. */
    private static final class Capture extends OutputStream {
        private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        private int status;
        private boolean hasExited;

        @Override
        public synchronized void write(int one) {
            if (!hasExited) {
                bytes.write(one);
            }
        }

        synchronized void exit(int status) {
            if (!hasExited) {
                hasExited = true;
                this.status = status;
            }
        }
    }

    private Said run(String name, Tool tool, List<String> arguments) throws Exception {
        List<String> all = new ArrayList<>(List.of("--bootstrap-server", bootstrap));
        all.addAll(arguments);
        Capture capture = new Capture();
        PrintStream captured = new PrintStream(capture, true, StandardCharsets.UTF_8);
        PrintStream out = System.out;
        PrintStream error = System.err;
        Exit.Procedure exit = (status, message) -> {
            captured.flush();
            capture.exit(status);
            throw new Exited();
        };
        System.setOut(captured);
        System.setErr(captured);
        Exit.setExitProcedure(exit);
        try {
            tool.main(all.toArray(String[]::new));
        } catch (Exited exited) {
            // Its status stands in the capture.
        } finally {
            captured.flush();
            System.setOut(out);
            System.setErr(error);
            Exit.resetExitProcedure();
        }
        Said said = new Said(capture.bytes.toString(StandardCharsets.UTF_8), capture.status);
        TRANSCRIPT.println("$ " + name + " " + String.join(" ", arguments));
        TRANSCRIPT.print(said.text);
        if (!said.text.isEmpty() && !said.text.endsWith("\n")) {
            TRANSCRIPT.println();
        }
        TRANSCRIPT.println("exit " + said.status);
        return said;
    }

    private void produce(String topic, int partition, long timestamp) throws Exception {
        Map<String, Object> config = Map.of(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        try (var producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
            byte[] value = "value".getBytes(StandardCharsets.UTF_8);
            producer.send(new ProducerRecord<>(topic, partition, timestamp, null, value)).get();
        }
    }

    /** Commits without being a member. */
    private void commit(String group, String topic, int partition, long offset, String metadata) {
        try (var consumer = consumer(group, "committer", null)) {
            var at = new OffsetAndMetadata(offset, metadata);
            consumer.commitSync(Map.of(new TopicPartition(topic, partition), at), PATIENCE);
        }
    }

    /** Where every reset begins: partition 2 of orders has no commit. */
    private void place(String group) throws Exception {
        try {
            admin.deleteConsumerGroupOffsets(group, Set.of(new TopicPartition("orders", 2))).all().get();
        } catch (ExecutionException gone) {
            // The group may have lost its last offset.
        }
        commit(group, "orders", 0, 4, "");
        commit(group, "orders", 1, 2, "");
        commit(group, "other", 0, 1, "");
    }

    private KafkaConsumer<byte[], byte[]> consumer(String group, String clientId, String instanceId) {
        Map<String, Object> config = new HashMap<>(Map.of(
            ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap,
            ConsumerConfig.GROUP_ID_CONFIG, group,
            ConsumerConfig.CLIENT_ID_CONFIG, clientId,
            ConsumerConfig.GROUP_PROTOCOL_CONFIG, "classic",
            ConsumerConfig.PARTITION_ASSIGNMENT_STRATEGY_CONFIG, RangeAssignor.class.getName(),
            ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false,
            ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG, 200,
            ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest"));
        if (instanceId != null) {
            config.put(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG, instanceId);
        }
        return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** A consumer in a thread of its own, from the first poll to leave(). */
    private final class Member {
        private final KafkaConsumer<byte[], byte[]> consumer;
        private final Thread thread;
        private volatile boolean commits;
        private volatile boolean leaves;

        Member(String group, String clientId, String instanceId, String... topics) {
            consumer = consumer(group, clientId, instanceId);
            consumer.subscribe(List.of(topics));
            thread = new Thread(this::poll, clientId);
            // A failed run ends all the same.
            thread.setDaemon(true);
            thread.start();
        }

        private void poll() {
            while (!leaves) {
                boolean isEmpty = consumer.poll(Duration.ofMillis(50)).isEmpty();
                if (commits && !isEmpty) {
                    consumer.commitSync();
                }
            }
            var leave = CloseOptions.GroupMembershipOperation.LEAVE_GROUP;
            consumer.close(CloseOptions.groupMembershipOperation(leave).withTimeout(PATIENCE));
        }

        void leave() throws InterruptedException {
            leaves = true;
            thread.join(PATIENCE.toMillis());
            if (thread.isAlive()) {
                throw new IllegalStateException(thread.getName() + " did not leave");
            }
        }
    }

    private void stable(String group, int members) throws Exception {
        until(group + " is stable with " + members, () -> {
            // A group that is not there yet is listed as little as an unstable one.
            var stable = ListGroupsOptions.forConsumerGroups().inGroupStates(Set.of(GroupState.STABLE));
            if (admin.listGroups(stable).all().get().stream().noneMatch(listed -> listed.groupId().equals(group))) {
                return false;
            }
            var described = admin.describeConsumerGroups(List.of(group)).describedGroups().get(group).get();
            return described.groupState() == GroupState.STABLE && described.members().size() == members;
        });
    }

    private static void until(String what, Callable<Boolean> done) throws Exception {
        Instant deadline = Instant.now().plus(PATIENCE);
        while (!done.call()) {
            if (Instant.now().isAfter(deadline)) {
                throw new IllegalStateException("waited in vain: " + what);
            }
            Thread.sleep(20);
        }
    }
}
