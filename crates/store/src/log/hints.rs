//! Hints between gateways (storage.md D11): where something was appended, and that gateways came or
//! went. Whoever hears one asks at once and not at his next tick.
//!
//! A hint is sent after the commit by a transaction of its own, since NOTIFY within the append would
//! serialise all commits of the server. It says only where to look: the answer comes from the tables,
//! and what a lost hint would have told is found by the next tick ([`crate::log::watch`]).

use std::{sync::Arc, time::Duration};

use sqlx::postgres::PgListener;
use tokio::time::{sleep, timeout};

use crate::{
    cluster::{Channel, Leadership},
    database::pool,
    error::{Backoff, StoreError},
    log::Log,
    partition::PartitionKey,
};

/// Between two hints of a gateway: what is appended meanwhile goes along with the next one.
const GATHER: Duration = Duration::from_millis(5);

/// Partitions of one payload, which Postgres limits to 8,000 bytes.
const PER_PAYLOAD: usize = 256;

/// How long a session that listens may take to hear itself.
const ECHO: Duration = Duration::from_secs(5);

/// How long one session listens. A connection that died in silence would listen for ever.
const TERM: Duration = Duration::from_secs(600);

const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// `origin topic:partition topic:partition …`
fn payloads(origin: &str, partitions: &[PartitionKey]) -> Vec<String> {
    let payload = |partitions: &[PartitionKey]| {
        partitions.iter().fold(origin.to_owned(), |payload, partition| {
            format!("{payload} {}:{}", partition.topic_id, partition.partition_id)
        })
    };
    partitions.chunks(PER_PAYLOAD).map(payload).collect()
}

/// What a payload says; of one that this gateway cannot read, nothing.
#[derive(Debug, Default, PartialEq, Eq)]
struct Hint {
    is_own: bool,
    nodes_changed: bool,
    appended: Vec<PartitionKey>,
}

impl Hint {
    fn parse(payload: &str, origin: &str) -> Self {
        let mut words = payload.split(' ');
        let mut hint = Self { is_own: words.next() == Some(origin), ..Self::default() };
        for word in words {
            hint.nodes_changed |= Channel::is_nodes_changed(word);
            if let Some((topic, partition)) = word.split_once(':')
                && let (Ok(topic), Ok(partition)) = (topic.parse(), partition.parse())
            {
                hint.appended.push(PartitionKey::new(topic, partition));
            }
        }
        hint
    }
}

/// Other gateways live on the database.
fn has_others(leadership: Option<&Arc<Leadership>>) -> bool {
    leadership.is_some_and(|leadership| leadership.leaders.len() > 1)
}

impl Log {
    /// An append was committed: other gateways may have readers that wait for it.
    pub(crate) fn hint_appended(&self, partition: PartitionKey) {
        if !has_others(self.cluster.leadership().as_ref()) {
            return;
        }
        self.state.hints.add(partition);
    }

    /// Sends and hears hints while other gateways live; run it once per gateway, beside
    /// [`Log::watch`]. Ends never.
    pub async fn exchange_hints(&self) {
        tokio::join!(self.send_hints(), self.hear_hints());
    }

    async fn send_hints(&self) {
        loop {
            let payloads = payloads(self.cluster.channel().origin(), &self.state.hints.take().await);
            if let Err(error) = self.send(&payloads).await {
                tracing::debug!(%error, "other gateways find what was appended at their next tick");
            }
            sleep(GATHER).await;
        }
    }

    async fn send(&self, payloads: &[String]) -> Result<(), StoreError> {
        let mut connection = self.db.acquire().await?;
        self.state
            .statements
            .notify()
            .bind(self.cluster.channel().name())
            .bind(payloads)
            .execute(&mut *connection)
            .await?;
        Ok(())
    }

    async fn hear_hints(&self) {
        let mut leadership = self.cluster.watch_leadership();
        let mut pauses = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut is_told = false;
        loop {
            // A gateway that is alone keeps no connection for it. The sender is the store's own, so
            // the channel is never closed.
            let _ = leadership.wait_for(|leadership| has_others(leadership.as_ref())).await;
            let heard = tokio::select! {
                heard = self.listen_for_a_term(&mut is_told) => heard,
                _ = leadership.wait_for(|leadership| !has_others(leadership.as_ref())) => continue,
            };
            match heard {
                Ok(()) => pauses = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE),
                Err(error) => {
                    if !std::mem::replace(&mut is_told, true) {
                        let tick_ms = self.db.config().poll_interval.as_millis() as u64;
                        tracing::warn!(%error, tick_ms, "no hints of other gateways; each tick looks for their records");
                    }
                    sleep(pauses.next_delay()).await;
                }
            }
        }
    }

    async fn listen_for_a_term(&self, is_told: &mut bool) -> Result<(), StoreError> {
        let mut listener = self.listener().await?;
        if std::mem::take(is_told) {
            tracing::info!("hints of other gateways arrive again");
        }
        let listening = async {
            loop {
                if let Err(error) = self.hear(&mut listener).await {
                    return error;
                }
            }
        };
        timeout(TERM, listening).await.map_or(Ok(()), Err)
    }

    /// A session that hears what is sent. Behind a pooler in transaction mode LISTEN is no error and
    /// hears nothing (B053), so it must hear itself.
    async fn listener(&self) -> Result<PgListener, StoreError> {
        let channel = self.cluster.channel();
        let mut listener = PgListener::connect_with(&pool::for_listening(self.db.config())?).await?;
        listener.eager_reconnect(false);
        listener.listen(channel.name()).await?;
        self.send(&[channel.origin().to_owned()]).await?;
        let echo = async {
            while !self.hear(&mut listener).await? {}
            Ok(())
        };
        match timeout(ECHO, echo).await {
            Ok(heard) => heard.map(|()| listener),
            Err(_) => Err(StoreError::Unavailable(
                "LISTEN hears nothing, as behind a pooler in transaction mode; --direct-database-url goes past it"
                    .to_owned(),
            )),
        }
    }

    /// Takes the next hint; `true`: it is this gateway's own.
    async fn hear(&self, listener: &mut PgListener) -> Result<bool, StoreError> {
        let Some(notification) = listener.try_recv().await? else {
            return Err(StoreError::Unavailable("the session that listens was lost".to_owned()));
        };
        let hint = Hint::parse(notification.payload(), self.cluster.channel().origin());
        if !hint.is_own {
            self.follow(&hint).await;
        }
        Ok(hint.is_own)
    }

    async fn follow(&self, hint: &Hint) {
        if hint.nodes_changed {
            self.cluster.channel().note_nodes_changed();
        }
        let is_watched = |partition: &PartitionKey| self.state.waiters.is_watched(*partition);
        let watched: Vec<PartitionKey> = hint.appended.iter().copied().filter(is_watched).collect();
        if !watched.is_empty()
            && let Err(error) = self.ends(&watched).await
        {
            tracing::debug!(%error, "what others appended is looked for at the next tick");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Tables;

    #[test]
    fn a_hint_comes_back_as_it_was_sent_and_fits_the_limit() {
        let channel = Channel::new(&Tables::new("queue", "metadata_queue").unwrap());
        let partitions: Vec<PartitionKey> = (0..1000).map(|n| PartitionKey::new(i64::MAX, 4095 - n)).collect();
        let payloads = payloads(channel.origin(), &partitions);
        assert!(payloads.iter().all(|payload| payload.len() < 8000));
        let read = payloads.iter().flat_map(|payload| Hint::parse(payload, "another").appended);
        assert_eq!(read.collect::<Vec<_>>(), partitions);
        assert!(Hint::parse(&payloads[0], channel.origin()).is_own);
        let changed = Hint::parse(&channel.nodes_changed_payload(), "another");
        assert_eq!(changed, Hint { nodes_changed: true, ..Hint::default() });
    }

    #[test]
    fn what_anybody_else_sends_on_the_channel_means_nothing() {
        for payload in ["", " ", "x", "x 1", "x :", "x a:b", "x 1:99999999999", "x 1:2:3"] {
            assert_eq!(Hint::parse(payload, "own"), Hint::default(), "{payload:?}");
        }
    }
}
