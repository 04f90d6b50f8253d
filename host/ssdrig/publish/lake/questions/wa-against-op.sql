-- Write amplification against over-provisioning: what spare area buys, drive by drive.
-- A raw NAND that was assumed says so: op_percent is then a guess.
SELECT f.drive, r.plan, f.step, f.point, r.op_percent, r.raw_nand_assumed, count(*) AS windows,
    avg(f.wa) AS wa, max(f.wa_error) AS wa_error,
    avg(f.iops_mean) AS iops_mean, avg(f.energy_uJ_per_io) AS energy_uJ_per_io, bool_or(r.simulated) AS simulated
FROM figure f JOIN run r USING (run, export)
WHERE f.wa IS NOT NULL AND f.window_name = 'steady'
GROUP BY ALL
ORDER BY f.drive, r.plan, f.step, f.point, r.op_percent;
