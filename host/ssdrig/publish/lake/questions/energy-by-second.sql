-- Energy by the second, from the samples: every rail of every run, on seconds of the host's clock.
-- A sample stands for dt_ns before t_ns; what of that lies before the second is the second's before. A second in which
-- conversions were lost holds what was filled in for them.
WITH files AS (
    SELECT file, any_value(run) AS run, any_value(part) AS part, any_value(rail) AS rail FROM sample GROUP BY file
), split AS (
    SELECT file, second, count(*) AS samples, sum(W * dt_ns) * 1e-9 AS all_J,
        sum(CASE WHEN (t_s - second) * 1e9 < dt_ns THEN W * (dt_ns - (t_s - second) * 1e9) ELSE 0 END) * 1e-9 AS before_J
    FROM (SELECT file, floor(t_ns * 1e-9)::INT AS second, t_ns * 1e-9 AS t_s, V::DOUBLE * I AS W, dt_ns FROM sample)
    GROUP BY ALL
), pieces AS (
    SELECT file, second, samples, 0 AS lost, all_J - before_J AS J FROM split
    UNION ALL
    SELECT file, second - 1, 0, 0, before_J FROM split WHERE before_J <> 0
    UNION ALL
    SELECT file, floor(t_ns * 1e-9)::INT, 0, lost, gap_J FROM sample WHERE gap_ns IS NOT NULL
)
SELECT f.run, f.part, f.rail, a.second, sum(a.samples)::BIGINT AS samples, sum(a.lost)::BIGINT AS lost,
    sum(a.J) AS energy_J
FROM pieces a JOIN files f ON f.file = a.file
GROUP BY f.file, f.run, f.part, f.rail, a.second
ORDER BY f.run, f.part, f.rail, a.second;
