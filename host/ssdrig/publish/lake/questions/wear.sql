-- Wear: what each drive has written in its life, and what a percent of it costs in host bytes.
-- A ratio is of the polls that know both of its counters.
WITH life AS (
    SELECT drive, min(t_utc) AS since, max(t_utc) AS until, max(percentage_used) AS used,
        max(percentage_used) - min(percentage_used) AS used_here,
        max(host_written_bytes) - min(host_written_bytes) AS host_bytes,
        max(nand_written_bytes) - min(nand_written_bytes) AS nand_bytes,
        max(media_errors) AS media_errors, max(unsafe_shutdowns) AS unsafe_shutdowns
    FROM smart
    GROUP BY drive
), ratio AS (
    SELECT drive, max(host_written_bytes) FILTER (nand_written_bytes IS NOT NULL)
            - min(host_written_bytes) FILTER (nand_written_bytes IS NOT NULL) AS host,
        max(nand_written_bytes) FILTER (host_written_bytes IS NOT NULL)
            - min(nand_written_bytes) FILTER (host_written_bytes IS NOT NULL) AS nand,
        max(host_written_bytes) FILTER (percentage_used IS NOT NULL)
            - min(host_written_bytes) FILTER (percentage_used IS NOT NULL) AS host_of_used
    FROM smart
    GROUP BY drive
)
SELECT life.*, nand / nullif(host, 0) AS wa, host_of_used / nullif(used_here, 0) / 1e12 AS TB_per_percent
FROM life JOIN ratio USING (drive)
ORDER BY used DESC NULLS LAST, drive;
