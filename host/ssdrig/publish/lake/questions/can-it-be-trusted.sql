-- Runs whose figures deserve a second look: a bad trust strip, lost samples, closure, calibration, a failed end.
SELECT run, drive, state, bad, samples, samples_lost, closure_percent, calibrated, simulated, scaled, raw_nand_assumed,
    len(notes) AS notes
FROM run LEFT JOIN (
    SELECT run, export, list_sort(list_distinct(flatten(list(trust_bad)))) AS bad FROM figure GROUP BY run, export
) USING (run, export)
WHERE state <> 'complete' OR len(bad) > 0 OR samples_lost > 0 OR abs(closure_percent) > 0.5
    OR calibrated IS NOT true OR len(notes) > 0
ORDER BY t_utc, run;
