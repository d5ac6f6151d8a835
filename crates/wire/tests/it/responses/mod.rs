//! A response with every field set, and one that only carries an error, for every API and version.

mod cluster;
mod groups;
mod log;

use kafka_protocol::messages::ResponseKind;
use wire::ErrorCode;

/// (key, version, response); the `i16` that the builders take is the error code to put in.
pub(crate) fn every_response() -> Vec<(i16, i16, ResponseKind)> {
    type Build = fn(i16, i16) -> ResponseKind;
    let builders: [(i16, std::ops::RangeInclusive<i16>, Build); 22] = [
        (0, 3..=13, |v, e| ResponseKind::Produce(log::produce(v, e))),
        (1, 4..=18, |v, e| ResponseKind::Fetch(log::fetch(v, e))),
        (2, 1..=10, |v, e| ResponseKind::ListOffsets(log::list_offsets(v, e))),
        (3, 0..=13, |v, e| ResponseKind::Metadata(cluster::metadata(v, e))),
        (8, 2..=9, |v, e| ResponseKind::OffsetCommit(groups::offset_commit(v, e))),
        (9, 1..=9, |v, e| ResponseKind::OffsetFetch(groups::offset_fetch(v, e))),
        (10, 0..=6, |v, e| ResponseKind::FindCoordinator(groups::find_coordinator(v, e))),
        (11, 0..=9, |v, e| ResponseKind::JoinGroup(groups::join_group(v, e))),
        (12, 0..=4, |v, e| ResponseKind::Heartbeat(groups::heartbeat(v, e))),
        (13, 0..=5, |v, e| ResponseKind::LeaveGroup(groups::leave_group(v, e))),
        (14, 0..=5, |v, e| ResponseKind::SyncGroup(groups::sync_group(v, e))),
        (15, 0..=6, |v, e| ResponseKind::DescribeGroups(groups::describe_groups(v, e))),
        (16, 0..=5, |v, e| ResponseKind::ListGroups(groups::list_groups(v, e))),
        (18, 0..=4, |v, e| ResponseKind::ApiVersions(cluster::api_versions(v, e))),
        (19, 2..=7, |v, e| ResponseKind::CreateTopics(cluster::create_topics(v, e))),
        (20, 1..=6, |v, e| ResponseKind::DeleteTopics(cluster::delete_topics(v, e))),
        (22, 0..=5, |_, e| ResponseKind::InitProducerId(log::init_producer_id(e))),
        (23, 2..=4, |_, e| ResponseKind::OffsetForLeaderEpoch(log::offset_for_leader_epoch(e))),
        (32, 1..=4, |v, e| ResponseKind::DescribeConfigs(cluster::describe_configs(v, e))),
        (42, 0..=2, |_, e| ResponseKind::DeleteGroups(groups::delete_groups(e))),
        (47, 0..=0, |_, e| ResponseKind::OffsetDelete(groups::offset_delete(e))),
        (60, 0..=2, |v, e| ResponseKind::DescribeCluster(cluster::describe_cluster(v, e))),
    ];
    let mut all = Vec::new();
    for (key, versions, build) in builders {
        for version in versions {
            for error in [ErrorCode::None, ErrorCode::UnknownServerError, ErrorCode::NotEnoughReplicas] {
                all.push((key, version, build(version, error.code())));
            }
        }
    }
    all
}
