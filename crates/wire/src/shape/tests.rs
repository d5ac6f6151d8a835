use super::*;

#[test]
fn keys_are_unique_and_in_order() {
    assert!(table::REQUESTS.is_sorted_by(|a, b| a.key < b.key));
}
