import com.google.gson.JsonArray;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The group verb of the compatibility tests: one member of a group, until standard input ends. */
public final class GroupMember implements ConsumerRebalanceListener {
    private static final Duration POLL = Duration.ofMillis(200);
    private static final Duration COMMIT = Duration.ofSeconds(4);
    private static final Duration CLOSE = Duration.ofSeconds(4);

    private static final Map<String, Class<?>> ASSIGNORS = Map.of(
        "range", RangeAssignor.class,
        "roundrobin", RoundRobinAssignor.class,
        "cooperative-sticky", CooperativeStickyAssignor.class);

    private static final HexFormat HEX = HexFormat.of();

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final PrintStream out = new PrintStream(
        new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);

    /** What was processed and is not committed: the next offset of each partition. */
    private final Map<TopicPartition, OffsetAndMetadata> pending =
        new TreeMap<>(Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition));

    private GroupMember(KafkaConsumer<byte[], byte[]> consumer) {
        this.consumer = consumer;
    }

    public static void main(String[] args) throws IOException {
        if (args.length < 4 || args.length > 5 || !ASSIGNORS.containsKey(args[3])) {
            System.err.println("usage: BOOTSTRAP TOPIC GROUP ASSIGNOR [INSTANCE_ID], ASSIGNOR of " + ASSIGNORS.keySet());
            System.exit(2);
        }
        Map<String, Object> config = new HashMap<>(Map.of(
            ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, args[0],
            ConsumerConfig.GROUP_ID_CONFIG, args[2],
            ConsumerConfig.PARTITION_ASSIGNMENT_STRATEGY_CONFIG, List.of(ASSIGNORS.get(args[3])),
            ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest",
            ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false,
            ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG, 6_000,
            ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG, 500,
            ConsumerConfig.MAX_POLL_INTERVAL_MS_CONFIG, 15_000));
        if (args.length == 5) {
            config.put(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG, args[4]);
        }
        var consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        new GroupMember(consumer).run(args[1], endOfInput());
    }

    private static CountDownLatch endOfInput() {
        var end = new CountDownLatch(1);
        var reader = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {}
            } catch (IOException e) {
                System.err.println("standard input: " + e);
            }
            end.countDown();
        });
        reader.setDaemon(true);
        reader.start();
        return end;
    }

    private void run(String topic, CountDownLatch end) throws IOException {
        consumer.subscribe(List.of(topic), this);
        try {
            while (end.getCount() > 0) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                    print(record);
                    pending.put(
                        new TopicPartition(record.topic(), record.partition()),
                        new OffsetAndMetadata(record.offset() + 1, record.leaderEpoch(), ""));
                }
                commit();
                if (out.checkError()) {
                    throw new IOException("standard output is closed");
                }
            }
        } finally {
            close();
        }
        print(event("closed"));
    }

    /** Revokes what the member has, and so commits what is pending. */
    @SuppressWarnings("deprecation") // The newest release has another way, 3.9 has only this one.
    private void close() {
        consumer.close(CLOSE);
    }

    private void commit() {
        if (pending.isEmpty()) {
            return;
        }
        try {
            consumer.commitSync(pending, COMMIT);
        } catch (KafkaException e) {
            // What it means for the membership, the next poll tells.
            JsonObject failed = event("commit_failed");
            failed.addProperty("error", e.toString());
            print(failed);
            return;
        }
        pending.forEach((partition, next) -> {
            JsonObject committed = event("committed");
            committed.addProperty("partition", partition.partition());
            committed.addProperty("offset", next.offset());
            print(committed);
        });
        pending.clear();
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> added) {
        print(event("assigned", added));
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> taken) {
        commit();
        gone("revoked", taken);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> taken) {
        gone("lost", taken);
    }

    private void gone(String name, Collection<TopicPartition> taken) {
        // They belong to others now: no later commit may include them.
        pending.keySet().removeAll(taken);
        if (!taken.isEmpty()) {
            print(event(name, taken));
        }
    }

    private void print(ConsumerRecord<byte[], byte[]> record) {
        JsonObject json = event("record");
        json.addProperty("partition", record.partition());
        json.addProperty("offset", record.offset());
        if (record.value() == null) {
            json.add("value", JsonNull.INSTANCE);
        } else {
            json.addProperty("value", HEX.formatHex(record.value()));
        }
        print(json);
    }

    private static JsonObject event(String name, Collection<TopicPartition> partitions) {
        JsonArray ids = new JsonArray();
        partitions.stream().map(TopicPartition::partition).sorted().forEach(ids::add);
        JsonObject json = event(name);
        json.add("partitions", ids);
        return json;
    }

    private static JsonObject event(String name) {
        JsonObject json = new JsonObject();
        json.addProperty("event", name);
        return json;
    }

    private void print(JsonObject json) {
        out.println(json);
    }
}
