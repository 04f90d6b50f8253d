-- Efficiency frontier: the drives that no other one beats in both IOPS and watts.
-- Of each drive its latest run of each plan, in the window `steady` or, where there is none, `all`.
WITH latest AS (
    SELECT r.plan, f.drive, f.step, f.point, f.iops_mean, f.power_mean_W, f.iops_per_W, r.simulated
    FROM figure f JOIN run r USING (run, export)
    WHERE f.window_name IN ('steady', 'all') AND f.iops_mean > 0 AND f.power_mean_W > 0 AND r.state = 'complete'
    QUALIFY row_number() OVER (
        PARTITION BY r.plan, f.drive, f.step, f.point ORDER BY r.t_utc DESC, f.window_name DESC, f.t_ns DESC) = 1
)
SELECT plan, step, point, drive, iops_mean, power_mean_W, iops_per_W, simulated
FROM latest a
WHERE NOT EXISTS (
    SELECT 1 FROM latest b
    WHERE b.plan = a.plan AND b.step = a.step AND b.point IS NOT DISTINCT FROM a.point
      AND b.iops_mean >= a.iops_mean AND b.power_mean_W <= a.power_mean_W
      AND (b.iops_mean > a.iops_mean OR b.power_mean_W < a.power_mean_W))
ORDER BY plan, step, point, iops_mean, drive;
