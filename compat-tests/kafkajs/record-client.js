// The produce, consume and group verbs of the compatibility tests with kafkajs.

import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import kafkajs from 'kafkajs'
import { codecs } from './codecs.js'
import { consume } from './consume.js'
import { assignors, group } from './group.js'

const { Kafka, Partitioners, logLevel } = kafkajs

// kafkajs makes one batch per partition of whatever one send holds. So much a send stays below the
// server's limit for a batch; a record larger than this goes alone.
const SEND_BYTES = 256 * 1024

async function produce(bootstrap, topic, codec, file) {
  const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.WARN })
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  for await (const messages of sends(createInterface({ input: createReadStream(file) }))) {
    await producer.send({ topic, compression: codecs[codec], acks: -1, messages })
  }
  await producer.disconnect()
}

async function* sends(lines) {
  let messages = []
  let bytes = 0
  for await (const line of lines) {
    const message = fromJson(line)
    const size = (message.key?.length ?? 0) + (message.value?.length ?? 0)
    if (messages.length > 0 && bytes + size > SEND_BYTES) {
      yield messages
      messages = []
      bytes = 0
    }
    messages.push(message)
    bytes += size
  }
  if (messages.length > 0) yield messages
}

function fromJson(line) {
  const { partition, key, value, headers, timestamp } = JSON.parse(line)
  const named = {}
  for (const [name, hex] of headers) {
    (named[name] ??= []).push(bytes(hex))
  }
  // A string, since kafkajs takes the number 0 for no timestamp.
  return { partition, key: bytes(key), value: bytes(value), headers: named, timestamp: String(timestamp) }
}

const bytes = hex => (hex === null ? null : Buffer.from(hex, 'hex'))

const [verb, ...args] = process.argv.slice(2)
if (verb === 'produce' && args.length === 4 && args[2] in codecs) {
  await produce(...args)
} else if (verb === 'consume' && args.length === 2) {
  await consume(...args)
} else if (verb === 'group' && args.length === 4 && assignors.includes(args[3])) {
  await group(...args)
} else {
  console.error(
    'usage: produce BOOTSTRAP TOPIC CODEC FILE | consume BOOTSTRAP TOPIC' +
      ` | group BOOTSTRAP TOPIC GROUP ${assignors.join('|')}`
  )
  process.exitCode = 2
}
