-- What an I/O costs: µJ per I/O and J per GB of each drive, the thriftiest first.
SELECT r.plan, f.step, f.point, f.drive, f.window_name, f.energy_uJ_per_io, f.energy_J_per_GB, f.iops_mean, f.power_mean_W,
    f.power_uncertainty_percent, r.simulated
FROM figure f JOIN run r USING (run, export)
WHERE f.energy_uJ_per_io IS NOT NULL
ORDER BY r.plan, f.step, f.point, f.energy_uJ_per_io, f.drive, r.run, f.window_name;
