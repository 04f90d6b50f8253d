-- Energy by the second, from the samples: every rail of every run, on seconds of the host's clock.
-- A sample stands for dt_ns before t_ns; what of that lies before the second is the second's before. A second in which
-- conversions were lost holds what was filled in for them.
WITH split AS (
    SELECT run, part, rail, t_ns // 1000000000 AS second, count(*) AS samples, sum(V::DOUBLE * I * dt_ns) * 1e-9 AS all_J,
        sum(CASE WHEN t_ns % 1000000000 < dt_ns THEN V::DOUBLE * I * (dt_ns - t_ns % 1000000000) ELSE 0 END) * 1e-9
            AS before_J
    FROM sample
    GROUP BY ALL
), gaps AS (
    SELECT run, part, rail, t_ns // 1000000000 AS second, sum(lost) AS lost, sum(gap_J) AS gap_J
    FROM sample
    WHERE gap_ns IS NOT NULL
    GROUP BY ALL
)
SELECT a.run, a.part, a.rail, a.second, a.samples, coalesce(g.lost, 0) AS lost,
    a.all_J - a.before_J + coalesce(b.before_J, 0) + coalesce(g.gap_J, 0) AS energy_J
FROM split a
    LEFT JOIN split b ON (b.run, b.part, b.rail, b.second) = (a.run, a.part, a.rail, a.second + 1)
    LEFT JOIN gaps g ON (g.run, g.part, g.rail, g.second) = (a.run, a.part, a.rail, a.second)
ORDER BY a.run, a.part, a.rail, a.second;
