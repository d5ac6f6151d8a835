// One member of a consumer group, until standard input ends.

import { writeSync } from 'node:fs'
import kafkajs from 'kafkajs'
import './codecs.js'

const { AssignerProtocol, Kafka, logLevel } = kafkajs
const { MemberAssignment, MemberMetadata } = AssignerProtocol

// Milliseconds that the member may take for its end: kafkajs cannot give up a JoinGroup that waits
// for the other members.
const CLOSE_TIMEOUT = 9_000

// Which of `count` partitions the member with this index of `members` gets, as in Kafka's assignors.
const shares = {
  range(count, index, members) {
    const least = Math.floor(count / members)
    const more = count % members
    const start = least * index + Math.min(index, more)
    return numbers(count).slice(start, start + least + (index < more ? 1 : 0))
  },
  roundrobin: (count, index, members) => numbers(count).filter(n => n % members === index),
}

const numbers = count => [...Array(count).keys()]

// The assigner of kafkajs itself has a name of its own, so that no other client can be in its group,
// and leaves members without partitions out, which the Java client takes for an error. kafkajs lets
// its users bring others.
const assigner = name => ({ cluster }) => ({
  name,
  version: 0,
  protocol: ({ topics }) => ({
    name,
    metadata: MemberMetadata.encode({ version: 0, topics, userData: Buffer.alloc(0) }),
  }),
  async assign({ members, topics }) {
    const ids = members.map(member => member.memberId).sort()
    return ids.map((memberId, index) => {
      const assignment = Object.fromEntries(topics.map(topic => {
        const count = cluster.findTopicPartitionMetadata(topic).length
        return [topic, shares[name](count, index, ids.length)]
      }))
      return {
        memberId,
        memberAssignment: MemberAssignment.encode({ version: 0, assignment, userData: Buffer.alloc(0) }),
      }
    })
  },
})

export const assignors = Object.keys(shares)

export async function group(bootstrap, topic, groupId, assignor) {
  const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.WARN })
  const consumer = kafka.consumer({
    groupId,
    partitionAssigners: [assigner(assignor)],
    sessionTimeout: 6_000,
    heartbeatInterval: 500,
    rebalanceTimeout: 15_000,
    // kafkajs sends heartbeats between fetches.
    maxWaitTimeInMs: 250,
    readUncommitted: true,
  })
  const member = new Member(consumer, topic)
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  // It ends when the member has joined for the first time.
  const joined = consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    eachBatch: payload => member.process(payload),
  })

  await endOfInput()
  setTimeout(() => {
    console.error(`still closing after ${CLOSE_TIMEOUT} ms: gives up`)
    process.exit(0)
  }, CLOSE_TIMEOUT)
  // A member that is joining could not be closed.
  await joined
  await consumer.disconnect()
  member.gone()
  print({ event: 'closed' })
  process.exit(0)
}

async function endOfInput() {
  for await (const _ of process.stdin);
}

class Member {
  constructor(consumer, topic) {
    this.topic = topic
    this.owned = []
    const { CRASH, GROUP_JOIN, REBALANCING } = consumer.events
    consumer.on(REBALANCING, () => this.gone())
    consumer.on(GROUP_JOIN, ({ payload }) => {
      // No other event comes before when the coordinator did not know the member any more.
      this.gone()
      this.owned = [...(payload.memberAssignment[topic] ?? [])].sort((a, b) => a - b)
      print({ event: 'assigned', partitions: this.owned })
    })
    consumer.on(CRASH, ({ payload }) => {
      this.gone()
      if (!payload.restart) {
        console.error(payload.error)
        process.exit(1)
      }
    })
  }

  gone() {
    if (this.owned.length > 0) {
      print({ event: 'revoked', partitions: this.owned })
    }
    this.owned = []
  }

  async process({ batch: { partition, messages }, resolveOffset, commitOffsetsIfNecessary }) {
    for (const { offset, value } of messages) {
      print({ event: 'record', partition, offset: Number(offset), value: value?.toString('hex') ?? null })
    }
    const last = messages.at(-1).offset
    const next = (BigInt(last) + 1n).toString()
    try {
      // Given offsets, it commits them at once.
      await commitOffsetsIfNecessary({
        topics: [{ topic: this.topic, partitions: [{ partition, offset: next }] }],
      })
    } catch (error) {
      print({ event: 'commit_failed', error: `partition ${partition}: ${error.message}` })
      // It tells kafkajs to join again.
      throw error
    }
    print({ event: 'committed', partition, offset: Number(next) })
    resolveOffset(last)
  }
}

const print = event => writeSync(1, JSON.stringify(event) + '\n')
