-- What is missing, damaged or not understood in each recording: no row means that nothing is.
-- needs: diagnostic
CREATE OR REPLACE VIEW losses AS
SELECT trace_id, severity, code, sum(count)::BIGINT AS how_often, min(byte_offset) AS first_at, any_value(message) AS for_example
FROM diagnostic WHERE severity <> 'info' GROUP BY ALL;
