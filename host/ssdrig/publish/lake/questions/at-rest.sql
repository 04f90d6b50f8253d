-- What a drive does without any I/O: power of steps without I/O, second by second.
-- above_J: energy above the quietest tenth of the same step, which is background work.
WITH quiet AS (
    SELECT run, part, step, round, point, quantile_cont(power_mean_W, 0.1) AS floor_W
    FROM second
    WHERE coalesce(read_ios, write_ios, trim_ios) IS NULL AND power_mean_W IS NOT NULL
    GROUP BY ALL
)
SELECT s.drive, s.run, s.step, s.round, s.point, count(*) AS seconds, q.floor_W, max(s.power_mean_W) AS most_W,
    sum(s.energy_J) AS energy_J, sum(greatest(s.power_mean_W - q.floor_W, 0)) AS above_J
FROM second s JOIN quiet q ON (q.run, q.part, q.step) = (s.run, s.part, s.step)
    AND q.round IS NOT DISTINCT FROM s.round AND q.point IS NOT DISTINCT FROM s.point
WHERE coalesce(s.read_ios, s.write_ios, s.trim_ios) IS NULL AND s.power_mean_W IS NOT NULL
GROUP BY ALL
ORDER BY above_J DESC, s.run, s.step, s.round, s.point;
