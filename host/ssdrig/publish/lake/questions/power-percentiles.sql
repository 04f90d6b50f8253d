-- How peaky the power is: mean, percentiles and highest sample of each rail, from every sample.
SELECT run, drive, rail, count(*) AS samples, avg(V::DOUBLE * I) AS mean_W, quantile_cont(V * I, 0.5) AS p50_W,
    quantile_cont(V * I, 0.99) AS p99_W, quantile_cont(V * I, 0.999) AS p999_W, max(V * I) AS max_W
FROM sample
GROUP BY ALL
ORDER BY max_W DESC, run, rail;
