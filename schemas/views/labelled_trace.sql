-- The recordings with their labels: FROM labelled_trace WHERE labels['branch'] = 'main'.
-- needs: trace, trace_label
CREATE OR REPLACE VIEW labelled_trace AS
SELECT t.*, coalesce(l.labels, MAP {}) AS labels
FROM trace t
LEFT JOIN (
    SELECT trace_id, map_from_entries(list({'key': name, 'value': value} ORDER BY name)) AS labels
    FROM trace_label
    GROUP BY trace_id
) l USING (trace_id);
