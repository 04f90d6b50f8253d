-- Wear: what each drive has written in its life, and what a percent of it costs in host bytes.
WITH life AS (
    SELECT drive, min(t_utc) AS since, max(t_utc) AS until, max(percentage_used) AS used,
        max(percentage_used) - min(percentage_used) AS used_here,
        max(host_written_bytes) - min(host_written_bytes) AS host_bytes,
        max(nand_written_bytes) - min(nand_written_bytes) AS nand_bytes,
        max(media_errors) AS media_errors, max(unsafe_shutdowns) AS unsafe_shutdowns
    FROM smart
    GROUP BY drive
)
SELECT *, nand_bytes / nullif(host_bytes, 0) AS wa, host_bytes / nullif(used_here, 0) / 1e12 AS TB_per_percent
FROM life
ORDER BY used DESC NULLS LAST, drive;
