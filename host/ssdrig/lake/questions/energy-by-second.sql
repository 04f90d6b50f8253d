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
), gaps AS (
    SELECT file, floor(t_ns * 1e-9)::INT AS second, sum(lost) AS lost, sum(gap_J) AS gap_J
    FROM sample
    WHERE gap_ns IS NOT NULL
    GROUP BY ALL
)
SELECT f.run, f.part, f.rail, a.second, a.samples, coalesce(g.lost, 0) AS lost,
    a.all_J - a.before_J + coalesce(b.before_J, 0) + coalesce(g.gap_J, 0) AS energy_J
FROM split a
    JOIN files f ON f.file = a.file
    LEFT JOIN split b ON (b.file, b.second) = (a.file, a.second + 1)
    LEFT JOIN gaps g ON (g.file, g.second) = (a.file, a.second)
ORDER BY f.run, f.part, f.rail, a.second;
