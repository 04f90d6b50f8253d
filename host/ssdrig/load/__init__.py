"""The load: fio's jobs, its clock and its logs."""
