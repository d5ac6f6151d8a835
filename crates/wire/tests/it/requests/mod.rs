//! A request with every field set, for every API and version that the crate decodes.

mod cluster;
mod groups;
mod log;
pub(crate) mod values;

use kafka_protocol::messages::RequestKind;

/// (key, version, request) of everything.
pub(crate) fn every_request() -> Vec<(i16, i16, RequestKind)> {
    type Build = fn(i16) -> RequestKind;
    let builders: [(i16, std::ops::RangeInclusive<i16>, Build); 22] = [
        (0, 3..=13, |v| RequestKind::Produce(log::produce(v))),
        (1, 4..=18, |v| RequestKind::Fetch(log::fetch(v))),
        (2, 1..=10, |v| RequestKind::ListOffsets(log::list_offsets(v))),
        (3, 0..=13, |v| RequestKind::Metadata(cluster::metadata(v))),
        (8, 2..=9, |v| RequestKind::OffsetCommit(groups::offset_commit(v))),
        (9, 1..=9, |v| RequestKind::OffsetFetch(groups::offset_fetch(v))),
        (10, 0..=6, |v| RequestKind::FindCoordinator(groups::find_coordinator(v))),
        (11, 0..=9, |v| RequestKind::JoinGroup(groups::join_group(v))),
        (12, 0..=4, |v| RequestKind::Heartbeat(groups::heartbeat(v))),
        (13, 0..=5, |v| RequestKind::LeaveGroup(groups::leave_group(v))),
        (14, 0..=5, |v| RequestKind::SyncGroup(groups::sync_group(v))),
        (15, 0..=6, |v| RequestKind::DescribeGroups(groups::describe_groups(v))),
        (16, 0..=5, |v| RequestKind::ListGroups(groups::list_groups(v))),
        (18, 0..=4, |v| RequestKind::ApiVersions(cluster::api_versions(v))),
        (19, 2..=7, |_| RequestKind::CreateTopics(cluster::create_topics())),
        (20, 1..=6, |v| RequestKind::DeleteTopics(cluster::delete_topics(v))),
        (22, 0..=5, |v| RequestKind::InitProducerId(log::init_producer_id(v))),
        (23, 2..=4, |v| RequestKind::OffsetForLeaderEpoch(log::offset_for_leader_epoch(v))),
        (32, 1..=4, |v| RequestKind::DescribeConfigs(cluster::describe_configs(v))),
        (42, 0..=2, |_| RequestKind::DeleteGroups(groups::delete_groups())),
        (47, 0..=0, |_| RequestKind::OffsetDelete(groups::offset_delete())),
        (60, 0..=2, |v| RequestKind::DescribeCluster(cluster::describe_cluster(v))),
    ];
    builders
        .into_iter()
        .flat_map(|(key, versions, build)| versions.map(move |version| (key, version, build(version))))
        .collect()
}
