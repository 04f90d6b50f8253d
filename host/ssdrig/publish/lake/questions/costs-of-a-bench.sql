-- What the benches did: runs, hours, joules and samples by lab and day.
SELECT r.date, r.lab, count(*) AS runs, count(DISTINCT r.drive) AS drives, sum(s.seconds) / 3600 AS hours,
    sum(s.energy_J) AS energy_J, sum(r.samples) AS samples, sum(r.samples_lost) AS samples_lost
FROM run r LEFT JOIN (
    SELECT run, export, count(*) AS seconds, sum(energy_J) AS energy_J FROM second GROUP BY ALL) s USING (run, export)
GROUP BY ALL
ORDER BY r.date, r.lab;
