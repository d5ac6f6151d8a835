// Reads a whole topic with kafkajs and without a consumer group.
//
// The public consumer of kafkajs cannot do without a group. Here the same parts of it that fetch and
// decode (Cluster, Broker, Batch) are called in the order of its ConsumerGroup.fetch.

import kafkajs from 'kafkajs'
import Cluster from 'kafkajs/src/cluster/index.js'
import Batch from 'kafkajs/src/consumer/batch.js'
import consoleLog from 'kafkajs/src/loggers/console.js'
import loggers from 'kafkajs/src/loggers/index.js'
import createSocketFactory from 'kafkajs/src/network/socketFactory.js'
import isolationLevel from 'kafkajs/src/protocol/isolationLevel.js'

// The consumer's own defaults.
const FETCH = {
  isolationLevel: isolationLevel.READ_COMMITTED,
  maxWaitTime: 5000,
  minBytes: 1,
  maxBytes: 10485760,
}
const BYTES_PER_PARTITION = 1048576

// Milliseconds without a record, while some are missing, after which it gives up.
const PATIENCE = 60_000

export async function consume(bootstrap, topic) {
  const cluster = new Cluster({
    brokers: [bootstrap],
    logger: loggers.createLogger({ level: kafkajs.logLevel.WARN, logCreator: consoleLog }),
    socketFactory: createSocketFactory(),
    connectionTimeout: 1000,
    enforceRequestTimeout: true,
    metadataMaxAge: 300000,
    allowAutoTopicCreation: false,
    isolationLevel: FETCH.isolationLevel,
  })
  await cluster.connect()
  try {
    await cluster.addTargetTopic(topic)
    const all = cluster.findTopicPartitionMetadata(topic).map(p => p.partitionId)
    const next = await offsets(cluster, topic, all, true)
    const ends = await offsets(cluster, topic, all, false)
    let quietSince = Date.now()
    for (;;) {
      const missing = all.filter(partition => next.get(partition) < ends.get(partition))
      if (missing.length === 0) break
      if (await readOnce(cluster, topic, missing, next, ends)) quietSince = Date.now()
      if (Date.now() - quietSince > PATIENCE) {
        throw new Error(`no record for ${PATIENCE} ms before the end of partitions ${missing}`)
      }
    }
  } finally {
    await cluster.disconnect()
  }
}

// Map of partition to its first offset or to its end offset.
async function offsets(cluster, topic, all, fromBeginning) {
  const partitions = all.map(partition => ({ partition }))
  const [answer] = await cluster.fetchTopicsOffset([{ topic, partitions, fromBeginning }])
  return new Map(answer.partitions.map(p => [p.partition, BigInt(p.offset)]))
}

// One Fetch from every leader; moves `next` on; tells whether there was a record.
async function readOnce(cluster, topic, partitions, next, ends) {
  let found = false
  const leaders = cluster.findLeaderForPartitions(topic, partitions)
  for (const [nodeId, led] of Object.entries(leaders)) {
    const broker = await cluster.findBroker({ nodeId })
    const asked = led.map(partition => ({
      partition,
      fetchOffset: next.get(partition).toString(),
      maxBytes: BYTES_PER_PARTITION,
    }))
    const { responses } = await broker.fetch({ ...FETCH, topics: [{ topic, partitions: asked }] })
    for (const data of responses.flatMap(response => response.partitions)) {
      const batch = new Batch(topic, next.get(data.partition).toString(), data)
      for (const message of batch.messages) {
        if (BigInt(message.offset) < ends.get(data.partition)) {
          await write(toJson(data.partition, message))
        }
      }
      if (!batch.isEmptyIncludingFiltered()) {
        next.set(data.partition, BigInt(batch.lastOffset()) + 1n)
        found = true
      }
    }
  }
  return found
}

function toJson(partition, { offset, key, value, headers, timestamp }) {
  return JSON.stringify({
    partition,
    offset: Number(offset),
    key: hex(key),
    value: hex(value),
    headers: Object.entries(headers).flatMap(([name, values]) =>
      [values].flat().map(one => [name, hex(one)])
    ),
    timestamp: Number(timestamp),
  })
}

const hex = buffer => (buffer === null ? null : buffer.toString('hex'))

const write = line => new Promise((resolve, reject) => {
  process.stdout.write(line + '\n', error => (error ? reject(error) : resolve()))
})
