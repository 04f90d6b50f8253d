-- Runs whose figures deserve a second look: lost samples, a closure that is off, no calibration, an end that was none.
SELECT run, drive, state, samples, samples_lost, closure_percent, calibrated, simulated, scaled, raw_nand_assumed,
    len(notes) AS notes
FROM run
WHERE state <> 'complete' OR samples_lost > 0 OR abs(closure_percent) > 0.5 OR calibrated IS NOT true OR len(notes) > 0
ORDER BY t_utc, run;
