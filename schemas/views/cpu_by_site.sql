-- CPU samples by the method that ran, which is the innermost frame of the stack, and by own_method, the nearest method outwards that is
-- the user's own. Samples of an idle processor are left out. external_samples are those that the runtime's sampler took of threads outside of
-- managed code, of which it does not see whether they run. unsure_samples are those of which the recording does not say whether they are
-- own_method's or of another own method that the compiler put into it; may_belong_to names such methods.
-- needs: cpu_sample, site
CREATE OR REPLACE VIEW cpu_by_site AS
SELECT c.trace_id, c.process_id, s.name AS method, s.own_method,
       coalesce(sum(c.sample_count) FILTER (c.kind IS DISTINCT FROM 'external'), 0)::BIGINT AS samples,
       coalesce(sum(c.sample_count) FILTER (c.kind = 'external'), 0)::BIGINT AS external_samples,
       coalesce(sum(c.sample_count) FILTER (c.kind IS DISTINCT FROM 'external' AND s.may_belong_to IS NOT NULL), 0)::BIGINT AS unsure_samples,
       max(s.may_belong_to) AS may_belong_to
FROM cpu_sample c JOIN site s ON s.trace_id = c.trace_id AND s.callsite_id = c.callsite_id
WHERE c.kind IS DISTINCT FROM 'idle'
GROUP BY ALL;
