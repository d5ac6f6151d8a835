import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The produce and consume verbs of the compatibility tests with Apache Kafka's own Java clients. */
public final class RecordClient {
    /** Longest silence of the server, while records are still missing, before consume gives up. */
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    private static final HexFormat HEX = HexFormat.of();

    private RecordClient() {}

    public static void main(String[] args) throws Exception {
        if (args.length == 5 && args[0].equals("produce")) {
            produce(args[1], args[2], args[3], Path.of(args[4]));
        } else if (args.length == 3 && args[0].equals("consume")) {
            consume(args[1], args[2]);
        } else {
            System.err.println("usage: produce BOOTSTRAP TOPIC CODEC FILE | consume BOOTSTRAP TOPIC");
            System.exit(2);
        }
    }

    private static void produce(String bootstrap, String topic, String codec, Path file)
            throws Exception {
        // All else, idempotence included, stays at the client's default. Lingering makes batches of
        // many records, the larger batch makes them longer than one 32 KiB block of framed snappy.
        Map<String, Object> config = Map.of(
            ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap,
            ProducerConfig.COMPRESSION_TYPE_CONFIG, codec,
            ProducerConfig.LINGER_MS_CONFIG, 20,
            ProducerConfig.BATCH_SIZE_CONFIG, 128 * 1024);
        List<Future<RecordMetadata>> acknowledgements = new ArrayList<>();
        try (var producer = new KafkaProducer<>(
                config, new ByteArraySerializer(), new ByteArraySerializer());
            BufferedReader lines = Files.newBufferedReader(file)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                acknowledgements.add(producer.send(fromJson(topic, line)));
            }
            for (Future<RecordMetadata> acknowledgement : acknowledgements) {
                acknowledgement.get();
            }
        }
    }

    private static void consume(String bootstrap, String topic) throws IOException {
        Map<String, Object> config = Map.of(
            ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap,
            ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG, false);
        try (var consumer = new KafkaConsumer<>(
                config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            var out = new PrintStream(
                new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8)) {
            List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
                .map(info -> new TopicPartition(topic, info.partition()))
                .toList();
            if (partitions.isEmpty()) {
                throw new IOException("topic " + topic + " has no partition");
            }
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            readTo(consumer.endOffsets(partitions), consumer, out);
            out.flush();
            if (out.checkError()) {
                throw new IOException("standard output is closed");
            }
        }
    }

    private static void readTo(
            Map<TopicPartition, Long> ends, KafkaConsumer<byte[], byte[]> consumer, PrintStream out)
            throws IOException {
        long quietSince = System.nanoTime();
        while (ends.entrySet().stream().anyMatch(e -> consumer.position(e.getKey()) < e.getValue())) {
            var records = consumer.poll(Duration.ofSeconds(1));
            for (ConsumerRecord<byte[], byte[]> record : records) {
                if (record.offset() < ends.get(new TopicPartition(record.topic(), record.partition()))) {
                    out.println(toJson(record));
                }
            }
            if (!records.isEmpty()) {
                quietSince = System.nanoTime();
            } else if (System.nanoTime() - quietSince > PATIENCE.toNanos()) {
                throw new IOException("no record for " + PATIENCE + " before the end offsets " + ends);
            }
        }
    }

    private static ProducerRecord<byte[], byte[]> fromJson(String topic, String line) {
        JsonObject json = JsonParser.parseString(line).getAsJsonObject();
        List<Header> headers = new ArrayList<>();
        for (JsonElement header : json.getAsJsonArray("headers")) {
            JsonArray pair = header.getAsJsonArray();
            headers.add(new RecordHeader(pair.get(0).getAsString(), bytes(pair.get(1))));
        }
        return new ProducerRecord<>(
            topic,
            json.get("partition").getAsInt(),
            json.get("timestamp").getAsLong(),
            bytes(json.get("key")),
            bytes(json.get("value")),
            headers);
    }

    private static JsonObject toJson(ConsumerRecord<byte[], byte[]> record) {
        JsonArray headers = new JsonArray();
        for (Header header : record.headers()) {
            JsonArray pair = new JsonArray();
            pair.add(header.key());
            pair.add(hex(header.value()));
            headers.add(pair);
        }
        JsonObject json = new JsonObject();
        json.addProperty("partition", record.partition());
        json.addProperty("offset", record.offset());
        json.add("key", hex(record.key()));
        json.add("value", hex(record.value()));
        json.add("headers", headers);
        json.addProperty("timestamp", record.timestamp());
        return json;
    }

    private static byte[] bytes(JsonElement hex) {
        return hex.isJsonNull() ? null : HEX.parseHex(hex.getAsString());
    }

    private static JsonElement hex(byte[] bytes) {
        return bytes == null ? JsonNull.INSTANCE : new JsonPrimitive(HEX.formatHex(bytes));
    }
}
