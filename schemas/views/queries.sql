-- Queries of databases: activities with the text of a command, by SqlClient, Entity Framework Core or the tags of an ActivitySource.
-- touches_gap: events are lost, so that the end is not known.
-- needs: activity
CREATE OR REPLACE VIEW queries AS
SELECT * FROM (
    SELECT trace_id, process_id, start_ts, start_ts_ns, provider_name, name, duration_ns / 1e6 AS duration_ms, outcome,
           coalesce(start_fields ->> '$.CommandText', start_fields ->> '$.commandText', end_fields ->> '$.tags."db.query.text"',
                    end_fields ->> '$.tags."db.statement"', start_fields ->> '$.tags."db.query.text"',
                    start_fields ->> '$.tags."db.statement"') AS text,
           coalesce(start_fields ->> '$.Database', start_fields ->> '$.databaseName', start_fields ->> '$.database',
                    end_fields ->> '$.tags."db.namespace"', end_fields ->> '$.tags."db.name"') AS database,
           touches_gap, thread_id, callsite_id, activity_id, parent_activity_id
    FROM activity
) WHERE text IS NOT NULL;
