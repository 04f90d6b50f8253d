-- The slowest seconds of each step of a run, with their power: is a stall garbage collection, or a nap?
SELECT drive, run, step, round, point, second, coalesce(read_ios, 0) + coalesce(write_ios, 0) AS ios,
    greatest(read_p99_ns, write_p99_ns) / 1e3 AS p99_us, power_mean_W, power_max_W
FROM second
WHERE coalesce(read_ios, write_ios) IS NOT NULL AND NOT partial
QUALIFY row_number() OVER (PARTITION BY run, part, step, round, point ORDER BY ios, second) <= 5
ORDER BY drive, run, step, round, point, ios, second;
