-- Heat: the highest temperature that each drive reported in a run, and what its power and throttle counters did.
SELECT drive, run, count(*) AS polls, max(temperature_C) AS most_C,
    max(throttle_1_s) - min(throttle_1_s) AS throttled_light_s, max(throttle_2_s) - min(throttle_2_s) AS throttled_heavy_s,
    (SELECT max(power_mean_W) FROM second s WHERE s.run = smart.run) AS busiest_second_W
FROM smart
GROUP BY drive, run
ORDER BY most_C DESC NULLS LAST, drive, run;
