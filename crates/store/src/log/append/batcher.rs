//! What waits to be written, by partition.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::{
    sync::{Notify, oneshot},
    time::sleep,
};

use super::{
    memory::PartitionMemory,
    types::{Append, AppendError, Appended},
};
use crate::partition::PartitionKey;

/// While a transaction is under way, less than this many bytes of records wait for the next one of
/// the same writer: many small ones cost more than they gain.
const WORTH_A_WRITER: usize = 32 * 1024;
/// But not longer than this; the transaction may be waiting for somebody's lock.
const LONGEST_WAIT: Duration = Duration::from_millis(5);

/// One batch and who waits for it.
pub(super) struct Pending {
    pub(super) append: Append,
    pub(super) reply: oneshot::Sender<Result<Appended, AppendError>>,
}

/// The batches of one partition that a writer has taken, with the partition's memory. Dropping it gives
/// the partition back. What is pending then was not answered, as after a panic, and maybe it is written:
/// its producers are told to try again.
pub(super) struct Work {
    batcher: Arc<Batcher>,
    pub(super) partition: PartitionKey,
    pub(super) pending: VecDeque<Pending>,
    /// What follows when `pending` is answered.
    pub(super) later: VecDeque<Pending>,
    pub(super) memory: PartitionMemory,
    is_contended: bool,
}

impl Work {
    /// Makes all of it pending.
    pub(super) fn join(&mut self) {
        self.pending.append(&mut self.later);
    }

    /// Puts all of it in front of the queue again, of which nothing was written, since the partition's lock
    /// was not free.
    pub(super) fn requeue(mut self) {
        self.join();
        self.is_contended = true;
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if !self.is_contended {
            self.join();
            let unanswered = std::mem::take(&mut self.pending);
            if !unanswered.is_empty() {
                self.memory.forget();
            }
            unanswered.iter().for_each(|pending| self.memory.producers.refused(&pending.append.batch.header));
        }
        Arc::clone(&self.batcher).put_back(self);
    }
}

#[derive(Default)]
struct Queue {
    pending: VecDeque<Pending>,
    memory: PartitionMemory,
    with_writer: bool,
    /// Its lock was not free as a second one of a transaction: let it be the first next time.
    contended: bool,
}

impl Queue {
    /// Takes what is pending, which is not to be written.
    fn refuse(&mut self) -> VecDeque<Pending> {
        self.pending.iter().for_each(|pending| self.memory.producers.refused(&pending.append.batch.header));
        std::mem::take(&mut self.pending)
    }
}

#[derive(Default)]
struct State {
    queues: HashMap<PartitionKey, Queue>,
    /// Partitions that have pending batches and are with no writer, in the order of arrival.
    ready: VecDeque<PartitionKey>,
    /// Bytes of records in all queues.
    bytes: usize,
    /// When the last work was taken, and how many partitions are with writers.
    taken_at: Option<Instant>,
    with_writers: usize,
    closed: bool,
}

/// A partition's part of what a writer takes.
struct Taken {
    partition: PartitionKey,
    pending: VecDeque<Pending>,
    memory: PartitionMemory,
}

/// What a writer does next.
enum Turn {
    Work(Vec<Work>),
    /// What is ready is left to the writer at work, for so long.
    Pause(Duration),
    Wait,
    End,
}

/// The queue between the connections and the writers. Its size is bounded by the bytes of requests
/// that the gateway admits.
#[derive(Default)]
pub(in crate::log) struct Batcher {
    state: Mutex<State>,
    /// Wakes the writer that came last: what its session of Postgres needs is still in the caches.
    wake: Notify,
}

impl Batcher {
    pub(super) fn submit(&self, append: Append, reply: oneshot::Sender<Result<Appended, AppendError>>) {
        let partition = append.partition;
        let mut state = self.lock();
        if state.closed {
            drop(state);
            let _ = reply.send(Err(AppendError::ShuttingDown));
            return;
        }
        let queue = state.queues.entry(partition).or_default();
        let was_idle = queue.pending.is_empty() && !queue.with_writer;
        let bytes = append.batch.records.len();
        queue.pending.push_back(Pending { append, reply });
        state.bytes += bytes;
        if was_idle {
            state.ready.push_back(partition);
            drop(state);
            self.wake.notify_last();
        }
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_last();
    }

    /// Waits for work; `None` when the batcher is closed and empty.
    pub(super) async fn take(self: &Arc<Self>, max_bytes: usize) -> Option<Vec<Work>> {
        loop {
            match self.turn(max_bytes) {
                Turn::Work(work) => return Some(work),
                Turn::Pause(pause) => sleep(pause).await,
                Turn::Wait => self.wake.notified().await,
                Turn::End => return None,
            }
        }
    }

    fn turn(self: &Arc<Self>, max_bytes: usize) -> Turn {
        let mut state = self.lock();
        if let Some(pause) = state.pause() {
            return Turn::Pause(pause);
        }
        let work = self.work(state.take(max_bytes));
        let more = !state.ready.is_empty();
        let ended = state.closed && !more;
        drop(state);
        if more || ended {
            self.wake.notify_last(); // the next writer's turn, to work or to end
        }
        match work.is_empty() {
            false => Turn::Work(work),
            true if ended => Turn::End,
            true => Turn::Wait,
        }
    }

    fn work(self: &Arc<Self>, taken: Vec<Taken>) -> Vec<Work> {
        let work = |Taken { partition, pending, memory }| Work {
            batcher: Arc::clone(self),
            partition,
            pending,
            later: VecDeque::new(),
            memory,
            is_contended: false,
        };
        taken.into_iter().map(work).collect()
    }

    fn put_back(&self, work: &mut Work) {
        let mut state = self.lock();
        state.with_writers -= 1;
        state.bytes += work.pending.iter().map(Pending::bytes).sum::<usize>();
        let Entry::Occupied(mut entry) = state.queues.entry(work.partition) else { return };
        let queue = entry.get_mut();
        queue.memory = std::mem::take(&mut work.memory);
        queue.with_writer = false;
        queue.contended = work.is_contended;
        for pending in work.pending.drain(..).rev() {
            queue.pending.push_front(pending);
        }
        if !queue.pending.is_empty() {
            state.ready.push_back(work.partition);
            drop(state);
            self.wake.notify_last();
        }
    }

    /// Forgets partitions of a deleted topic that have nothing queued.
    pub(in crate::log) fn forget_topic(&self, topic_id: i64) {
        self.lock().queues.retain(|partition, queue| {
            partition.topic_id != topic_id || queue.with_writer || !queue.pending.is_empty()
        });
    }

    /// Takes everything that is queued, so that it can be refused.
    pub(super) fn take_pending(&self) -> Vec<Pending> {
        let mut state = self.lock();
        let ready = std::mem::take(&mut state.ready);
        let pending: Vec<Pending> = ready
            .into_iter()
            .filter_map(|partition| state.queues.get_mut(&partition).map(Queue::refuse))
            .flatten()
            .collect();
        state.bytes -= pending.iter().map(Pending::bytes).sum::<usize>();
        pending
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each operation leaves the state whole, so a panic elsewhere does no harm to it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pending {
    fn bytes(&self) -> usize {
        self.append.batch.records.len()
    }
}

impl State {
    /// How long to leave what is ready to the writer that is at work.
    fn pause(&self) -> Option<Duration> {
        if self.ready.is_empty() || self.with_writers == 0 || self.bytes >= WORTH_A_WRITER {
            return None;
        }
        LONGEST_WAIT.checked_sub(self.taken_at?.elapsed()).filter(|pause| !pause.is_zero())
    }

    /// Takes ready partitions up to `max_bytes` of records, the first batch in any case.
    fn take(&mut self, max_bytes: usize) -> Vec<Taken> {
        let mut taken = Vec::new();
        let mut bytes = 0;
        let mut later = VecDeque::new();
        while let Some(partition) = self.ready.pop_front() {
            let Some(queue) = self.queues.get_mut(&partition) else { continue };
            if queue.contended && !taken.is_empty() {
                later.push_back(partition);
                continue;
            }
            if bytes >= max_bytes {
                later.push_back(partition);
                break;
            }
            let mut pending = VecDeque::new();
            while let Some(next) = queue.pending.front() {
                let size = next.bytes();
                if bytes + size > max_bytes && bytes > 0 {
                    break;
                }
                bytes += size;
                pending.extend(queue.pending.pop_front());
            }
            if pending.is_empty() {
                later.push_back(partition);
                break;
            }
            queue.with_writer = true;
            let alone = std::mem::take(&mut queue.contended);
            let memory = std::mem::take(&mut queue.memory);
            taken.push(Taken { partition, pending, memory });
            if alone {
                break;
            }
        }
        while let Some(partition) = later.pop_back() {
            self.ready.push_front(partition);
        }
        self.bytes -= bytes;
        self.with_writers += taken.len();
        if !taken.is_empty() {
            self.taken_at = Some(Instant::now());
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use wire::batch::{BatchBuilder, ProduceLimits, ProducedBatch, ProducerFields, TimestampType};

    use super::*;

    fn submit(batcher: &Batcher, partition: i32, bytes: usize) {
        let mut builder = BatchBuilder::new(0, -1, TimestampType::CreateTime);
        builder.push(0, 0, None, Some(&vec![0; bytes]), [].into_iter()).unwrap();
        let limits = ProduceLimits { max_batch_bytes: 1 << 20, max_decompressed_bytes: 1 << 20 };
        let batch = ProducedBatch::validate(builder.finish_as(&ProducerFields::default()).unwrap(), limits).unwrap();
        let partition = PartitionKey::new(1, partition);
        batcher.submit(
            Append { partition, batch, log_append_time: false, reservation: Box::new(()) },
            oneshot::channel().0,
        );
    }

    #[tokio::test]
    async fn little_waits_for_the_writer_that_is_at_work_but_not_for_long() {
        let batcher = Arc::new(Batcher::default());
        submit(&batcher, 0, 10);
        assert_eq!(batcher.lock().pause(), None, "nobody is at work");
        let first = batcher.take(1 << 20).await.unwrap();
        submit(&batcher, 1, 10);
        assert!(batcher.lock().pause().is_some_and(|pause| pause <= LONGEST_WAIT));
        submit(&batcher, 2, WORTH_A_WRITER);
        assert_eq!(batcher.lock().pause(), None, "enough for another one");
        let second = batcher.take(1 << 20).await.unwrap();
        assert_eq!(second.len(), 2);

        submit(&batcher, 3, 10);
        let start = Instant::now();
        let third = batcher.take(1 << 20).await.unwrap();
        assert_eq!(third.len(), 1, "though both are still at work");
        assert!(start.elapsed() >= LONGEST_WAIT / 2);
        drop((first, second));
        let counts = |state: MutexGuard<'_, State>| (state.bytes > 0, state.with_writers);
        assert_eq!(counts(batcher.lock()), (false, 1));
        third.into_iter().for_each(Work::requeue);
        assert_eq!(counts(batcher.lock()), (true, 0));
    }
}
