-- pgQueue's tables with all their keys, as DataHub's set-up leaves them in a database, before any
-- gateway was there. __SCHEMA__ and __PREFIX__ are replaced. Everything is made only where it is
-- missing, as DataHub does, so that it can run again over tables that exist.

create schema if not exists __SCHEMA__;

create table if not exists __SCHEMA__.__PREFIX___content_type (
    id smallint generated always as identity primary key,
    mime text not null unique
);
insert into __SCHEMA__.__PREFIX___content_type (mime) values ('application/avro') on conflict do nothing;

create table if not exists __SCHEMA__.__PREFIX___topic (
    id bigint generated always as identity primary key,
    topic_name text not null unique,
    partition_count int not null check (partition_count between 1 and 4096),
    retention_max_age_seconds int not null check (retention_max_age_seconds >= 0),
    max_rows_per_topic bigint not null check (max_rows_per_topic >= 0),
    max_total_payload_bytes bigint not null check (max_total_payload_bytes >= 0),
    default_content_type_id smallint references __SCHEMA__.__PREFIX___content_type (id),
    aggressive_retention boolean not null default false,
    created_at timestamptz not null default now()
);

create table if not exists __SCHEMA__.__PREFIX___message (
    id bigint generated always as identity,
    topic_id bigint not null references __SCHEMA__.__PREFIX___topic (id) on delete cascade,
    partition_id int not null,
    routing_key text not null,
    enqueue_seq bigint not null,
    priority smallint not null default 5,
    payload bytea not null,
    content_type_id smallint references __SCHEMA__.__PREFIX___content_type (id),
    payload_compression smallint not null default 0 check (payload_compression >= 0),
    headers jsonb,
    payload_bytes bigint generated always as (octet_length(payload)) stored,
    enqueued_at timestamptz not null default now(),
    primary key (id, enqueued_at),
    unique (topic_id, partition_id, enqueue_seq, enqueued_at),
    constraint __PREFIX___message_priority_range check (priority between 0 and 9)
) partition by range (enqueued_at);
create index if not exists idx___PREFIX___message_dequeue
    on __SCHEMA__.__PREFIX___message (topic_id, partition_id, priority, enqueue_seq);
create index if not exists idx___PREFIX___message_enqueued_brin
    on __SCHEMA__.__PREFIX___message using brin (enqueued_at);

create table if not exists __SCHEMA__.__PREFIX___consumer_offset (
    id bigint generated always as identity primary key,
    consumer_group text not null,
    topic_id bigint not null references __SCHEMA__.__PREFIX___topic (id) on delete cascade,
    partition_id int not null check (partition_id >= 0),
    offset_value bigint not null default 0,
    epoch bigint not null default 0,
    unique (consumer_group, topic_id, partition_id)
);

create table if not exists __SCHEMA__.__PREFIX___message_group_lease (
    id bigint generated always as identity primary key,
    message_id bigint not null,
    message_enqueued_at timestamptz not null,
    consumer_group text not null,
    lock_owner text not null,
    locked_until timestamptz not null,
    constraint __PREFIX___message_group_lease_unique_msg_group
        unique (message_id, message_enqueued_at, consumer_group),
    constraint __PREFIX___message_group_lease_msg_fk
        foreign key (message_id, message_enqueued_at)
        references __SCHEMA__.__PREFIX___message (id, enqueued_at) on delete cascade
);
create index if not exists idx___PREFIX___message_group_lease_group_unlocked
    on __SCHEMA__.__PREFIX___message_group_lease (consumer_group, locked_until);

create table if not exists __SCHEMA__.__PREFIX___consumer_registration (
    id bigint generated always as identity primary key,
    consumer_group text not null,
    topic_id bigint not null references __SCHEMA__.__PREFIX___topic (id) on delete cascade,
    registered_at timestamptz not null default now(),
    last_heartbeat_at timestamptz not null default now(),
    unique (consumer_group, topic_id)
);

-- DataHub leaves the time partitions to pg_partman: one a day, four ahead and four behind, with its
-- names, and the default partition that it makes unless told otherwise. This stands in for it.
do $$
declare
    day date;
begin
    if not exists (select from pg_inherits where inhparent = '__SCHEMA__.__PREFIX___message'::regclass) then
        for day in
            select generate_series(today - 4, today + 4, interval '1 day')::date
            from (select (now() at time zone 'UTC')::date as today) as clock
        loop
            execute format(
                'create table __SCHEMA__.%I partition of __SCHEMA__.__PREFIX___message for values from (%L) to (%L)',
                '__PREFIX___message_p' || to_char(day, 'YYYYMMDD'),
                day || ' 00:00:00+00', day + 1 || ' 00:00:00+00');
        end loop;
        create table __SCHEMA__.__PREFIX___message_default
            partition of __SCHEMA__.__PREFIX___message default;
    end if;
end
$$;
