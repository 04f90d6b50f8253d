-- Power cuts: how many were judged and how many broke a promise, by drive, aim and shape; what came back, how fast.
SELECT drive, aim, shape, count(*) AS judged, count(*) FILTER (failed) AS failed,
    sum(lost_volatile) AS lost_volatile, median(ready_s) AS ready_s, max(ready_s) AS ready_most_s,
    median(holdup_us) AS holdup_us, median(boot_J) AS boot_J
FROM cut
WHERE judged AND control IS NULL
GROUP BY ALL
ORDER BY failed DESC, drive, aim, shape;
