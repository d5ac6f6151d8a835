//! A committed offset past the end of the log, as after a restored backup.

use std::time::{Duration, Instant};

use testkit::TestGateway;

use crate::{
    group_requests::commit,
    lifecycle::get,
    samples::{batch, fetch, metadata, produce},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_group_past_the_end_is_shown_and_its_fetch_is_out_of_range() {
    let gateway = TestGateway::start().await;
    let mut client = gateway.client().await;
    client.call(12, metadata("orders")).await;
    client.call(9, produce("orders", -1, batch(b"value"))).await;
    for (group, offset) in [("at-the-end", 1), ("ahead", 8)] {
        let committed = client.call(9, commit(group, "orders", offset)).await;
        assert_eq!(committed.topics[0].partitions[0].error_code, 0);
    }
    let fetched = client.call(12, fetch("orders", 8, 0)).await;
    assert_eq!(fetched.responses[0].partitions[0].error_code, 1);

    let (database, _) = gateway.stop().await;
    let gateway = TestGateway::start_on(database, |_| {}).await;
    let deadline = Instant::now() + Duration::from_secs(20);
    let shown = loop {
        let (status, shown) = get(gateway.http_address(), "/groups/stuck-ahead").await;
        assert_eq!(status, 200);
        if shown != "[]" {
            break shown;
        }
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(shown, r#"[{"group":"ahead","topic":"orders","partition":0,"offset":8,"distance":7}]"#);
}
