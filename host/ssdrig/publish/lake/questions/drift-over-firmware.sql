-- Drift of a drive over firmware: the same plan on the same drive, run by run, against its first firmware.
-- Runs are compared with those that had the same parameters (except the seed) and used as much of the drive.
SELECT f.drive, r.plan, f.step, f.point, r.op_percent, r.firmware, r.t_utc AS started,
    f.iops_mean, f.clat_p99_us, f.power_mean_W, f.wa,
    round(100 * (f.iops_mean / first_value(f.iops_mean) OVER w - 1), 1) AS iops_percent,
    round(100 * (f.power_mean_W / first_value(f.power_mean_W) OVER w - 1), 1) AS power_percent, r.simulated
FROM figure f JOIN run r USING (run, export)
WHERE f.window_name IN ('steady', 'all') AND f.iops_mean > 0
WINDOW w AS (
    PARTITION BY f.drive, r.plan, r.variant, r.op_percent, r.tested_bytes, f.step, f.point, f.window_name,
        regexp_replace(r.params, '"seed": [0-9]+', '')
    ORDER BY r.t_utc)
QUALIFY row_number() OVER (PARTITION BY r.run, f.step, f.point, f.round ORDER BY f.window_name DESC) = 1
ORDER BY f.drive, r.plan, f.step, f.point, r.t_utc, r.run;
