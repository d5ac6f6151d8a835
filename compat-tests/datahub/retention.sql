-- The aggressive part of pgQueue's retention, which DataHub's set-up installs beside its tables: a
-- message goes when every registered group has committed it. The last message of a partition stays,
-- and nothing goes from a partition where a registered group is past the end.
create or replace function "__SCHEMA__".__PREFIX___apply_retention() returns void language sql as $$
    with last as (
        select topic_id, partition_id, max(enqueue_seq) as seq
        from "__SCHEMA__".__PREFIX___message group by topic_id, partition_id
    ), done as (
        select last.topic_id, last.partition_id, last.seq, min(coalesce(o.offset_value, 0)) as until
        from last
        join "__SCHEMA__".__PREFIX___topic t on t.id = last.topic_id and t.aggressive_retention
        join "__SCHEMA__".__PREFIX___consumer_registration r on r.topic_id = last.topic_id
        left join "__SCHEMA__".__PREFIX___consumer_offset o on o.consumer_group = r.consumer_group
            and o.topic_id = last.topic_id and o.partition_id = last.partition_id
        group by last.topic_id, last.partition_id, last.seq
        having max(coalesce(o.offset_value, 0)) <= last.seq
    )
    delete from "__SCHEMA__".__PREFIX___message m using done
    where m.topic_id = done.topic_id and m.partition_id = done.partition_id
      and m.enqueue_seq <= done.until and m.enqueue_seq < done.seq;
$$;
